"""Starlet: prefork, with one connection a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from host import Host, Server, debian_version, free_port

REQUESTS_PER_CONNECTION = 100
"""The number of requests on a connection. Starlet's default is 1, which means no keep-alive. With
more connections than workers, the others wait until a connection has had this number of requests.
It must therefore not be endless either.
"""


PATIENT_REQUESTS_PER_CONNECTION = 1_000
"""The number of requests on a connection, for clients that make some hundred requests each. A
connection should end when its client ends it.
"""


def start(
    host: Host,
    app: Path,
    workers: int,
    name: str = "starlet",
    *,
    requests_per_connection: int = REQUESTS_PER_CONNECTION,
    env: Mapping[str, str] | None = None,
) -> Server:
    """Starts Starlet with `-E deployment`, because plackup's default environment adds a log, a
    stack trace and a lint middleware.
    """
    port = free_port()
    listen = ["--host", "127.0.0.1", "--port", str(port)]
    pid = host.start(name, _command(app, workers, requests_per_connection, listen), port=port, env=env)
    return Server(port, [pid], _about(workers, requests_per_connection))


def start_unix(host: Host, app: Path, workers: int, name: str) -> Server:
    """Starts Starlet on a unix socket, for a server in front of it on the same machine."""
    path = host.directory / f"{name}.sock"
    command = _command(app, workers, REQUESTS_PER_CONNECTION, ["--socket", path])
    pid = host.start(name, command, socket_path=path)
    about = f"{_about(workers, REQUESTS_PER_CONNECTION)}, unix socket"
    return Server(0, [pid], about, socket_path=path)


def start_under_starter(host: Host, app: Path, workers: int, name: str) -> Server:
    """Starts Starlet under start_server, which replaces it on HUP."""
    port = free_port()
    command = _command(app, workers, PATIENT_REQUESTS_PER_CONNECTION, [])
    pid = host.start(name, ["start_server", "--port", f"127.0.0.1:{port}", "--", *command], port=port)
    about = f"start_server ({debian_version('libserver-starter-perl')}) → "
    return Server(port, [pid], about + _about(workers, PATIENT_REQUESTS_PER_CONNECTION))


def _command(
    app: Path, workers: int, requests_per_connection: int, listen: Sequence[str | Path]
) -> list[str | Path]:
    return [
        "plackup", "-E", "deployment", "-s", "Starlet", *listen,
        "--max-workers", str(workers),
        "--max-keepalive-reqs", str(requests_per_connection),
        "--max-reqs-per-child", "1000000000",
        app,
    ]  # fmt: skip


def _about(workers: int, requests_per_connection: int) -> str:
    return f"{debian_version('starlet')}: {workers} workers, max-keepalive-reqs {requests_per_connection}"
