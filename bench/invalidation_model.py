#!/usr/bin/env python3
"""Models what a Redis server sends and works for many Kirins behind which it stands.

    bench/invalidation_model.py                   # measures for three minutes, simulates, reports
    bench/invalidation_model.py --results /tmp

Each machine has copies of items. It reads keys by Zipf's law. If it has no copy it asks the server,
which notes that (`CLIENT TRACKING`), and a write of the key is reported to each machine that has
read it since the last write. The other way is broadcasting (`BCAST`): each write goes to all.

Machines do not influence each other: the copies of one depend on its own reads and on all writes.
So the model simulates a few of them, and multiplies. `expected` has the same figures as formulas,
and the tests compare the two.

What a message, a read and an idle machine cost the server is measured against a redis-server. A
run of the simulation is also repeated by real connections and by real Kirins.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from host import BENCH, BenchError, Cores, Host, REPOSITORY
from near_copies import (
    Costs, FleetTraffic, NAME_BYTES, PAGE_BYTES, Traffic,
    WRITE_TOGETHER_US, Workload, bytes_out, expected, fleet, simulate,
)  # fmt: skip
from peers import redis
from report import grid, machine
from tracking_meter import FLEETS, Meter, NAME, ROUNDS, by_connections, by_kirins, measured

SIMULATED_MACHINES = 2

BASE = Workload(keys=10_000, reads=1000.0, writes=100.0)
WARM_UP, SECONDS = 300.0, 100.0
BUSY_LIMIT = 0.7
"""The share of a core that the limits leave to the server. More, and others wait."""

LOADS = {
    "Zipf 1.0, writes alike": BASE,
    "Zipf 1.0, writes uniform": replace(BASE, write_exponent=0.0),
    "Zipf 0.8, writes alike": replace(BASE, read_exponent=0.8),
    "Zipf 0.8, writes uniform": replace(BASE, read_exponent=0.8, write_exponent=0.0),
}


def all_loads() -> dict[str, Workload]:
    """Returns the simulated workloads: with room for all copies, and for a tenth."""
    small = {f"{name}; room for 10 %": replace(load, capacity=load.keys // 10) for name, load in LOADS.items()}
    return {**LOADS, **small}


def costs_table(costs: Costs) -> str:
    header = (
        "machines", "message, tracking: alone; 16 writes at once", "message, broadcasting: alone; 16 at once",
        "idle machine, a second", "purge, each machine",
    )  # fmt: skip
    body = [
        [
            f"{count:,}",
            f"{costs.tracked_us[count]:.1f}; {costs.tracked_together_us[count]:.1f}",
            f"{costs.broadcast_us[count]:.1f}; {costs.broadcast_together_us[count]:.1f}",
            f"{costs.proof_us[count]:.0f}",
            f"{costs.purge_us[count]:.0f}",
        ]
        for count in FLEETS
    ]
    single = (
        f"- a `SET` without messages: {costs.set_us:.1f} µs alone, {costs.set_together_us:.1f} µs of 16 at once\n"
        f"- a write of Kirin alone, with the message to itself: {costs.write_us:.1f} µs; under full load {WRITE_TOGETHER_US} µs "
        "([origin-write](origin-write.md))\n"
        f"- a read of Kirin (`GET`, `GET`, `PTTL`) of {PAGE_BYTES:,} bytes: {costs.miss_us:.1f} µs alone, "
        f"{costs.miss_together_us:.1f} µs if 64 machines read at once\n"
        f"- the tracking table: {costs.key_bytes:.0f} bytes for a key of {NAME_BYTES} bytes that one machine has read, "
        f"{costs.entry_bytes:.0f} bytes for each further machine"
    )
    return grid(header, body) + "\n\n" + single


def traffic_table(costs: Costs, simulated: dict[str, Traffic]) -> str:
    header = (
        "workload", "machines", "hit ratio", "reads at Redis/s", "messages/s, tracking", "broadcasting", "entries",
        "table MB", "MB/s out", "core, tracking", "core, broadcasting",
    )  # fmt: skip
    body = []
    for name, load in all_loads().items():
        for count in FLEETS:
            one = simulated[name]
            all_of_it = fleet(load, count, one)
            body.append([
                name,
                f"{count:,}",
                f"{one.hit_ratio:.3f}",
                f"{all_of_it.misses:,.0f}",
                f"{all_of_it.tracked_messages:,.0f}",
                f"{all_of_it.broadcast_messages:,.0f}",
                f"{all_of_it.entries:,.0f}",
                f"{costs.table_bytes(all_of_it) / 1e6:.1f}",
                f"{bytes_out(all_of_it, all_of_it.tracked_messages) / 1e6:.2f}",
                costs.core(load, count, all_of_it),
                costs.core(load, count, all_of_it, is_broadcast=True),
            ])  # fmt: skip
    return grid(header, body)


def formula_table(simulated: dict[str, Traffic]) -> str:
    header = ("workload", "hit ratio: simulated", "formula", "messages/s: simulated", "formula", "entries: simulated", "formula")
    body = []
    for name, load in all_loads().items():
        one, formula = simulated[name], expected(load)
        body.append([
            name, f"{one.hit_ratio:.4f}", f"{formula.hit_ratio:.4f}", f"{one.tracked_messages:.1f}",
            f"{formula.tracked_messages:.1f}", f"{one.entries:,.0f}", f"{formula.entries:,.0f}",
        ])  # fmt: skip
    return grid(header, body)


def spread_table(costs: Costs) -> str:
    """Returns the table of the same visitors on more machines, by the formulas."""
    reads = 10_000.0
    body = []
    for writes in (10.0, 100.0):
        for count in FLEETS:
            load = replace(BASE, reads=reads / count, writes=writes)
            one = expected(load)
            all_of_it = fleet(load, count, one)
            body.append([
                f"{writes:.0f}", f"{count:,}", f"{load.reads:,.0f}", f"{one.hit_ratio:.3f}", f"{all_of_it.misses:,.0f}",
                f"{all_of_it.tracked_messages:,.0f}", f"{all_of_it.broadcast_messages:,.0f}", costs.core(load, count, all_of_it),
            ])  # fmt: skip
    header = ("writes/s", "machines", "reads/s of each", "hit ratio", "reads at Redis/s", "messages/s", "broadcasting", "core")
    return grid(header, body)


def keys_table(costs: Costs) -> str:
    """Returns the table of more keys, by the formulas."""
    body = []
    for keys in (10_000, 100_000, 1_000_000):
        for count in FLEETS:
            load = replace(BASE, keys=keys)
            all_of_it = fleet(load, count, expected(load))
            body.append([
                f"{keys:,}", f"{count:,}", f"{all_of_it.tracked_keys:,.0f}", f"{all_of_it.entries:,.0f}",
                f"{costs.table_bytes(all_of_it) / 1e6:,.1f}",
            ])  # fmt: skip
    return grid(("pages", "machines", "keys in the table", "entries", "table MB"), body)


def ttl_table() -> str:
    """Returns the table of copies that end by themselves, by the formulas."""
    body = []
    for name, load in (("until they are written", BASE), *((f"{ttl} s", replace(BASE, ttl=ttl, writes=0.0)) for ttl in (1, 10, 60))):
        one = expected(load)
        body.append([name, f"{one.hit_ratio:.3f}", f"{one.misses:,.0f}", f"{one.tracked_messages:,.0f}"])
    return grid(("copies are used", "hit ratio", "misses/s of a machine", "messages/s to a machine"), body)


def most_writes(budget_us: float, work_us: Callable[[float], float]) -> float:
    """Returns how many writes a second are no more than this work. `work_us` has the work for a
    number of writes.
    """
    low, high = 0.0, 1e6
    for _ in range(40):
        middle = (low + high) / 2
        if work_us(middle) < budget_us:
            low = middle
        else:
            high = middle
    return low


def limit_table(costs: Costs) -> str:
    body = []
    for count in FLEETS:
        idle_us = count * costs.proof_us[count]
        budget_us = BUSY_LIMIT * 1e6 - idle_us

        def held_by_all(writes: float, is_together: bool, count: int = count) -> float:
            all_of_it = FleetTraffic(writes * count, writes * count, writes * count, 0.0, 0.0)
            return costs.work_us(replace(BASE, writes=writes), count, all_of_it, is_together)

        def as_read(writes: float, is_together: bool, count: int = count) -> float:
            load = replace(BASE, writes=max(writes, 1e-9))
            return costs.work_us(load, count, fleet(load, count, expected(load)), is_together)

        def most(work_us: Callable[[float, bool], float], budget_us: float = budget_us) -> str:
            return " to ".join(
                f"{most_writes(budget_us, lambda writes: work_us(writes, is_together)):,.0f}" for is_together in (False, True)
            )

        purge_us = costs.purge_us[count] * count
        body.append([
            f"{count:,}", f"{idle_us / 1e6:.1%}", most(held_by_all), most(as_read), f"{max(0.0, budget_us) / purge_us:,.0f}",
            f"{purge_us / 1000:.2f}",
        ])  # fmt: skip
    header = (
        "machines", "core, idle", "writes/s of keys that all have", "writes/s, alike to 1,000 reads/s", "purges/s", "a purge, ms",
    )  # fmt: skip
    return grid(header, body)


NOTES = (
    f"A workload has {BASE.keys:,} keys, {BASE.reads:,.0f} reads a second on each machine and {BASE.writes:,.0f} writes a "
    "second in the whole. `alike`: a key that is read more is written more. `room for 10 %`: a machine has room for a tenth "
    "of the keys, and evicts the copy that was not used for longest. Kirin evicts better than that (`hit-ratio`).",
    f"{SIMULATED_MACHINES} machines were simulated for {WARM_UP:.0f} s without counting and {SECONDS:.0f} s with it, and "
    "multiplied. A machine has what it has by its own reads and by all writes, so its hit ratio does not depend on how many "
    "machines there are.",
    "`core` is the share of one core that the redis-server takes: at least, if commands and messages come together, and at "
    "most, if each comes alone. A server that is nearly idle has the greater costs, and one that is busy the smaller ones: it "
    "reads and writes much at once. Beyond 100 % the server cannot keep up.",
    "Kirin uses tracking. Broadcasting is shown for comparison. It has no table, and one message may name several keys. Each "
    "machine must read about keys that it does not have, which is in no figure.",
    "The server tells a machine about its own writes too, because the script of a write reads what is there.",
    "The time of an idle machine is that of two proofs a second (`TIME`, `HELLO`) over TCP on this machine.",
    "A purge, besides its script: each machine is told that the number of purges has changed, reads it and the table of "
    "purged prefixes (which is empty here), and proves that its copies are true.",
    "The table by the number of pages is what comes in the long run: a rare page of a million is read once in hours.",
    f"The costs of messages are medians of {ROUNDS} rounds, each less the same writes without readers.",
    "The redis-server and all connections were on one core, as in the rows `origin-…`. On two cores the server also pays "
    "for waking the other core of a virtual machine. What a network card costs is in no figure.",
    "The CPU time of the repeated run is of single commands, one after the other: it shows that the costs add up, not what a "
    "busy server takes. The machine has two speeds and changes between them by itself. When the costs were measured only once, "
    "up to two minutes before, the sum was off by 2, 2 and 25 % in three runs. Read all CPU figures as good to a quarter.",
)


def results(host: Host) -> str:
    """Measures, simulates, and returns the report."""
    load_before = os.getloadavg()[0]
    meter = Meter(redis.shared(host))
    write_us, kirins = by_kirins(host, meter, 10)
    meter.client.close()
    # Kirins ask the redis-server also when nobody asks them.
    host.stop_all()
    print(f"{NAME}: compared with Kirins", file=sys.stderr, flush=True)
    meter = Meter(redis.shared(host))
    costs = measured(meter, write_us)
    compared = by_connections(meter, 10) + kirins
    meter.client.close()
    begun = time.monotonic()
    simulated = {name: simulate(load, SIMULATED_MACHINES, WARM_UP, SECONDS) for name, load in all_loads().items()}
    print(f"{NAME}: simulated in {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
    parts = [
        f"# {NAME}",
        "What does one redis-server work, send and remember for many Kirins?",
        f"{machine(host.cores, load_before, 'this program')}\n- {redis.shared(host).about}",
        "## What the server's work costs, measured\n\nCPU time of the redis-server in µs.",
        costs_table(costs),
        "## The model beside real runs",
        grid(("what", "model", "real", "difference"), [one.row() for one in compared]),
        "## Machines that have 1,000 reads a second each, simulated",
        traffic_table(costs, simulated),
        "## The simulation beside the formulas, one machine",
        formula_table(simulated),
        "## The same 10,000 reads a second on more machines, by the formulas (Zipf 1.0, writes alike)",
        spread_table(costs),
        "## The tracking table by the number of pages, by the formulas (Zipf 1.0, writes alike)",
        keys_table(costs),
        "## Copies that end by themselves, without messages, by the formulas (Zipf 1.0)",
        ttl_table(),
        f"## Where one core is busy for {BUSY_LIMIT:.0%}",
        limit_table(costs),
        "## How to read it\n\n" + "\n".join(f"- {note}" for note in NOTES),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=BENCH / "results", help="the directory of the report")
    parser.add_argument("--kirin", type=Path, default=REPOSITORY / "target" / "release" / "kirin", help="the program")
    arguments = parser.parse_args()
    try:
        with Host(Cores("0", "0"), arguments.kirin, REPOSITORY / "target" / "release") as host:
            os.sched_setaffinity(0, {0})
            text = results(host)
    except BenchError as error:
        sys.exit(f"{NAME}: {error}")
    (arguments.results / f"{NAME}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
