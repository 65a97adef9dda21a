"""http3: files and new connections over HTTP/3, beside Caddy."""

from __future__ import annotations

import certificate
from comparison import Budget, Comparison, Entrant
from comparisons.http2 import LARGE, LARGE_PATH, PAGE, PATH, files
from host import Host, Server
from http3_load import Http3Load
from peers import caddy, kirin


def of_kirin(host: Host) -> Server:
    """Starts Kirin with files over HTTP/3."""
    tls = certificate.make(host.directory)
    return kirin.start(host, "kirin-http3", places=(f"files:{files(host)}",), tls=tls, http3=True)


def of_caddy(host: Host) -> Server:
    """Starts Caddy with the same files."""
    return caddy.static_files(host, files(host), certificate.make(host.directory))


COMPARISON = Comparison(
    name="http3",
    question="A file of 1 KB, a file of 1 MB, and new connections over HTTP/3.",
    entrants=(Entrant("kirin", "kirin files", of_kirin), Entrant("caddy", "Caddy", of_caddy)),
    loads=(
        Http3Load("small file, 16 connections kept", PATH, PAGE),
        Http3Load("small file, 100 connections kept, one request at a time", PATH, PAGE, connections=100, streams=1),
        Http3Load("small file, 1,000 connections kept, one request at a time", PATH, PAGE, connections=1000, streams=1),
        Http3Load("1 MB file, 4 connections kept", LARGE_PATH, LARGE, connections=4, streams=4),
        Http3Load("a connection for each request", PATH, PAGE, connections=8, streams=0),
    ),
    budgets=(Budget("Caddy", "kirin files", "Caddy", 1.0),),
    notes=(
        "The load is quic-go, which needs more CPU than either server: it limits the requests a second.",
        "A round with 1,000 connections is short for their handshakes, which are in its figures.",
        "Debian's h2o and nginx are older than their HTTP/3.",
    ),
)
