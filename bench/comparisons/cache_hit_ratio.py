"""cache-hit-ratio: how many requests of a trace a caching proxy passes on, with the same memory.

Counts, not times: the server behind the cache counts what reaches it (`kirin-httptrace`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

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
    "The sizes do not mean the same: Kirin counts all that belongs to an entry, Varnish's `malloc` its objects with their "
    "heads but not its threads' workspaces.",
    "nginx is not in here: its cache manager looks every ten seconds whether there is more than `max_size`, so that it "
    "holds several times as much in a run of this length.",
)


def run(host: Host, entrants: Sequence[CacheEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """The table, and what each cache said about itself."""
    about: dict[str, str] = {}
    body = []
    for title, (popularity, exponent) in TRACES.items():
        trace = [
            "--popularity", popularity, "--exponent", str(exponent), "--objects", str(OBJECTS),
            "--requests", str(REQUESTS), "--values", SIZES,
        ]  # fmt: skip
        consists = _httptrace(host, "describe", *trace)
        for share in SHARES:
            megabytes = max(1, round(consists["footprint_bytes"] * share / MEGABYTE))
            played: dict[str, dict[str, int] | str] = {}
            for entrant in entrants:
                try:
                    behind = free_port()
                    command = [host.tool("kirin-httptrace"), "serve", "--port", str(behind), "--values", SIZES]
                    host.start("httptrace", command, port=behind)
                    server = entrant.start(host, f"127.0.0.1:{behind}", cache_megabytes=megabytes)
                    about[entrant.peer] = server.about
                    addresses = (f"127.0.0.1:{server.port}", f"127.0.0.1:{behind}")
                    played[entrant.peer] = _httptrace(host, "play", *addresses, *trace)
                except BenchError as error:
                    played[entrant.peer] = str(error).splitlines()[0]
                finally:
                    host.stop_all()
            setting = [
                title,
                f"{consists['footprint_bytes'] / MEGABYTE:,.0f} MB",
                f"{consists['objects'] / consists['requests']:.3f}",
                f"{megabytes} MB",
            ]
            rows = _rows(setting, played)
            body += rows
            for row in rows:
                print(f"{NAME}: {' | '.join(row)}", file=progress, flush=True)
    header = ["trace", "footprint", "first", "size", "cache", "passed on", "second half", "bytes passed on"]
    return grid(header, body), about


def _rows(setting: list[str], played: dict[str, dict[str, int] | str]) -> list[list[str]]:
    """A row for each cache, the fewest of each column bold."""
    shares = (("misses", "requests"), ("later_misses", "later_requests"), ("missed_bytes", "requested_bytes"))
    outcomes = [one for one in played.values() if not isinstance(one, str)]
    fewest = [min((one[part] / one[whole] for one in outcomes), default=0.0) for part, whole in shares]
    rows = []
    for peer, one in played.items():
        if isinstance(one, str):
            rows.append([*setting, f"{peer} — **failed**: {one}", "", "", ""])
            continue
        cells = []
        for (part, whole), least in zip(shares, fewest, strict=True):
            text = f"{one[part] / one[whole]:.4f}"
            cells.append(f"**{text}**" if one[part] / one[whole] == least else text)
        rows.append([*setting, peer, *cells])
    return rows


def _httptrace(host: Host, *arguments: str) -> dict[str, int]:
    command = host.load_command(host.tool("kirin-httptrace"), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchError("kirin-httptrace did not end") from error
    if done.returncode != 0:
        raise BenchError(done.stderr.strip() or "kirin-httptrace ended")
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}
