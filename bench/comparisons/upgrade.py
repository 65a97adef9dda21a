"""upgrade: one Kirin hands a full store over to the next, while clients read and write it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from comparison import Entrant
from host import BenchError, Host, Server, free_port, has_ended, version_of
from report import grid

NAME = "upgrade"
QUESTION = "An upgrade with a store of 1 GB and of 8 GB: how long does it take, how much memory, and how long do clients wait?"
TOOL = "clients of this program: one of HTTP, one that reads and one that writes the store, each with pauses of 0.5 ms"
SHARE_CORES = False
GIGABYTES = (1, 8)
VALUE_BYTES = 1000
BATCH = 1000
LIMIT_SECONDS = 300.0

NOTES = (
    f"Items have {VALUE_BYTES} bytes, and fill nine tenths of the store. Both programs have one event loop, on one core, "
    "which the threads of the hand-over share with it.",
    "`upgrade s` is the time of `kirin upgrade`: from the start of the new program until it serves. `until the old one ends` "
    "is from then on.",
    "Waits are those of the three clients while the command runs, and during as long a time before it. The clients keep "
    "their connections over the upgrade. A client that lost its connection would end the run.",
    "`memory` is the private memory of both programs together, at its most, beside that of one before. Twice the store is "
    "needed, because the programs do not share it.",
)

HEADER = (
    "store", "items", "upgrade s", "until the old one ends", "memory GB", "of one before",
    "HTTP: worst ms", "before", "store, get: p99 ms", "before", "worst ms", "before", "set: worst ms", "before",
)


def start(host: Host) -> Server:
    raise BenchError("the servers of this comparison start with a size")


ENTRANTS = (Entrant("kirin", "kirin upgrade", start),)


@dataclass
class Waits:
    """How long the answers of one client took, and when they began."""

    ask: Callable[[int], None]

    def __post_init__(self) -> None:
        self.times: list[tuple[float, float]] = []
        self.is_over = False
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        number = 0
        try:
            while not self.is_over:
                began = time.monotonic()
                self.ask(number)
                self.times.append((began, time.monotonic() - began))
                number += 1
                time.sleep(0.0005)
        except (OSError, BenchError) as error:
            self.error = error

    def between(self, begin: float, end: float) -> list[float]:
        found = [took for at, took in self.times if begin <= at + took and at <= end]
        if self.error:
            raise BenchError(f"a client has lost its connection: {self.error}")
        return found

    def end(self) -> None:
        self.is_over = True
        self.thread.join()


def memory_megabytes(pid: int) -> float:
    """Returns the private memory of a process and of its children. The kernel has counted it: to ask for
    more would stop the processes for as long as it takes to walk through their pages.
    """
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    lines = (line for one in pids for line in Path(f"/proc/{one}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def exchange(connection: socket.socket, request: bytes, end: bytes) -> bytes:
    connection.sendall(request)
    answer = b""
    while not answer.endswith(end):
        part = connection.recv(65536)
        if not part:
            raise BenchError("closed")
        answer += part
    return answer


def fill(path: Path, items: int) -> None:
    value = b"x" * VALUE_BYTES
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        for first in range(0, items, BATCH):
            keys = range(first, min(first + BATCH, items))
            sets = b"".join(b"ms k%d %d q\r\n%s\r\n" % (key, VALUE_BYTES, value) for key in keys)
            exchange(connection, sets + b"mn\r\n", b"MN\r\n")


@contextlib.contextmanager
def clients(port: int, path: Path, items: int) -> Iterator[tuple[Waits, Waits, Waits]]:
    http = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS)
    stores = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for store in stores:
        store.connect(str(path))
    reader, writer = stores

    def ask_http(_number: int) -> None:
        exchange(http, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\n\r\n")

    def get(number: int) -> None:
        exchange(reader, b"mg k%d v\r\n" % (number * 7919 % items), b"\r\n")

    def write(number: int) -> None:
        exchange(writer, b"ms w%d 5\r\nvalue\r\n" % (number % 10000), b"HD\r\n")

    waits = (Waits(ask_http), Waits(get), Waits(write))
    try:
        yield waits
    finally:
        for waiting in waits:
            waiting.end()
        for one in (http, *stores):
            one.close()


class PeakMemory:
    """Adds up the private memory of a process and of its children, again and again."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak, self.is_over = pid, 0.0, False
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self) -> None:
        while not self.is_over:
            with contextlib.suppress(OSError):
                self.peak = max(self.peak, memory_megabytes(self.pid))
            time.sleep(0.05)

    def end(self) -> float:
        self.is_over = True
        self.thread.join()
        return self.peak


def measure(host: Host, gigabytes: int) -> list[str]:
    directory = host.directory / f"upgrade-{gigabytes}"
    directory.mkdir()
    port, store = free_port(), directory / "store.sock"
    config = directory / "kirin.toml"
    config.write_text(
        f'threads = 1\n[[listener]]\naddress = "127.0.0.1:{port}"\n[store]\nmemory = "{gigabytes}GB"\n'
        f'memcached = ["unix:{store}"]\n[[route]]\npath = "/"\nredirect = "/a"\n'
        '[[route]]\npath = "/a"\ntry = ["store"]\n'
    )
    env = {"KIRIN_ADMIN_DIRECTORY": str(directory)}
    old = host.start(f"kirin-{gigabytes}", [host.kirin, "serve", "--config", config], port=port, env=env)
    items = int(gigabytes * (1 << 30) * 0.9 / (VALUE_BYTES + 60))
    fill(store, items)
    one = memory_megabytes(old)
    new = 0
    try:
        with clients(port, store, items) as waits:
            command = [host.kirin, "upgrade", "--config", config, "--timeout", str(int(LIMIT_SECONDS))]
            time.sleep(5.0 * gigabytes)
            memory = PeakMemory(old)
            began = time.monotonic()
            done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | env)
            served = time.monotonic()
            if done.returncode != 0:
                raise BenchError(f"no upgrade: {done.stderr}")
            new = int(done.stdout.split()[2])
            while not has_ended(old):
                time.sleep(0.01)
            ended = time.monotonic()
            peak = memory.end()
            time.sleep(1.0)
            during = [waiting.between(began, ended) for waiting in waits]
            before = [waiting.between(began - (ended - began), began) for waiting in waits]
    finally:
        if new:
            os.kill(new, signal.SIGINT)
            while not has_ended(new):
                time.sleep(0.01)

    def worst(times: Sequence[float]) -> str:
        return f"{1000 * max(times):.1f}"

    def p99(times: Sequence[float]) -> str:
        return f"{1000 * statistics.quantiles(times, n=100)[98]:.2f}"

    return [
        f"{gigabytes} GB", f"{items:,}", f"{served - began:.2f}", f"{ended - served:.2f}",
        f"{peak / 1024:.2f}", f"{one / 1024:.2f}",
        worst(during[0]), worst(before[0]), p99(during[1]), p99(before[1]), worst(during[1]), worst(before[1]),
        worst(during[2]), worst(before[2]),
    ]  # fmt: skip


def run(host: Host, _entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of the server."""
    body = []
    for gigabytes in GIGABYTES:
        body.append(measure(host, gigabytes))
        host.stop_all()
        print(f"{NAME}: {gigabytes} GB: {body[-1][2]} s", file=progress, flush=True)
    return grid(HEADER, body), {"kirin upgrade": f"{version_of(str(host.kirin), '--version')}: threads = 1"}
