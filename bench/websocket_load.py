"""The load of `websocket`: messages and their echoes, by `websocket_trips.py`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from host import BENCH, Host, Server
from load import Outcome, run_generator

ECHO_BYTES = 12
"""The bytes of an echo: a frame head of two bytes, and ten of text."""


@dataclass(frozen=True)
class WebSocketLoad:
    """A load of messages. Each connection has one on its way at a time."""

    title: str
    connections: int

    def prepare(self, host: Host, server: Server) -> int:
        self.run(host, server, 0.1)
        return ECHO_BYTES

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        command = host.load_command(
            sys.executable, BENCH / "websocket_trips.py", str(server.port), str(self.connections), f"{seconds}"
        )
        values = dict(line.split() for line in run_generator(command, seconds).splitlines())
        return Outcome(
            int(values["messages"]), float(values["seconds"]), float(values["p50_us"]), float(values["p99_us"])
        )
