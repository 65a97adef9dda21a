#!/usr/bin/env python3
"""Makes the requests by which a release is optimised.

`packaging/build-optimised` builds a Kirin that counts which way its code goes, and has this program
ask it for everything that a busy site has: pages, files, includes, applications, scripts, proxies,
the cache, HTTP/2, TLS and memcached. The compiler then puts what is usual first.

    bench/training.py --requests 10     # whether all of it is answered
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import certificate
from host import REPOSITORY, BenchError
from instructions import BODY, BROWSER, INCLUDING, PAGE, PSGI
from peers import memcached
from raw_clients import ANSWER_WITHIN_SECONDS, Http1, Http2, Memcached
from serving import serve_upstream, serving

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
certificates = [{ chain = "DIRECTORY/chain.pem", key = "DIRECTORY/key.pem" }]
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


def ask(port: int, target: str, fields: str, requests: int, tls: bool = False) -> None:
    """Makes requests on several connections, on each of which one follows the other."""
    clients = [Http1(port, target, fields, tls) for _ in range(CONNECTIONS)]
    for _ in range(max(1, requests // CONNECTIONS)):
        for client in clients:
            client.ask()
        for client in clients:
            client.read_answer()
    for client in clients:
        client.socket.close()


def repeat(work: Callable[[], None], times: int) -> None:
    for _ in range(times):
        work()


@contextmanager
def started(program: Path) -> Iterator[tuple[int, int, Path]]:
    """Starts Kirin. Returns its ports without and with TLS, and its directory. At the end it stops by
    itself, because only then it writes what it has counted.
    """
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "public/files").mkdir(parents=True)
        (directory / "public/files/small.html").write_bytes(BODY)
        (directory / "app.psgi").write_text(PSGI)
        (directory / "page.lua").write_text(SCRIPT)
        certificate.make(directory)
        config = CONFIG.replace("BEHIND", str(serve_upstream(BODY))).replace("DIRECTORY", name)
        (directory / "kirin.toml").write_text(config)
        with serving([program], directory, ("http", "https")) as (kirin, [plain, tls]):
            yield plain, tls, directory
            kirin.send_signal(signal.SIGINT)
            kirin.wait(timeout=ANSWER_WITHIN_SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    built = os.environ.get("KIRIN_BINARY", REPOSITORY / "target/debug/kirin")
    parser.add_argument("--kirin", type=Path, default=built, help="the program (default KIRIN_BINARY, or that of `make build`)")
    parser.add_argument("--requests", type=int, default=20000, help="requests of each kind (default 20000)")
    arguments = parser.parse_args()
    with started(arguments.kirin) as (plain, tls, directory):
        store = directory / "store.sock"
        for key, value in (("/page", PAGE), ("/including", INCLUDING), ("memos", MEMOS)):
            memcached.set_item(f"unix:{store}", key, value)
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
    except BenchError as error:
        sys.exit(f"training: {error}")
