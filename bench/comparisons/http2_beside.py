"""http2-beside: the latency of a small request on an HTTP/2 connection on which a large file is
downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TextIO

import certificate
import measure
import page
from comparison import Entrant
from host import BENCH, BenchError, Host, Server
from load import run_generator
from peers import h2o, kirin, nginx
from report import grid
from tls_load import Http2Load

NAME = "http2-beside"
QUESTION = "A file of 1 KB, again and again, on the HTTP/2 connection on which a file of 50 MB is downloaded."
TOOL = "bench/http2_beside.py"
SHARE_CORES = False
ROUNDS = 5
SECONDS = 4.0
WARM_UP_SECONDS = 1.0
LEAST_SECONDS = 0.5

SMALL_PATH = "/small.html"
SMALL = page.html(1024)
LARGE_PATH = "/large.html"
LARGE_BYTES = 50_000_000

LIMIT = 1.0
"""The p99 that the design allows Kirin, in those of h2o."""


def _files(host: Host) -> str:
    directory = host.directory / "files"
    if not directory.exists():
        directory.mkdir()
        (directory / SMALL_PATH[1:]).write_bytes(SMALL)
        (directory / LARGE_PATH[1:]).write_bytes(page.html(LARGE_BYTES))
    return str(directory)


def _kirin(host: Host, tls: bool) -> Server:
    name = f"kirin-beside{'-tls' * tls}"
    return kirin.start(host, name, places=(f"files:{_files(host)}",), tls=_certificate(host, tls))


def _h2o(host: Host, tls: bool) -> Server:
    return h2o.static_files(host, _files(host), _certificate(host, tls), name=f"h2o-beside{'-tls' * tls}")


def _nginx(host: Host, tls: bool) -> Server:
    return nginx.files_http2(host, _files(host), tls)


def _certificate(host: Host, tls: bool) -> certificate.Certificate | None:
    return certificate.make(host.directory) if tls else None


TLS_ROWS = (
    Entrant("kirin", "kirin files", lambda host: _kirin(host, True)),
    Entrant("h2o", "h2o", lambda host: _h2o(host, True)),
    Entrant("nginx", "nginx tuned", lambda host: _nginx(host, True)),
)
PLAIN_ROWS = (
    Entrant("kirin", "kirin files, plain", lambda host: _kirin(host, False)),
    Entrant("h2o", "h2o, plain", lambda host: _h2o(host, False)),
    Entrant("nginx", "nginx tuned, plain", lambda host: _nginx(host, False)),
)
ENTRANTS = (*TLS_ROWS, *PLAIN_ROWS)

PACED_MEGABYTES = 300
"""What the slower client reads in a second. Each server sends several times as much."""


@dataclass(frozen=True)
class Way:
    """How a client reads."""

    title: str
    rows: Sequence[Entrant]
    options: tuple[str, ...]


WAYS = (
    Way("over TLS", TLS_ROWS, ("tls",)),
    Way(f"over TLS, by a client that reads {PACED_MEGABYTES} MB/s", TLS_ROWS, ("tls", str(PACED_MEGABYTES))),
    Way("by prior knowledge, without TLS", PLAIN_ROWS, ()),
)

HEADER = (
    "server", "p99 µs", "× h2o", "p50 µs", "worst µs", "small/s", "download MB/s", "server's CPU µs/MB", "server's CPU", "client's CPU",
    "others",
)  # fmt: skip

NOTES = (
    f"{ROUNDS} interleaved rounds of {SECONDS:g} s after a warm-up; each figure is the median of the rounds, `worst` the largest "
    "of them all. `--scale 0.25` makes the rounds shorter, to try them.",
    "One connection of one client, the same for all. A small request is sent when the answer to the one before has come, a "
    "download when the one before has ended. No window is ever closed: 2 GB for the connection, 16 MB for a stream, which gets "
    "back each 4 MB. No request has a priority.",
    "A small answer waits behind what the server has already given to the kernel, or has in a buffer of its own. A server that "
    "hands over less at a time has a lower p99 and may have a slower download: read both.",
    "Where the client's CPU is at 100 %, it is the slower side, the buffers of both sockets are full, and p99 is the time "
    "that it needs to read them. Where the server's is at 100 %, the server's queue is what p99 shows.",
    "`server's CPU µs/MB` has the small requests too. `others` is the share of both cores that other processes used, in the "
    "worst round: they make a p99 many times larger.",
)


@dataclass(frozen=True)
class Taken:
    """The numbers of one round."""

    p50_us: float
    p99_us: float
    max_us: float
    small_per_second: float
    megabytes_per_second: float
    server_cpu: float
    """The CPU time of the server, for each second."""

    client_cpu: float
    """The CPU time of the client, for each second. Its start is not in it."""

    others: float
    """The share of both cores that other processes used. It is the noise of the measurement."""

    @property
    def cpu_us_per_megabyte(self) -> float:
        return self.server_cpu * 1e6 / self.megabytes_per_second if self.megabytes_per_second else 0.0


@dataclass
class Row:
    """A server and its rounds."""

    entrant: Entrant
    server: Server
    rounds: list[Taken]
    failure: str = ""

    @property
    def p99_us(self) -> float:
        return median(taken.p99_us for taken in self.rounds)

    @property
    def usable(self) -> bool:
        return bool(self.rounds) and not self.failure


def run(host: Host, entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the tables, and the description of each server."""
    parts, about = [], {}
    for way in WAYS:
        started = [Row(entrant, entrant.start(host), []) for entrant in way.rows if entrant in entrants]
        about |= {row.entrant.row: row.server.about for row in started}
        _play(host, started, way, progress)
        host.stop_all()
        if started:
            parts += [f"## {way.title}", table(started), *budget(started)]
    return "\n\n".join(parts), about


