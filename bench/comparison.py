"""A comparison by load: its servers, its requests, their order, and what each server used.

The rounds are interleaved (A B C A B C …). A machine that becomes slower for a minute then becomes
slower for all servers. Every figure is the median of the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TextIO

import measure
from host import BenchError, Host, Server
from load import Load

WARM_UP_SECONDS = 1.0


@dataclass(frozen=True)
class Entrant:
    """A row of the table: a peer in one configuration."""

    peer: str
    """The name that `--only` selects."""

    row: str
    start: Callable[[Host], Server]
    takes_part: Callable[[Load], bool] = lambda _load: True


@dataclass(frozen=True)
class Budget:
    """A limit from the design: a ratio of CPU times per request."""

    text: str
    row: str
    against: str
    at_most: float
    load: str = ""
    """The title of the table that the budget is for, or empty for all tables."""

    is_user: bool = False
    """Whether it is a ratio of user times. The kernel's part is the same for all."""


@dataclass(frozen=True)
class Comparison:
    """A comparison with a name."""

    name: str
    question: str
    entrants: Sequence[Entrant]
    loads: Sequence[Load]
    budgets: Sequence[Budget] = ()
    notes: Sequence[str] = ()
    unit: str = "request"
    tool: str = ""
    """The program that makes the load, or empty for wrk."""

    share_cores: bool = False
    """Whether servers and load use both cores together, instead of one each."""

    behind: str = ""
    """The server behind the rows, whose part of the CPU time has a column. Empty if there is none."""


@dataclass(frozen=True)
class Round:
    """The numbers of one server under one load in one round."""

    per_second: float
    cpu_us: float
    p50_us: float
    p99_us: float
    others: float
    """The share of the server's cores that other processes used. It is the noise of the
    measurement.
    """

    failure: str
    load_cpu_us: float = 0.0
    """The CPU time of the load generator for a request, in microseconds."""

    user_us: float = 0.0
    """The part of `cpu_us` in user space."""

    behind_us: float = 0.0
    """The part of `cpu_us` of the server behind the compared one."""


@dataclass
class Row:
    """The numbers of one server under one load in all rounds."""

    entrant: Entrant
    answer_bytes: int = 0
    rounds: list[Round] = field(default_factory=list)
    failure: str = ""

    @property
    def failures(self) -> str:
        return "; ".join(
            dict.fromkeys(text for text in (self.failure, *(r.failure for r in self.rounds)) if text)
        )

    @property
    def cpu_us(self) -> float:
        return median(r.cpu_us for r in self.rounds)

    @property
    def user_us(self) -> float:
        return median(r.user_us for r in self.rounds)

    @property
    def system_us(self) -> float:
        return median(r.cpu_us - r.user_us for r in self.rounds)

    @property
    def load_cpu_us(self) -> float:
        return median(r.load_cpu_us for r in self.rounds)

    @property
    def behind_us(self) -> float:
        return median(r.behind_us for r in self.rounds)

    @property
    def per_second(self) -> float:
        return median(r.per_second for r in self.rounds)

    @property
    def p99_us(self) -> float:
        return median(r.p99_us for r in self.rounds)

    @property
    def others(self) -> float:
        return max(r.others for r in self.rounds)

    @property
    def usable(self) -> bool:
        return bool(self.rounds) and not self.failures


@dataclass
class Table:
    """All rows under one load."""

    load: Load
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.entrant.row == name and row.usable), None)


@dataclass
class Result:
    """All tables, and the description of each server."""

    comparison: Comparison
    tables: list[Table]
    about: dict[str, str]


def run(comparison: Comparison, host: Host, rounds: int, seconds: float, progress: TextIO) -> Result:
    """Starts all servers, runs all loads and stops the servers."""
    servers: dict[str, Server] = {}
    for entrant in comparison.entrants:
        servers[entrant.row] = entrant.start(host)
    tables = []
    for load in comparison.loads:
        table = Table(load, [Row(entrant) for entrant in comparison.entrants if entrant.takes_part(load)])
        tables.append(table)
        for row in table.rows:
            _warm_up(row, servers[row.entrant.row], load, host)
        for number in range(1, rounds + 1):
            for row in table.rows:
                if row.failure:
                    continue
                taken = _measure(servers[row.entrant.row], load, host, seconds)
                row.rounds.append(taken)
                print(
                    f"{comparison.name}: {load.title}: round {number}/{rounds}: {row.entrant.row}: "
                    f"{taken.per_second:,.0f}/s {taken.cpu_us:.2f} µs {taken.failure}",
                    file=progress,
                    flush=True,
                )
    return Result(comparison, tables, {row: server.about for row, server in servers.items()})


def _warm_up(row: Row, server: Server, load: Load, host: Host) -> None:
    """Checks the answer of a server and warms it up. A failure excludes the server from this table,
    and its row shows the reason.
    """
    try:
        row.answer_bytes = load.prepare(host, server)
        load.run(host, server, WARM_UP_SECONDS)
    except (BenchError, OSError) as error:
        row.failure = str(error).splitlines()[0]


def _measure(server: Server, load: Load, host: Host, seconds: float) -> Round:
    cores = host.cores.server_numbers()
    busy_before, cpu_before = measure.busy_seconds(cores), measure.cpu_seconds(server.roots)
    load_before, ticks_before = measure.ended_children_seconds(), measure.ticks(server.roots)
    behind_before = measure.cpu_seconds(server.behind)
    try:
        outcome = load.run(host, server, seconds)
    except BenchError as error:
        return Round(0.0, 0.0, 0.0, 0.0, 0.0, str(error).splitlines()[0])
    cpu = measure.cpu_seconds(server.roots) - cpu_before
    behind = measure.cpu_seconds(server.behind) - behind_before
    user, system = (now - before for now, before in zip(measure.ticks(server.roots), ticks_before, strict=True))
    busy = measure.busy_seconds(cores) - busy_before
    load_cpu = measure.ended_children_seconds() - load_before
    others = 0.0 if host.cores.shared else max(0.0, (busy - cpu) / (outcome.seconds * len(cores)))
    if outcome.requests == 0:
        return Round(0.0, 0.0, 0.0, 0.0, others, outcome.failure or "no request was answered")
    return Round(
        outcome.requests / outcome.seconds,
        cpu / outcome.requests * 1e6,
        outcome.p50_us,
        outcome.p99_us,
        others,
        outcome.failure,
        load_cpu / outcome.requests * 1e6,
        cpu / outcome.requests * 1e6 * user / max(1, user + system),
        behind / outcome.requests * 1e6,
    )
