"""memcached: Kirin's store compared with memcached, over memcached's protocol."""

from __future__ import annotations

from comparison import Budget, Comparison, Entrant
from load import MemcachedLoad
from peers import kirin, memcached

LARGE = 10 * 1024
GET = "get, depth 1, 100 B"
GET_PIPELINED = "get, depth 16, 100 B"

COMPARISON = Comparison(
    name="memcached",
    question="The store over memcached's text protocol, beside memcached on the same core.",
    entrants=(
        Entrant("kirin", "kirin, TCP", lambda host: kirin.start(host, "kirin-tcp")),
        Entrant("kirin", "kirin, unix socket", lambda host: kirin.start(host, "kirin-unix", unix_store=True)),
        Entrant("memcached", "memcached, TCP", memcached.start),
        Entrant("memcached", "memcached, unix socket", memcached.start_unix),
    ),
    loads=(
        MemcachedLoad(GET),
        MemcachedLoad(GET_PIPELINED, depth=16),
        MemcachedLoad("90 % get and 10 % set, depth 1, 100 B", set_percent=10),
        MemcachedLoad("90 % get and 10 % set, depth 16, 100 B", set_percent=10, depth=16),
        MemcachedLoad("get of 50 keys, 100 B", keys_per_get=50),
        MemcachedLoad("get, depth 1, 10 KB", value_bytes=LARGE, keys=1000),
        MemcachedLoad("get of 50 keys, 10 KB", value_bytes=LARGE, keys=1000, keys_per_get=50),
    ),
    budgets=(
        Budget("≤ memcached", "kirin, TCP", "memcached, TCP", 1.0, load=GET),
        Budget("≤ 0.3 × memcached", "kirin, TCP", "memcached, TCP", 0.3, load=GET_PIPELINED),
    ),
    notes=(
        "A command is one get or set; a get of 50 keys is one command. Latency is of a whole batch.",
        "memcached runs one thread (`-t 1`): there is one core.",
    ),
    unit="command",
)
