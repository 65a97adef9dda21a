"""The stores that `hit-ratio` and `memory-per-item` compare. They have the same command line, with
the same `-m`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from host import Host, Server
from peers import kirin, memcached


@dataclass(frozen=True)
class StoreEntrant:
    """A store that is started with a memory limit in megabytes."""

    peer: str
    """The name that `--only` selects, and that the tables show."""

    start: Callable[[Host, int], Server]


ENTRANTS = (
    StoreEntrant("kirin", kirin.start_store),
    StoreEntrant("memcached", memcached.start_store),
)
