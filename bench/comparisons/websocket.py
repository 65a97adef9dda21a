"""websocket: round trips of small messages through a proxy, after `101 Switching Protocols`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from comparison import Budget, Comparison, Entrant
from host import BENCH, Host, Server, free_port
from peers import kirin, nginx
from websocket_load import WebSocketLoad


def echo(host: Host, name: str) -> Server:
    """Starts an echo server on the load's core. Each proxy has its own."""
    port = free_port()
    command = [sys.executable, BENCH / "websocket_echo.py", str(port)]
    pid = host.start(f"echo-{name}", command, port=port, beside_load=True)
    return Server(port, [pid], "bench/websocket_echo.py, asyncio of Python")


def behind(name: str, proxy_to: Callable[[Host, str], Server]) -> Callable[[Host], Server]:
    """Returns what starts a proxy and its echo server, whose CPU time does not count."""
    return lambda host: proxy_to(host, f"127.0.0.1:{echo(host, name).port}")


COMPARISON = Comparison(
    name="websocket",
    question="WebSocket messages of 10 bytes and their echoes: what does a proxy add?",
    entrants=(
        Entrant("kirin", "kirin", behind("kirin", kirin.proxy_to)),
        Entrant("nginx", "nginx", behind("nginx", nginx.upgrading_to)),
        Entrant("floor", "direct", lambda host: echo(host, "direct")),
    ),
    loads=(
        WebSocketLoad("1 connection", connections=1),
        WebSocketLoad("64 connections", connections=64),
    ),
    budgets=(Budget("≤ nginx", "kirin", "nginx", 1.0),),
    unit="round trip",
    tool="bench/websocket_trips.py",
    notes=(
        "The echo server runs on the load's core. Its CPU time counts in the row `direct` only, which shows the least time "
        "of a round trip and is no peer.",
        "A message through a proxy is two more hops: two waits, two reads and two writes for each round trip. strace shows "
        "exactly these six system calls for Kirin and for nginx with one connection.",
    ),
)
