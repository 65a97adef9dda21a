"""A load that asks for each page once: no cache can have a page already."""

from __future__ import annotations

from dataclasses import dataclass, field

from host import Host, Server
from load import HttpLoad, Outcome
from peers import memcached

LEAST_FILLED = 0.99
"""The least share of the requests that a near cache must have passed on to its origin. With less the
run has failed: it was asked for pages that it has.
"""

# A request is made when it is sent: there are too many to make them before.
WRK_FRESH = """
local host, page, pages = wrk.host .. ":" .. wrk.port, {first}, {pages}
request = function()
  page = page % pages + 1
  return "GET {begin}" .. page .. " HTTP/1.1\\r\\nHost: " .. host .. "\\r\\n\\r\\n"
end
"""


@dataclass(frozen=True)
class FreshPagesLoad(HttpLoad):
    """A load that asks for `begin` and the next number in each request, over all runs of a server.
    `path` is a page of the same kind, to check the answer.
    """

    begin: str = ""
    fresh: int = 1
    """The number of pages. After the last one comes the first again."""

    _last: dict[int, int] = field(default_factory=dict, compare=False)
    """The last page that each server was asked for, by its port."""

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        before = origin_reads(server)
        outcome = super().run(host, server, seconds)
        # Each connection may have sent a request whose answer wrk did not wait for.
        self.went_on(server, outcome.requests + self.connections)
        if before is None or outcome.failure:
            return outcome
        reads = (origin_reads(server) or 0) - before
        return with_reads(outcome, reads)

    def went_on(self, server: Server, asked: int) -> None:
        """Notes that a server was asked for this number of further pages."""
        self._last[server.port] = (self._last.get(server.port, 0) + asked) % self.fresh

    def setup(self, server: Server) -> str:
        return WRK_FRESH.format(first=self._last.get(server.port, 0), pages=self.fresh, begin=self.begin)


def origin_reads(server: Server) -> int | None:
    """Returns how many items a Kirin has read from its origin, or None if it has none."""
    reads = memcached.statistics(server.store).get("origin_read_hits") if server.store else None
    return None if reads is None else int(reads)


def with_reads(outcome: Outcome, reads: int) -> Outcome:
    """Returns the outcome of a near cache that has read this number of items from its origin."""
    if reads >= LEAST_FILLED * outcome.requests:
        return outcome
    failure = f"only {reads:,} of {outcome.requests:,} pages came from the origin: give fewer --seconds"
    return Outcome(outcome.requests, outcome.seconds, outcome.p50_us, outcome.p99_us, failure)
