"""The memo example on several Kirins with one redis-server, as on several machines.

Each machine has a directory of its own with the application, the sockets and the workers. They
share the database, as files: on real machines it is a database server.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from contestants import ADAPTER, Site, on_port
from host import BenchError, Host, Server, free_port, has_ended, listens
from peers import kirin, redis
from serving import wait_for

COUNT = 3

LIMIT_SECONDS = 60.0 * float(os.environ.get("KIRIN_TEST_WAIT_FACTOR", "1"))
"""The time in which a machine must stop, hand over to the next program, or get some requests."""

CALM_STORE = 'origin_timeout = "20s"\nstale_limit = "60s"'
CALM_SCRIPTS = '[lua]\ntime_limit = "20s"\n'
CALM_APPLICATION = (
    ("StoreClient.pm", r"_timeout( +)=> [0-9.]+,", r"_timeout\1=> 20,", 3),
    ("Database.pm", r"BUSY_TIMEOUT_MS = 5_000", "BUSY_TIMEOUT_MS = 60_000", 1),
)
"""The time limits of a machine that a busy moment must not disturb: of Kirin, and of the
application's files.
"""


@dataclass
class Machine:
    """A Kirin of the memo example. It is found again, under any process id, by its port."""

    host: Host
    number: int
    site: Site
    port: int
    pid: int = 0
    starts: int = field(default=0, repr=False)

    @property
    def config(self) -> Path:
        return self.site.directory / "machine.toml"

    @property
    def store(self) -> Path:
        return self.site.directory / "data" / "store.sock"

    @property
    def environment(self) -> dict[str, str]:
        # Until the adapter is installed, the workers' parent finds it in the repository.
        return {"PERL5LIB": str(ADAPTER), "KIRIN_ADMIN_DIRECTORY": str(self.site.directory / "admin")}

    def start(self) -> None:
        """Starts Kirin, and waits until it serves and has its copies from the redis-server."""
        self.starts += 1
        name = f"machine-{self.number}-{self.starts}"
        command = [self.host.kirin, "serve", "--config", self.config]
        self.pid = self.host.start(name, command, port=self.port, env=self.environment)
        wait_until("the store's socket", lambda: listens(self.store))
        kirin.connect(f"unix:{self.store}")

    def kill(self) -> None:
        """Kills Kirin, so that it cannot end anything. Its workers see that it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait_for_end(self.pid)

    def stop(self) -> None:
        """Lets Kirin finish what it has begun, and end."""
        os.kill(self.pid, signal.SIGTERM)
        self._wait_for_end(self.pid)

    def upgrade(self) -> None:
        """Replaces the program by `kirin upgrade`, and waits until the old one has ended."""
        old = self.pid
        said = run_kirin(self.host, "upgrade", self.config, self.environment)
        self.pid = int(said.split()[2])
        self._wait_for_end(old)

    def _wait_for_end(self, pid: int) -> None:
        if not wait_for(lambda: has_ended(pid), LIMIT_SECONDS):
            raise BenchError(f"machine {self.number}: process {pid} does not end")


def started(host: Host, seeded: Site, *, count: int = COUNT, calm: bool = False) -> tuple[list[Machine], Server]:
    """Starts the machines, and the redis-server behind their stores. The database is that of the
    seeded site. With `calm` nothing has a time limit that a busy machine would exceed.
    """
    origin = redis.shared(host)
    machines = [made(host, number + 1, seeded, origin, calm) for number in range(count)]
    for machine in machines:
        machine.start()
    return machines, origin


def made(host: Host, number: int, seeded: Site, origin: Server, calm: bool) -> Machine:
    """Makes the directory of a machine. Its files have the times of those of the others, because
    the validators of a file are its size and time.
    """
    directory = host.directory / f"machine-{number}"
    shutil.copytree(seeded.directory, directory, ignore=shutil.ignore_patterns("data"))
    for name in ("data", "admin"):
        (directory / name).mkdir()
    machine = Machine(host, number, Site(directory), free_port())
    config = on_port((directory / "kirin.toml").read_text(), machine.port)
    config = replaced(config, r"(?m)^\[store\]$", f'[store]\norigin = "redis://127.0.0.1:{origin.port}"')
    config = replaced(config, r'MEMO_DATABASE = "[^"]*"', f'MEMO_DATABASE = "{seeded.database}"')
    if calm:
        config = replaced(config, r"(?m)^\[store\]$", f"{CALM_SCRIPTS}[store]\n{CALM_STORE}")
        for name, pattern, by, times in CALM_APPLICATION:
            file = directory / "lib" / "Memo" / name
            file.write_text(replaced(file.read_text(), pattern, by, times))
    machine.config.write_text(config)
    return machine


def replaced(text: str, pattern: str, by: str, times: int = 1) -> str:
    """Returns a file of the example with other settings, which it must have."""
    changed, count = re.subn(pattern, by, text)
    if count != times:
        raise BenchError(f"examples/memo has {pattern!r} {count} times, and not {times}")
    return changed


def run_kirin(host: Host, command: str, config: Path, environment: dict[str, str], *words: str) -> str:
    """Runs a command for the Kirin of a configuration. Returns what it prints."""
    done = subprocess.run(
        [host.kirin, *command.split(), *words, "--config", config],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(f"kirin {command} failed:\n{done.stderr}{done.stdout}")
    return done.stdout


def wait_until(what: str, condition: Callable[[], object], seconds: float = LIMIT_SECONDS) -> None:
    """Waits for a condition.

    Raises a `BenchError` if it does not come true in time.
    """
    if not wait_for(lambda: bool(condition()) or None, seconds):
        raise BenchError(f"waited {seconds:.0f} s for {what}")
