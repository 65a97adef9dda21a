"""Makes two caches use the same memory. With the same limit they seldom do, so the smaller one gets
more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class More:
    """The whole megabytes that the smaller cache gets on top of its limit."""

    peer: str
    megabytes: int


def leaner(resident_bytes: Mapping[str, int]) -> More | None:
    """Finds the cache that uses the least memory, and how many whole megabytes it uses less than
    the largest. Returns `None` if that is less than one.
    """
    if len(resident_bytes) < 2:
        return None
    peer = min(resident_bytes, key=lambda name: resident_bytes[name])
    megabytes = (max(resident_bytes.values()) - resident_bytes[peer]) // MEGABYTE
    return More(peer, megabytes) if megabytes > 0 else None
