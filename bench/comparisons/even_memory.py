"""Two caches with the same limit seldom take the same memory: how much more to give to the one that takes less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class More:
    """What the leaner one gets on top of its limit, in whole megabytes."""

    peer: str
    megabytes: int


def leaner(resident_bytes: Mapping[str, int]) -> More | None:
    """Who takes least, and by how many whole megabytes less than who takes most; `None` below one."""
    if len(resident_bytes) < 2:
        return None
    peer = min(resident_bytes, key=lambda name: resident_bytes[name])
    megabytes = (max(resident_bytes.values()) - resident_bytes[peer]) // MEGABYTE
    return More(peer, megabytes) if megabytes > 0 else None
