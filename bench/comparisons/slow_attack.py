"""slow-attack: the latency of a visitor while an attacker holds a thousand slow connections.

slowhttptest attacks in its four modes. Beside it one client requests a page of the application. It
opens a new connection each time, as a new visitor does.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import TextIO

from comparison import Entrant
from host import BENCH, BenchError, Host, Server
from peers import kirin, nginx, starlet
from report import grid

NAME = "slow-attack"
QUESTION = "The latency of a second client before and during slowhttptest's attacks."
SHARE_CORES = False
ATTACKERS = 1000
PROBE_SECONDS = 5.0
RAMP_SECONDS = 2.5
TIMEOUT_SECONDS = 5.0
WORKERS = 5
TOOL = f"slowhttptest, {ATTACKERS} connections, and a client that makes one request after another"

APP = BENCH / "apps" / "hello.psgi"
HELLO = b"Hello World"
LARGE = "/large.bin"
LARGE_BYTES = 4 * 1024 * 1024

# -i: seconds between two pieces of an attack; -n: between two reads.
ATTACKS = {
    "slowloris": ["-H", "-i", "1", "-u", "{url}/"],
    "slow body": ["-B", "-i", "1", "-s", "8192", "-u", "{url}/"],
    "slow read": ["-X", "-w", "10", "-y", "20", "-n", "1", "-z", "8", "-k", "3", "-u", "{url}" + LARGE],
    "ranges": ["-R", "-a", "5", "-b", "3000", "-u", "{url}" + LARGE],
}


def _files(host: Host) -> Path:
    directory = host.directory / "slow-attack-files"
    directory.mkdir(exist_ok=True)
    (directory / LARGE.removeprefix("/")).write_bytes(bytes(LARGE_BYTES))
    return directory


def _kirin(host: Host) -> Server:
    places = (f"files:{_files(host)}", "app:web")
    return kirin.start(host, places=places, app=kirin.App(APP, WORKERS))


def _nginx(host: Host) -> Server:
    behind = starlet.start(host, APP, WORKERS, "starlet-behind-nginx")
    return nginx.start(
        host,
        "nginx-slow-attack",
        f"proxy_pass over TCP, files by sendfile; behind it {behind.about}",
        http=f"sendfile on; upstream app {{ server 127.0.0.1:{behind.port}; }}",
        server=f"location / {{ proxy_pass http://app; }} location = {LARGE} {{ root {_files(host)}; }}",
        beside=[behind],
    )


ENTRANTS = (
    Entrant("kirin", "kirin", _kirin),
    Entrant("nginx", "nginx → Starlet", _nginx),
    Entrant("starlet", "Starlet alone", lambda host: starlet.start(host, APP, WORKERS)),
)

NOTES = (
    f"Every row: {PROBE_SECONDS:g} s of requests for the application's page, each on a new connection, one after another. A "
    f"request that has no right answer within {TIMEOUT_SECONDS:g} s has failed; the latencies are of the others.",
    f"The attack begins {RAMP_SECONDS:g} s before with {ATTACKERS:,} connections. `held` is how many the server has "
    "established at the end, the client's own aside: a server that ends the attackers' connections has fewer.",
    f"Slowloris and slow body are against the application ({WORKERS} workers), slow read and ranges against a file of "
    f"{LARGE_BYTES >> 20} MB (Starlet alone has only the application).",
    "The attacker has nice 19, so that it gives way to the client on the load's core. Without that p99 was one turn of the "
    "attacker on that core (2 to 3 ms), and said nothing about the server.",
    "Defaults everywhere: no limit on connections from one address, timeouts of a minute.",
)


@dataclass(frozen=True)
class Probed:
    """The latencies and failures of the client."""

    latencies_ms: list[float]
    failed: int

    def cells(self) -> list[str]:
        if len(self.latencies_ms) < 2:
            return [str(len(self.latencies_ms)), "–", "–", "–", str(self.failed)]
        cuts = quantiles(self.latencies_ms, n=100, method="inclusive")
        figures = (cuts[49], cuts[98], max(self.latencies_ms))
        return [str(len(self.latencies_ms)), *(f"{figure:.2f}" for figure in figures), str(self.failed)]


def run(host: Host, entrants: Sequence[Entrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each server."""
    header = ["server", "attack", "requests", "p50 ms", "p99 ms", "worst ms", "failed", "held"]
    body, about = [], {}
    for entrant in entrants:
        server = entrant.start(host)
        about[entrant.row] = server.about
        try:
            _probe(server, 1.0)
            body.append([entrant.row, "none", *_probe(server, PROBE_SECONDS).cells(), "0"])
            for attack, arguments in ATTACKS.items():
                probed, held = _under_attack(host, server, arguments)
                body.append([entrant.row, attack, *probed.cells(), f"{held:,}"])
                print(f"{NAME}: {' '.join(body[-1])}", file=progress, flush=True)
        finally:
            host.stop_all()
    return grid(header, body), about


def _under_attack(host: Host, server: Server, arguments: list[str]) -> tuple[Probed, int]:
    url = f"http://127.0.0.1:{server.port}"
    # The attacker gives way to the client on the load's core. Otherwise p99 is one turn of the
    # attacker there.
    command = [
        "nice", "-n", "19", "slowhttptest", "-c", str(ATTACKERS), "-r", str(ATTACKERS), "-l", "60", "-p", "5",
        *(argument.format(url=url) for argument in arguments),
    ]  # fmt: skip
    try:
        attack = subprocess.Popen(
            host.load_command(*command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise BenchError("slowhttptest is not installed; README.md lists the Debian packages") from error
    try:
        time.sleep(RAMP_SECONDS)
        # It ends by itself, with 0, when the server has closed all its connections.
        if attack.poll():
            raise BenchError(f"slowhttptest ended with {attack.returncode}: {' '.join(command)}")
        probed = _probe(server, PROBE_SECONDS)
        return probed, _established(server.port)
    finally:
        if attack.poll() is None:
            attack.send_signal(signal.SIGINT)
        try:
            attack.wait(5)
        except subprocess.TimeoutExpired:
            attack.kill()
            attack.wait()
        # The next attack begins when the server has noticed the end of this one.
        deadline = time.monotonic() + 10
        while _established(server.port) > 0 and time.monotonic() < deadline:
            time.sleep(0.2)


def _probe(server: Server, seconds: float) -> Probed:
    latencies, failed = [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        try:
            answered = _request(server)
        except OSError:
            answered = False
        if answered:
            latencies.append((time.perf_counter() - start) * 1000)
        else:
            failed += 1
    return Probed(latencies, failed)


def _request(server: Server) -> bool:
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT_SECONDS) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer.startswith(b"HTTP/1.1 200") and HELLO in answer


def _established(port: int) -> int:
    """Returns the number of connections to that port on the server's side (proc(5), /proc/net/tcp).
    """
    count = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        count += int(fields[1].rpartition(":")[2], 16) == port and fields[3] == "01"
    return count
