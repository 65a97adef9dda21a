"""cache-machines: the caches of three machines. How many requests they pass on, and the CPU time of a
request.

Kirin's machines share their cache by a redis-server. Those of Varnish and nginx each have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

import measure
from comparisons.cache_hit_ratio import CacheEntrant, httptrace
from host import BenchError, Host, Server, free_port
from peers import kirin, nginx, redis, varnish
from report import grid

NAME = "cache-machines"
QUESTION = "Three machines behind a balancer: how many requests do their caches pass on, and what does one cost?"
TOOL = "kirin-httptrace"
SHARE_CORES = False

MACHINES = 3
MEGABYTES = 256
SIZES = "1000-30000"
OBJECTS, REQUESTS = 5_000, 60_000
TRACE = (
    "--popularity", "steady", "--exponent", "0.9", "--objects", str(OBJECTS), "--requests", str(REQUESTS),
    "--values", SIZES,
)  # fmt: skip
HEADER = [
    "cache", "passed on", "of distinct objects", "filling: CPU/request", "filled: CPU/request", "of it Redis", "resident",
]


def with_redis(host: Host, peer: str, *, name: str, cache_megabytes: int) -> Server:
    """Starts a Kirin whose cache is shared."""
    return kirin.proxy_to(host, peer, name=name, cache_megabytes=cache_megabytes, origin=redis.shared(host))


@dataclass(frozen=True)
class SharingEntrant(CacheEntrant):
    """A cache on each machine, and whether they have a redis-server behind them."""

    row: str
    shares: bool = False


ENTRANTS = (
    SharingEntrant("kirin", with_redis, "kirin, one cache by Redis", shares=True),
    SharingEntrant("kirin", kirin.proxy_to, "kirin, a cache each"),
    SharingEntrant("varnish", varnish.proxy_to, "varnish, a cache each"),
    SharingEntrant("nginx", nginx.proxy_to, "nginx, a cache each"),
)

NOTES = (
    f"{REQUESTS:,} requests for {OBJECTS:,} objects of {SIZES} bytes (Zipf 0.9), one after the other, to {MACHINES} machines in "
    "turn as a balancer sends them. All may be kept for a day, and each cache has room for all. The same trace runs twice: "
    "`filling` begins with empty caches, and `filled` has only hits.",
    "CPU time is of the caches of all machines and of the redis-server, which are all on one core, and not of the server behind "
    "them. The client waits for each response, so a request pays for waking up: compare the rows, not other tables.",
    "`passed on` is what the application has to make: with a cache for each machine, each machine asks for itself. `of distinct "
    "objects` divides it by the objects that the trace has. The redis-server is on this machine: a real network adds a trip to "
    "each object that another machine has made.",
)


@dataclass(frozen=True)
class Machines:
    """The running caches of a row."""

    servers: list[Server]
    behind: int
    redis_roots: list[int]

    def roots(self) -> list[int]:
        return [root for server in self.servers for root in server.roots] + self.redis_roots


@dataclass(frozen=True)
class Played:
    """What a run of the trace has used."""

    misses: int
    cpu_us: float
    redis_us: float


def run(host: Host, entrants: Sequence[SharingEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each row."""
    distinct = httptrace(host, "describe", *TRACE)["objects"]
    body, about = [], {}
    for entrant in entrants:
        try:
            machines = started(host, entrant)
            about[entrant.row] = machines.servers[0].about
            filling, filled = played(host, machines), played(host, machines)
            if filled.misses:
                raise BenchError(f"{filled.misses} requests of the second run were passed on")
            resident = measure.anonymous_bytes(machines.roots()) / 1024 / 1024
            cells = [
                f"{filling.misses:,}",
                f"{filling.misses / distinct:.2f}",
                f"{filling.cpu_us:.1f} µs",
                f"{filled.cpu_us:.1f} µs",
                f"{filled.redis_us:.1f} µs" if entrant.shares else "",
                f"{resident:.0f} MB",
            ]
        except BenchError as error:
            cells = [f"**failed**: {str(error).splitlines()[0]}", "", "", "", "", ""]
        finally:
            host.stop_all()
        body.append([entrant.row, *cells])
        print(f"{NAME}: {' | '.join(body[-1])}", file=progress, flush=True)
    return grid(HEADER, body), about


def started(host: Host, entrant: SharingEntrant) -> Machines:
    """Starts the server behind, and a cache for each machine."""
    behind = free_port()
    serve = [host.tool("kirin-httptrace"), "serve", "--port", str(behind), "--values", SIZES]
    host.start("httptrace", serve, port=behind, beside_load=True)
    peer = f"127.0.0.1:{behind}"
    start: Callable[..., Server] = entrant.start
    servers = [
        start(host, peer, name=f"{entrant.peer}-{number}", cache_megabytes=MEGABYTES) for number in range(MACHINES)
    ]
    return Machines(servers, behind, redis.shared(host).roots if entrant.shares else [])


def played(host: Host, machines: Machines) -> Played:
    """Plays the trace once."""
    cpu, redis_cpu = measure.cpu_seconds(machines.roots()), measure.cpu_seconds(machines.redis_roots)
    caches = ",".join(f"127.0.0.1:{server.port}" for server in machines.servers)
    outcome = httptrace(host, "play", caches, f"127.0.0.1:{machines.behind}", *TRACE)
    cpu = measure.cpu_seconds(machines.roots()) - cpu
    redis_cpu = measure.cpu_seconds(machines.redis_roots) - redis_cpu
    return Played(outcome["misses"], cpu * 1e6 / REQUESTS, redis_cpu * 1e6 / REQUESTS)
