#!/usr/bin/env python3
"""Makes the requests by which a release is optimised.

`packaging/build-optimised` builds a Kirin that counts which way its code goes, and has this program
ask it for everything that a busy site has: pages, files, includes, applications, scripts, proxies,
the cache, HTTP/2, TLS and memcached. The compiler then puts what is usual first.

    bench/training.py --kirin target/debug/kirin --requests 10      # whether all of it is answered
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from instructions import (
    ANSWER_WITHIN_SECONDS,
    BENCH,
    BODY,
    BROWSER,
    INCLUDING,
    PAGE,
    PSGI,
    CountError,
    Http2,
    Memcached,
    receive,
    serve_upstream,
    wait_for,
)

CONNECTIONS = 16
"""Connections that ask at the same time, so that an event loop finds several requests at once."""

CONFIG = """\
threads = 1
[[listener]]
address = "127.0.0.1:0"
[[listener]]
address = "127.0.0.1:0"
access_log = "DIRECTORY/access.log"
[listener.tls]
certificates = [{ chain = "DIRECTORY/tls.pem", key = "DIRECTORY/tls.key" }]
[store]
memory = "64MB"
memcached = ["unix:DIRECTORY/store.sock"]
[[app]]
name = "web"
load = "DIRECTORY/app.psgi"
workers = 2
[[upstream]]
name = "behind"
servers = ["127.0.0.1:BEHIND"]
[[route]]
path = "/app"
try = ["app:web"]
[[route]]
path = "/script"
try = ["lua:DIRECTORY/page.lua"]
[[route]]
path = "/proxied"
try = ["proxy:behind"]
[[route]]
path = "/cached"
try = ["proxy:behind"]
cache = true
[[route]]
path = "/files"
try = ["files:DIRECTORY/public"]
[[route]]
path = "/"
try = ["store"]
"""

CERTIFICATE = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"

TARGETS = (
    ("/page", ""),
    ("/page", BROWSER),
    ("/including", ""),
    ("/files/small.html", ""),
    ("/files/small.html", BROWSER),
    ("/proxied/x", BROWSER),
    ("/cached/x", BROWSER),
    ("/app/x", BROWSER),
    ("/script/x", BROWSER),
)

SCRIPT = """\
local json, store, escape = kirin.json, kirin.store, kirin.escape
return function(request)
  local memos = json.decode(store.get("memos"))
  local parts = { "<!DOCTYPE html><title>Memos</title><ol>" }
  for _, memo in ipairs(memos) do
    parts[#parts + 1] = '<li><a href="/memo/' .. memo.id .. '">' .. escape(memo.title) .. "</a></li>"
  end
  return table.concat(parts) .. "</ol>\\n"
end
"""
MEMOS = json.dumps([{"id": number, "title": f"Walk <{number}> to the harbour"} for number in range(10)]).encode()


def connect(port: int, tls: bool) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WITHIN_SECONDS)
    if not tls:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


def ask(port: int, target: str, fields: str, requests: int, tls: bool = False) -> None:
    """Makes requests on several connections, on each of which one follows the other."""
    connections = [connect(port, tls) for _ in range(CONNECTIONS)]
    request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{fields}\r\n".encode()
    for _ in range(max(1, requests // CONNECTIONS)):
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            read_answer(connection, request)
    for connection in connections:
        connection.close()


def read_answer(connection: socket.socket, request: bytes) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += receive(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    if not head.startswith(b"HTTP/1.1 200 ") or length is None:
        raise CountError(f"{request!r} was answered {head!r}")
    left = int(length[1]) - len(body)
    while left > 0:
        left -= len(receive(connection))


def repeat(work: Callable[[], None], times: int) -> None:
    for _ in range(times):
        work()


@contextmanager
def started(program: Path) -> Iterator[tuple[int, int, Path]]:
    """Starts Kirin. Returns its ports without and with TLS, and its memcached socket. At the end it
    stops by itself, because only then it writes what it has counted."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "public/files").mkdir(parents=True)
        (directory / "public/files/small.html").write_bytes(BODY)
        (directory / "app.psgi").write_text(PSGI)
        (directory / "page.lua").write_text(SCRIPT)
        files = ["-keyout", f"{name}/tls.key", "-out", f"{name}/tls.pem"]
        subprocess.run(["openssl", *CERTIFICATE.split(), *files], check=True, capture_output=True, timeout=60)
        config = directory / "kirin.toml"
        config.write_text(CONFIG.replace("BEHIND", str(serve_upstream())).replace("DIRECTORY", name))
        log_path = directory / "log"
        with log_path.open("wb") as log:
            kirin = subprocess.Popen(
                [program, "serve", "--config", config],
                stdout=log,
                stderr=log,
                env={**os.environ, "KIRIN_ADMIN_DIRECTORY": name, "PERL5LIB": str(BENCH.parent / "adapters/perl/lib")},
            )

        def ports() -> list[str]:
            text = log_path.read_text(errors="replace")
            found = [re.search(rf"{scheme}://127\.0\.0\.1:(\d+)/?", text) for scheme in ("http", "https")]
            return [match[1] for match in found if match] if all(found) else []

        try:
            if not wait_for(lambda: kirin.poll() is not None or ports(), ANSWER_WITHIN_SECONDS) or not ports():
                raise CountError(f"Kirin does not start:\n{log_path.read_text(errors='replace')}")
            plain, tls = (int(port) for port in ports())
            yield plain, tls, directory / "store.sock"
            kirin.send_signal(signal.SIGINT)
            kirin.wait(timeout=ANSWER_WITHIN_SECONDS)
        finally:
            kirin.kill()
            kirin.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kirin", type=Path, required=True, help="the program")
    parser.add_argument("--requests", type=int, default=20000, help="requests of each kind (default 20000)")
    arguments = parser.parse_args()
    with started(arguments.kirin) as (plain, tls, store):
        for key, value in (("/page", PAGE), ("/including", INCLUDING), ("memos", MEMOS)):
            Memcached(store, b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value), b"STORED\r\n")()
        for target, fields in TARGETS:
            ask(plain, target, fields, arguments.requests)
            ask(tls, target, fields, arguments.requests // 4, tls=True)
        repeat(Http2(plain, "/page"), arguments.requests)
        repeat(Memcached(store, b"get /page\r\n", b"END\r\n"), arguments.requests)
        repeat(Memcached(store, b"set k 0 0 1024\r\n%s\r\n" % BODY, b"STORED\r\n"), arguments.requests // 8)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CountError as error:
        sys.exit(f"training: {error}")
