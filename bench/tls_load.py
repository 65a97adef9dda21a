"""Loads over TLS and HTTP/2: new connections by `tls_connect.py`, HTTP/2 by h2load (Debian package
nghttp2-client).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from statistics import quantiles

from host import BENCH, BenchError, Host, Server
from load import HttpLoad, Outcome, run_generator


@dataclass(frozen=True)
class ConnectLoad:
    """A load of TLS connections, one after the other. Each has a handshake, one request and an end.

    There is one client process. It limits the requests a second; the CPU time of a connection is
    the server's.
    """

    title: str
    path: str
    expect: bytes
    resumed: bool
    """Whether all connections but the first resume a session."""

    def prepare(self, host: Host, server: Server) -> int:
        return HttpLoad(self.title, self.expect, self.path, tls=True).prepare(host, server)

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        how = "resumed" if self.resumed else "full"
        command = host.load_command(
            sys.executable, BENCH / "tls_connect.py", str(server.port), self.path, f"{seconds}", how
        )
        values = dict(line.split() for line in run_generator(command, seconds).splitlines())
        connections, resumed = int(values["connections"]), int(values["resumed"])
        expected = connections - 1 if self.resumed else 0
        failure = "" if resumed == expected else f"{resumed} of {connections} resumed"
        return Outcome(
            connections, float(values["seconds"]), float(values["p50_us"]), float(values["p99_us"]), failure
        )


@dataclass(frozen=True)
class Http2Load:
    """A load that repeats one request, `streams` at once on each connection."""

    title: str
    path: str
    expect: bytes
    tls: bool
    connections: int = 16
    streams: int = 10
    body: bytes = b""
    """The body of a POST, or empty for a GET."""

    fields: tuple[str, ...] = ()
    """More header fields of the request, as `name: value`."""

    def prepare(self, host: Host, server: Server) -> int:
        scheme, http = ("https", "--http2") if self.tls else ("http", "--http2-prior-knowledge")
        command = ["curl", "-sSk", http, "--fail", "-w", "\n%{http_version} %{size_header}", *self._fields()]
        if self.body:
            command += ["--data-binary", f"@{self._body(host)}"]
        output = run_generator([*command, f"{scheme}://127.0.0.1:{server.port}{self.path}"], 10)
        body, _, shown = output.rpartition("\n")
        version, head_bytes = shown.split()
        if version != "2" or body.encode() != self.expect:
            raise BenchError(f"wrong answer to {self.path}: HTTP/{version} {body[:60]!r}")
        return int(head_bytes) + len(self.expect)

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        times = host.directory / "h2load.tsv"
        times.unlink(missing_ok=True)
        scheme = "https" if self.tls else "http"
        more = ["-d", self._body(host), *self._fields()] if self.body else self._fields()
        output = run_generator(
            host.load_command(
                "h2load", "-t", "1", "-c", str(self.connections), "-m", str(self.streams),
                "-D", f"{seconds:.0f}", f"--log-file={times}", *more,
                f"{scheme}://127.0.0.1:{server.port}{self.path}",
            ),
            seconds,
        )  # fmt: skip
        counts = re.search(
            r"requests: .*?(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", output
        )
        if counts is None:
            raise BenchError(f"h2load said nothing:\n{output}")
        done, succeeded, failed, errored, timeout = map(int, counts.groups())
        # Each line has the start, the status, and the microseconds.
        taken = [float(line.split("\t")[2]) for line in times.read_text().splitlines()]
        parts = quantiles(taken, n=100) if len(taken) > 1 else [0.0] * 99
        bad = failed + errored + timeout
        return Outcome(
            done, float(f"{seconds:.0f}"), parts[49], parts[98], f"{bad} failed" if bad or succeeded < done else ""
        )

    def _fields(self) -> list[str]:
        return [part for field in self.fields for part in ("-H", field)]

    def _body(self, host: Host) -> str:
        """Returns the path of a file with the body."""
        path = host.directory / "h2load-body"
        path.write_bytes(self.body)
        return str(path)
