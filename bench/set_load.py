"""A load of writes: `set` to a memcached server by kirin-memload, `SET` to a redis-server by
redis-benchmark.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field

from host import BenchError, Host, Server
from load import MemcachedLoad, Outcome, run_generator

FIRST_RATE = 20_000
"""The writes of the first second. redis-benchmark takes a number of commands, not of seconds."""


@dataclass(frozen=True)
class SetLoad(MemcachedLoad):
    """A load of writes. A server without an address of the memcached protocol is a redis-server."""

    set_percent: int = 100
    _rates: dict[int, float] = field(default_factory=dict, compare=False)
    """The commands that each redis-server has answered a second, by its port."""

    def prepare(self, host: Host, server: Server) -> int:
        return super().prepare(host, server) if server.store else self.value_bytes

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        if server.store:
            return super().run(host, server, seconds)
        count = int(self._rates.get(server.port, FIRST_RATE) * seconds)
        output = run_generator(
            host.load_command(
                "redis-benchmark", "-p", str(server.port), "-t", "set", "-c", str(self.connections),
                "-n", str(count), "-d", str(self.value_bytes), "-r", str(self.keys), "-P", str(self.depth), "--csv",
            ),
            seconds,
        )  # fmt: skip
        outcome = outcome_of(output, count)
        self._rates[server.port] = outcome.requests / outcome.seconds
        return outcome


def outcome_of(output: str, count: int) -> Outcome:
    """Returns the numbers of redis-benchmark's table of `count` commands."""
    rows = [row for row in csv.DictReader(output.splitlines()) if row.get("test") == "SET"]
    if not rows:
        raise BenchError(f"redis-benchmark said nothing of SET:\n{output}")
    row = {name: float(value) for name, value in rows[0].items() if name != "test"}
    return Outcome(count, count / row["rps"], row["p50_latency_ms"] * 1000, row["p99_latency_ms"] * 1000)
