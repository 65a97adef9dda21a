"""origin-hit, origin-miss and origin-write: a Kirin whose items are on a redis-server, beside
programs that ask the same redis-server themselves.
"""

from __future__ import annotations

from dataclasses import replace

import page
from comparison import Budget, Comparison, Entrant
from fresh_pages_load import FreshPagesLoad
from host import BENCH, Host, Server
from load import HttpLoad
from peers import kirin, memcached, nginx, redis, starlet
from set_load import SetLoad

WORKERS = 5
APP = BENCH / "apps" / "redis.psgi"

PATH, FRESH_BEGIN = "/page", "/fresh/"
PAGE = page.html(1024)
FRESH_PAGES = 1_000_000

KEPT_SECONDS = 5
"""How long nginx's shared dictionary keeps a page: Kirin's default `stale_limit`."""

ITEM = "kirin:i:"
"""The begin of the names that Kirin gives its items (crates/kirin-origin/src/names.rs)."""


def beside_redis(host: Host, server: Server) -> Server:
    """Returns a server whose CPU time is that of both."""
    behind = redis.shared(host).roots
    return replace(server, roots=[*server.roots, *behind], behind=behind)


def kirin_without(host: Host) -> Server:
    """Starts a Kirin that has the page in its own store."""
    return beside_redis(host, kirin.start(host, "kirin-alone", pages={PATH: kirin.html(PAGE)}))


def kirin_with(host: Host) -> Server:
    """Starts a Kirin with an origin. It stores the page there, and keeps a copy."""
    server = kirin.start(host, "kirin-origin", origin=redis.shared(host), pages={PATH: kirin.html(PAGE)})
    return beside_redis(host, server)


def kirin_filled(host: Host) -> Server:
    """Starts a Kirin with an origin that has the fresh pages. They are copies of one that it has
    stored, made by the redis-server, so it has no copies of them itself.
    """
    server = kirin_with(host)
    with redis.Client(redis.shared(host)) as client:
        client.copy(f"{ITEM}{PATH}", f"{ITEM}{FRESH_BEGIN}", FRESH_PAGES)
    return server


def pages_in_redis(host: Host, fresh: int = 0) -> Server:
    """Puts the page and copies of it into the redis-server, for programs that ask it themselves."""
    server = redis.shared(host)
    with redis.Client(server) as client:
        client("SET", f"page:{PATH}", PAGE)
        if fresh and not client("EXISTS", f"page:{FRESH_BEGIN}{fresh}"):
            client.copy(f"page:{PATH}", f"page:{FRESH_BEGIN}", fresh)
    return server


def nginx_asking(host: Host, fresh: int = 0) -> Server:
    """Starts nginx, which asks the redis-server for each request."""
    behind = pages_in_redis(host, fresh)
    return beside_redis(host, nginx.lua_redis(host, "nginx-redis", behind, "pages.send(REDIS)", "GET for each request"))


def nginx_keeping(host: Host) -> Server:
    """Starts nginx with a shared dictionary before the redis-server."""
    about = f"a lua_shared_dict item by path, from Redis again after {KEPT_SECONDS} s"
    code = f"pages.send_kept(ngx.shared.pages, REDIS, {KEPT_SECONDS})"
    return beside_redis(host, nginx.lua_redis(host, "nginx-dict-redis", pages_in_redis(host), code, about))


def app_environment(host: Host, fresh: int = 0) -> dict[str, str]:
    return {"BENCH_REDIS": f"127.0.0.1:{pages_in_redis(host, fresh).port}"}


def starlet_asking(host: Host, fresh: int = 0) -> Server:
    """Starts an application under Starlet. Each worker has a client."""
    server = starlet.start(host, APP, WORKERS, "starlet-redis", env=app_environment(host, fresh))
    return beside_redis(host, server)


def kirin_app_asking(host: Host, fresh: int = 0) -> Server:
    """Starts the same application under Kirin, which has no origin."""
    app = kirin.App(APP, WORKERS)
    env = app_environment(host, fresh)
    return beside_redis(host, kirin.start(host, "kirin-app-redis", places=("app:web",), app=app, env=env))


ALONE, COPY = "kirin, no origin", "kirin, origin"

NOTES = (
    "CPU time is of the server and the redis-server, on the same core; the column of Redis has its part. All rows share "
    "one redis-server. It runs over TCP on this machine: what a real network adds to a trip is in no figure.",
    f"The application has {WORKERS} workers, each with a client of its own (Redis::Fast, in C). nginx has one worker and keeps "
    "its connections (lua-resty-redis).",
)

