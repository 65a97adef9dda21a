"""uWSGI with its PSGI plugin: prefork in C, one connection a worker."""

from __future__ import annotations

from pathlib import Path

from host import Host, Server, debian_version, free_port


def keep_alive(host: Host, app: Path, workers: int) -> Server:
    """Starts `--http11-socket`, which keeps connections but adds no framing. The application must
    send a Content-Length.
    """
    return _start(host, "uwsgi-http11", "--http11-socket", "length", app, workers)


def closing(host: Host, app: Path, workers: int) -> Server:
    """Starts `--http-socket`, which closes after every response and sends no field that says so.
    The application sends it.
    """
    return _start(host, "uwsgi-http", "--http-socket", "close", app, workers)


def _start(host: Host, name: str, socket: str, framing: str, app: Path, workers: int) -> Server:
    port = free_port()
    command: list[str | Path] = [
        "uwsgi_psgi", socket, f"127.0.0.1:{port}", "--psgi", app, "--processes", str(workers), "--master",
        "--disable-logging", "--die-on-term", "--listen", "1024",
    ]  # fmt: skip
    # Without --die-on-term, SIGTERM means "reload".
    pid = host.start(name, command, port=port, env={"BENCH_FRAMING": framing})
    about = f"{debian_version('uwsgi-core')}: {socket}, {workers} processes, the app gives a Content-Length"
    return Server(port, [pid], about)
