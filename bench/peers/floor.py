"""The server of bench/floor, which shows the cost of the kernel alone."""

from __future__ import annotations

from pathlib import Path

from host import Host, Server, free_port


def start(host: Host, *, body_bytes: int, mode: str = "epoll") -> Server:
    """Starts the floor. It answers every read with a body of this size."""
    port = free_port()
    command: list[str | Path] = [
        host.tool("kirin-floor"),
        "--mode",
        mode,
        "--port",
        str(port),
        "--body",
        str(body_bytes),
    ]
    pid = host.start(f"floor-{mode}-{body_bytes}", command, port=port)
    return Server(
        port, [pid], f"kirin-floor --mode {mode} --body {body_bytes}", canned_body=b"x" * body_bytes
    )
