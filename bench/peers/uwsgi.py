"""uWSGI with its PSGI plugin: prefork in C, one connection a worker."""

from __future__ import annotations

from pathlib import Path

from host import Host, Server, debian_version, free_port


def keep_alive(host: Host, app: Path, workers: int) -> Server:
    """`--http11-socket` keeps connections but frames nothing: the application must give a Content-Length."""
    return _start(host, "uwsgi-http11", "--http11-socket", "length", app, workers)


def closing(host: Host, app: Path, workers: int) -> Server:
    """`--http-socket` closes after every answer and does not say so: the application does."""
    return _start(host, "uwsgi-http", "--http-socket", "close", app, workers)


def _start(host: Host, name: str, socket: str, framing: str, app: Path, workers: int) -> Server:
    port = free_port()
    command: list[str | Path] = [
        "uwsgi_psgi", socket, f"127.0.0.1:{port}", "--psgi", app, "--processes", str(workers), "--master",
        "--disable-logging", "--die-on-term", "--listen", "1024",
    ]  # fmt: skip
    # Without --die-on-term it takes SIGTERM as "reload".
    pid = host.start(name, command, port=port, env={"BENCH_FRAMING": framing})
    about = f"{debian_version('uwsgi-core')}: {socket}, {workers} processes, the app gives a Content-Length"
    return Server(port, [pid], about)
