"""Debian's redis-server, which all rows of a comparison share, and a plain client for it."""

from __future__ import annotations

import socket
from types import TracebackType

from host import BenchError, Host, Server, free_port, version_of

SETTINGS = ("--save", "", "--appendonly", "no")
"""Nothing is kept on disk, as for a cache."""

COPIES_A_CALL = 20_000
"""How many items one call of COPY makes. Other clients wait meanwhile."""

COPY = """
for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do redis.call('COPY', KEYS[1], KEYS[2] .. number, 'REPLACE') end
"""


def shared(host: Host) -> Server:
    """Returns the redis-server of all rows. The first call starts it, on TCP: the machines of a site
    cannot share a unix socket.
    """
    if "redis" not in host.shared:
        port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), *SETTINGS]
        pid = host.start("redis", [*command, "--dir", host.directory], port=port)
        about = f"{version_of('redis-server', '--version').partition(' sha=')[0]}: nothing on disk, TCP"
        host.shared["redis"] = Server(port, [pid], about)
    return host.shared["redis"]


class Client:
    """A connection that sends one command after the other (RESP 2)."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.replies.close()
        self.socket.close()

    def __call__(self, *words: str | bytes | int) -> bytes | int:
        """Sends a command. Returns its reply, which is no array. That of a missing key is empty."""
        self.socket.sendall(encoded(*words))
        return self.reply()

    def reply(self) -> bytes | int:
        line = self.replies.readline().rstrip(b"\r\n")
        kind, text = line[:1], line[1:]
        if kind == b"$" and int(text) >= 0:
            return self.replies.read(int(text) + 2)[:-2]
        if kind == b":":
            return int(text)
        if kind not in (b"+", b"$"):
            raise BenchError(f"redis-server: {line!r}")
        return b"" if kind == b"$" else text

    def copy(self, name: str, begin: str, count: int) -> None:
        """Copies the item `name`, with its expiry, to `begin` and each number from 1 to `count`."""
        for first in range(1, count + 1, COPIES_A_CALL):
            last = min(count, first + COPIES_A_CALL - 1)
            self("EVAL", COPY, 2, name, begin, first, last)

    def info(self, section: str) -> dict[str, str]:
        """Returns the rows of a section of INFO."""
        rows = bytes(self("INFO", section) or b"").decode().splitlines()
        return dict(row.split(":", 1) for row in rows if ":" in row)


def encoded(*words: str | bytes | int) -> bytes:
    """Returns a command as an array of bulk strings."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
