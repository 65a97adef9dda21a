"""The copies of many machines behind one server: a simulation, the same as formulas, and what it costs."""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

SEED = 43

WRITE_TOGETHER_US = 10.7
"""Redis's part of a write of Kirin under full load. From bench/results/origin-write.md."""

PAGE_BYTES = 1024

NAME_BYTES = len("kirin:i:/page/00000000")

REPLY_BYTES = 100
"""What Redis adds to an item in the replies to the three commands of a read, with Kirin's head."""


@dataclass(frozen=True)
class Workload:
    """The reads of each machine, the writes of all, and the copies of each machine."""

    keys: int
    reads: float
    """Reads a second on each machine."""
    writes: float
    """Writes a second, of all machines together."""
    read_exponent: float = 1.0
    write_exponent: float | None = None
    """The exponent of Zipf's law for writes: that of the reads if None, and 0 for uniform writes."""
    capacity: int | None = None
    """How many copies a machine has room for. None: as many as there are keys."""
    ttl: float | None = None
    """The seconds for which a copy is used. None: until it is written or evicted."""

    def read_shares(self) -> list[float]:
        return zipf(self.keys, self.read_exponent)

    def write_shares(self) -> list[float]:
        exponent = self.read_exponent if self.write_exponent is None else self.write_exponent
        return zipf(self.keys, exponent)


@dataclass(frozen=True)
class Traffic:
    """What happens in a second with one machine of many, in the mean."""

    hit_ratio: float
    misses: float
    """Reads that reach the server."""
    tracked_messages: float
    """Messages to this machine, with tracking, if somebody else writes."""
    entries: float
    """The keys that the server notes for this machine."""


@dataclass(frozen=True)
class FleetTraffic:
    """What happens in a second on the server of all machines."""

    misses: float
    tracked_messages: float
    """With tracking. The writer is one of them, see `fleet`."""
    broadcast_messages: float
    entries: float
    tracked_keys: float


