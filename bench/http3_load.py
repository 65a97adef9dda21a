"""Loads over HTTP/3, and of TLS handshakes, by `h3load` (Go, quic-go). It is built with Go modules from the proxy of Go."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from host import BENCH, BenchError, Host, Server
from load import HttpLoad, Outcome, run_generator

BUILD_SECONDS = 300


@dataclass(frozen=True)
class Http3Load:
    """A load that repeats one request, `streams` at once on each connection; with `streams` 0, each
    request has a connection of its own.

    The generator costs more than the server, so it limits the requests a second; the CPU time of a
    request is the server's.
    """

    title: str
    path: str
    expect: bytes
    connections: int = 16
    streams: int = 10

    def prepare(self, host: Host, server: Server) -> int:
        """Checks the answer. Returns the size of its body: a head has no size of its own, because
        QPACK depends on the client.
        """
        answer = subprocess.run(
            [built(host), "get", url_of(server, self.path), "1", "1", "1"],
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        if answer.returncode != 0 or "failed 0" not in answer.stdout.splitlines():
            raise BenchError(f"no answer to {self.path} over HTTP/3: {answer.stdout}{answer.stderr}")
        return len(self.expect)

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        how = ["get", url_of(server, self.path), str(self.connections), str(self.streams)]
        if self.streams == 0:
            how = ["connect", url_of(server, self.path), str(self.connections)]
        return _run(host, how, self.expect, seconds)


@dataclass(frozen=True)
class KeyExchangeLoad:
    """A load of TLS connections, each with a full handshake by one key exchange and one request by HTTP/1.1."""

    title: str
    path: str
    expect: bytes
    exchange: str
    """`x25519`, or `hybrid` for X25519MLKEM768."""

    connections: int = 8

    def prepare(self, host: Host, server: Server) -> int:
        """Checks the answer, and returns its size."""
        return HttpLoad(self.title, self.expect, self.path, tls=True).prepare(host, server)

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        return _run(host, [self.exchange, url_of(server, self.path), str(self.connections)], self.expect, seconds)


def _run(host: Host, how: list[str], expect: bytes, seconds: float) -> Outcome:
    """Runs the generator, and checks what it has got."""
    command = host.load_command(built(host), *how, f"{max(1, round(seconds))}")
    values = dict(line.split() for line in run_generator(command, seconds).splitlines())
    requests, failed = int(values["requests"]), int(values["failed"])
    failure = f"{failed} failed" if failed else ""
    if int(values["bytes"]) != requests * len(expect):
        failure = f"{values['bytes']} bytes in {requests} answers of {len(expect)}"
    return Outcome(
        requests, float(values["seconds"]), float(values["p50_us"]), float(values["p99_us"]), failure
    )


def url_of(server: Server, path: str) -> str:
    """Returns the URL of a path on a server with TLS."""
    return f"https://127.0.0.1:{server.port}{path}"


def built(host: Host) -> Path:
    """Returns the generator, which is built the first time."""
    program = host.directory / "h3load"
    if not program.exists():
        done = subprocess.run(
            ["go", "build", "-o", program, "."], cwd=BENCH / "h3load", capture_output=True, text=True,
            timeout=BUILD_SECONDS,
        )  # fmt: skip
        if done.returncode != 0:
            raise BenchError(f"h3load cannot be built: {done.stderr}")
    return program
