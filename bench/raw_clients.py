"""Clients that send one fixed request after the other on a connection, and check little of the
answer. They cost little beside the server.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path

from host import BenchError
from load import trusting

ANSWER_WITHIN_SECONDS = 60.0


class Http1:
    """A kept connection that sends one request after the other."""

    def __init__(self, port: int, target: str, fields: str = "", tls: bool = False) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WITHIN_SECONDS)
        if tls:
            self.socket = trusting().wrap_socket(self.socket)
        self.request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{fields}\r\n".encode()

    def __call__(self) -> None:
        self.ask()
        self.read_answer()

    def ask(self) -> None:
        self.socket.sendall(self.request)

    def read_answer(self) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            received += receive(self.socket)
        head, _, body = received.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise BenchError(f"{self.request!r} was answered {head!r}")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if length is None:
            raise BenchError(f"{head!r} has no Content-Length")
        while len(body) < int(length[1]):
            body += receive(self.socket)


class Http2:
    """A connection with prior knowledge that has one stream after the other (RFC 9113)."""

    def __init__(self, port: int, target: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WITHIN_SECONDS)
        # No limit of flow control is met: the largest windows.
        window = (2**31 - 1).to_bytes(4)
        self.socket.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + frame(4, 0, 0, b"\x00\x04" + window)
            + frame(8, 0, 0, (2**31 - 1 - 65535).to_bytes(4))
        )
        authority = f"127.0.0.1:{port}".encode()
        # RFC 7541: indexed :method GET and :scheme http; literal :path and :authority, not indexed.
        self.head = b"\x82\x86" + literal(4, target.encode()) + literal(1, authority)
        self.stream = 1
        self.received = b""

    def __call__(self) -> None:
        self.socket.sendall(frame(1, 5, self.stream, self.head))
        while not self._has_ended():
            pass
        self.stream += 2

    def _has_ended(self) -> bool:
        """Reads a frame. Returns whether it ends the stream."""
        while len(self.received) < 9 or len(self.received) < 9 + int.from_bytes(self.received[:3]):
            self.received += receive(self.socket)
        length, kind, flags = int.from_bytes(self.received[:3]), self.received[3], self.received[4]
        stream = int.from_bytes(self.received[5:9])
        self.received = self.received[9 + length :]
        if kind == 4 and not flags & 1:
            self.socket.sendall(frame(4, 1, 0, b""))
        if kind in (3, 7):
            raise BenchError(f"HTTP/2 frame {kind} ended stream {stream}")
        return kind in (0, 1) and stream == self.stream and bool(flags & 1)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def literal(name: int, value: bytes) -> bytes:
    """Returns a header field with an indexed name and a short literal value (RFC 7541, 6.2.2)."""
    return bytes([name, len(value)]) + value


class Memcached:
    """A connection that sends one command after the other."""

    def __init__(self, store: Path, command: bytes, answer: bytes) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ANSWER_WITHIN_SECONDS)
        self.socket.connect(str(store))
        self.command, self.answer = command, answer

    def __call__(self) -> None:
        self.socket.sendall(self.command)
        received = b""
        while not received.endswith(self.answer):
            received += receive(self.socket)


def receive(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise BenchError("Kirin has closed the connection")
    return received
