"""ssi: pages with included parts: few, many and nested."""

from __future__ import annotations

from collections.abc import Callable

import page
from comparison import Budget, Comparison, Entrant
from host import Host, Server
from load import HttpLoad, Load
from peers import floor, kirin, nginx

PAGES = {
    "page with 3 includes": page.flat(3),
    "page with 30 includes": page.flat(30),
    "page with 3 includes of 3 includes each": page.nested(),
}
# nginx's include names a location, which asks memcached for its own path. Kirin understands it; its
# other include names an item of the store.
BY_LOCATION, BY_KEY = '<!--# include virtual="{}" -->', "<!--# include {} -->"


def items(directive: str) -> dict[str, bytes]:
    """Returns all items that an application would have stored in memory."""
    return {key: body for one in PAGES.values() for key, body in one.items(directive).items()}


def start_kirin(host: Host, name: str, directive: str) -> Server:
    return kirin.start(host, name, pages={key: kirin.html(body) for key, body in items(directive).items()})


def floor_for(load: HttpLoad) -> Entrant:
    """Returns a floor whose response is as long as that of this load."""

    def takes_part(other: Load) -> bool:
        return other is load

    start: Callable[[Host], Server] = lambda host: floor.start(host, body_bytes=len(load.expect))
    return Entrant("floor", f"floor, {len(load.expect):,} bytes", start, takes_part)


LOADS = tuple(
    HttpLoad(f"{title}, 64 connections kept", path=one.path, expect=one.body) for title, one in PAGES.items()
)

COMPARISON = Comparison(
    name="ssi",
    question="Pages put together from parts, all of which an application has put into memory.",
    entrants=(
        Entrant("kirin", "kirin, include KEY", lambda host: start_kirin(host, "kirin-key", BY_KEY)),
        Entrant("kirin", "kirin, include virtual", lambda host: start_kirin(host, "kirin-virtual", BY_LOCATION)),
        *map(floor_for, LOADS),
        Entrant(
            "nginx", "nginx SSI → memcached", lambda host: nginx.memcached_plain(host, items(BY_LOCATION), ssi=True)
        ),
        Entrant(
            "nginx",
            "nginx SSI → memcached, tuned",
            lambda host: nginx.memcached_tuned(host, items(BY_LOCATION), ssi=True),
        ),
    ),
    loads=LOADS,
    budgets=tuple(
        Budget(f"a twenty-fifth of nginx SSI → memcached ({row})", row, "nginx SSI → memcached", 1 / 25, load.title)
        for load in LOADS
        for row in ("kirin, include KEY", "kirin, include virtual")
    ),
    notes=(
        "nginx asks memcached for the page and for each part (4, 31 and 13 times); its answer is chunked. CPU time of both counts.",
        "`tuned` is a unix socket and kept connections to memcached.",
        "The pages are the same bytes for nginx and for `include virtual`.",
    ),
)
