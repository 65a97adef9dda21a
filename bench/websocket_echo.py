#!/usr/bin/env python3
"""Echoes WebSocket messages: the server behind the proxies of `websocket`.

    websocket_echo.py PORT

It reads whole frames of up to 125 bytes and sends each back in one write. It computes no
`Sec-WebSocket-Accept`, which no proxy checks.
"""

from __future__ import annotations

import asyncio
import sys

SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: none\r\n\r\n"
)
TEXT_FRAME, LENGTH_BITS, HEAD_BYTES = 0x81, 0x7F, 6


class Echo(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self.received = b""
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.is_open:
            head, end, rest = self.received.partition(b"\r\n\r\n")
            if not end:
                return
            self.transport.write(SWITCHED)
            self.received, self.is_open = rest, True
        answer = b""
        while len(self.received) >= HEAD_BYTES:
            length = self.received[1] & LENGTH_BITS
            if len(self.received) < HEAD_BYTES + length:
                break
            mask, masked = self.received[2:6], self.received[HEAD_BYTES : HEAD_BYTES + length]
            answer += bytes((TEXT_FRAME, length))
            answer += bytes(byte ^ mask[index & 3] for index, byte in enumerate(masked))
            self.received = self.received[HEAD_BYTES + length :]
        if answer:
            self.transport.write(answer)


async def main(port: str) -> None:
    """Serves until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", int(port))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
