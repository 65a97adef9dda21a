"""http2: a small file over HTTP/2, encrypted and by prior knowledge."""

from __future__ import annotations

from collections.abc import Callable

import certificate
import page
from comparison import Comparison, Entrant
from host import Host, Server
from load import Load
from peers import h2o, kirin, nginx
from tls_load import Http2Load

PATH = "/page.html"
PAGE = page.html(1024)


def _files(host: Host) -> str:
    directory = host.directory / "files"
    directory.mkdir(exist_ok=True)
    (directory / PATH[1:]).write_bytes(PAGE)
    return str(directory)


def _kirin(host: Host, tls: bool) -> Server:
    name = f"kirin-http2{'-tls' * tls}"
    return kirin.start(
        host, name, places=(f"files:{_files(host)}",), tls=certificate.make(host.directory) if tls else None
    )


def _is(tls: bool) -> Callable[[Load], bool]:
    return lambda load: getattr(load, "tls", False) == tls


COMPARISON = Comparison(
    name="http2",
    question="A file of 1 KB over HTTP/2, 16 connections with 10 streams each.",
    entrants=(
        Entrant("kirin", "kirin files", lambda host: _kirin(host, True), _is(True)),
        Entrant("nginx", "nginx tuned", lambda host: nginx.files_http2(host, _files(host), True), _is(True)),
        Entrant("h2o", "h2o", lambda host: h2o.static_files(host, _files(host), certificate.make(host.directory)), _is(True)),
        Entrant("kirin", "kirin files, plain", lambda host: _kirin(host, False), _is(False)),
        Entrant("nginx", "nginx tuned, plain", lambda host: nginx.files_http2(host, _files(host), False), _is(False)),
        Entrant("h2o", "h2o, plain", lambda host: h2o.static_files(host, _files(host), name="h2o-plain"), _is(False)),
    ),
    loads=(
        Http2Load("over TLS", path=PATH, expect=PAGE, tls=True),
        Http2Load("by prior knowledge, without TLS", path=PATH, expect=PAGE, tls=False),
    ),
    tool="h2load (nghttp2-client)",
    notes=(
        "p99 is of all of h2load's requests.",
        "nginx: keepalive_requests unlimited. TLS 1.3, ECDSA P-256.",
    ),
)
