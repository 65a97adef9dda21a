"""Starlet: prefork, one connection a worker."""

from __future__ import annotations

from pathlib import Path

from host import Host, Server, debian_version, free_port

REQUESTS_PER_CONNECTION = 100
"""Starlet's default is 1, which means no keep-alive at all. With more connections than workers the others wait until
a connection has had this many requests, so it must not be endless either."""


def start(host: Host, app: Path, workers: int, name: str = "starlet") -> Server:
    """`-E deployment`, because plackup's default environment adds a log, a stack trace and a lint middleware."""
    port = free_port()
    command: list[str | Path] = [
        "plackup", "-E", "deployment", "-s", "Starlet", "--host", "127.0.0.1", "--port", str(port),
        "--max-workers", str(workers),
        "--max-keepalive-reqs", str(REQUESTS_PER_CONNECTION),
        "--max-reqs-per-child", "1000000000",
        app,
    ]  # fmt: skip
    pid = host.start(name, command, port=port)
    about = f"{debian_version('starlet')}: {workers} workers, max-keepalive-reqs {REQUESTS_PER_CONNECTION}"
    return Server(port, [pid], about)
