"""Clients that send one fixed request after the other on a connection, and check little of the
answer. They cost little beside the server.
"""

from __future__ import annotations

import functools
import re
import socket
import ssl
import struct
from collections.abc import Sequence
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
    """A connection with prior knowledge, or with `h2` agreed by TLS, that has one stream after the other
    (RFC 9113), or several at once.
    """

    def __init__(
        self,
        port: int,
        target: str,
        fields: str = "",
        *,
        streams: int = 1,
        body: bytes = b"",
        connection: socket.socket | None = None,
    ) -> None:
        """Sends the preface. `fields` are header fields as `Http1` has them. `streams` requests are in
        one write. With a `body` they are POST.
        """
        self.socket = connection or socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WITHIN_SECONDS)
        self.socket.sendall(preface(LARGEST_WINDOW))
        authority = f"127.0.0.1:{port}".encode()
        # RFC 7541: indexed :method GET or POST and :scheme http or https; literal :path and
        # :authority, not indexed.
        method, scheme = b"\x83" if body else b"\x82", b"\x87" if isinstance(self.socket, ssl.SSLSocket) else b"\x86"
        self.head = method + scheme + literal(4, target.encode()) + literal(1, authority)
        self.fields = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in fields.splitlines())]
        self.streams, self.body = streams, body
        self.stream = 1
        self.open: set[int] = set()
        self.received = b""

    def __call__(self) -> None:
        is_first = self.stream == 1
        requests = b""
        for _ in range(self.streams):
            # Only the first request names its fields. Later ones have their indexes.
            head = self.head + (new_fields(self.fields) if is_first else known_fields(len(self.fields)))
            requests += frame(HEADERS, END_HEADERS if self.body else END_HEADERS | END_STREAM, self.stream, head)
            if self.body:
                requests += frame(DATA, END_STREAM, self.stream, self.body)
            self.open.add(self.stream)
            self.stream += 2
            is_first = False
        self.socket.sendall(requests)
        while self.open:
            self._read_frame()

    def _read_frame(self) -> None:
        """Reads a frame, which may end a stream."""
        while len(self.received) < 9 or len(self.received) < 9 + int.from_bytes(self.received[:3]):
            self.received += receive(self.socket)
        length, kind, flags = int.from_bytes(self.received[:3]), self.received[3], self.received[4]
        stream = int.from_bytes(self.received[5:9])
        self.received = self.received[9 + length :]
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0, b""))
        if kind in (RST_STREAM, GOAWAY):
            raise BenchError(f"HTTP/2 frame {kind} ended stream {stream}")
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            self.open.remove(stream)


# RFC 9113, 6: the types of frames, and their flags.
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4

LARGEST_WINDOW = 2**31 - 1
"""The largest window of flow control, in bytes."""

FIRST_WINDOW = 65_535
"""The window of a connection that has just begun, in bytes."""


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def preface(stream_window: int) -> bytes:
    """Returns what a client sends first. The connection gets the largest window, each stream the given
    one, in bytes.
    """
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(SETTINGS, 0, 0, b"\x00\x04" + stream_window.to_bytes(4))
        + window_update(0, LARGEST_WINDOW - FIRST_WINDOW)
    )


def window_update(stream: int, more: int) -> bytes:
    """Returns the frame that makes a window larger. Stream 0 is the connection."""
    return frame(WINDOW_UPDATE, 0, stream, more.to_bytes(4))


def string(value: bytes) -> bytes:
    """Returns a string literal without Huffman coding (RFC 7541, 5.2)."""
    if len(value) < 127:
        return bytes([len(value)]) + value
    low, high = (len(value) - 127) & 127, (len(value) - 127) >> 7
    if high > 127:
        raise BenchError(f"a field of {len(value)} bytes is too long for this client")
    return bytes([127, low | 128, high] if high else [127, low]) + value


def literal(name: int, value: bytes) -> bytes:
    """Returns a header field with an indexed name, which no table gets (RFC 7541, 6.2.2)."""
    return bytes([name]) + string(value)


def new_fields(fields: Sequence[tuple[str, str]]) -> bytes:
    """Returns header fields that the receiver puts into its table (RFC 7541, 6.2.1)."""
    return b"".join(b"\x40" + string(name.encode()) + string(value.encode()) for name, value in fields)


def known_fields(count: int) -> bytes:
    """Returns the header fields that are the last `count` in the receiver's table, in the order in which
    they were put there (RFC 7541, 6.1). 62 is the index of the last one.
    """
    return bytes(0x80 | 62 + place for place in reversed(range(count)))


def connect_http2(port: int, tls: bool, source: str = "") -> socket.socket:
    """Returns a connection for HTTP/2: by TLS with ALPN, or for prior knowledge. `source` is the address
    from which it comes. Its close is a reset, so that no port is in TIME_WAIT.
    """
    plain = socket.create_connection(
        ("127.0.0.1", port), timeout=ANSWER_WITHIN_SECONDS, source_address=(source, 0) if source else None
    )
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not tls:
        return plain
    encrypted = trusting_http2().wrap_socket(plain)
    if encrypted.selected_alpn_protocol() != "h2":
        raise BenchError(f"the server at {port} does not speak HTTP/2 over TLS")
    return encrypted


@functools.cache
def trusting_http2() -> ssl.SSLContext:
    """Returns a TLS context that offers HTTP/2 alone and accepts the certificates of the benchmark."""
    context = trusting()
    context.set_alpn_protocols(["h2"])
    return context


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
        raise BenchError("the server has closed the connection")
    return received
