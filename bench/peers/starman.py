"""Starman: prefork with Net::Server, one connection a worker."""

from __future__ import annotations

from pathlib import Path

from host import Host, Server, debian_version, free_port


def start(host: Host, app: Path, workers: int) -> Server:
    """Starts Starman. Keep-alive is on unless `--disable-keepalive` is given. The number of
    requests on a connection has no limit.
    """
    port = free_port()
    command: list[str | Path] = [
        "starman", "-E", "deployment", "--listen", f"127.0.0.1:{port}", "--workers", str(workers),
        "--max-requests", "1000000000", "--preload-app", app,
    ]  # fmt: skip
    pid = host.start("starman", command, port=port)
    return Server(
        port, [pid], f"{debian_version('starman')}: {workers} workers, --preload-app, keep-alive on"
    )
