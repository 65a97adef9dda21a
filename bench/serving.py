"""Starts a Kirin with a configuration of its own, and an upstream behind it, outside of comparisons."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from host import REPOSITORY, BenchError

START_WITHIN_SECONDS = 120.0

T = TypeVar("T")


def wait_for(condition: Callable[[], T | None], seconds: float) -> T | None:
    """Returns what `condition` returns as soon as that is true, or nothing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.05)
    return None


@contextmanager
def serving(
    command: Sequence[str | Path], directory: Path, schemes: Sequence[str] = ("http",)
) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Starts Kirin by `command`, with `kirin.toml` of the directory, in which its log will be. Returns
    the process, and the port of the listener of each scheme. Kills it at the end.
    """
    log_path = directory / "log"
    own = {"KIRIN_ADMIN_DIRECTORY": str(directory), "PERL5LIB": str(REPOSITORY / "adapters/perl/lib")}
    with log_path.open("wb") as log:
        kirin = subprocess.Popen(
            [*command, "serve", "--config", directory / "kirin.toml"], stdout=log, stderr=log, env={**os.environ, **own}
        )

    def ports() -> list[int]:
        text = log_path.read_text(errors="replace")
        found = [re.search(rf"{scheme}://127\.0\.0\.1:(\d+)/?", text) for scheme in schemes]
        return [int(match[1]) for match in found if match] if all(found) else []

    try:
        wait_for(lambda: kirin.poll() is not None or ports(), START_WITHIN_SECONDS)
        if kirin.poll() is not None or not ports():
            raise BenchError(f"Kirin does not start:\n{log_path.read_text(errors='replace')}")
        yield kirin, ports()
    finally:
        kirin.kill()
        kirin.wait()


def serve_upstream(body: bytes) -> int:
    """Answers each request on a thread, as an upstream. Returns the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=3600\r\n"
    answer += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def serve(connection: socket.socket) -> None:
        with connection:
            while connection.recv(65536):
                connection.sendall(answer)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]
