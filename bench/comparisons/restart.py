"""restart: the application is replaced every second while requests arrive. It counts lost requests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from comparison import Entrant
from comparisons import crowd_run
from comparisons.crowd_run import Counts, CrowdLoad
from host import BENCH, BenchError, Host, Server
from peers import kirin, starlet
from report import grid

NAME = "restart"
QUESTION = "A restart (HUP) every second under load, 100,000 requests: how many are lost?"
TOOL = "kirin-crowd"
SHARE_CORES = False
WORKERS = 5
APP = BENCH / "apps" / "hello.psgi"
EVERY_SECONDS = 1.0


@dataclass(frozen=True)
class RestartEntrant(Entrant):
    """A server that restarts on HUP, and the line that it then writes into its log."""

    log: str = ""
    has_restarted: str = ""


ENTRANTS = (
    RestartEntrant(
        "kirin",
        "kirin",
        lambda host: kirin.start(host, places=("app:web",), app=kirin.App(APP, WORKERS)),
        log="kirin",
        has_restarted="new generation serves",
    ),
    RestartEntrant(
        "starlet",
        "start_server → Starlet",
        lambda host: starlet.start_under_starter(host, APP, WORKERS, "starter-starlet"),
        log="starter-starlet",
        has_restarted="new worker is now running",
    ),
)

LOADS = (
    CrowdLoad("50 connections, each for one request", connections=50, requests=2_000, close=True, pause_ms=10),
    CrowdLoad("5 connections kept, one a worker", connections=5, requests=20_000, pause_ms=1, limit_seconds=120),
    CrowdLoad("50 connections kept", connections=50, requests=2_000, pause_ms=10, limit_seconds=120),
)

NOTES = (
    "A client makes its requests one after another, with a pause between them, so that the same work takes about as long "
    "with every server and there are tens of restarts in it. `restarts` are those that the server says it has made.",
    "A request has failed if the connection was refused (connect), ended without an answer (unanswered) or inside it (cut), "
    f"if the status was not 200, or after {LOADS[0].timeout_seconds} s (timeout). A kept connection that the server has ended "
    "between two requests, as it may, is no failure if the client can see the end before it sends the next: those are "
    "`reconnects`.",
    "start_server has its default settings: `--interval 1`, TERM to the old workers a second after the new ones have "
    "started. Starlet serves a kept connection until it is idle or has had its requests, so that with 50 of them at 5 "
    "workers most wait for their turn.",
)

HEADER = ("server", "restarts", "answered", "failed", "left over", "reconnects", "p50 ms", "p99 ms", "worst ms")


def run(host: Host, entrants: Sequence[RestartEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the tables, and the description of each server."""
    parts, about = [], {}
    for load in (load.of_scale(host.scale) for load in LOADS):
        body = []
        for entrant in entrants:
            server = entrant.start(host)
            about[entrant.row] = server.about
            try:
                counts = _under_restarts(host, server, load)
                restarts = host.log_of(entrant.log).read_text(errors="replace").count(entrant.has_restarted)
            except BenchError as error:
                body.append([f"{entrant.row} — **failed**: {error}", *[""] * (len(HEADER) - 1)])
                continue
            finally:
                host.stop_all()
            print(f"{NAME}: {load.title}: {entrant.row}: {counts.failed} failed", file=progress, flush=True)
            body.append(
                [
                    entrant.row,
                    f"{restarts:,}",
                    f"{counts['answered']:,} of {load.asked:,}",
                    counts.failed,
                    f"{counts['left_over']:,}",
                    f"{counts['reconnects']:,}",
                    *(counts.milliseconds(name) for name in ("p50_us", "p99_us", "max_us")),
                ]
            )
        parts.append(f"## {load.title}\n\n{grid(HEADER, body)}")
    return "\n\n".join(parts), about


def _under_restarts(host: Host, server: Server, load: CrowdLoad) -> Counts:
    """Runs the load with a HUP every second."""
    crowd = crowd_run.begin(host, server, load)
    next_hup = time.monotonic() + EVERY_SECONDS / 2
    while crowd.poll() is None:
        if time.monotonic() >= next_hup:
            os.kill(server.roots[0], signal.SIGHUP)
            next_hup += EVERY_SECONDS
        try:
            crowd.wait(max(0.0, min(EVERY_SECONDS, next_hup - time.monotonic())))
        except subprocess.TimeoutExpired:
            continue
    return crowd_run.end(crowd, load)
