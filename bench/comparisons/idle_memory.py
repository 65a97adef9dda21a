"""idle-memory: the user memory of an idle connection, and the latency of others beside many of
them.

There is no load. `kirin-hold` opens keep-alive connections that make one request each, and the
memory of the server is read while they are open. Beside the largest number of them, the latency of
a few busy connections is measured.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO, TypeVar

import measure
import page
from comparison import Entrant
from host import BenchError, Host, Server
from load import HttpLoad, Outcome
from peers import floor, kirin, nginx
from report import grid

Looked = TypeVar("Looked")

NAME = "idle-memory"
QUESTION = "User memory for each idle keep-alive connection that has made one request."
TOOL = "kirin-hold"
SHARE_CORES = False
HELD = (10_000, 19_000)
LIMIT_BYTES = 1024
"""The budget that the design gives Kirin."""

NGINX_TABLE = 21_000
"""The size of nginx's connection table. nginx closes idle connections when less than a sixteenth of
`worker_connections` is free.
"""

PATH = "/page"
PAGE = page.html(256)
BUSY = HttpLoad("a busy client", PAGE, PATH, connections=4)
BUSY_SECONDS = 3.0

ENTRANTS = (
    Entrant("kirin", "kirin store", lambda host: kirin.start(host, pages={PATH: kirin.html(PAGE)})),
    Entrant("nginx", "nginx return", lambda host: nginx.returning(host, PAGE, connections=NGINX_TABLE)),
    Entrant("floor", "floor", lambda host: floor.start(host, body_bytes=len(PAGE))),
)

NOTES = (
    "Measured is `Pss_Anon` of /proc/PID/smaps_rollup over all processes of the server: memory that no file backs, "
    "pages shared by several processes counted once. The kernel's memory for a socket (2 to 3 KB) is in no "
    "process's figure and is the same for all.",
    "`per connection` is what was added since the start (after one request), divided by the connections. `per further "
    "connection` is from the first step to the second: it leaves out whatever the first few cost.",
    f"`in all` is everything the server has at {HELD[-1]:,}, divided by them. It is the fair figure where a server "
    "makes its connection table at the start: nginx has a connection and two events, some 430 bytes, for each of "
    f"`worker_connections` ({NGINX_TABLE:,} here) before the first client comes, and the delta does not show them.",
    f"`p99` is that of {BUSY.connections} busy connections (wrk, {BUSY_SECONDS:.0f} s), alone and while {HELD[-1]:,} others are idle.",
    "Memory is read when it has not changed for half a second. At the end every connection is looked at: one that "
    "the server has closed makes the row fail.",
)


@dataclass(frozen=True)
class Held:
    """The memory of a server with this number of connections."""

    connections: int
    bytes: int


def memory_cells(start: int, steps: Sequence[Held]) -> tuple[list[str], tuple[float, float]]:
    """Returns the cells of a row about memory, and the bytes of each connection and of each further one."""
    first, last = steps[0], steps[-1]
    each = (first.bytes - start) / first.connections
    further = (last.bytes - first.bytes) / (last.connections - first.connections)
    held = (f"{size / 1024:,.0f} KB" for size in (start, *(step.bytes for step in steps)))
    of_each = (f"{size:,.0f} B" for size in (each, further, last.bytes / last.connections))
    return [*held, *of_each], (each, further)


def run(host: Host, entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each server."""
    header = [
        "server",
        "at start",
        *(f"{count:,} held" for count in HELD),
        "per connection",
        "per further connection",
        "in all",
        "p99, nobody else",
        f"p99 beside {HELD[-1]:,}",
    ]
    body, about = [], {}
    for entrant in entrants:
        server = entrant.start(host)
        about[entrant.row] = server.about
        try:
            _hold(host, server, 1)  # The first request may load things.
            start = measure.settled_bytes(server.roots)
            alone = BUSY.run(host, server, BUSY_SECONDS)
            steps = [Held(count, _hold(host, server, count)) for count in HELD]
            beside = _busy_beside(host, server, HELD[-1])
        except BenchError as error:
            body.append([f"{entrant.row} — **failed**: {error}", *[""] * (len(header) - 1)])
            continue
        finally:
            host.stop_all()
        memory, each = memory_cells(start, steps)
        print(f"{NAME}: {entrant.row}: {each[0]:,.0f} bytes per connection", file=progress, flush=True)
        body.append([entrant.row, *memory, f"{alone.p99_us:,.0f} µs", f"{beside.p99_us:,.0f} µs"])
    return grid(header, body), about


def _hold(host: Host, server: Server, connections: int) -> int:
    """Returns the memory of the server while this number of connections is open."""
    return while_held(_holder(host, server, connections), connections, lambda: measure.settled_bytes(server.roots))


def _busy_beside(host: Host, server: Server, connections: int) -> Outcome:
    """Returns the outcome of busy clients while this number of connections is open."""
    outcome = while_held(
        _holder(host, server, connections), connections, lambda: BUSY.run(host, server, BUSY_SECONDS)
    )
    if outcome.failure:
        raise BenchError(f"busy clients: {outcome.failure}")
    return outcome


def _holder(host: Host, server: Server, connections: int) -> list[str]:
    """Returns the command of `kirin-hold`."""
    return host.load_command(
        host.tool("kirin-hold"), f"127.0.0.1:{server.port}", "--connections", str(connections), "--path", PATH
    )


def while_held(command: Sequence[str], connections: int, look: Callable[[], Looked]) -> Looked:
    """Returns the result of `look` while a program holds this number of idle connections open. All of
    them must stay open.
    """
    holder = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert holder.stdin and holder.stdout and holder.stderr
    with holder:
        if holder.stdout.readline() != f"holding {connections}\n":
            raise BenchError(holder.stderr.read().strip() or "the program that holds connections has ended")
        looked = look()
        holder.stdin.close()
        end = holder.stdout.read().strip()
    if end != f"open {connections} closed 0":
        raise BenchError(f"the server closed idle connections: {end}")
    return looked
