"""access-log: what the access log costs for a page from memory."""

from __future__ import annotations

import page
from comparison import Budget, Comparison, Entrant
from load import HttpLoad
from peers import kirin, nginx

PATH = "/page"
PAGE = page.html(1024)

KIRIN_LOGS = {
    "kirin, combined": '"access.log"',
    "kirin, own format": """{ path = "own.log", format = '%h %m %U%q %>s %b %D "%{User-Agent}i"' }""",
    "kirin, json": '{ path = "json.log", format = "json" }',
    "kirin, only errors": '{ path = "errors.log", status = ["4xx", "5xx"] }',
}

COMPARISON = Comparison(
    name="access-log",
    question="A page of 1 KB from memory: what does a line a request cost, beside nginx?",
    entrants=(
        Entrant("kirin", "kirin, no log", lambda host: kirin.start(host, pages={PATH: kirin.html(PAGE)})),
        *(
            Entrant(
                "kirin",
                row,
                lambda host, row=row, log=log: kirin.start(
                    host,
                    row.replace(", ", "-").replace(" ", "-"),
                    pages={PATH: kirin.html(PAGE)},
                    access_log=log,
                ),
            )
            for row, log in KIRIN_LOGS.items()
        ),
        Entrant("nginx", "nginx, no log", lambda host: nginx.returning(host, PAGE)),
        Entrant("nginx", "nginx, buffered log", lambda host: nginx.returning_logged(host, PAGE, "buffer=32k flush=1s")),
        Entrant("nginx", "nginx, log", lambda host: nginx.returning_logged(host, PAGE, "")),
    ),
    loads=(HttpLoad("1 KB page, 64 connections kept", path=PATH, expect=PAGE),),
    budgets=(
        Budget("≤ 1.05 × no log", "kirin, combined", "kirin, no log", 1.05),
        Budget("≤ 1.05 × no log", "kirin, own format", "kirin, no log", 1.05),
    ),
    notes=(
        "CPU time counts the thread that writes the log. The files are in the directory of the comparison.",
        "Kirin gathers lines for a second or 32 KB, as nginx does with `buffer=32k flush=1s`.",
        "nginx answers with `return`, which does less than a look into the store. Compare each server with itself.",
    ),
)
