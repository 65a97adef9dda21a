"""origin-idle: what a Kirin without clients asks of its origin, to prove that its copies are true."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

import measure
from comparison import Entrant
from host import Host, Server
from peers import kirin, redis
from report import grid

NAME = "origin-idle"
QUESTION = "A Kirin with an origin and without clients: what does it ask of the redis-server?"
TOOL = "none"
SHARE_CORES = False
SECONDS = 8.0

NOTES = (
    f"Each row is {SECONDS:.0f} s long. The commands are those of `INFO commandstats`, without the `INFO` of this program. Its "
    "bytes are in all rows: `Redis alone` has nothing else.",
    "A trip proves that the copies are true: `TIME` and `HELLO` in one write, at least each 500 ms and five times within "
    "`stale_limit`.",
    "CPU time is that of the whole process for each second.",
)

HEADER = ("running", "commands/s", "trips/s", "bytes/s to Redis", "from Redis", "Kirin's CPU µs/s", "Redis's CPU µs/s", "commands")

ENTRANTS = (
    Entrant("redis", "Redis alone", redis.shared),
    Entrant("kirin", "kirin serve, no origin", lambda host: kirin.start(host, "kirin-idle-alone")),
    Entrant("kirin", "kirin serve", lambda host: kirin.start(host, "kirin-idle", origin=redis.shared(host))),
    Entrant("kirin", "kirin memcached", lambda host: kirin.start_near_store(host, redis.shared(host))),
)

TRIP = "time"
"""The command of which each trip has one."""


@dataclass(frozen=True)
class Seen:
    """The counters of the redis-server and the CPU times at a moment."""

    at: float
    calls: dict[str, int]
    received: int
    sent: int
    redis_cpu: float
    kirin_cpu: float

    @classmethod
    def now(cls, client: redis.Client, behind: Server, roots: Sequence[int]) -> Seen:
        stats, commands = client.info("stats"), client.info("commandstats")
        calls = {name.removeprefix("cmdstat_"): int(row.split(",")[0].removeprefix("calls=")) for name, row in commands.items()}
        calls.pop("info", None)
        return cls(
            time.monotonic(), calls, int(stats["total_net_input_bytes"]), int(stats["total_net_output_bytes"]),
            measure.cpu_seconds(behind.roots), measure.cpu_seconds(roots),
        )  # fmt: skip


def row(name: str, before: Seen, after: Seen) -> list[str]:
    """Returns the row of what happened from one moment to another."""
    seconds = after.at - before.at
    calls = {one: number - before.calls.get(one, 0) for one, number in after.calls.items()}
    calls = {one: number for one, number in sorted(calls.items()) if number}

    def a_second(of: Callable[[Seen], float]) -> float:
        return (of(after) - of(before)) / seconds

    return [
        name,
        f"{sum(calls.values()) / seconds:.1f}",
        f"{calls.get(TRIP, 0) / seconds:.1f}",
        f"{a_second(lambda seen: seen.received):.0f}",
        f"{a_second(lambda seen: seen.sent):.0f}",
        f"{a_second(lambda seen: seen.kirin_cpu) * 1e6:.0f}",
        f"{a_second(lambda seen: seen.redis_cpu) * 1e6:.0f}",
        ", ".join(f"{number} {one.upper()}" for one, number in calls.items()),
    ]


def run(host: Host, entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each server."""
    body, about = [], {}
    for entrant in entrants:
        server = entrant.start(host)
        about[entrant.row] = server.about
        behind = redis.shared(host)
        with redis.Client(behind) as client:
            roots = [pid for pid in server.roots if pid not in behind.roots]
            time.sleep(1.0)  # The work of the start has ended.
            before = Seen.now(client, behind, roots)
            time.sleep(SECONDS)
            body.append(row(entrant.row, before, Seen.now(client, behind, roots)))
        host.stop_all()
        print(f"{NAME}: {' | '.join(body[-1])}", file=progress, flush=True)
    return grid(HEADER, body), about
