"""crowd: the test that Monoceros was written for. There are many kept connections, few workers, and
slow readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from comparison import Entrant
from comparisons import crowd_run
from comparisons.crowd_run import CrowdLoad
from host import BENCH, BenchError, Host, Server
from peers import kirin, nginx, starlet, starman
from report import grid

NAME = "crowd"
QUESTION = "Many kept connections at 5 workers: is every request answered, and when?"
TOOL = "kirin-crowd"
SHARE_CORES = False
WORKERS = 5
APP = BENCH / "apps" / "crowd.psgi"


def patient_starlet(host: Host, name: str) -> Server:
    requests = starlet.PATIENT_REQUESTS_PER_CONNECTION
    return starlet.start(host, APP, WORKERS, name, requests_per_connection=requests)


ENTRANTS = (
    Entrant(
        "kirin", "kirin", lambda host: kirin.start(host, places=("app:web",), app=kirin.App(APP, WORKERS))
    ),
    Entrant("starlet", "Starlet", lambda host: patient_starlet(host, "starlet")),
    Entrant("starman", "Starman", lambda host: starman.start(host, APP, WORKERS)),
    Entrant(
        "nginx",
        "nginx → Starlet",
        lambda host: nginx.proxy(host, "nginx-starlet", patient_starlet(host, "starlet-behind-nginx")),
    ),
)

LOADS = (
    CrowdLoad("Nobody is slow", connections=1000, requests=250),
    CrowdLoad("Slow readers beside them", connections=1000, requests=250, slow=500),
)

NOTES = (
    "Each client makes its requests one after another, without a pause. A request has failed if the connection was refused "
    "(connect), ended without an answer (unanswered) or inside it (cut), if the status was not 200, or after "
    f"{LOADS[0].timeout_seconds} s (timeout). `left over` are those without an answer when the run was ended after "
    f"{LOADS[0].limit_seconds} s. The client connects again and goes on after each failure.",
    "Latencies are of answered requests only, connecting included: `worst` of a server that failed many is the worst of the "
    "others. A server that serves one connection to its end before it takes the next has a small p99 and a large worst.",
    "Slow readers ask for 256 KB and read one byte a second, with a receive buffer of 4 KB and Ethernet's segment size, "
    "from three seconds before the clients come until these have ended. `slow readers served` got the beginning of "
    "their answer; the second number is how many of them were still connected at the end.",
    "One run of each, one after another. Every server is restarted for each table.",
)

HEADER = (
    "server", "answered", "failed", "left over", "requests/s", "p50 ms", "p99 ms", "worst ms", "slow readers served",
)  # fmt: skip


def size(load: CrowdLoad) -> str:
    """Returns how many clients there are."""
    slow = f", beside {load.slow:,} slow readers" if load.slow else ""
    return f"{load.connections:,} connections with {load.requests:,} requests each{slow}."


def run(host: Host, entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the tables, and the description of each server."""
    parts, about = [], {}
    for load in (load.of_scale(host.scale) for load in LOADS):
        body = []
        for entrant in entrants:
            server = entrant.start(host)
            about[entrant.row] = server.about
            try:
                counts = crowd_run.end(crowd_run.begin(host, server, load), load)
            except BenchError as error:
                body.append([f"{entrant.row} — **failed**: {error}", *[""] * (len(HEADER) - 1)])
                continue
            finally:
                host.stop_all()
            print(f"{NAME}: {load.title}: {entrant.row}: {counts.failed} failed", file=progress, flush=True)
            body.append(
                [
                    entrant.row,
                    f"{counts['answered']:,} of {load.asked:,}",
                    counts.failed,
                    f"{counts['left_over']:,}",
                    f"{counts['requests_per_second']:,}",
                    *(counts.milliseconds(name) for name in ("p50_us", "p99_us", "max_us")),
                    f"{counts['slow_served']:,}, {counts['slow_open']:,}" if load.slow else "",
                ]
            )
        parts.append(f"## {load.title}\n\n{size(load)}\n\n{grid(HEADER, body)}")
    return "\n\n".join(parts), about
