"""idle-memory-http2: the user memory of an idle HTTP/2 connection, over TLS and without.

There is no load. `http2_hold.py` opens connections that make one request each, and the memory of the
server is read while they are open.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TextIO

import certificate
import measure
from comparison import Entrant
from comparisons.idle_memory import NGINX_TABLE, PAGE, PATH, Held, memory_cells, while_held
from host import BENCH, BenchError, Host, Server
from peers import h2o, kirin, nginx
from report import grid
from serving import wait_for

NAME = "idle-memory-http2"
CLOSED_WITHIN_SECONDS = 10.0
OPENED_LATE = 8
"""The files that a server may have opened for its first requests."""
QUESTION = "User memory for each idle HTTP/2 connection that has made one request."
TOOL = "bench/http2_hold.py"
SHARE_CORES = False
HELD = (5_000, 10_000)
LEAST_HELD = 10

LIMIT_BYTES = {True: 6 * 1024, False: 3 * 1024}
"""The budget that the design gives Kirin, over TLS and without."""


def _files(host: Host) -> str:
    directory = host.directory / "files"
    directory.mkdir(exist_ok=True)
    (directory / PATH[1:]).write_bytes(PAGE)
    return str(directory)


def _certificate(host: Host, tls: bool) -> certificate.Certificate | None:
    return certificate.make(host.directory) if tls else None


def _kirin(host: Host, tls: bool) -> Server:
    return kirin.start(host, f"kirin-idle{'-tls' * tls}", pages={PATH: kirin.html(PAGE)}, tls=_certificate(host, tls))


def _h2o(host: Host, tls: bool) -> Server:
    # By default it closes an idle connection after 10 seconds.
    return h2o.static_files(
        host, _files(host), _certificate(host, tls), name=f"h2o-idle{'-tls' * tls}", more="http2-idle-timeout: 600"
    )


def _nginx(host: Host, tls: bool) -> Server:
    return nginx.returning_http2(host, PAGE, tls, connections=NGINX_TABLE)


STARTS = (("kirin", "kirin store", _kirin), ("h2o", "h2o", _h2o), ("nginx", "nginx return", _nginx))
PLAIN, OVER_TLS = (
    tuple(
        Entrant(peer, f"{row}, TLS" if tls else row, lambda host, start=start, tls=tls: start(host, tls))
        for peer, row, start in STARTS
    )
    for tls in (False, True)
)
ENTRANTS = (*PLAIN, *OVER_TLS)

NOTES = (
    "Measured as in `idle-memory`: `Pss_Anon` over all processes of the server, when it has not changed for half a second.",
    "`per connection` is what was added since the start (after one request), divided by the connections of the first step. `per "
    "further connection` is from the first step to the second: it leaves out whatever the first few cost. `in all` is "
    f"everything the server has at {HELD[-1]:,}, divided by them.",
    "A connection has had its SETTINGS, one request and the answer. The client gave windows of 2 GB, and the default size of the "
    "table of header fields.",
    "TLS 1.3, ECDSA P-256, full handshakes. h2o: http2-idle-timeout 600. "
    f"nginx: its connection table has {NGINX_TABLE:,} entries of 430 bytes before the first client comes.",
    "At the end every connection is looked at: one that the server has closed makes the row fail. `--scale 0.02` holds fewer, to "
    "try it.",
)


def run(host: Host, entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table with the budgets, and the description of each server."""

    def hold(server: Server, count: int, entrant: Entrant) -> int:
        return _hold(host, server, count, entrant in OVER_TLS)

    table, about, each = held_table(NAME, host, entrants, HELD, hold, progress)
    budgets = [
        budget(entrant.row, each[entrant.row], LIMIT_BYTES[entrant in OVER_TLS])
        for entrant in entrants
        if entrant.peer == "kirin" and entrant.row in each
    ]
    return "\n\n".join([table, *budgets]), about


def held_table(
    name: str,
    host: Host,
    entrants: Sequence[Entrant],
    numbers: Sequence[int],
    hold: Callable[[Server, int, Entrant], int],
    progress: TextIO,
) -> tuple[str, dict[str, str], dict[str, float]]:
    """Returns the table of the memory with these numbers of connections, the description of each server,
    and the bytes of a connection by row. `hold` returns the memory while so many are open.
    """
    counts = [max(LEAST_HELD, round(count * host.scale)) for count in numbers]
    header = ["server", "at start", *(f"{count:,} held" for count in counts), "per connection", "per further connection", "in all"]
    body, about, bytes_of_each = [], {}, {}
    for entrant in entrants:
        server = entrant.start(host)
        about[entrant.row] = server.about
        try:
            hold(server, 1, entrant)  # The first request may load things.
            start = measure.settled_bytes(server.roots)
            steps = [Held(count, hold(server, count, entrant)) for count in counts]
        except BenchError as error:
            body.append([f"{entrant.row} — **failed**: {error}", *[""] * (len(header) - 1)])
            continue
        finally:
            host.stop_all()
        memory, each = memory_cells(start, steps)
        print(f"{name}: {entrant.row}: {each[0]:,.0f} bytes per connection", file=progress, flush=True)
        body.append([entrant.row, *memory])
        bytes_of_each[entrant.row] = max(each)
    return grid(header, body), about, bytes_of_each


def budget(row: str, each: float, limit: int) -> str:
    """Returns whether a connection has taken no more than the limit, in bytes."""
    verdict = "kept" if each <= limit else "**missed**"
    return f"Budget: {row}: {each:,.0f} of {limit:,} B a connection — {verdict}."


def _hold(host: Host, server: Server, connections: int, tls: bool) -> int:
    """Returns the memory of the server while this number of connections is open."""
    command = host.load_command(
        sys.executable, BENCH / "http2_hold.py", str(server.port), "--connections", str(connections), "--path", PATH
    )
    if tls:
        command.append("--tls")
    idle = measure.descriptors(server.roots)
    held = while_held(command, connections, lambda: measure.settled_bytes(server.roots))
    # Otherwise the next step begins beside connections that the server has not closed yet.
    if not wait_for(lambda: measure.descriptors(server.roots) <= idle + OPENED_LATE, CLOSED_WITHIN_SECONDS):
        raise BenchError("the server has not closed the connections of a client that has gone")
    return held
