#!/usr/bin/env python3
"""Requests a small file again and again on an HTTP/2 connection on which a large one is downloaded, for
`http2-beside`.

    http2_beside.py PORT SECONDS SMALL_PATH SMALL_BYTES LARGE_PATH LARGE_BYTES [tls] [MB_PER_SECOND]

There is one connection. The next small request is sent when the answer to the last one has come, and
the next download when the last one has ended. The windows are never closed: 2 GB for the connection,
16 MB for a stream, which gets back each 4 MB that have come. With MB_PER_SECOND the client reads no
faster than that, as one with a slower line or processor would.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from typing import Protocol

from host import BenchError
from raw_clients import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    connect_http2,
    frame,
    literal,
    preface,
    trusting_http2,
    window_update,
)

READ_BYTES = 256 * 1024
STREAM_WINDOW = 16 << 20
STREAM_GIVEN_BACK = 4 << 20
CONNECTION_GIVEN_BACK = 1 << 29


class Channel(Protocol):
    """A way to the server: a socket, or TLS on one."""

    def sendall(self, data: bytes, /) -> None:
        ...

    def recv_into(self, room: memoryview, /) -> int:
        ...


class Encrypted:
    """TLS on a socket. It reads as much from the socket at once as a client without TLS: an `SSLSocket`
    reads the head of each record by itself, and would be slower than the servers.
    """

    def __init__(self, plain: socket.socket) -> None:
        """Makes the handshake."""
        self.plain = plain
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = trusting_http2().wrap_bio(self.incoming, self.outgoing)
        self.room = memoryview(bytearray(READ_BYTES))
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send()
                if not self._receive():
                    raise BenchError("the server has closed the connection in the handshake") from None
        self._send()
        if self.tls.selected_alpn_protocol() != "h2":
            raise BenchError("the server does not speak HTTP/2 over TLS")

    def sendall(self, data: bytes, /) -> None:
        self.tls.write(data)
        self._send()

    def recv_into(self, room: memoryview, /) -> int:
        while True:
            try:
                return self.tls.read(len(room), room)  # type: ignore[arg-type, return-value]
            except ssl.SSLWantReadError:
                if not self._receive():
                    return 0

    def _send(self) -> None:
        if data := self.outgoing.read():
            self.plain.sendall(data)

    def _receive(self) -> bool:
        count = self.plain.recv_into(self.room)
        self.incoming.write(self.room[:count])
        return count > 0


class Beside:
    """The connection, its download and its small request."""

    def __init__(self, connection: Channel, port: int, small: tuple[str, int], large: tuple[str, int], tls: bool):
        self.connection = connection
        authority = f"127.0.0.1:{port}".encode()
        scheme = b"\x87" if tls else b"\x86"

        def head(path: str) -> bytes:
            # RFC 7541: indexed :method GET and :scheme; literal :path and :authority, not indexed.
            return b"\x82" + scheme + literal(4, path.encode()) + literal(1, authority)

        self.small_head, self.large_head = head(small[0]), head(large[0])
        self.small_bytes, self.large_bytes = small[1], large[1]
        self.taken_us: list[float] = []
        self.downloaded = 0
        self._next = 1
        self._small = self._large = 0
        self._small_got = self._large_got = 0
        self._asked_at = 0.0
        self._stream_owed = self._connection_owed = 0
        # The frame that is being read: its begin, or how much of it is still to come.
        self._begin, self._payload = b"", b""
        self._kind = self._flags = self._stream = self._left = 0

    def begin(self) -> None:
        """Sends the preface and the first two requests."""
        self.connection.sendall(preface(STREAM_WINDOW))
        self._download()
        self._ask()

    def read(self, received: memoryview) -> None:
        """Reads what has come, and sends what is due after it."""
        at, end = 0, len(received)
        while at < end:
            if self._left == 0:
                more = bytes(received[at : at + 9 - len(self._begin)])
                self._begin += more
                at += len(more)
                if len(self._begin) < 9:
                    break
                self._left = int.from_bytes(self._begin[:3])
                self._kind, self._flags = self._begin[3], self._begin[4]
                self._stream = int.from_bytes(self._begin[5:])
                self._begin, self._payload = b"", b""
            piece = min(self._left, end - at)
            if self._kind == DATA:
                self._take(piece)
            else:
                self._payload += bytes(received[at : at + piece])
            self._left -= piece
            at += piece
            if self._left == 0:
                self._end_frame()

    def _take(self, count: int) -> None:
        """Counts a piece of a body, and gives the windows back what they need."""
        self._connection_owed += count
        if self._connection_owed >= CONNECTION_GIVEN_BACK:
            self.connection.sendall(window_update(0, self._connection_owed))
            self._connection_owed = 0
        if self._stream == self._small:
            self._small_got += count
            return
        self._large_got += count
        self.downloaded += count
        self._stream_owed += count
        if self._stream_owed >= STREAM_GIVEN_BACK and self._large_got < self.large_bytes:
            self.connection.sendall(window_update(self._large, self._stream_owed))
            self._stream_owed = 0

    def _end_frame(self) -> None:
        if self._kind in (SETTINGS, PING) and not self._flags & ACK:
            self.connection.sendall(frame(self._kind, ACK, 0, self._payload if self._kind == PING else b""))
        elif self._kind in (RST_STREAM, GOAWAY):
            raise BenchError(f"HTTP/2 frame {self._kind} on stream {self._stream}: {self._payload[:60]!r}")
        elif self._kind == HEADERS and 0x88 not in self._payload[:4]:  # RFC 7541: :status 200.
            raise BenchError(f"stream {self._stream} was not answered 200: {self._payload[:60]!r}")
        if self._kind not in (DATA, HEADERS) or not self._flags & END_STREAM:
            return
        if self._stream == self._small:
            self.taken_us.append((time.perf_counter() - self._asked_at) * 1e6)
            self._check("small", self._small_got, self.small_bytes)
            self._ask()
        else:
            self._check("large", self._large_got, self.large_bytes)
            self._download()

    def _check(self, which: str, got: int, expected: int) -> None:
        if got != expected:
            raise BenchError(f"the {which} file has {got} bytes and not {expected}")

    def _ask(self) -> None:
        self._small, self._small_got = self._next, 0
        self._asked_at = time.perf_counter()
        self._send(self.small_head)

    def _download(self) -> None:
        self._large, self._large_got, self._stream_owed = self._next, 0, 0
        self._send(self.large_head)

    def _send(self, head: bytes) -> None:
        self.connection.sendall(frame(HEADERS, END_HEADERS | END_STREAM, self._next, head))
        self._next += 2


def main(port: str, seconds: str, small: str, small_bytes: str, large: str, large_bytes: str, *options: str) -> None:
    """Asks until the time is over. Prints the numbers of the run."""
    tls = "tls" in options
    pace = next((float(option) for option in options if option != "tls"), 0.0)
    plain = connect_http2(int(port), tls=False)
    plain.settimeout(10.0)
    connection: Channel = Encrypted(plain) if tls else plain
    beside = Beside(connection, int(port), (small, int(small_bytes)), (large, int(large_bytes)), tls)
    room = memoryview(bytearray(READ_BYTES))
    start, cpu_before = time.monotonic(), time.process_time()
    beside.begin()
    while (now := time.monotonic()) < start + float(seconds):
        count = connection.recv_into(room)
        if count == 0:
            raise BenchError("the server has closed the connection")
        beside.read(room[:count])
        if pace and (ahead := beside.downloaded / (pace * 1e6) - (now - start)) > 0.0:
            time.sleep(ahead)
    cpu = time.process_time() - cpu_before
    taken = sorted(beside.taken_us)
    if not taken:
        raise BenchError("no small request was answered")
    print(f"requests {len(taken)}\nseconds {now - start:.6f}\ndownloaded {beside.downloaded}\ncpu_seconds {cpu:.6f}")
    print(f"p50_us {taken[len(taken) // 2]:.1f}\np99_us {taken[len(taken) * 99 // 100]:.1f}\nmax_us {taken[-1]:.1f}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (BenchError, OSError) as error:
        sys.exit(f"http2_beside: {error}")