HIT_COMPARISON = Comparison(
    name="origin-hit",
    question="A page of 1 KB that Kirin has a copy of: what does an origin cost a hit, and what do others cost?",
    entrants=(
        Entrant("kirin", ALONE, kirin_without),
        Entrant("kirin", COPY, kirin_with),
        Entrant("nginx", "nginx lua shared dict → Redis", nginx_keeping),
        Entrant("starlet", "Starlet → Redis", starlet_asking),
        Entrant("kirin", "kirin app → Redis", kirin_app_asking),
    ),
    loads=(HttpLoad("1 KB page, 64 connections kept", path=PATH, expect=PAGE),),
    budgets=(Budget("user time of a hit ≤ 1.02 × without an origin", COPY, ALONE, 1.02, is_user=True),),
    notes=(
        *NOTES,
        "The kernel samples user time, which scatters by more than the budget. `bench/instructions.py --only page --only "
        "page_copy` decides: it counts the instructions of both.",
        f"nginx's shared dictionary learns of no change: it serves an old page for up to {KEPT_SECONDS} s. Kirin drops a copy "
        "when the redis-server reports the change.",
    ),
    behind="Redis",
)

MISS_COMPARISON = Comparison(
    name="origin-miss",
    question="Pages of 1 KB that only the redis-server has, each asked for once: what does it cost to fetch one?",
    entrants=(
        Entrant("kirin", COPY, kirin_filled),
        Entrant("nginx", "nginx lua → Redis", lambda host: nginx_asking(host, FRESH_PAGES)),
        Entrant("starlet", "Starlet → Redis", lambda host: starlet_asking(host, FRESH_PAGES)),
        Entrant("kirin", "kirin app → Redis", lambda host: kirin_app_asking(host, FRESH_PAGES)),
    ),
    loads=(
        FreshPagesLoad(
            "1 KB pages, each asked for once, 64 connections kept",
            path=PATH, expect=PAGE, begin=FRESH_BEGIN, fresh=FRESH_PAGES,
        ),
    ),  # fmt: skip
    notes=(
        *NOTES,
        "Kirin keeps a copy of each page, and its store of 64 MB evicts others meanwhile. The others keep nothing. The "
        "redis-server notes which pages Kirin has read, to report their changes.",
        f"The redis-server has {FRESH_PAGES:,} pages twice, in 2.5 GB: as items of Kirin, and as plain bodies.",
        "A miss of Kirin is three commands in one write: `GET` of the number of the last purge, `GET` and `PTTL` of the item. The "
        "misses of all connections share one connection to the redis-server, so one read of it brings many of them. "
        "A run in which copies have answered more than a hundredth of the requests fails.",
    ),
    behind="Redis",
)

WRITE_COMPARISON = Comparison(
    name="origin-write",
    question="A write of 100 bytes: what does it cost to have it on the redis-server before it is answered?",
    entrants=(
        Entrant("kirin", COPY, lambda host: beside_redis(host, kirin.start(host, "kirin-set-origin", origin=redis.shared(host)))),
        Entrant("kirin", ALONE, lambda host: kirin.start(host, "kirin-set")),
        Entrant("memcached", "memcached", memcached.start),
        Entrant("redis", "Redis, SET", redis.shared),
    ),
    loads=(SetLoad("set, depth 1, 100 B"),),
    notes=(
        "All over TCP, 64 connections, 10,000 keys. kirin-memload sends `set` to Kirin and memcached, redis-benchmark sends "
        "`SET` to Redis. CPU time is of Kirin and the redis-server.",
        "A write of Kirin is one call of a script (`crates/kirin-origin/src/scripts/put.lua`), which runs five commands: `GET` "
        "and `HGET` of the purges, `GETRANGE` of the head of what is there, `SET`, and `SETRANGE` of the number of the last purge. "
        "`SET` alone asks nothing: it may replace a newer item, and revive one that was purged meanwhile.",
        "Kirin's connection has a thread of its own. Each command and each answer go from one thread to the other, with about one "
        "`write` to an eventfd for each set, on the one core that both threads and the redis-server share.",
    ),
    unit="command",
    tool="kirin-memload, and redis-benchmark for Redis",
    behind="Redis",
)
