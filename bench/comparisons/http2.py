"""http2: files, a page from memory and an application over HTTP/2, encrypted and by prior knowledge."""

from __future__ import annotations

from collections.abc import Callable

import certificate
import page
from comparison import Budget, Comparison, Entrant
from comparisons import psgi
from host import Host, Server
from load import Load
from peers import h2o, kirin, nginx
from tls_load import Http2Load

PATH = "/page.html"
PAGE = page.html(1024)
LARGE_PATH = "/large.html"
LARGE = page.html(1_000_000)

FILE, STORED, LARGE_FILE, APPLICATION = "small file", "store page", "1 MB file", "PSGI hello"
FILES = (FILE, LARGE_FILE)
PEERS = (FILE, STORED, LARGE_FILE)
"""What the peers answer, all of it from files."""


def _title(kind: str, tls: bool) -> str:
    return f"{kind}, {'over TLS' if tls else 'by prior knowledge, without TLS'}"


def _load(kind: str, tls: bool) -> Http2Load:
    title = _title(kind, tls)
    if kind == LARGE_FILE:
        return Http2Load(title, LARGE_PATH, LARGE, tls, connections=4, streams=4)
    if kind == APPLICATION:
        return Http2Load(title, "/", psgi.HELLO, tls)
    return Http2Load(title, PATH, PAGE, tls)


def files(host: Host) -> str:
    """Creates the directory that every server serves."""
    directory = host.directory / "files"
    directory.mkdir(exist_ok=True)
    (directory / PATH[1:]).write_bytes(PAGE)
    (directory / LARGE_PATH[1:]).write_bytes(LARGE)
    return str(directory)


def _kirin_files(host: Host, tls: bool) -> Server:
    return kirin.start(host, _name("files", tls), places=(f"files:{files(host)}",), tls=_certificate(host, tls))


def _kirin_store(host: Host, tls: bool) -> Server:
    return kirin.start(host, _name("store", tls), pages={PATH: kirin.html(PAGE)}, tls=_certificate(host, tls))


def _kirin_app(host: Host, tls: bool) -> Server:
    app = kirin.App(psgi.HELLO_APP, psgi.WORKERS)
    return kirin.start(host, _name("app", tls), places=("app:web",), app=app, tls=_certificate(host, tls))


def _h2o(host: Host, tls: bool) -> Server:
    return h2o.static_files(host, files(host), _certificate(host, tls), name=f"h2o{'' if tls else '-plain'}")


def _nginx(host: Host, tls: bool) -> Server:
    return nginx.files_http2(host, files(host), tls)


def _name(what: str, tls: bool) -> str:
    return f"kirin-http2-{what}{'-tls' * tls}"


def _certificate(host: Host, tls: bool) -> certificate.Certificate | None:
    return certificate.make(host.directory) if tls else None


def _row(name: str, tls: bool) -> str:
    return name if tls else f"{name}, plain"


def _entrant(peer: str, name: str, start: Callable[[Host, bool], Server], kinds: tuple[str, ...], tls: bool) -> Entrant:
    """Returns a row that takes part in the loads of these kinds."""
    titles = {_title(kind, tls) for kind in kinds}

    def takes_part(load: Load) -> bool:
        return load.title in titles

    return Entrant(peer, _row(name, tls), lambda host: start(host, tls), takes_part)


OF_KIRIN = {FILE: "kirin files", STORED: "kirin store", LARGE_FILE: "kirin files", APPLICATION: "kirin app"}

COMPARISON = Comparison(
    name="http2",
    question="A file and a page from memory of 1 KB, an application, and a file of 1 MB, over HTTP/2.",
    entrants=tuple(
        _entrant(peer, name, start, kinds, tls)
        for tls in (True, False)
        for peer, name, start, kinds in (
            ("kirin", "kirin files", _kirin_files, FILES),
            ("kirin", "kirin store", _kirin_store, (STORED,)),
            ("kirin", "kirin app", _kirin_app, (APPLICATION,)),
            ("nginx", "nginx tuned", _nginx, PEERS),
            ("h2o", "h2o", _h2o, PEERS),
        )
    ),
    loads=tuple(_load(kind, tls) for kind in OF_KIRIN for tls in (True, False)),
    budgets=tuple(
        Budget("≤ h2o", _row(OF_KIRIN[kind], tls), _row("h2o", tls), 1.0, _title(kind, tls))
        for kind in PEERS
        for tls in (True, False)
    ),
    tool="h2load (nghttp2-client)",
    notes=(
        "16 connections with 10 streams each; for the file of 1 MB, 4 with 4 each. p99 is of all of h2load's requests.",
        "The page from memory is in Kirin's store. The peers serve a file with the same bytes.",
        "For the file of 1 MB read a server's CPU together with the load's, as in `large-file`: over the loopback interface the "
        "side that makes room in a socket sends on its own time.",
        f"The application is the smallest one, with {psgi.WORKERS} workers, whose time counts too. It has no peer here: compare it "
        "with another build (`builds`), and with the same over HTTP/1.1 (`psgi-hello`).",
        "nginx: keepalive_requests unlimited. TLS 1.3, ECDSA P-256.",
    ),
)
