"""origin-purge: the purge of a tag with 100,000 items, by Kirin and by programs that keep a set of the
keys of each tag.
"""

from __future__ import annotations

import http.client
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

import measure
from comparison import Entrant
from comparisons import origin
from comparisons.upgrade import Waits
from host import BenchError, Host, Server
from peers import kirin, nginx, redis, starlet
from raw_clients import receive
from report import grid
from serving import wait_for

NAME = "origin-purge"
QUESTION = "A tag with 100,000 items on the redis-server: how long does its purge take, and how long do others wait meanwhile?"
TOOL = "this program"
SHARE_CORES = False
ITEMS = 100_000
VALUE = b"v" * 100
TAG = "bench"
TTL_SECONDS = 3600
PURGES = 5
KEYS_A_GET = 50
LIMIT_SECONDS = 30.0

NOTES = (
    f"Medians of {PURGES} purges of {ITEMS:,} items of {len(VALUE)} bytes, which are made again before each. `purge ms` is "
    "from the command to its answer. CPU time is of all processes of the row, and of the redis-server.",
    "`gone elsewhere` is from the command until another machine serves no item any more. Kirin's other machine has copies of "
    "all items, and the purge is sent to one that has none. The other programs have no copies, so their items are gone when "
    "the answer comes. An nginx with a shared dictionary would go on to serve what it has there.",
    "`others wait` is the longest wait of another client of the redis-server while the purge goes on, which sends `PING` each "
    "half of a millisecond. `before` is the same for as long a time before it.",
    "Kirin's purge is one write, however many items have the tag. An item carries the number of the last purge that its "
    "writer knew, and is dead if its tag was purged under a greater one.",
    f"So Kirin's dead items stay on the redis-server until they expire ({TTL_SECONDS} s here), are written again or are "
    "evicted; `MB after` shows it. The others remove them. `MB before` has what finds the items of the tag: for Kirin the "
    "tag in each item and what the redis-server notes of the copies, for the others the set of keys. The set also costs them "
    "one more command with each write (`SADD`), which is in no figure.",
    f"nginx and the application read the set (`SMEMBERS`) and send `UNLINK` of 1,000 keys each, all at once. The script does "
    "the same within the redis-server.",
)

HEADER = (
    "purge by", "purge ms", "gone elsewhere ms", "others wait ms", "before", "CPU ms", "Redis's part", "MB before", "MB after",
)  # fmt: skip

FILL = """
for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  local key = KEYS[1] .. number
  redis.call('SET', key, ARGV[3], 'EX', ARGV[4])
  redis.call('SADD', KEYS[2], key)
end
"""

PURGE = """
local keys = redis.call('SMEMBERS', KEYS[1])
for first = 1, #keys, 1000 do redis.call('UNLINK', unpack(keys, first, math.min(first + 999, #keys))) end
redis.call('UNLINK', KEYS[1])
return #keys
"""


class Purging:
    """A way to purge a tag: items with a set of their keys, and a command that removes them."""

    def __init__(self, host: Host, server: Server | None = None) -> None:
        self.redis = redis.shared(host)
        self.client = redis.Client(self.redis)
        self.roots = [*(server.roots if server else ()), *self.redis.roots]
        self.about = server.about if server else f"{self.redis.about}; EVAL"

    def fill(self) -> None:
        for first in range(1, ITEMS + 1, redis.COPIES_A_CALL):
            last = min(ITEMS, first + redis.COPIES_A_CALL - 1)
            self.client("EVAL", FILL, 2, "page:/item/", f"tag:{TAG}", first, last, VALUE, TTL_SECONDS)

    def purge(self) -> None:
        removed = self.client("EVAL", PURGE, 1, f"tag:{TAG}")
        if removed != ITEMS:
            raise BenchError(f"{removed} items of {ITEMS} were purged")

    def is_gone(self) -> bool:
        """Returns whether another machine serves no item any more. It knows if it looks at one."""
        return self.client("EXISTS", f"page:/item/{ITEMS}") == 0


