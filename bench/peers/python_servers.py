"""Servers of Python applications: Granian, gunicorn, uvicorn, and uWSGI with its plugin for Python.

All but uWSGI come from PyPI, into a virtual environment below target/. `python3` in PATH makes it,
and Kirin runs the same Python.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from host import REPOSITORY, BenchError, Host, Server, debian_version, free_port

ENVIRONMENT = REPOSITORY / "target" / "python-servers"
PACKAGES = ("granian==2.8.9", "gunicorn==27.0.1", "uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0")


def program(name: str) -> Path:
    """Returns the path of a program from PyPI, which is installed if it is missing."""
    path = ENVIRONMENT / "bin" / name
    mark = ENVIRONMENT / "packages"
    wanted = "\n".join(PACKAGES)
    if not path.exists() or not mark.exists() or mark.read_text() != wanted:
        commands = (
            ["python3", "-m", "venv", "--clear", str(ENVIRONMENT)],
            [str(ENVIRONMENT / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", *PACKAGES],
        )
        for command in commands:
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0:
                raise BenchError(f"{' '.join(command)}: {result.stderr.strip()[-500:]}")
        mark.write_text(wanted)
    return path


def granian(host: Host, app: Path, workers: int, interface: str = "wsgi") -> Server:
    """Starts Granian with one thread of its own and one of Python a worker."""
    port = free_port()
    name = f"granian-{interface}"
    target = f"{app.stem}:{'asgi' if interface == 'asgi' else 'application'}"
    command: list[str | Path] = [
        program("granian"), "--interface", interface, "--host", "127.0.0.1", "--port", str(port),
        "--workers", str(workers), "--runtime-threads", "1", "--backlog", "2048", "--no-ws", "--http", "1",
        "--working-dir", app.parent, "--no-access-log", target,
    ]  # fmt: skip
    if interface == "wsgi":
        command[-1:-1] = ["--blocking-threads", "1"]
    pid = host.start(name, command, port=port)
    return Server(port, [pid], f"{PACKAGES[0]}: {interface}, {workers} workers, runtime-threads 1")


def gunicorn(host: Host, app: Path, workers: int) -> Server:
    """Starts gunicorn with its workers for keep-alive: `gthread` with one thread."""
    port = free_port()
    command: list[str | Path] = [
        program("gunicorn"), "--bind", f"127.0.0.1:{port}", "--workers", str(workers), "--worker-class", "gthread",
        "--threads", "1", "--keep-alive", "75", "--backlog", "2048", "--chdir", app.parent, "--preload",
        f"{app.stem}:application",
    ]  # fmt: skip
    pid = host.start("gunicorn", command, port=port)
    return Server(port, [pid], f"{PACKAGES[1]}: {workers} workers, gthread with 1 thread, keep-alive 75 s")


def uvicorn(host: Host, app: Path, workers: int) -> Server:
    """Starts uvicorn with uvloop and httptools, without an access log."""
    port = free_port()
    command: list[str | Path] = [
        program("uvicorn"), "--host", "127.0.0.1", "--port", str(port), "--workers", str(workers), "--loop", "uvloop",
        "--http", "httptools", "--no-access-log", "--log-level", "warning", "--backlog", "2048", "--app-dir", app.parent,
        "--lifespan", "off", f"{app.stem}:asgi",
    ]  # fmt: skip
    pid = host.start("uvicorn", command, port=port)
    return Server(port, [pid], f"{PACKAGES[2]}: ASGI, {workers} workers, {PACKAGES[3]}, {PACKAGES[4]}")


def uwsgi(host: Host, app: Path, workers: int) -> Server:
    """Starts uWSGI's `--http11-socket`, which keeps connections but frames nothing."""
    port = free_port()
    command: list[str | Path] = [
        "uwsgi_python311", "--http11-socket", f"127.0.0.1:{port}", "--wsgi-file", app, "--processes", str(workers),
        "--master", "--disable-logging", "--die-on-term", "--listen", "1024",
    ]  # fmt: skip
    pid = host.start("uwsgi-python", command, port=port, env={"BENCH_FRAMING": "length"})
    about = f"{debian_version('uwsgi-core')}: --http11-socket, {workers} processes, the app gives a Content-Length"
    return Server(port, [pid], about)


def python_version() -> str:
    """Returns the version of the Python that runs the applications."""
    return f"Python {sys.version.split()[0]}"