def _play(host: Host, rows: Sequence[Row], way: Way, progress: TextIO) -> None:
    """Runs all rounds of these servers. A server that fails has no further round."""
    seconds = max(LEAST_SECONDS, SECONDS * host.scale)
    for number in range(ROUNDS + 1):
        for row in rows:
            if row.failure:
                continue
            try:
                if number == 0:
                    Http2Load(way.title, SMALL_PATH, SMALL, "tls" in way.options).prepare(host, row.server)
                    _round(host, row.server, min(WARM_UP_SECONDS, seconds), way.options)
                    continue
                taken = _round(host, row.server, seconds, way.options)
            except BenchError as error:
                row.failure = " ".join(str(error).splitlines()[-1:])
                continue
            row.rounds.append(taken)
            print(
                f"{NAME}: {way.title}: round {number}/{ROUNDS}: {row.entrant.row}: p99 {taken.p99_us:,.0f} µs beside "
                f"{taken.megabytes_per_second:,.0f} MB/s",
                file=progress,
                flush=True,
            )


def _round(host: Host, server: Server, seconds: float, options: Sequence[str]) -> Taken:
    command = host.load_command(
        sys.executable, BENCH / "http2_beside.py", str(server.port), f"{seconds}",
        SMALL_PATH, str(len(SMALL)), LARGE_PATH, str(LARGE_BYTES), *options,
    )  # fmt: skip
    cores = host.cores.server_numbers() + [int(core) for core in host.cores.load.split(",")]
    busy_before, own_before = measure.busy_seconds(cores), measure.ended_children_seconds()
    server_before = measure.cpu_seconds(server.roots)
    values = {name: float(value) for name, value in (line.split() for line in run_generator(command, seconds).splitlines())}
    server_cpu = measure.cpu_seconds(server.roots) - server_before
    own_cpu = server_cpu + measure.ended_children_seconds() - own_before
    others = measure.busy_seconds(cores) - busy_before - own_cpu
    lasted = values["seconds"]
    return Taken(
        values["p50_us"], values["p99_us"], values["max_us"], values["requests"] / lasted,
        values["downloaded"] / 1e6 / lasted, server_cpu / lasted,
        values["cpu_seconds"] / lasted, max(0.0, others / lasted / len(cores)),
    )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """Returns the table of these servers, the lowest p99 first."""
    h2o_row = _h2o_of(rows)
    body = []
    for row in sorted(rows, key=lambda row: (not row.usable, row.p99_us if row.rounds else 0.0)):
        if not row.usable:
            body.append([f"{row.entrant.row} — **failed**: {row.failure}", *[""] * (len(HEADER) - 1)])
            continue
        rounds = row.rounds
        body.append(
            [
                row.entrant.row,
                f"{row.p99_us:,.0f}",
                f"{row.p99_us / h2o_row.p99_us:.2f}" if h2o_row else "",
                f"{median(taken.p50_us for taken in rounds):,.0f}",
                f"{max(taken.max_us for taken in rounds):,.0f}",
                f"{median(taken.small_per_second for taken in rounds):,.0f}",
                f"{median(taken.megabytes_per_second for taken in rounds):,.0f}",
                f"{median(taken.cpu_us_per_megabyte for taken in rounds):,.0f}",
                f"{median(taken.server_cpu for taken in rounds):.0%}",
                f"{median(taken.client_cpu for taken in rounds):.0%}",
                f"{max(taken.others for taken in rounds):.0%}",
            ]
        )
    return grid(HEADER, body)


def budget(rows: Sequence[Row]) -> list[str]:
    """Returns whether the budget was kept, if Kirin and h2o took part."""
    own, other = next((row for row in rows if row.entrant.peer == "kirin" and row.usable), None), _h2o_of(rows)
    if own is None or other is None:
        return []
    ratio = own.p99_us / other.p99_us
    verdict = "kept" if ratio <= LIMIT else "**missed**"
    return [f"Budget: p99 ≤ h2o's: {ratio:.3f} of {LIMIT:g} × {other.entrant.row} — {verdict}."]


def _h2o_of(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row.entrant.peer == "h2o" and row.usable), None)
