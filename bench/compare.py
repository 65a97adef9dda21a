#!/usr/bin/env python3
"""Compares Kirin with its peers on this machine. README.md says how to run this and how to read the
results.

    bench/compare.py store-page small-file
    bench/compare.py psgi-hello --only starlet,starman --rounds 1 --seconds 2
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import comparison
import report
from comparison import Comparison, Entrant
from comparisons import (
    access_log,
    builds,
    cache_hit_ratio,
    cache_machines,
    classic_stack,
    compressed_page,
    crowd,
    crowd_python,
    crowd_ruby,
    hit_ratio,
    http2,
    http3,
    http2_beside,
    idle_memory,
    idle_memory_http2,
    idle_memory_http3,
    large_file,
    loops,
    lua_page,
    many_files,
    memcached_protocol,
    memory_per_item,
    origin,
    origin_idle,
    origin_purge,
    profile,
    proxy,
    psgi,
    rack,
    reload,
    restart,
    routes,
    rules,
    session_bar,
    slow_attack,
    small_file,
    ssi,
    store_page,
    tls,
    upgrade,
    websocket,
    wsgi,
)
from comparisons.cache_hit_ratio import CacheEntrant
from comparisons.store_entrants import StoreEntrant
from host import BENCH, REPOSITORY, BenchError, Cores, Host

COMPARISONS: dict[str, Comparison] = {
    one.name: one
    for one in (
        store_page.COMPARISON,
        builds.COMPARISON,
        access_log.COMPARISON,
        small_file.COMPARISON,
        small_file.CONNECTIONS_COMPARISON,
        many_files.COMPARISON,
        compressed_page.COMPARISON,
        ssi.COMPARISON,
        session_bar.COMPARISON,
        lua_page.COMPARISON,
        large_file.COMPARISON,
        tls.COMPARISON,
        http2.COMPARISON,
        http3.COMPARISON,
        psgi.HELLO_COMPARISON,
        psgi.PARAMS_COMPARISON,
        wsgi.HELLO_COMPARISON,
        wsgi.PARAMS_COMPARISON,
        wsgi.ASGI_COMPARISON,
        wsgi.BODIES_COMPARISON,
        wsgi.NGINX_COMPARISON,
        rack.HELLO_COMPARISON,
        rack.PARAMS_COMPARISON,
        rack.BODIES_COMPARISON,
        rack.NGINX_COMPARISON,
        profile.COMPARISON,
        classic_stack.COMPARISON,
        proxy.TCP_COMPARISON,
        proxy.UNIX_COMPARISON,
        proxy.CACHE_COMPARISON,
        websocket.COMPARISON,
        loops.COMPARISON,
        routes.COMPARISON,
        rules.COMPARISON,
        memcached_protocol.COMPARISON,
        origin.HIT_COMPARISON,
        origin.MISS_COMPARISON,
        origin.WRITE_COMPARISON,
    )
}
# These comparisons do not measure CPU time under a load. They make tables of their own.
OTHERS = {
    one.NAME: one
    for one in (crowd, crowd_python, crowd_ruby, reload, restart, upgrade, http2_beside, idle_memory, idle_memory_http2,
        idle_memory_http3, slow_attack, hit_ratio, memory_per_item, cache_hit_ratio, cache_machines, origin_purge, origin_idle)
}
NAMES = [*COMPARISONS, *OTHERS]

Row = TypeVar("Row", Entrant, StoreEntrant, CacheEntrant)


def main() -> int:
    options = parse(sys.argv[1:])
    # SIGTERM must stop the servers as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, {int(core) for core in options.load_core.split(",")})
    options.results.mkdir(parents=True, exist_ok=True)
    for name in NAMES if "all" in options.names else options.names:
        text = run(name, options)
        print(text)
        (options.results / f"{name}.md").write_text(text)
    return 0


def run(name: str, options: argparse.Namespace) -> str:
    """Runs one comparison. Returns the report in Markdown."""
    both = ",".join(sorted({options.server_core, options.load_core}))
    shared = COMPARISONS[name].share_cores if name in COMPARISONS else OTHERS[name].SHARE_CORES
    cores = Cores(both, both) if shared else Cores(options.server_core, options.load_core)
    if shared:
        os.sched_setaffinity(0, {int(core) for core in both.split(",")})
    load_before = os.getloadavg()[0]
    with Host(cores, options.kirin.resolve(), options.tools.resolve(), options.scale) as host:
        if name in OTHERS:
            other = OTHERS[name]
            machine = report.machine(cores, load_before, other.TOOL)
            table, about = other.run(host, chosen(other.ENTRANTS, options.only), sys.stderr)
            return report.plain(name, other.QUESTION, machine, table, other.NOTES, about)
        what = replace(COMPARISONS[name], entrants=chosen(COMPARISONS[name].entrants, options.only))
        result = comparison.run(what, host, options.rounds, options.seconds, sys.stderr)
        return report.markdown(
            result, options.rounds, options.seconds, report.machine(cores, load_before, what.tool)
        )


def chosen(entrants: Sequence[Row], only: Sequence[str]) -> Sequence[Row]:
    """Returns the rows of the peers in `only`, or all rows if it is empty."""
    picked = [entrant for entrant in entrants if not only or entrant.peer in only]
    if not picked:
        peers = ", ".join(dict.fromkeys(entrant.peer for entrant in entrants))
        raise BenchError(f"nothing is left to run: --only takes some of {peers}")
    return picked


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line."""
    release = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
    parser = argparse.ArgumentParser(
        description="Compares Kirin with its peers on this machine; see bench/README.md.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="+", choices=[*NAMES, "all"], metavar="NAME", help=f"{', '.join(NAMES)}, or all"
    )
    parser.add_argument(
        "--kirin", type=Path, default=release / "kirin", metavar="PATH", help="the kirin program"
    )
    parser.add_argument(
        "--tools", type=Path, default=release, metavar="DIR", help="where kirin-floor and its like are"
    )
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[],
        metavar="PEER,…",
        help="leave the other peers out",
    )
    parser.add_argument("--rounds", type=whole, default=5, help="interleaved rounds")
    parser.add_argument("--seconds", type=whole, default=4, help="length of one round for one server")
    parser.add_argument(
        "--scale", type=share, default=1.0, help="share of the full size of comparisons that --seconds does not shorten, to try them"
    )
    parser.add_argument("--server-core", default="0", metavar="CORE", help="where the servers run")
    parser.add_argument("--load-core", default="1", metavar="CORE", help="where the load generator runs")
    parser.add_argument(
        "--results", type=Path, default=BENCH / "results", metavar="DIR", help="where NAME.md goes"
    )
    return parser.parse_args(arguments)


def whole(text: str) -> int:
    """Parses an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1 is needed")
    return number


def share(text: str) -> float:
    """Parses a number above 0 and up to 1."""
    number = float(text)
    if not 0.0 < number <= 1.0:
        raise argparse.ArgumentTypeError("a number above 0, up to 1, is needed")
    return number


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"compare.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