def zipf(keys: int, exponent: float) -> list[float]:
    """Returns the share of each key, the most popular first. They are all the same if `exponent`
    is 0.
    """
    weights = [rank**-exponent for rank in range(1, keys + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def expected(load: Workload) -> Traffic:
    """Returns the traffic as formulas say, in the long run. Reads and writes come independently
    (Poisson). The approximation of Che is used for LRU: a copy is evicted after a time without a
    read that is the same for all keys. The formulas know a capacity or a TTL, not both.
    """
    rates = [(load.reads * share, load.writes * other) for share, other in zip(load.read_shares(), load.write_shares())]
    tracked = [read / (read + write) for read, write in rates]
    if load.ttl is not None:
        if load.capacity is not None:
            raise ValueError("the formulas know a capacity or a TTL, not both")
        ttl = load.ttl
        lives = [-math.expm1(-write * ttl) / write if write else ttl for _, write in rates]
        held = [read * life / (1 + read * life) for (read, _), life in zip(rates, lives)]
    elif load.capacity is not None and load.capacity < sum(tracked):
        idle = _idle_time(rates, load.capacity)
        held = [_held(read, write, idle) for read, write in rates]
    else:
        held = tracked
    hit_ratio = sum(share * part for share, part in zip(load.read_shares(), held))
    messages = sum(write * part for (_, write), part in zip(rates, tracked))
    return Traffic(hit_ratio, load.reads * (1 - hit_ratio), messages, sum(tracked))


def _held(read: float, write: float, idle: float) -> float:
    """Returns how much of the time a machine has a copy that ends with a write, or `idle` seconds
    after its last read.
    """
    return read / (read + write) * -math.expm1(-(read + write) * idle)


def _idle_time(rates: Sequence[tuple[float, float]], capacity: int) -> float:
    """Returns the idle time at which copies of all keys fill the capacity."""
    low, high = 0.0, 1.0
    while sum(_held(read, write, high) for read, write in rates) < capacity:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        if sum(_held(read, write, middle) for read, write in rates) < capacity:
            low = middle
        else:
            high = middle
    return high


class Copies:
    """The copies of some machines, and what the server notes of them."""

    def __init__(self, machines: int, capacity: int, ttl: float) -> None:
        self.capacity, self.ttl = capacity, ttl
        self.held: list[OrderedDict[int, float]] = [OrderedDict() for _ in range(machines)]
        self.tracking: dict[int, set[int]] = {}

    def read(self, index: int, key: int, now: float) -> bool:
        """Reads a key on a machine. Returns whether it has a copy. If not, it has one now."""
        held = self.held[index]
        since = held.get(key)
        if since is not None and now - since < self.ttl:
            held.move_to_end(key)
            return True
        held[key] = now
        held.move_to_end(key)
        if len(held) > self.capacity:
            held.popitem(last=False)
        self.tracking.setdefault(key, set()).add(index)
        return False

    def write(self, key: int) -> set[int]:
        """Writes a key. Returns the machines that are told, which drop their copies."""
        told = self.tracking.pop(key, set())
        for index in told:
            self.held[index].pop(key, None)
        return told

    def entries(self) -> int:
        return sum(map(len, self.tracking.values()))


def simulate(
    load: Workload, machines: int, warm_up: float, seconds: float, seed: int = SEED, log: list[tuple[int, int]] | None = None
) -> Traffic:
    """Returns the mean traffic of machines, measured for `seconds` after `warm_up`. The caches are
    empty in the beginning.

    `log` gets what reaches the server from the beginning: (machine, key) for a read, and (-1, key)
    for a write.
    """
    rng = random.Random(seed)
    keys = range(load.keys)
    reads, writes = list(accumulate(load.read_shares())), list(accumulate(load.write_shares()))
    copies = Copies(
        machines, load.keys if load.capacity is None else load.capacity, math.inf if load.ttl is None else load.ttl
    )
    hits = misses = messages = turn = 0
    # A step ends with a write, or where counting begins or ends.
    now, ends = 0.0, [warm_up, warm_up + seconds]
    while ends:
        until = now + rng.expovariate(load.writes) if load.writes else math.inf
        is_write = until < ends[0]
        until = min(until, ends[0])
        count = _poisson(rng, load.reads * machines * (until - now))
        for number, key in enumerate(rng.choices(keys, cum_weights=reads, k=count)):
            turn = (turn + 1) % machines
            if copies.read(turn, key, now + (until - now) * number / count):
                hits += 1
                continue
            misses += 1
            if log is not None:
                log.append((turn, key))
        now = until
        if is_write:
            [key] = rng.choices(keys, cum_weights=writes)
            messages += len(copies.write(key))
            if log is not None:
                log.append((-1, key))
        elif len(ends) == 2:
            ends.pop(0)
            hits = misses = messages = 0
        else:
            ends.pop()
    return Traffic(
        hits / max(1, hits + misses), misses / seconds / machines, messages / seconds / machines, copies.entries() / machines
    )


def _poisson(rng: random.Random, mean: float) -> int:
    """Returns how many events come, if `mean` come in the mean."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    count, left = 0, math.exp(-mean)
    product = rng.random()
    while product > left:
        count += 1
        product *= rng.random()
    return count


def fleet(load: Workload, machines: int, one: Traffic) -> FleetTraffic:
    """Returns the traffic of the server, if each machine has the traffic `one`.

    The script of a write reads what is there, so the server tells the writer about each write of
    its own, too.
    """
    told = one.tracked_messages
    rates = [(load.reads * share, load.writes * other) for share, other in zip(load.read_shares(), load.write_shares())]
    tracked_keys = sum(machines * read / (machines * read + write) for read, write in rates)
    return FleetTraffic(
        misses=machines * one.misses,
        tracked_messages=(machines - 1) * told + load.writes,
        broadcast_messages=machines * load.writes,
        entries=machines * one.entries,
        tracked_keys=tracked_keys,
    )


@dataclass(frozen=True)
class Costs:
    """What the server's work costs, as measured. Times are in µs of its CPU."""

    tracked_us: dict[int, float]
    """A message to one of so many machines, if each write comes alone."""
    tracked_together_us: dict[int, float]
    """The same, if 16 writes come at once."""
    broadcast_us: dict[int, float]
    broadcast_together_us: dict[int, float]
    set_us: float
    """A `SET` that nobody is told about."""
    set_together_us: float
    write_us: float
    """A write of a Kirin, alone in a trip, with the message to the Kirin itself."""
    miss_us: float
    """The three commands of a read, if each read comes alone."""
    miss_together_us: float
    """The same, if 64 machines read at once."""
    proof_us: dict[int, float]
    """A second of one of so many idle machines."""
    purge_us: dict[int, float]
    """A purge, for each of so many machines."""
    key_bytes: float
    """A key of the tracking table."""
    entry_bytes: float
    """A machine that has read such a key, beside the first."""

    def table_bytes(self, traffic: FleetTraffic) -> float:
        return traffic.tracked_keys * self.key_bytes + (traffic.entries - traffic.tracked_keys) * self.entry_bytes

    def work_us(
        self, load: Workload, machines: int, traffic: FleetTraffic, is_together: bool, is_broadcast: bool = False
    ) -> float:
        """Returns the work of a second, if everything comes alone, or if it comes together."""
        write_us, miss_us = self.write_us, self.miss_us
        message_us = (self.broadcast_us if is_broadcast else self.tracked_us)[machines]
        if is_together:
            write_us, miss_us = WRITE_TOGETHER_US, self.miss_together_us
            message_us = (self.broadcast_together_us if is_broadcast else self.tracked_together_us)[machines]
        messages = traffic.broadcast_messages if is_broadcast else traffic.tracked_messages
        # The message to the writer is part of the write.
        return load.writes * write_us + (messages - load.writes) * message_us + traffic.misses * miss_us

    def core(self, load: Workload, machines: int, traffic: FleetTraffic, is_broadcast: bool = False) -> str:
        """Returns the share of a core that the server takes: at least, and at most."""
        idle_us = machines * self.proof_us[machines]
        shares = [
            (self.work_us(load, machines, traffic, is_together, is_broadcast) + idle_us) / 1e6 for is_together in (True, False)
        ]
        return f"{shares[0]:.1%} to {shares[1]:.1%}" if shares[1] < 0.1 else f"{shares[0]:.0%} to {shares[1]:.0%}"


def bytes_out(traffic: FleetTraffic, messages: float) -> float:
    """Returns the bytes that the server sends in a second, without those of idle connections."""
    return messages * len(invalidation(b"x" * NAME_BYTES)) + traffic.misses * (PAGE_BYTES + REPLY_BYTES)


def invalidation(name: bytes) -> bytes:
    """Returns the message about a key, in RESP 3."""
    return b">2\r\n$10\r\ninvalidate\r\n*1\r\n$%d\r\n%s\r\n" % (len(name), name)
