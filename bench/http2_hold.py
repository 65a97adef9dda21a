#!/usr/bin/env python3
"""Keeps idle HTTP/2 connections open, as `kirin-hold` does with those of HTTP/1.1.

    http2_hold.py PORT --connections 10000 --path /page [--tls]

Each connection has one request, reads its answer, and then does nothing until standard input ends.
The program prints `holding N` and, at the end, `open N closed N`. What a connection needs on this
side, such as the keys of TLS, is given up after the answer: only its socket is kept.
"""

from __future__ import annotations

import argparse
import socket
import sys

from host import BenchError
from raw_clients import Http2, connect_http2

PER_SOURCE = 10_000
"""The connections of each source address (127.0.0.2, 127.0.0.3, …). One address has 28,000 ports."""


def opened(port: int, path: str, tls: bool, number: int) -> socket.socket:
    """Returns the socket of a connection that has had its request."""
    connection = connect_http2(port, tls, f"127.0.0.{2 + number // PER_SOURCE}")
    Http2(port, path, connection=connection)()
    return socket.socket(fileno=connection.detach())


def is_open(connection: socket.socket) -> bool:
    """Returns whether the server has kept a connection. It may have sent something."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--path", default="/")
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    held: list[socket.socket] = []
    try:
        for number in range(options.connections):
            held.append(opened(options.port, options.path, options.tls, number))
    except (BenchError, OSError) as error:
        sys.exit(f"http2_hold: connection {len(held)}: {error}")
    print(f"holding {len(held)}", flush=True)
    sys.stdin.read()
    count = sum(map(is_open, held))
    print(f"open {count} closed {len(held) - count}")


if __name__ == "__main__":
    main()
