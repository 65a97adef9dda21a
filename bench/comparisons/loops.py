"""loops: an event loop, threads, or an event loop on each core."""

from __future__ import annotations

from comparison import Comparison, Entrant
from load import HttpLoad
from peers import floor

MODES = {"one event loop": "epoll", "a thread a connection": "threads", "an event loop a core": "processes"}
BODY_BYTES = 1024
FLOOR_BODY = b"x" * BODY_BYTES


def entrant(row: str, mode: str) -> Entrant:
    """Returns the floor in one of its modes."""
    return Entrant("floor", row, lambda host: floor.start(host, body_bytes=BODY_BYTES, mode=mode))


COMPARISON = Comparison(
    name="loops",
    question="Event loop, threads, or event loops × cores? The same canned answer in three ways.",
    entrants=tuple(entrant(row, mode) for row, mode in MODES.items()),
    loads=tuple(
        HttpLoad(f"{connections} connections kept", expect=FLOOR_BODY, connections=connections, threads=2)
        for connections in (64, 1000)
    ),
    notes=(
        "Servers and load share the same two cores here: requests/s are of the pair, and a server that takes both "
        "cores takes them from the load as well. CPU per request is the server's own.",
        "The kernel spreads connections over the processes by hash, so one may have more than the other.",
        "None of them does any work for a request: threads that share data would also wait for each other.",
    ),
    share_cores=True,
)
