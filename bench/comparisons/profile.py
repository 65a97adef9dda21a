"""profile: what a running profile, and the log of slow requests, cost the requests."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

from comparison import Budget, Comparison, Entrant
from comparisons.psgi import PARAMS, PARAMS_APP, QUERY, WORKERS
from host import BenchError, Host, Server
from load import HttpLoad
from peers import kirin

PROFILE_SECONDS = 600
"""The longest profile. The comparison takes less time."""

BEGIN_WITHIN_SECONDS = 10


def start(host: Host, row: str, hz: int = 0, slow: str = "") -> Server:
    """Starts Kirin, and a profile of its application if `hz` is given."""
    name = row.replace(" ", "-")
    admin = host.directory / f"{name}.sock"
    more = f'\n[admin]\naddress = "unix:{admin}"\n'
    app = kirin.App(PARAMS_APP, WORKERS, slow)
    server = kirin.start(host, name, places=("app:web",), app=app, more=more)
    if hz:
        command = [host.kirin, "profile", "--admin", f"unix:{admin}", "--hz", str(hz)]
        command += ["--seconds", str(PROFILE_SECONDS)]
        # The server listens already.
        host.start(f"{name}-profile", command, port=server.port, beside_load=True)
        wait_for_profile(admin)
    return server


def wait_for_profile(admin: Path) -> None:
    """Waits until the profile runs."""
    deadline = time.monotonic() + BEGIN_WITHIN_SECONDS
    while status(admin)["apps"][0]["profile_samples"] is None:
        if time.monotonic() > deadline:
            raise BenchError("the profile does not begin")
        time.sleep(0.05)


def status(admin: Path) -> dict:
    """Returns the status of the Kirin with this admin socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(admin))
        connection.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return json.loads(answer.partition(b"\r\n\r\n")[2])


ROWS = {
    "without": {},
    "profile at 100 Hz": {"hz": 100},
    "profile at 1000 Hz": {"hz": 1000},
    "slow requests logged": {"slow": "1s"},
}


def entrant(row: str, options: dict) -> Entrant:
    """Returns Kirin with these options."""
    return Entrant("kirin", row, lambda host: start(host, row, **options))


COMPARISON = Comparison(
    name="profile",
    question="A PSGI application while it is profiled: what does it cost the requests?",
    entrants=tuple(entrant(row, options) for row, options in ROWS.items()),
    loads=(
        HttpLoad(
            f"GET with 5 parameters, {WORKERS} connections kept, one a worker",
            path=f"/?{QUERY}",
            expect=PARAMS,
            connections=WORKERS,
        ),
        HttpLoad("GET with 5 parameters, 64 connections kept", path=f"/?{QUERY}", expect=PARAMS),
    ),
    budgets=(
        Budget("a profile at 100 Hz costs at most 2 %", "profile at 100 Hz", "without", 1.02),
        Budget("slow requests cost at most 2 %", "slow requests logged", "without", 1.02),
    ),
    notes=(
        f"The application of psgi-params with {WORKERS} workers. A request is short, so that most samples find a "
        "worker that computes: this is the most expensive kind to read.",
        "The profile runs during all rounds, also while the other rows are measured. Its client waits.",
    ),
)
