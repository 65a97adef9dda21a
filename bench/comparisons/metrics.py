"""metrics: what counting requests costs a page from memory."""

from __future__ import annotations

import page
from comparison import Budget, Comparison, Entrant
from host import Host, Server
from load import HttpLoad
from peers import kirin

PATH = "/page"
PAGE = page.html(1024)
PAGES = {PATH: kirin.html(PAGE)}


def counting(host: Host) -> Server:
    """Starts Kirin with an admin listener, which makes it count requests."""
    admin = f'\n[admin]\naddress = "unix:{host.directory}/admin.sock"\n'
    return kirin.start(host, "kirin-counting", pages=PAGES, more=admin)


COMPARISON = Comparison(
    name="metrics",
    question="Requests are counted by route, place and status class. What does that cost a page from memory?",
    entrants=(
        Entrant("kirin", "metrics off", lambda host: kirin.start(host, pages=PAGES)),
        Entrant("kirin", "metrics on", counting),
    ),
    loads=(HttpLoad("1 KB page, 64 connections kept", path=PATH, expect=PAGE),),
    budgets=(Budget("≤ 1.01 × without metrics", "metrics on", "metrics off", 1.01),),
    notes=("Nobody reads the metrics during the measurement.",),
)