class PurgingByHttp(Purging):
    """A server that gets a request and purges."""

    def __init__(self, host: Host, server: Server, target: str) -> None:
        super().__init__(host, server)
        self.port, self.target = server.port, target

    def purge(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        connection.request("GET", self.target)
        answer = connection.getresponse().read()
        connection.close()
        if answer != b"%d" % ITEMS:
            raise BenchError(f"{answer[:100]!r} items of {ITEMS} were purged")


class PurgingByKirin(Purging):
    """A Kirin with copies of all items, and another one that gets the command."""

    def __init__(self, host: Host) -> None:
        reader = kirin.start(host, "kirin-copies", origin=redis.shared(host), unix_store=True)
        purger = kirin.start_near_store(host, redis.shared(host))
        super().__init__(host, reader)
        self.roots += purger.roots
        self.about = f"{reader.about}; and {purger.about}; CPU of both and of the redis-server"
        self.reader, self.purger = connected(reader), connected(purger)

    def fill(self) -> None:
        first = b"ms /item/0 %d T%d Ptags=%s\r\n%s\r\n" % (len(VALUE), TTL_SECONDS, TAG.encode(), VALUE)
        exchange(self.purger, first, b"HD\r\n")
        self.client.copy(f"{origin.ITEM}/item/0", f"{origin.ITEM}/item/", ITEMS)
        read = 0
        for first_key in range(1, ITEMS + 1, KEYS_A_GET):
            keys = " ".join(f"/item/{number}" for number in range(first_key, first_key + KEYS_A_GET))
            read += exchange(self.reader, f"get {keys}\r\n".encode(), b"END\r\n").count(b"VALUE ")
        if read != ITEMS:
            raise BenchError(f"Kirin has {read} items of {ITEMS}")

    def purge(self) -> None:
        exchange(self.purger, b"md %s Ptag\r\n" % TAG.encode(), b"HD\r\n")

    def is_gone(self) -> bool:
        return exchange(self.reader, b"get /item/%d\r\n" % ITEMS, b"END\r\n") == b"END\r\n"


def connected(server: Server) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(LIMIT_SECONDS)
    connection.connect(server.store.removeprefix("unix:"))
    return connection


def exchange(connection: socket.socket, request: bytes, end: bytes) -> bytes:
    """Sends a command. Returns the answer, which ends in `end` or is an error."""
    connection.sendall(request)
    answer = b""
    while not answer.endswith(end):
        answer += receive(connection)
        if answer.startswith((b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR", b"NF", b"NS")):
            raise BenchError(f"{request[:60]!r} was answered {answer!r}")
    return answer


def by_nginx(host: Host) -> Purging:
    server = nginx.lua_redis(host, "nginx-purge", redis.shared(host), "pages.purge(REDIS)", "SMEMBERS, UNLINK of 1,000 keys each")
    return PurgingByHttp(host, server, f"/?tag={TAG}")


def by_application(host: Host) -> Purging:
    env = {"BENCH_REDIS": f"127.0.0.1:{redis.shared(host).port}"}
    return PurgingByHttp(host, starlet.start(host, origin.APP, 1, "starlet-purge", env=env), f"/purge?{TAG}")


def not_by_load(_host: Host) -> Server:
    raise BenchError("the servers of this comparison start with their way to purge")


@dataclass(frozen=True)
class PurgeEntrant(Entrant):
    """A way to purge a tag."""

    begin: Callable[[Host], Purging] = Purging


ENTRANTS = (
    PurgeEntrant("kirin", "kirin, md TAG Ptag", not_by_load, begin=PurgingByKirin),
    PurgeEntrant("nginx", "nginx lua, UNLINK", not_by_load, begin=by_nginx),
    PurgeEntrant("starlet", "Starlet, UNLINK", not_by_load, begin=by_application),
    PurgeEntrant("redis", "script in Redis, UNLINK", not_by_load, begin=Purging),
)


@dataclass
class Purged:
    """The figures of the purges of one row."""

    took: list[float] = field(default_factory=list)
    gone: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    waits_before: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    redis_cpu: list[float] = field(default_factory=list)
    megabytes_before: list[float] = field(default_factory=list)
    megabytes_after: list[float] = field(default_factory=list)

    def row(self, name: str) -> list[str]:
        times = (self.took, self.gone, self.waits, self.waits_before, self.cpu, self.redis_cpu)
        sizes = (self.megabytes_before, self.megabytes_after)
        return [
            name,
            *(f"{statistics.median(each) * 1000:.2f}" for each in times),
            *(f"{statistics.median(each):.1f}" for each in sizes),
        ]


def used_megabytes(client: redis.Client) -> float:
    """Returns the memory of the redis-server, when it has freed what it frees later."""
    wait_for(lambda: client.info("memory")["lazyfree_pending_objects"] == "0", LIMIT_SECONDS)
    return int(client.info("memory")["used_memory"]) / 1024 / 1024


def purge_once(purging: Purging, waits: Waits, empty_megabytes: float, purged: Purged) -> None:
    """Makes the items, and purges them."""
    purging.fill()
    purged.megabytes_before.append(used_megabytes(purging.client) - empty_megabytes)
    time.sleep(0.5)  # The other client has waited for the items. It has time for calm figures.
    cpu, redis_cpu = measure.cpu_seconds(purging.roots), measure.cpu_seconds(purging.redis.roots)
    began = time.monotonic()
    purging.purge()
    answered = time.monotonic()
    while not purging.is_gone():
        if time.monotonic() > began + LIMIT_SECONDS:
            raise BenchError("an item is still served")
    gone = time.monotonic()
    purged.took.append(answered - began)
    purged.gone.append(gone - began)
    megabytes = used_megabytes(purging.client)
    purged.cpu.append(measure.cpu_seconds(purging.roots) - cpu)
    purged.redis_cpu.append(measure.cpu_seconds(purging.redis.roots) - redis_cpu)
    purged.megabytes_after.append(megabytes - empty_megabytes)
    # The client that waits has its answer within a moment.
    time.sleep(0.05)
    purged.waits.append(max(waits.between(began, gone + 0.01), default=0.0))
    purged.waits_before.append(max(waits.between(2 * began - gone - 0.01, began), default=0.0))


def purges(purging: Purging) -> Purged:
    """Makes the items and purges them, again and again, while another client waits for answers."""
    purged, empty = Purged(), used_megabytes(purging.client)
    with redis.Client(purging.redis) as other:

        def ask(_number: int) -> None:
            other("PING")

        waits = Waits(ask)
        try:
            for _ in range(PURGES):
                purge_once(purging, waits, empty, purged)
        finally:
            waits.end()
    return purged


def run(host: Host, entrants: Sequence[PurgeEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each row."""
    body, about = [], {}
    for entrant in entrants:
        purging = entrant.begin(host)
        about[entrant.row] = purging.about
        body.append(purges(purging).row(entrant.row))
        host.stop_all()
        print(f"{NAME}: {' | '.join(body[-1])}", file=progress, flush=True)
    return grid(HEADER, body), about
