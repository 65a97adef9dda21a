"""large-file: files that are large enough for sendfile."""

from __future__ import annotations

from pathlib import Path

import page
from comparison import Budget, Comparison, Entrant
from host import Host
from load import HttpLoad
from peers import h2o, kirin, nginx

SIZES = {"100 KB": page.html(100_000), "1 MB": page.html(1_000_000)}


def name_of(size: str) -> str:
    """Returns the name of the file with this size."""
    return f"{size.replace(' ', '')}.html"


def public(host: Host) -> Path:
    """Creates the directory that every server serves."""
    directory = host.directory / "public"
    directory.mkdir(exist_ok=True)
    for size, body in SIZES.items():
        (directory / name_of(size)).write_bytes(body)
    return directory


COMPARISON = Comparison(
    name="large-file",
    question="Static files of 100 KB and 1 MB: the work is moving bytes.",
    entrants=(
        Entrant("kirin", "kirin files", lambda host: kirin.start(host, places=(f"files:{public(host)}",))),
        Entrant("h2o", "h2o", lambda host: h2o.static_files(host, public(host))),
        Entrant("nginx", "nginx, Debian's settings", lambda host: nginx.files_debian(host, public(host))),
        Entrant("nginx", "nginx, tuned", lambda host: nginx.files_tuned(host, public(host))),
    ),
    loads=tuple(
        HttpLoad(f"{size} file, 64 connections kept", path=f"/{name_of(size)}", expect=body)
        for size, body in SIZES.items()
    ),
    budgets=(Budget("≤ nginx with sendfile", "kirin files", "nginx, tuned", 1.0),),
    notes=(
        "wrk has to read all of it: on one core it may be the slower side, and requests/s are then wrk's.",
        "Over the loopback interface a sender's kernel does the receiver's work as well, for as long as the receiver's window is "
        "open; what waits for the window is sent when the receiver acknowledges, on the receiver's CPU time. So read a server's "
        "CPU together with the load's. nginx with tcp_nopush off sends each head as a packet of its own, the window of wrk's "
        "sockets does not grow behind it, and most of a large file is then sent by wrk's core: less CPU of nginx, more of both.",
        "With BBR (`sysctl net.ipv4.tcp_congestion_control`) packets are paced by a timer, which costs where a second packet "
        "follows at once.",
    ),
)
