"""proxy, proxy-unix, cache-hit: proxies in front of another HTTP server, which forward its
responses or store them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import page
from comparison import Budget, Comparison, Entrant
from host import Host, Server
from load import HttpLoad
from peers import floor, haproxy, kirin, nginx, varnish

SMALL = page.html(1024)
LARGE = page.html(1024 * 1024)
CACHE_MEGABYTES = 64

LOADS = (
    HttpLoad("1 KB, 64 connections kept", path="/small.html", expect=SMALL),
    HttpLoad("1 MB, 16 connections kept", path="/large.html", expect=LARGE, connections=16),
)

PEERS = {"kirin": kirin.proxy_to, "nginx": nginx.proxy_to, "haproxy": haproxy.proxy_to, "varnish": varnish.proxy_to}


def upstream(host: Host, proxy: str) -> Server:
    """Starts an origin server for one proxy. Each proxy has its own, so that the order of the
    proxies makes no difference.
    """
    directory = Path(host.directory / "behind")
    directory.mkdir(exist_ok=True)
    (directory / "small.html").write_bytes(SMALL)
    (directory / "large.html").write_bytes(LARGE)
    return nginx.upstream(host, f"behind-{proxy}", directory)


def entrants(cache_megabytes: int, over_unix: bool) -> tuple[Entrant, ...]:
    """Returns the proxies. Each is in front of the same kind of server, whose CPU time does not
    count.
    """

    def starting(name: str, proxy_to: Callable[..., Server]) -> Callable[[Host], Server]:
        def start(host: Host) -> Server:
            behind = upstream(host, name)
            peer = f"unix:{behind.socket_path}" if over_unix else f"127.0.0.1:{behind.port}"
            return proxy_to(host, peer, cache_megabytes=cache_megabytes)

        return start

    rows = tuple(Entrant(name, name, starting(name, proxy_to)) for name, proxy_to in PEERS.items())
    if not cache_megabytes:
        return rows
    bare = Entrant(
        "floor",
        "floor",
        lambda host: floor.start(host, body_bytes=len(SMALL)),
        takes_part=lambda load: load.title == LOADS[0].title,
    )
    return (*rows, bare)


BEHIND = (
    "Behind each is an nginx that serves the two files, on the load's core: its CPU time counts for no server, and it lowers what "
    "the load can make. Read CPU time and not requests/s.",
    "All keep their connections to it. nginx has `keepalive 512` and HTTP/1.1 for that, HAProxy `http-reuse always`.",
)

TCP_COMPARISON = Comparison(
    name="proxy",
    question="A proxy over TCP, without a cache: what does passing on cost?",
    entrants=entrants(0, over_unix=False),
    loads=LOADS,
    budgets=(Budget("≤ nginx", "kirin", "nginx", 1.0), Budget("≤ HAProxy", "kirin", "haproxy", 1.0)),
    notes=BEHIND,
)

UNIX_COMPARISON = Comparison(
    name="proxy-unix",
    question="The same over a unix socket.",
    entrants=entrants(0, over_unix=True),
    loads=LOADS,
    budgets=(Budget("≤ nginx", "kirin", "nginx", 1.0), Budget("≤ HAProxy", "kirin", "haproxy", 1.0)),
    notes=BEHIND,
)

CACHE_COMPARISON = Comparison(
    name="cache-hit",
    question="A proxy that has the answer in its cache.",
    entrants=entrants(CACHE_MEGABYTES, over_unix=False),
    loads=LOADS,
    budgets=(Budget("≤ nginx", "kirin", "nginx", 1.0), Budget("≤ Varnish", "kirin", "varnish", 1.0)),
    notes=(
        "The answers may be kept for a day, and are asked for once before the measuring: all that follows is hits.",
        "nginx keeps its cache in files, which the kernel has in memory here; the others in their own memory. HAProxy's "
        "`max-object-size` is above the 1 MB.",
    ),
)
