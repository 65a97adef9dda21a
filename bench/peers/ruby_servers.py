"""Servers of Ruby applications, from Debian: Puma, Unicorn and Thin."""

from __future__ import annotations

import subprocess
from pathlib import Path

from host import Host, Server, debian_version, free_port

RACK_ENV = {"RACK_ENV": "production"}
WITH_LENGTH = {**RACK_ENV, "BENCH_FRAMING": "length"}
"""These servers add no Content-Length."""


def puma(host: Host, app: Path, workers: int, threads: int = 1) -> Server:
    """Starts Puma with worker processes of so many threads each, which load the application once."""
    port = free_port()
    command: list[str | Path] = [
        "puma", "--bind", f"tcp://127.0.0.1:{port}?backlog=1024", "--workers", str(workers), "--threads", f"{threads}:{threads}",
        "--preload", "--environment", "production", "--quiet", "--no-config", app,
    ]  # fmt: skip
    pid = host.start("puma", command, port=port, env=RACK_ENV)
    counted = "1 thread" if threads == 1 else f"{threads} threads"
    return Server(port, [pid], f"{debian_version('puma')}: {workers} workers, {counted}, preload")


def unicorn(host: Host, app: Path, workers: int) -> Server:
    """Starts Unicorn. It closes each connection after its response."""
    port = free_port()
    config = host.directory / "unicorn.rb"
    config.write_text(
        f'worker_processes {workers}\nlisten "127.0.0.1:{port}", backlog: 1024\npreload_app true\n'
        'logger Logger.new(File::NULL)\n'
    )
    command: list[str | Path] = ["unicorn", "--no-default-middleware", "-E", "production", "-c", config, app]
    pid = host.start("unicorn", command, port=port, env=WITH_LENGTH)
    return Server(port, [pid], f"{debian_version('unicorn')}: {workers} workers, preload_app, the app gives a Content-Length")


def thin(host: Host, app: Path) -> Server:
    """Starts Thin, which is one process with an event loop."""
    port = free_port()
    command: list[str | Path] = [
        "thin", "--address", "127.0.0.1", "--port", str(port), "--rackup", app, "--environment", "production",
        "--max-persistent-conns", "2000", "--max-conns", "4096", "--quiet", "start",
    ]  # fmt: skip
    pid = host.start("thin", command, port=port, env=WITH_LENGTH)
    return Server(port, [pid], f"{debian_version('thin')}: one process, max-persistent-conns 2000, the app gives a Content-Length")


def ruby_version() -> str:
    """Returns the version of the Ruby that runs the applications."""
    told = subprocess.run(["ruby", "-e", "print RUBY_VERSION"], capture_output=True, text=True, check=False)
    return f"Ruby {told.stdout}"
