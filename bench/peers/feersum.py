"""Feersum, with an event loop in each worker. There may be more connections than workers. Debian's
1.410 has no keep-alive.
"""

from __future__ import annotations

from pathlib import Path

from host import Host, Server, debian_version, free_port


def start(host: Host, app: Path, workers: int) -> Server:
    """Starts Feersum. It closes after every response without a field that says so, which wrk counts
    as a read error. The application therefore sends the field.
    """
    port = free_port()
    command: list[str | Path] = [
        "plackup", "-E", "deployment", "-s", "Feersum", "--listen", f"127.0.0.1:{port}", f"--pre-fork={workers}", app,
    ]  # fmt: skip
    pid = host.start("feersum", command, port=port, env={"BENCH_FRAMING": "close"})
    about = f"{debian_version('feersum')}: --pre-fork={workers}; closes every connection, the app says so"
    return Server(port, [pid], about)
