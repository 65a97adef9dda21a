"""memory-per-item: the memory that an item needs in addition to its key and its value.

There is no load. Each store is filled under a limit so large that it evicts nothing. Its memory is
read before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import measure
from comparisons import store_entrants
from comparisons.store_entrants import StoreEntrant
from host import BenchError, Host, Server
from load import MemcachedLoad
from peers import memcached
from report import grid

NAME = "memory-per-item"
QUESTION = "Resident memory of an item beyond its key and its value, when nothing is evicted."
TOOL = "kirin-memload --fill"
SHARE_CORES = True
ENTRANTS = store_entrants.ENTRANTS

LIMIT_MEGABYTES = 1024
KEY_BYTES = len("bench:00000000")
"""The length of kirin-memload's keys."""


@dataclass(frozen=True)
class Filling:
    """A number of items of one size."""

    value_bytes: int
    items: int


FILLINGS = (
    Filling(10, 1_000_000),
    Filling(100, 500_000),
    Filling(100, 1_000_000),
    Filling(1024, 200_000),
    Filling(10 * 1024, 20_000),
)

NOTES = (
    "Measured is `Pss_Anon` of /proc/PID/smaps_rollup when it has not changed for half a second: memory that no file "
    "backs. It holds all that either store needs for items: memcached's slabs come from malloc, Kirin's pages and "
    "large values from private anonymous mappings. Neither has shared memory (a row with `Pss_Shmem` fails).",
    "`per item` is what was added from one stored item to all, divided by the items, less key "
    f"({KEY_BYTES} bytes) and value. `in all` divides everything the process has.",
    "`by its own count` is the `bytes` of `stats` per item, less key and value. memcached counts neither its hash "
    "table there nor what its slab classes leave unused; Kirin counts everything that counts against its budget.",
    "Both have hash tables that double: the figure depends on where between two doublings the number of items is. "
    "100-byte values therefore have two rows.",
    "Each of Kirin's shards has a page that is partly filled, and a page is a 64th of the shard's part of the limit: "
    f"up to 1.6 % of `-m`, 16 MB here, where `-m` ({LIMIT_MEGABYTES}) is five to ten times what is stored. With "
    "few large items that is most of the figure. In a full store it is 1.6 % of what is stored.",
    "A row with an eviction or an item missing fails.",
)


def run(host: Host, entrants: Sequence[StoreEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each store."""
    header = ["value", "items", "store", "at start", "full", "per item", "in all", "by its own count"]
    body, about = [], {}
    for filling in FILLINGS:
        for entrant in entrants:
            server = entrant.start(host, LIMIT_MEGABYTES)
            about[entrant.peer] = server.about
            cells = [f"{filling.value_bytes:,} B", f"{filling.items:,}", entrant.peer]
            try:
                cells += _fill(host, server, filling)
            except BenchError as error:
                cells[-1] += f" — **failed**: {error}"
                cells += [""] * (len(header) - len(cells))
            finally:
                host.stop_all()
            print(f"{NAME}: {' '.join(cells)}", file=progress, flush=True)
            body.append(cells)
    return grid(header, body), about


def _fill(host: Host, server: Server, filling: Filling) -> list[str]:
    MemcachedLoad("one item", value_bytes=filling.value_bytes, keys=1).prepare(host, server)
    start = measure.settled_bytes(server.roots)
    MemcachedLoad("all items", value_bytes=filling.value_bytes, keys=filling.items).prepare(host, server)
    full = measure.settled_bytes(server.roots)
    if measure.shared_bytes(server.roots):
        raise BenchError("it has shared memory, which is not measured")
    said = memcached.statistics(server.store)
    if int(said["curr_items"]) != filling.items or int(said["evictions"]):
        raise BenchError(f"{said['curr_items']} items, {said['evictions']} evicted")
    content = KEY_BYTES + filling.value_bytes
    return [
        f"{start / 1e6:,.1f} MB",
        f"{full / 1e6:,.1f} MB",
        f"{(full - start) / (filling.items - 1) - content:,.1f} B",
        f"{full / filling.items - content:,.1f} B",
        f"{int(said['bytes']) / filling.items - content:,.1f} B",
    ]
