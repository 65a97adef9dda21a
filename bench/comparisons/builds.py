"""builds: a page from memory by this build and by another, named by KIRIN_OTHER."""

from __future__ import annotations

import os
from pathlib import Path

import page
from comparison import Budget, Comparison, Entrant
from host import Host, Server
from load import HttpLoad
from peers import kirin

PATH = "/page"
PAGE = page.html(1024)
PAGES = {PATH: kirin.html(PAGE)}


def other(host: Host) -> Server:
    """Starts the other build, in the directory and on the cores of this one."""
    build, host.kirin = host.kirin, Path(os.environ.get("KIRIN_OTHER", host.kirin))
    try:
        return kirin.start(host, "kirin-other", pages=PAGES)
    finally:
        host.kirin = build


COMPARISON = Comparison(
    name="builds",
    question="What has become of the cost of a page from memory since another build?",
    entrants=(
        Entrant("kirin", "the other build", other),
        Entrant("kirin", "this build", lambda host: kirin.start(host, pages=PAGES)),
    ),
    loads=(HttpLoad("1 KB page, 64 connections kept", path=PATH, expect=PAGE),),
    budgets=(Budget("≤ 1.03 × the other build", "this build", "the other build", 1.03),),
    notes=(
        "`KIRIN_OTHER` names the program of the other build. Without it both are the same program, "
        "and the difference is the noise of the machine.",
    ),
)
