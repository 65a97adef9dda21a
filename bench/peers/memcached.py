"""Debian's memcached. Also stores pages in it or in Kirin's store, with a few lines of its
protocol.
"""

from __future__ import annotations

import socket
from pathlib import Path

from host import BenchError, Host, Server, free_port, version_of


def start(host: Host, name: str = "memcached") -> Server:
    """Starts memcached on TCP. It has one worker thread, because every server here has one core."""
    port = free_port()
    command = ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0", *COMMON]
    pid = host.start(name, command, port=port)
    return Server(
        port, [pid], f"{version_of('memcached', '-V')}: {' '.join(COMMON)}, TCP", f"127.0.0.1:{port}"
    )


def start_unix(host: Host, name: str = "memcached-unix") -> Server:
    """Starts memcached on a unix socket."""
    path = host.directory / f"{name}.sock"
    command = ["memcached", "-u", "root", "-s", str(path), *COMMON]
    pid = host.start(name, command, socket_path=path)
    return Server(
        0, [pid], f"{version_of('memcached', '-V')}: {' '.join(COMMON)}, unix socket", f"unix:{path}"
    )


COMMON = ("-t", "1", "-m", "64", "-c", "10000")


def start_store(host: Host, megabytes: int) -> Server:
    """Starts memcached with this memory limit on a unix socket."""
    path = host.directory / "memcached-store.sock"
    options = ["-t", "1", "-m", str(megabytes)]
    pid = host.start("memcached-store", ["memcached", "-u", "root", "-s", path, *options], socket_path=path)
    return Server(0, [pid], f"{version_of('memcached', '-V')}: -t 1 -m …, unix socket", f"unix:{path}")


def statistics(store: str) -> dict[str, str]:
    """Returns the answer to `stats`."""
    with _connect(store) as connection:
        connection.sendall(b"stats\r\n")
        received = b""
        while not received.endswith(b"END\r\n"):
            chunk = connection.recv(65536)
            if not chunk:
                raise BenchError(f"{store} closed the connection when asked for stats")
            received += chunk
    lines = (line.split(maxsplit=2) for line in received.decode().splitlines())
    return {words[1]: words[2] for words in lines if len(words) == 3 and words[0] == "STAT"}


def set_item(store: str, key: str, value: bytes) -> None:
    """Stores one item at `HOST:PORT` or `unix:/path`."""
    with _connect(store) as connection:
        connection.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value))
        reply = connection.recv(1024)
    if reply != b"STORED\r\n":
        raise BenchError(f"{store} did not store {key}: {reply!r}")


def _connect(store: str) -> socket.socket:
    if store.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(Path(store.removeprefix("unix:"))))
        return connection
    address, _, port = store.rpartition(":")
    return socket.create_connection((address, int(port)))
