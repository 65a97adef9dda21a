#!/usr/bin/env python3
"""Sends WebSocket messages and waits for their echoes, for `WebSocketLoad`.

    websocket_trips.py PORT CONNECTIONS SECONDS

Each connection has one message on its way at a time. All are opened before the time begins.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time

TEXT = b"0123456789"
MASK = b"\x01\x02\x03\x04"
SENT = bytes((0x81, 0x80 | len(TEXT))) + MASK + bytes(byte ^ MASK[i & 3] for i, byte in enumerate(TEXT))
ECHO = bytes((0x81, len(TEXT))) + TEXT


def connect(port: int) -> socket.socket:
    """Opens a connection and switches it to WebSocket."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        received = connection.recv(4096)
        if not received:
            raise SystemExit("the connection has ended before its 101")
        head += received
    if not head.startswith(b"HTTP/1.1 101 "):
        raise SystemExit(f"no 101: {head!r}")
    return connection


def main(port: str, connections: str, seconds: str) -> None:
    """Sends until the time is over. Prints the numbers of the run."""
    selector = selectors.EpollSelector()
    started: dict[socket.socket, float] = {}
    for _ in range(int(connections)):
        connection = connect(int(port))
        selector.register(connection, selectors.EVENT_READ)
        started[connection] = 0.0
    taken = []
    start = time.monotonic()
    end = start + float(seconds)
    for connection in started:
        started[connection] = time.monotonic()
        connection.sendall(SENT)
    while (now := time.monotonic()) < end:
        for key, _events in selector.select(1.0):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            # A message of this size is one segment.
            if (received := connection.recv(64)) != ECHO:
                raise SystemExit(f"no echo: {received!r}")
            now = time.monotonic()
            taken.append((now - started[connection]) * 1e6)
            started[connection] = now
            connection.sendall(SENT)
    elapsed = time.monotonic() - start
    taken.sort()
    print(f"messages {len(taken)}\nseconds {elapsed:.6f}")
    print(f"p50_us {taken[len(taken) // 2]:.1f}\np99_us {taken[len(taken) * 99 // 100]:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
