"""classic-stack: nginx in front of Starlet, as at most PSGI sites, against Kirin alone."""

from __future__ import annotations

from pathlib import Path

import page
from comparison import Comparison, Entrant
from host import BENCH, Host, Server
from load import HttpLoad
from peers import kirin, nginx, starlet

WORKERS = 5
APP = BENCH / "apps" / "hello.psgi"
HELLO = b"Hello World"
FILE = page.html(1024)


def public(host: Host) -> Path:
    """Creates the directory with /static/small.html."""
    directory = host.directory / "public"
    (directory / "static").mkdir(parents=True, exist_ok=True)
    (directory / "static" / "small.html").write_bytes(FILE)
    return directory


def start_kirin(host: Host) -> Server:
    return kirin.start(host, places=("app:web",), app=kirin.App(APP, WORKERS), static=public(host))


def over_tcp(host: Host, keepalive: int) -> Server:
    behind = starlet.start(host, APP, WORKERS, f"starlet-tcp-{keepalive}")
    return nginx.proxy(host, f"nginx-tcp-{keepalive}", behind, keepalive=keepalive, directory=public(host))


def over_unix(host: Host, keepalive: int) -> Server:
    behind = starlet.start_unix(host, APP, WORKERS, f"starlet-unix-{keepalive}")
    return nginx.proxy(host, f"nginx-unix-{keepalive}", behind, keepalive=keepalive, directory=public(host))


COMPARISON = Comparison(
    name="classic-stack",
    question="nginx in front of Starlet, as most PSGI sites have it, against Kirin alone.",
    entrants=(
        Entrant("kirin", "kirin", start_kirin),
        Entrant("nginx", "nginx → TCP → Starlet", lambda host: over_tcp(host, 0)),
        Entrant("nginx", "nginx → TCP, kept → Starlet", lambda host: over_tcp(host, WORKERS)),
        Entrant("nginx", "nginx → unix → Starlet", lambda host: over_unix(host, 0)),
        Entrant("nginx", "nginx → unix, kept → Starlet", lambda host: over_unix(host, WORKERS)),
    ),
    loads=(
        HttpLoad("hello, 64 connections kept", expect=HELLO),
        HttpLoad("hello, 64 connections, each for one request", expect=HELLO, keep_alive=False),
        HttpLoad("1 KB file, 64 connections kept", path="/static/small.html", expect=FILE),
    ),
    notes=(
        f"All have {WORKERS} workers, and front and workers are all on the one core: CPU time is of all processes.",
        "nginx has the settings of its tuned rows elsewhere (open_file_cache, keepalive_requests unlimited, no log). "
        f"`kept` is `keepalive {WORKERS}` to the upstream, one connection a worker: more of them would wait for a worker "
        f"that belongs to another. Starlet ends each after {starlet.REQUESTS_PER_CONNECTION} requests, and those that "
        "nginx opens beyond them wait until then: p99 shows it.",
    ),
)
