"""idle-memory-http3: the user memory of an idle HTTP/3 connection.

There is no load. `h3load hold` opens connections that make one request each, and the memory of the
server is read while they are open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import measure
from comparison import Entrant
from comparisons.http2 import PATH
from comparisons.http3 import of_caddy, of_kirin
from comparisons.idle_memory import while_held
from comparisons.idle_memory_http2 import held_table
from host import Host, Server
from http3_load import built, url_of

NAME = "idle-memory-http3"
QUESTION = "User memory for each idle HTTP/3 connection that has made one request."
TOOL = "bench/h3load (quic-go)"
SHARE_CORES = False
HELD = (500, 1_000)

ENTRANTS = (Entrant("kirin", "kirin files", of_kirin), Entrant("caddy", "Caddy", of_caddy))

NOTES = (
    "Measured as in `idle-memory-http2`: `Pss_Anon` over all processes of the server, when it has not changed for half a second, "
    "and the same columns. QUIC's own memory is the server's: the kernel has only the datagrams on their way.",
    "A connection has had its handshake, SETTINGS, one request for 1 KB and the answer. At the end every connection is looked at: "
    "one that the server has closed makes the row fail.",
    "One step begins while a server still forgets the connections of the step before, which have ended in good order.",
)


def run(host: Host, entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each server."""

    def hold(server: Server, count: int, _entrant: Entrant) -> int:
        command = host.load_command(built(host), "hold", url_of(server, PATH), str(count), "0")
        return while_held(command, count, lambda: measure.settled_bytes(server.roots))

    table, about, _ = held_table(NAME, host, entrants, HELD, hold, progress)
    return table, about
