"""Measures what messages, reads and idle machines cost a redis-server that tracks keys."""

from __future__ import annotations

import math
import random
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

import measure
from host import BenchError, Host, Server
from near_copies import Copies, Costs, PAGE_BYTES, SEED, Workload, simulate, zipf
from peers import kirin, memcached, redis

NAME = "invalidation-model"

FLEETS = (1, 10, 100, 1000)
"""The numbers of machines in the tables."""

ROUNDS = 3


class Connection:
    """A connection of a machine, in RESP 3. It counts the keys that messages name."""

    def __init__(self, server: Server, tracking: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = self.socket.makefile("rb")
        self.told = 0
        self.ask(("HELLO", 3))
        if tracking:
            self.ask(("CLIENT", "TRACKING", *tracking.split()))

    def close(self) -> None:
        self.input.close()
        self.socket.close()

    def send(self, *commands: Sequence[str | bytes | int]) -> None:
        self.socket.sendall(b"".join(redis.encoded(*command) for command in commands))

    def ask(self, *commands: Sequence[str | bytes | int]) -> list[object]:
        """Sends commands at once, and returns their replies."""
        self.send(*commands)
        return self.replies(len(commands))

    def replies(self, count: int) -> list[object]:
        """Returns so many replies. Messages that come before them are counted."""
        replies: list[object] = []
        while len(replies) < count:
            is_push, value = self._value()
            if not is_push:
                replies.append(value)
        return replies

    def wait_until_told(self, count: int) -> None:
        """Waits until so many keys have been named."""
        while self.told < count:
            if not self._value()[0]:
                raise BenchError("redis-server: a reply that nobody has asked for")

    def _value(self) -> tuple[bool, object]:
        line = self.input.readline().rstrip(b"\r\n")
        kind, text = line[:1], line[1:]
        if kind == b"-" or not line:
            raise BenchError(f"redis-server: {line!r}")
        if kind in (b"$", b"="):
            return False, self.input.read(int(text) + 2)[:-2] if int(text) >= 0 else None
        if kind in (b"*", b"~", b">", b"%"):
            values = [self._value()[1] for _ in range(int(text) * (2 if kind == b"%" else 1))]
            if kind == b">" and values[0] == b"invalidate" and isinstance(values[1], list):
                self.told += len(values[1])
            return kind == b">", values
        return False, None if kind == b"_" else text


def page(number: int) -> str:
    """Returns the name of an item on the server."""
    return f"kirin:i:/page/{number:08}"


def read_of(name: str) -> tuple[tuple[str, str], ...]:
    """Returns the commands by which a Kirin reads an item."""
    return ("GET", "{kirin:}n"), ("GET", name), ("PTTL", name)


class Meter:
    """Measures a redis-server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = Connection(server)

    def fresh(self) -> None:
        self.client.ask(("FLUSHALL",))

    def cpu_us(self, work: Callable[[], object], idle_us: float) -> float:
        """Returns the CPU time of the server during the work, without what it takes in any case:
        `idle_us` a second.
        """
        begun, before = time.monotonic(), measure.cpu_seconds(self.server.roots)
        work()
        used = measure.cpu_seconds(self.server.roots) - before
        return used * 1e6 - idle_us * (time.monotonic() - begun)

    def cost_us(self, work: Callable[[], object], idle_us: float, machines: Sequence[Connection]) -> float:
        """Returns the same, and ends the connections of the machines that worked."""
        used = self.cpu_us(work, idle_us)
        for machine in machines:
            machine.close()
        return used

    def idle_us(self) -> float:
        """Returns the CPU time of a second in which nobody asks anything."""
        return self.cpu_us(lambda: time.sleep(0.5), 0.0) * 2

    def machines(self, count: int, tracking: str) -> list[Connection]:
        return [Connection(self.server, tracking) for _ in range(count)]

    def info(self, section: str) -> dict[str, str]:
        with redis.Client(self.server) as client:
            return client.info(section)

    def write_us(self, count: int, tracking: str, depth: int, rounds: int) -> float:
        """Returns the cost of a write of which so many machines are told."""
        self.fresh()
        names = [page(number) for number in range(rounds * depth)]
        for first in range(0, len(names), 500):
            self.client.ask(*(("SET", name, "x" * PAGE_BYTES) for name in names[first : first + 500]))
        machines = self.machines(count, tracking)
        is_tracked = tracking == "ON"
        if is_tracked:
            for one in machines:
                for first in range(0, len(names), 500):
                    one.ask(("MGET", *names[first : first + 500]))
        idle = self.idle_us()

        def work() -> None:
            for first in range(0, len(names), depth):
                self.client.ask(*(("SET", name, "x" * PAGE_BYTES) for name in names[first : first + depth]))
                for one in machines:
                    one.wait_until_told(first + depth)

        return self.cost_us(work, idle, machines) / len(names)

    def miss_us(self, count: int = 20_000) -> float:
        """Returns the cost of a read of a page, one after the other. Each is the first of its page,
        so the server notes it.
        """
        self.fresh()
        for first in range(0, count, 1000):
            self.client.ask(*(("SET", page(number), "x" * PAGE_BYTES) for number in range(first, first + 1000)))
        [one] = self.machines(1, "ON")
        idle = self.idle_us()

        def work() -> None:
            for number in range(count):
                one.ask(*read_of(page(number)))

        return self.cost_us(work, idle, [one]) / count

    def miss_together_us(self, machines: int = 64, rounds: int = 300) -> float:
        """Returns the cost of a read of a page, if this many machines read at once."""
        self.fresh()
        for turn in range(rounds):
            self.client.ask(*(("SET", page(turn * machines + number), "x" * PAGE_BYTES) for number in range(machines)))
        connections = self.machines(machines, "ON")
        idle = self.idle_us()

        def work() -> None:
            for turn in range(rounds):
                for number, one in enumerate(connections):
                    one.send(*read_of(page(turn * machines + number)))
                for one in connections:
                    one.replies(3)

        return self.cost_us(work, idle, connections) / rounds / machines

    def proof_us(self, count: int, seconds: float = 3.0) -> float:
        """Returns the cost of a second of an idle machine: two proofs."""
        self.fresh()
        idle = self.idle_us()
        machines = self.machines(count, "ON")

        def work() -> None:
            begun = time.monotonic()
            for turn in range(int(2 * seconds)):
                for index, one in enumerate(machines):
                    time.sleep(max(0.0, begun + (turn + index / count) / 2 - time.monotonic()))
                    one.ask(("TIME",), ("HELLO",))
            time.sleep(max(0.0, begun + seconds - time.monotonic()))

        return self.cost_us(work, idle, machines) / seconds / count

    def purge_us(self, count: int, purges: int) -> float:
        """Returns the cost of a purge for each machine: it is told of the new number, reads the
        numbers, and proves that its copies are true.
        """
        self.fresh()
        self.client.ask(("SET", "{kirin:}n", "1:1"), ("HSET", "{kirin:}p", "", "1:0"))
        machines = self.machines(count, "ON")
        numbers, proof = (("GET", "{kirin:}n"), ("HGETALL", "{kirin:}p")), (("TIME",), ("HELLO",))
        for one in machines:
            one.ask(*numbers)
        idle = self.idle_us()

        def work() -> None:
            for number in range(purges):
                self.client.ask(("SET", "{kirin:}n", f"{number + 2}:1"))
                for one in machines:
                    one.wait_until_told(number + 1)
                for commands in (numbers, proof):
                    for one in machines:
                        one.send(*commands)
                    for one in machines:
                        one.replies(2)

        return self.cost_us(work, idle, machines) / purges / count

    def table_bytes(self) -> tuple[float, float]:
        """Returns the memory of a key of the tracking table that one machine has read, and that of
        each further machine. The keys do not exist, so they take no other memory.
        """
        used, keys, many = [], 20_000, 50
        for count in (1, many):
            self.fresh()
            machines = self.machines(count, "ON")
            before = int(self.info("memory")["used_memory"])
            for one in machines:
                for first in range(0, keys, 500):
                    one.ask(("MGET", *map(page, range(first, first + 500))))
            stats = self.info("stats")
            if int(stats["tracking_total_items"]) != count * keys:
                raise BenchError(f"redis-server tracks {stats['tracking_total_items']} of {count * keys}")
            used.append((int(self.info("memory")["used_memory"]) - before) / keys)
            for one in machines:
                one.close()
            self.client.ask(("FLUSHALL",))
        return used[0], (used[1] - used[0]) / (many - 1)

    def repeat(self, log: Sequence[tuple[int, int]], machines: int) -> dict[str, float]:
        """Does what a simulation has logged, and returns what the server did."""
        self.fresh()
        connections = self.machines(machines, "ON")
        self.client.ask(("SET", "{kirin:}n", "1:1"))
        idle = self.idle_us()

        def work() -> None:
            for index, key in log:
                if index < 0:
                    self.client.ask(("SET", page(key), "x" * PAGE_BYTES))
                else:
                    connections[index].ask(*read_of(page(key)))

        used = self.cpu_us(work, idle)
        for one in connections:
            one.ask(("PING",))
        stats = self.info("stats")
        result = {
            "messages": sum(one.told for one in connections),
            # The number of purges is an entry of each machine, too.
            "entries": int(stats["tracking_total_items"]) - machines,
            "cpu_us": used,
        }
        for one in connections:
            one.close()
        return result


def measured(meter: Meter, write_us: float) -> Costs:
    """Measures the costs. `write_us` is that of a write of a Kirin."""
    alone, together = meter.write_us(0, "", 1, 10_000), meter.write_us(0, "", 16, 1000)
    tracked: dict[int, float] = {}
    tracked_together: dict[int, float] = {}
    broadcast: dict[int, float] = {}
    broadcast_together: dict[int, float] = {}
    proof, purge = {}, {}
    for count in FLEETS:
        writes = max(200, 10_000 // count)
        for depth, tracking, of in (
            (1, "ON", tracked), (16, "ON", tracked_together), (1, "ON BCAST", broadcast), (16, "ON BCAST", broadcast_together),
        ):  # fmt: skip
            # Few machines cost little beside the write, so the write is measured each time.
            differences = [
                meter.write_us(count, tracking, depth, writes // depth) - meter.write_us(0, "", depth, writes // depth)
                for _ in range(ROUNDS)
            ]
            of[count] = median(differences) / count
        proof[count] = meter.proof_us(count)
        purge[count] = meter.purge_us(count, max(30, 3000 // count))
        print(f"{NAME}: measured {count} machines", file=sys.stderr, flush=True)
    key_bytes, entry_bytes = meter.table_bytes()
    return Costs(
        tracked_us=tracked, tracked_together_us=tracked_together, broadcast_us=broadcast,
        broadcast_together_us=broadcast_together, set_us=alone, set_together_us=together, write_us=write_us,
        miss_us=meter.miss_us(), miss_together_us=meter.miss_together_us(), proof_us=proof, purge_us=purge,
        key_bytes=key_bytes, entry_bytes=entry_bytes,
    )  # fmt: skip


class NearStore:
    """A `kirin memcached` before the redis-server, and a client of it."""

    def __init__(self, host: Host, name: str) -> None:
        path = host.directory / f"{name}.sock"
        origin = f"origin=redis://127.0.0.1:{redis.shared(host).port}"
        host.start(name, [host.kirin, "memcached", "-s", path, "-t", "1", "-m", "64", "-o", origin], socket_path=path)
        self.address = f"unix:{path}"
        kirin.connect(self.address)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.input = self.socket.makefile("rb")

    def close(self) -> None:
        self.input.close()
        self.socket.close()

    def get(self, key: int) -> None:
        self.socket.sendall(b"get page%08d\r\n" % key)
        while (line := self.input.readline()) != b"END\r\n":
            if line.startswith(b"VALUE"):
                self.input.read(int(line.split()[3]) + 2)
            else:
                raise BenchError(f"kirin answers get: {line!r}")

    def set(self, key: int) -> None:
        self.socket.sendall(b"set page%08d 0 0 %d\r\n%s\r\n" % (key, PAGE_BYTES, b"x" * PAGE_BYTES))
        if (line := self.input.readline()) != b"STORED\r\n":
            raise BenchError(f"kirin answers set: {line!r}")

    def counted(self) -> dict[str, int]:
        values = memcached.statistics(self.address)
        return {name: int(values[f"origin_{name}"]) for name in ("reads", "invalidations")}


@dataclass(frozen=True)
class Compared:
    """What the model says about a run, and what was there."""

    what: str
    model: float
    real: float

    def row(self) -> list[str]:
        return [self.what, f"{self.model:,.0f}", f"{self.real:,.0f}", f"{self.real / self.model - 1:+.1%}"]


def by_kirins(host: Host, meter: Meter, machines: int, keys: int = 1000, steps: int = 30_000) -> tuple[float, list[Compared]]:
    """Returns the cost of a write of a Kirin, and how many reads reached the redis-server and how
    many messages came when real Kirins did what the model did. One step in ten is a write.
    """
    rng = random.Random(SEED)
    stores = [NearStore(host, f"kirin-{index}") for index in range(machines)]

    def write_all() -> None:
        for key in range(keys):
            stores[0].set(key)

    write_all()
    write_us = meter.cpu_us(write_all, meter.idle_us()) / keys
    before = [one.counted() for one in stores]
    copies, weights = Copies(machines, keys, math.inf), list(accumulate(zipf(keys, 1.0)))
    reads = messages = 0
    for key in rng.choices(range(keys), cum_weights=weights, k=steps):
        index = rng.randrange(machines)
        if rng.random() < 0.1:
            messages += len(copies.write(key) | {index})
            stores[index].set(key)
        else:
            reads += not copies.read(index, key, 0.0)
            stores[index].get(key)
    # What the server has to tell comes before its reply.
    for one in stores:
        one.set(keys)
    after = [one.counted() for one in stores]
    for one in stores:
        one.close()

    def difference(name: str) -> int:
        return sum(late[name] - early[name] for late, early in zip(after, before))

    # The last writes of one key: each is told to its writer.
    messages += machines
    return write_us, [
        Compared(f"reads of {machines} Kirins that reach the server", reads, difference("reads")),
        Compared(f"messages to {machines} Kirins", messages, difference("invalidations")),
    ]


def by_connections(meter: Meter, machines: int) -> list[Compared]:
    """Returns how far a run of the simulation is from real connections that do the same. The costs
    of its commands are measured before each round: the machine changes its speed within minutes.
    """
    load = Workload(keys=2000, reads=500.0, writes=100.0, capacity=500)
    log: list[tuple[int, int]] = []
    seconds = 10.0
    told = simulate(load, machines, 0.0, seconds, log=log)
    entries, messages = told.entries * machines, told.tracked_messages * seconds * machines
    writes = sum(index < 0 for index, _ in log)
    compared = []
    for number in range(1, ROUNDS + 1):
        set_us, miss_us = meter.write_us(0, "", 1, 3000), meter.miss_us(5000)
        message_us = (meter.write_us(machines, "ON", 1, 1000) - set_us) / machines
        real = meter.repeat(log, machines)
        cpu_us = writes * set_us + (len(log) - writes) * miss_us + messages * message_us
        if number == 1:
            compared += [
                Compared(f"messages to {machines} connections", messages, real["messages"]),
                Compared("entries in the tracking table at the end", entries, real["entries"]),
            ]
        compared.append(Compared(f"CPU of the redis-server, µs, round {number}", cpu_us, real["cpu_us"]))
    return compared
