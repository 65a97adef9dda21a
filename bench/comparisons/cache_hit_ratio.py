"""cache-hit-ratio: how many requests of a trace a caching proxy forwards, with the same memory.

The figures are counts, not times: the server behind the cache counts the requests that reach it
(`kirin-httptrace`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

import measure
from comparisons.even_memory import leaner
from host import BenchError, Host, Server, free_port
from peers import kirin, varnish
from report import grid

NAME = "cache-hit-ratio"
QUESTION = "Requests that a shared cache passes on, on the same trace and with the same memory."
TOOL = "kirin-httptrace"
SHARE_CORES = True

MEGABYTE = 1024 * 1024
SHARES = (0.05, 0.20)
SIZES = "1000-30000"
OBJECTS, REQUESTS = 20_000, 120_000
RUN_LIMIT_SECONDS = 180


@dataclass(frozen=True)
class Played:
    """The numbers of a cache after a trace."""

    outcome: dict[str, int]
    idle_bytes: int
    resident_bytes: int


@dataclass(frozen=True)
class CacheEntrant:
    """A caching proxy that is started with a size in megabytes."""

    peer: str
    start: Callable[..., Server]


ENTRANTS = (
    CacheEntrant("kirin", kirin.proxy_to),
    CacheEntrant("varnish", varnish.proxy_to),
)

TRACES = {
    "Zipf 0.9": ("steady", 0.9),
    "Zipf 1.0 with scans": ("scans", 1.0),
    "Zipf 1.0, shifting": ("shifting", 1.0),
}

NOTES = (
    f"{REQUESTS:,} requests for {OBJECTS:,} objects of {SIZES} bytes, spread evenly by order of magnitude, one after the "
    "other on one connection. All may be kept for a day. `first` is the share of requests that are the first for their "
    "object: no cache passes on fewer.",
    "`size` is `store.memory` and `malloc,…`. They do not mean the same: Kirin counts all that belongs to an entry, Varnish's "
    "`malloc` its objects with their heads but not what it keeps of each elsewhere, nor its threads' workspaces. `resident` is "
    "what the processes take (`Pss_Anon`) with nothing cached and at the end.",
    "Where one takes at least a megabyte less than the other in the end, it runs once more with a size that is larger by that: "
    "the row with `=`. The fewest are bold among those with the same size.",
    "nginx is not in here: its cache manager looks every ten seconds whether there is more than `max_size`, so that it "
    "holds several times as much in a run of this length.",
)


def run(host: Host, entrants: Sequence[CacheEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each cache."""
    about: dict[str, str] = {}
    body = []
    for title, (popularity, exponent) in TRACES.items():
        trace = [
            "--popularity", popularity, "--exponent", str(exponent), "--objects", str(OBJECTS),
            "--requests", str(REQUESTS), "--values", SIZES,
        ]  # fmt: skip
        consists = httptrace(host, "describe", *trace)
        for share in SHARES:
            megabytes = max(1, round(consists["footprint_bytes"] * share / MEGABYTE))
            played: dict[str, Played | str] = {}
            for entrant in entrants:
                played[entrant.peer] = _played(host, entrant, megabytes, trace, about)
            more = leaner({peer: one.resident_bytes for peer, one in played.items() if isinstance(one, Played)})
            evened = None
            if more is not None:
                entrant = next(entrant for entrant in entrants if entrant.peer == more.peer)
                evened = _played(host, entrant, megabytes + more.megabytes, trace, {})
            setting = [
                title,
                f"{consists['footprint_bytes'] / MEGABYTE:,.0f} MB",
                f"{consists['objects'] / consists['requests']:.3f}",
                f"{megabytes} MB",
            ]
            rows = _rows(setting, played)
            if more is not None and evened is not None:
                setting[-1] = f"= {megabytes + more.megabytes} MB"
                rows += _rows(setting, {more.peer: evened}, bold=False)
            body += rows
            for row in rows:
                print(f"{NAME}: {' | '.join(row)}", file=progress, flush=True)
    header = ["trace", "footprint", "first", "size", "cache", "passed on", "second half", "bytes passed on", "resident"]
    return grid(header, body), about


def _played(
    host: Host, entrant: CacheEntrant, megabytes: int, trace: list[str], about: dict[str, str]
) -> Played | str:
    try:
        behind = free_port()
        command = [host.tool("kirin-httptrace"), "serve", "--port", str(behind), "--values", SIZES]
        host.start("httptrace", command, port=behind)
        server = entrant.start(host, f"127.0.0.1:{behind}", cache_megabytes=megabytes)
        about[entrant.peer] = server.about
        idle = measure.anonymous_bytes(server.roots)
        outcome = httptrace(host, "play", f"127.0.0.1:{server.port}", f"127.0.0.1:{behind}", *trace)
        return Played(outcome, idle, measure.anonymous_bytes(server.roots))
    except BenchError as error:
        return str(error).splitlines()[0]
    finally:
        host.stop_all()


def _rows(setting: list[str], played: dict[str, Played | str], *, bold: bool = True) -> list[list[str]]:
    """Returns a row for each cache, with the fewest of each column in bold."""
    shares = (("misses", "requests"), ("later_misses", "later_requests"), ("missed_bytes", "requested_bytes"))
    outcomes = [one.outcome for one in played.values() if isinstance(one, Played)]
    fewest = [min((one[part] / one[whole] for one in outcomes), default=0.0) for part, whole in shares]
    rows = []
    for peer, one in played.items():
        if isinstance(one, str):
            rows.append([*setting, f"{peer} — **failed**: {one}", "", "", "", ""])
            continue
        cells = []
        for (part, whole), least in zip(shares, fewest, strict=True):
            share = one.outcome[part] / one.outcome[whole]
            cells.append(f"**{share:.4f}**" if bold and share == least else f"{share:.4f}")
        resident = f"{one.idle_bytes / MEGABYTE:.1f}, {one.resident_bytes / MEGABYTE:.1f} MB"
        rows.append([*setting, peer, *cells, resident])
    return rows


def httptrace(host: Host, *arguments: str) -> dict[str, int]:
    command = host.load_command(host.tool("kirin-httptrace"), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchError("kirin-httptrace did not end") from error
    if done.returncode != 0:
        raise BenchError(done.stderr.strip() or "kirin-httptrace ended")
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}
