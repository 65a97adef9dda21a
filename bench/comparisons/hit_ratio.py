"""hit-ratio: how many requests of a trace miss, at the same memory limit.

The figures are counts, not times: `kirin-memtrace` makes the same requests of each store, in the
same order, and stores the objects that are missing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import measure
from comparisons import store_entrants
from comparisons.even_memory import leaner
from comparisons.store_entrants import StoreEntrant
from host import BenchError, Host, Server
from peers import memcached
from report import grid

NAME = "hit-ratio"
QUESTION = "Misses of a cache-aside client at the same `-m`, on the same trace."
TOOL = "kirin-memtrace"
SHARE_CORES = True
"""The LRU maintainer of memcached is a thread beside its worker. On one core it would be too slow.
"""

ENTRANTS = store_entrants.ENTRANTS

SHARES = (0.05, 0.20)
MEGABYTE = 1024 * 1024
RUN_LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Trace:
    """The arguments of kirin-memtrace."""

    name: str
    popularity: str
    exponent: float


@dataclass(frozen=True)
class Values:
    """The sizes of the values, with the numbers of objects and requests for them. The largest limit
    should be 64 MB.
    """

    title: str
    sizes: str
    objects: int
    requests: int


TRACES = (
    Trace("Zipf 0.9", "steady", 0.9),
    Trace("Zipf 1.0", "steady", 1.0),
    Trace("Zipf 1.0 with scans", "scans", 1.0),
    Trace("Zipf 1.0, shifting", "shifting", 1.0),
)
VALUES = (
    Values("Values of 100 bytes", "100", 2_000_000, 4_000_000),
    Values("Values of 100 bytes to 10 KB", "100-10000", 150_000, 1_500_000),
)

NOTES = (
    "Each request gets one key, and what is missing is set. Keys go out 50 in a get, and the sets of one batch in "
    "front of the next get, so an object that is asked for twice in a batch can be missed twice. That happened in "
    "less than one request of 10,000, or the row says how often.",
    "`footprint` is key (16 bytes) and value of every object that the trace asks for. `-m` is a twentieth and a fifth "
    "of it in whole megabytes. `first` is the share of requests that are the first for their object: no cache has "
    "fewer misses.",
    "`second half` counts only the requests of the trace's second half, when both have long been full.",
    "`bytes missed` is the share of the requested value bytes that had to be fetched. With mixed sizes a cache can "
    "have few misses by preferring small objects; then it misses more bytes.",
    "`items` and `resident` (`Pss_Anon`) are at the end. The limits do not mean the same: memcached does not count its "
    "hash table and its buffers against `-m`, and each slab class takes its first megabyte whatever `-m` is. Kirin "
    "counts everything it stores. Where one takes at least a megabyte less than the other in the end, it plays the trace once "
    "more with an `-m` that is larger by that: the row with `=`.",
    "Mixed sizes are spread evenly by order of magnitude and belong to the key, whatever its popularity. memcached's "
    "slab classes then hold about as many bytes of small as of large objects, and so a larger share of the small ones; Kirin "
    "keeps small objects longer because they are small.",
    "Scans: at the end of each 100,000 requests 20,000 go through objects nobody asks for otherwise (a third of all). "
    "Shifting: in each twentieth of the trace a tenth of all ranks are given to other objects.",
    "The same arguments make the same trace, but both stores do part of their work in the background (memcached's LRU "
    "maintainer, Kirin's sweep). Between two runs Kirin's misses differed by up to 0.0003, memcached's by 0.0022.",
)


@dataclass(frozen=True)
class Played:
    """The numbers of a store after a trace."""

    outcome: dict[str, int]
    items: int
    resident_bytes: int

    def share(self, part: str, whole: str) -> float:
        return self.outcome[part] / self.outcome[whole]


def run(host: Host, entrants: Sequence[StoreEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the tables, and the description of each store."""
    parts: list[str] = []
    about: dict[str, str] = {}
    header = [
        "trace", "footprint", "first", "-m", "store", "misses", "second half", "bytes missed", "items", "resident",
    ]  # fmt: skip
    for values in VALUES:
        body = []
        for trace in TRACES:
            consists = _memtrace(host, trace, values)
            for share in SHARES:
                megabytes = max(1, round(consists["footprint_bytes"] * share / MEGABYTE))
                setting = [
                    trace.name,
                    f"{consists['footprint_bytes'] / MEGABYTE:,.0f} MB",
                    f"{consists['objects'] / consists['requests']:.3f}",
                    f"{megabytes} MB",
                ]
                played: dict[str, Played | str] = {}
                for entrant in entrants:
                    server = entrant.start(host, megabytes)
                    about[entrant.peer] = server.about
                    played[entrant.peer] = _play(host, server, trace, values)
                rows = _rows(setting, played)
                more = leaner({peer: one.resident_bytes for peer, one in played.items() if isinstance(one, Played)})
                if more is not None:
                    entrant = next(entrant for entrant in entrants if entrant.peer == more.peer)
                    server = entrant.start(host, megabytes + more.megabytes)
                    setting[-1] = f"= {megabytes + more.megabytes} MB"
                    rows += _rows(setting, {more.peer: _play(host, server, trace, values)}, bold=False)
                body += rows
                for row in rows:
                    print(f"{NAME}: {values.sizes} B: {' | '.join(row)}", file=progress, flush=True)
        requests = f"{values.requests:,} requests, {values.objects:,} objects to choose from. The fewest are bold."
        parts += [f"## {values.title}", requests, grid(header, body)]
    return "\n\n".join(parts), about


