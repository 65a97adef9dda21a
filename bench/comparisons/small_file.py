"""small-file: a static file of 1 KB."""

from __future__ import annotations

from pathlib import Path

import page
from comparison import Budget, Comparison, Entrant
from host import Host
from load import HttpLoad
from peers import floor, h2o, kirin, nginx

FILE = page.html(1024)


def public(host: Host) -> Path:
    """Creates the directory that every server serves."""
    directory = host.directory / "public"
    directory.mkdir(exist_ok=True)
    (directory / "small.html").write_bytes(FILE)
    return directory


_SERVERS = (
    Entrant("kirin", "kirin files", lambda host: kirin.start(host, places=(f"files:{public(host)}",))),
    Entrant("h2o", "h2o", lambda host: h2o.static_files(host, public(host))),
    Entrant("nginx", "nginx, Debian's settings", lambda host: nginx.files_debian(host, public(host))),
    Entrant("nginx", "nginx, tuned", lambda host: nginx.files_tuned(host, public(host))),
)
_FLOOR = Entrant("floor", "floor", lambda host: floor.start(host, body_bytes=len(FILE)))

CONNECTIONS_COMPARISON = Comparison(
    name="small-file-connections",
    question="A static file of 1 KB over a new connection for each request: what does a connection cost?",
    entrants=_SERVERS,
    loads=(
        HttpLoad("64 connections, each for one request", path="/small.html", expect=FILE, keep_alive=False),
    ),
    budgets=(Budget("≤ nginx, tuned", "kirin files", "nginx, tuned", 1.0),),
)

COMPARISON = Comparison(
    name="small-file",
    question="A static file of 1 KB, always the same: the work is finding it, not reading it.",
    entrants=(_FLOOR, *_SERVERS),
    loads=(HttpLoad("1 KB file, 64 connections kept", path="/small.html", expect=FILE),),
    budgets=(Budget("≤ 1.2 × floor", "kirin files", "floor", 1.2),),
    notes=(
        "Debian's nginx closes a connection after 1,000 requests (`keepalive_requests`); the tuned one does not.",
        "Heads differ (ETag, Last-Modified, Accept-Ranges): `answer bytes` is the whole answer.",
    ),
)
