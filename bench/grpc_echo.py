#!/usr/bin/env python3
"""Answers gRPC calls with their own messages, as a cheap upstream without TLS (`h2c://`).

    grpc_echo.py PORT

It speaks HTTP/2 by raw frames (RFC 9113) and looks at no header field: each request is a call, and
each is answered 200 with its body and `grpc-status: 0` in the trailers. Messages are small: the
windows of the other side are not looked at.
"""

from __future__ import annotations

import socket
import sys
import threading

from raw_clients import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    FIRST_WINDOW,
    HEADERS,
    LARGEST_WINDOW,
    PING,
    SETTINGS,
    frame,
    string,
    window_update,
)

MESSAGE = b"\x00\x00\x00\x00\x0bHello World"
"""A message of a call, with the five bytes before it: not compressed, 11 bytes."""

FIELDS = ("content-type: application/grpc", "te: trailers")
"""The header fields of a call."""

PREFACE_BYTES = 24

# RFC 7541: indexed :status 200; literals without indexing, the name of the first one is entry 31.
HEAD = b"\x88\x0f\x10" + string(b"application/grpc")
TRAILERS = b"\x00" + string(b"grpc-status") + string(b"0")

GIVEN_BACK = 1 << 20
"""The bytes after which the window of a connection gets them back."""


class Connection:
    """What has come on a connection, up to the frame that is not complete."""

    def __init__(self) -> None:
        self.received = b""
        self.bodies: dict[int, bytes] = {}
        self.taken = 0

    def answer(self, received: bytes) -> bytes:
        """Returns what these bytes are answered with."""
        self.received += received
        sent, at = [], 0
        while len(self.received) >= at + 9:
            end = at + 9 + int.from_bytes(self.received[at : at + 3])
            if len(self.received) < end:
                break
            kind, flags = self.received[at + 3], self.received[at + 4]
            stream = int.from_bytes(self.received[at + 5 : at + 9])
            sent.append(self._answer_frame(kind, flags, stream, self.received[at + 9 : end]))
            at = end
        self.received = self.received[at:]
        return b"".join(sent)

    def _answer_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        more = b""
        if kind in (SETTINGS, PING):
            return b"" if flags & ACK else frame(kind, ACK, 0, payload if kind == PING else b"")
        if kind not in (HEADERS, DATA):
            return b""
        if kind == DATA:
            self.bodies[stream] = self.bodies.get(stream, b"") + payload
            self.taken += len(payload)
            if self.taken >= GIVEN_BACK:
                more, self.taken = window_update(0, self.taken), 0
        if not flags & END_STREAM:
            return more
        return (
            more
            + frame(HEADERS, END_HEADERS, stream, HEAD)
            + frame(DATA, 0, stream, self.bodies.pop(stream, b""))
            + frame(HEADERS, END_HEADERS | END_STREAM, stream, TRAILERS)
        )


def converse(connection: socket.socket) -> None:
    """Answers all calls of a connection."""
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begun = b""
        while len(begun) < PREFACE_BYTES:
            if not (received := connection.recv(PREFACE_BYTES - len(begun))):
                return
            begun += received
        connection.sendall(frame(SETTINGS, 0, 0, b"") + window_update(0, LARGEST_WINDOW - FIRST_WINDOW))
        calls = Connection()
        try:
            while received := connection.recv(65536):
                if sent := calls.answer(received):
                    connection.sendall(sent)
        except (ConnectionResetError, BrokenPipeError):
            pass  # The client is gone.


def serve(port: int = 0) -> int:
    """Answers calls on threads. Returns the port."""
    listener = socket.create_server(("127.0.0.1", port))

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


if __name__ == "__main__":
    serve(int(sys.argv[1]))
    threading.Event().wait()
