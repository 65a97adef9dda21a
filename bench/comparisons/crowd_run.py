"""Runs kirin-crowd, for the comparisons that count the outcome of every request."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from host import BenchError, Host, Server

GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class CrowdLoad:
    """The arguments of kirin-crowd at full size."""

    title: str
    connections: int
    requests: int
    """The number of requests of each connection."""

    close: bool = False
    pause_ms: int = 0
    slow: int = 0
    limit_seconds: int = 60
    timeout_seconds: int = 30

    def of_scale(self, scale: float) -> CrowdLoad:
        """Returns a smaller load: with fewer connections if there are many, otherwise with fewer
        requests.
        """
        many = self.connections > 100
        return CrowdLoad(
            self.title,
            max(1, round(self.connections * (scale if many else 1))),
            max(1, round(self.requests * (1 if many else scale))),
            self.close,
            self.pause_ms,
            round(self.slow * scale),
            self.limit_seconds,
            self.timeout_seconds,
        )

    @property
    def asked(self) -> int:
        return self.connections * self.requests


@dataclass(frozen=True)
class Counts:
    """The numbers that kirin-crowd has printed."""

    values: dict[str, float]

    def __getitem__(self, name: str) -> int:
        return int(self.values.get(name, 0))

    def milliseconds(self, name: str) -> str:
        """Returns a latency in milliseconds, or an empty string if no request was answered."""
        return f"{self.values[name] / 1000:,.1f}" if name in self.values else ""

    @property
    def failed(self) -> str:
        """Returns the number of failed requests, with the number of each failure."""
        kinds = ("connect", "unanswered", "cut", "status", "timeout")
        ways = ", ".join(f"{self[kind]:,} {kind}" for kind in kinds if self[kind])
        return f"{self['failed']:,}" + (f" ({ways})" if ways else "")


def begin(host: Host, server: Server, load: CrowdLoad) -> subprocess.Popen[str]:
    """Starts kirin-crowd."""
    command = host.load_command(
        host.tool("kirin-crowd"), f"127.0.0.1:{server.port}",
        "--connections", str(load.connections), "--requests", str(load.requests), "--pause", str(load.pause_ms),
        "--slow", str(load.slow), "--limit", str(load.limit_seconds), "--timeout", str(load.timeout_seconds),
        *(["--close"] if load.close else []),
    )  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(run: subprocess.Popen[str], load: CrowdLoad) -> Counts:
    """Waits for the end of kirin-crowd."""
    try:
        output, errors = run.communicate(timeout=load.limit_seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired as error:
        run.kill()
        raise BenchError("kirin-crowd did not end") from error
    if run.returncode != 0:
        raise BenchError(f"kirin-crowd failed: {errors.strip()}")
    return Counts({name: float(value) for name, value in (line.split() for line in output.splitlines())})
