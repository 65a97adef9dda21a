"""A comparison by load: which servers, asked for what, how long, in which order; and what each of them used.

The rounds are interleaved (A B C A B C …), so that a machine that becomes slower for a minute becomes so for all, and
every figure is the median over the rounds.
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
    """What `--only` selects."""

    row: str
    start: Callable[[Host], Server]
    takes_part: Callable[[Load], bool] = lambda _load: True


@dataclass(frozen=True)
class Budget:
    """A ratio of CPU time per request that the design demands."""

    text: str
    row: str
    against: str
    at_most: float
    load: str = ""
    """The table it is for; empty for all."""


@dataclass(frozen=True)
class Comparison:
    """What is run under one name."""

    name: str
    question: str
    entrants: Sequence[Entrant]
    loads: Sequence[Load]
    budgets: Sequence[Budget] = ()
    notes: Sequence[str] = ()
    unit: str = "request"
    tool: str = ""
    """What makes the load; wrk if empty."""

    share_cores: bool = False
    """Servers and load together on both cores, instead of one each."""


@dataclass(frozen=True)
class Round:
    """One server under one load once."""

    per_second: float
    cpu_us: float
    p50_us: float
    p99_us: float
    others: float
    """Share of the server's cores that somebody else used: the noise of the measurement."""

    failure: str
    load_cpu_us: float = 0.0
    """CPU time of the load generator for a request."""


@dataclass
class Row:
    """One server under one load, all rounds."""

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
    def load_cpu_us(self) -> float:
        return median(r.load_cpu_us for r in self.rounds)

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
    """All tables, and what each server said about itself."""

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
    """A server that answers wrongly is out of this table, with the reason in its row."""
    try:
        row.answer_bytes = load.prepare(host, server)
        load.run(host, server, WARM_UP_SECONDS)
    except (BenchError, OSError) as error:
        row.failure = str(error).splitlines()[0]


def _measure(server: Server, load: Load, host: Host, seconds: float) -> Round:
    cores = host.cores.server_numbers()
    busy_before, cpu_before = measure.busy_seconds(cores), measure.cpu_seconds(server.roots)
    load_before = measure.ended_children_seconds()
    try:
        outcome = load.run(host, server, seconds)
    except BenchError as error:
        return Round(0.0, 0.0, 0.0, 0.0, 0.0, str(error).splitlines()[0])
    cpu = measure.cpu_seconds(server.roots) - cpu_before
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
    )
