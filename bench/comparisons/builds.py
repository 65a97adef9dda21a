"""builds: the user time of requests of all kinds, by this build and by another, which KIRIN_OTHER
names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import certificate
import grpc_echo
import page
from comparison import Budget, Comparison, Entrant
from comparisons import proxy, psgi, small_file
from host import BENCH, Host, Server, free_port
from load import HttpLoad, Load
from peers import kirin
from tls_load import Http2Load

PATH = "/page"
PAGE = page.html(1024)
PAGES = {PATH: kirin.html(PAGE)}


@dataclass(frozen=True)
class Kind:
    """A kind of request, and the server for it. The server's name is given."""

    load: Load
    start: Callable[[Host, str], Server]


def proxied(cache_megabytes: int) -> Callable[[Host, str], Server]:
    """Returns how a proxy of this build is started."""

    def start(host: Host, name: str) -> Server:
        behind = proxy.upstream(host, name)
        return kirin.proxy_to(host, f"127.0.0.1:{behind.port}", name=name, cache_megabytes=cache_megabytes)

    return start


def grpc_proxied(host: Host, name: str) -> Server:
    """Starts a proxy in front of an echo of gRPC calls, whose CPU time does not count."""
    port = free_port()
    command = [sys.executable, BENCH / "grpc_echo.py", str(port)]
    host.start(f"echo-{name}", command, port=port, beside_load=True)
    return kirin.proxy_to(host, f"h2c://127.0.0.1:{port}", name=name)


KINDS = (
    Kind(
        HttpLoad("store page, 1 KB", path=PATH, expect=PAGE),
        lambda host, name: kirin.start(host, name, pages=PAGES),
    ),
    Kind(
        HttpLoad("small file, 1 KB", path="/small.html", expect=small_file.FILE),
        lambda host, name: kirin.start(host, name, places=(f"files:{small_file.public(host)}",)),
    ),
    Kind(
        HttpLoad("small file by new connections", path="/small.html", expect=small_file.FILE, keep_alive=False),
        lambda host, name: kirin.start(host, name, places=(f"files:{small_file.public(host)}",)),
    ),
    Kind(HttpLoad("proxied, 1 KB", path="/small.html", expect=proxy.SMALL), proxied(0)),
    Kind(HttpLoad("cache hit, 1 KB", path="/small.html", expect=proxy.SMALL), proxied(proxy.CACHE_MEGABYTES)),
    Kind(
        HttpLoad("PSGI hello", expect=psgi.HELLO),
        lambda host, name: kirin.start(host, name, places=("app:web",), app=kirin.App(psgi.HELLO_APP, psgi.WORKERS)),
    ),
    Kind(
        HttpLoad("PSGI hello by new connections", expect=psgi.HELLO, keep_alive=False),
        lambda host, name: kirin.start(host, name, places=("app:web",), app=kirin.App(psgi.HELLO_APP, psgi.WORKERS)),
    ),
    Kind(
        Http2Load("HTTP/2 store page, 1 KB", path=PATH, expect=PAGE, tls=False),
        lambda host, name: kirin.start(host, name, pages=PAGES),
    ),
    Kind(
        Http2Load("HTTP/2 small file, 1 KB", path="/small.html", expect=small_file.FILE, tls=False),
        lambda host, name: kirin.start(host, name, places=(f"files:{small_file.public(host)}",)),
    ),
    Kind(
        Http2Load("HTTP/2 PSGI hello", path="/", expect=psgi.HELLO, tls=False),
        lambda host, name: kirin.start(host, name, places=("app:web",), app=kirin.App(psgi.HELLO_APP, psgi.WORKERS)),
    ),
    Kind(
        Http2Load(
            "HTTP/2 gRPC echo, proxied",
            path="/echo.Echo/Echo",
            expect=grpc_echo.MESSAGE,
            tls=False,
            body=grpc_echo.MESSAGE,
            fields=grpc_echo.FIELDS,
        ),
        grpc_proxied,
    ),
    Kind(
        Http2Load("HTTP/2 over TLS, store page", path=PATH, expect=PAGE, tls=True),
        lambda host, name: kirin.start(host, name, pages=PAGES, tls=certificate.make(host.directory)),
    ),
    Kind(
        HttpLoad("TLS, store page", path=PATH, expect=PAGE, tls=True),
        lambda host, name: kirin.start(host, name, pages=PAGES, tls=certificate.make(host.directory)),
    ),
)


def entrant(number: int, kind: Kind, is_this: bool) -> Entrant:
    """Returns a row: one build with the server for one kind of request."""

    def start(host: Host) -> Server:
        this = host.kirin
        if not is_this:
            host.kirin = Path(os.environ.get("KIRIN_OTHER", this))
        try:
            return kind.start(host, f"kirin-{'this' if is_this else 'other'}-{number}")
        finally:
            host.kirin = this

    title = kind.load.title
    return Entrant("kirin", row(kind, is_this), start, lambda load: load.title == title)


def row(kind: Kind, is_this: bool) -> str:
    return f"{'this' if is_this else 'the other'} build: {kind.load.title.split(',')[0]}"


COMPARISON = Comparison(
    name="builds",
    question="What has become of the cost of each kind of request since another build?",
    entrants=tuple(
        entrant(number, kind, is_this) for number, kind in enumerate(KINDS) for is_this in (False, True)
    ),
    loads=tuple(kind.load for kind in KINDS),
    budgets=tuple(
        Budget("user time ≤ 1.00 × the other build", row(kind, True), row(kind, False), 1.0, kind.load.title, True)
        for kind in KINDS
    ),
    notes=(
        "`KIRIN_OTHER` names the program of the other build. Without it both are the same program, "
        "and the difference is the noise of the machine.",
        "Judge by user time: the kernel's part is four fifths, and the same for both. "
        "`bench/instructions.py` counts what times do not show.",
        "Behind the gRPC calls is `bench/grpc_echo.py`, in Python on the load's core: its CPU time counts for no build, and it "
        "limits the calls/s.",
    ),
    tool="wrk, and h2load for HTTP/2",
)