def _rows(setting: list[str], played: dict[str, Played | str], *, bold: bool = True) -> list[list[str]]:
    """Returns the rows of the stores in one setting, with the fewest misses and missed bytes in
    bold.
    """
    usable = [one for one in played.values() if isinstance(one, Played)]
    shares = (("misses", "requests"), ("later_misses", "later_requests"), ("missed_bytes", "requested_bytes"))
    fewest = [min((one.share(*share) for one in usable), default=0.0) for share in shares]
    rows = []
    for peer, one in played.items():
        if not isinstance(one, Played):
            rows.append([*setting, f"{peer} — **failed**: {one}", *[""] * 5])
            continue
        name = peer
        if one.outcome["repeated_misses"] * 10_000 > one.outcome["requests"]:
            name += f" ({one.outcome['repeated_misses']:,} missed twice in a batch)"
        cells = []
        for share, least in zip(shares, fewest, strict=True):
            text = f"{one.share(*share):.4f}"
            cells.append(f"**{text}**" if bold and one.share(*share) == least else text)
        rows.append([*setting, name, *cells, f"{one.items:,}", f"{one.resident_bytes / MEGABYTE:.1f} MB"])
    return rows


def _play(host: Host, server: Server, trace: Trace, values: Values) -> Played | str:
    try:
        outcome = _memtrace(host, trace, values, server.store)
        items = int(memcached.statistics(server.store)["curr_items"])
        return Played(outcome, items, measure.anonymous_bytes(server.roots))
    except BenchError as error:
        return str(error).splitlines()[0]
    finally:
        host.stop_all()


def _memtrace(host: Host, trace: Trace, values: Values, store: str = "") -> dict[str, int]:
    """Runs kirin-memtrace. Without a store it describes the trace."""
    command = host.load_command(
        host.tool("kirin-memtrace"), *([store] if store else []),
        "--popularity", trace.popularity, "--exponent", str(trace.exponent), "--values", values.sizes,
        "--objects", str(values.objects), "--requests", str(values.requests),
    )  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"kirin-memtrace did not end: {trace.name}") from error
    if done.returncode != 0:
        raise BenchError(done.stderr.strip() or "kirin-memtrace ended")
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}
