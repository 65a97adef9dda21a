"""The machine as a benchmark sees it: cores, a temporary directory, and the processes started in it.

`compare.py` makes one `Host` a run and hands it to the peers, which start their servers with it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

BENCH = Path(__file__).resolve().parent
REPOSITORY = BENCH.parent

START_WITHIN_SECONDS = 15.0
STOP_WITHIN_SECONDS = 5.0


class BenchError(Exception):
    """Something the person who started the benchmark has to put right."""


@dataclass(frozen=True)
class Cores:
    """Which cores the servers and the load may use, as `taskset -c` wants them."""

    server: str
    load: str

    @property
    def shared(self) -> bool:
        return self.server == self.load

    def server_numbers(self) -> list[int]:
        return [int(core) for core in self.server.split(",")]


@dataclass
class Server:
    """A started peer: where it listens and whose CPU time and memory are its own."""

    port: int
    roots: list[int]
    """Process ids; each counts with all its descendants."""

    about: str
    """Version and what matters of the configuration, for the report."""

    store: str = ""
    """Where it speaks the memcached protocol, as HOST:PORT or unix:/path; empty if it does not."""

    canned_body: bytes = b""
    """What it answers whatever is asked; empty if it is a real server."""

    socket_path: Path | None = None
    """Where it listens if not on a port."""


@dataclass
class Host:
    """Where the servers of one comparison run. Leaving it as a context stops them all."""

    cores: Cores
    kirin: Path
    tools: Path
    scale: float = 1.0
    """Share of the full size, for comparisons that count requests and not seconds."""

    directory: Path = field(init=False)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Host:
        hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
        self.directory = Path(tempfile.mkdtemp(prefix="kirin-bench-"))
        self.directory.chmod(0o755)  # servers that give up root have to read it
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop_all()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        port: int = 0,
        socket_path: Path | None = None,
        env: Mapping[str, str] | None = None,
        beside_load: bool = False,
    ) -> int:
        """Starts a server on the server's cores, waits until it listens, and returns its process id.

        What only stands behind the servers that are compared goes `beside_load`, on the load's cores.
        """
        if shutil.which(command[0]) is None:
            raise BenchError(f"{name}: there is no program {command[0]}; README.md lists the Debian packages")
        log = self.log_of(name)
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["taskset", "-c", self.cores.load if beside_load else self.cores.server, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.directory,
                env={**os.environ, **(env or {})},
                start_new_session=True,  # Ctrl-C is for us; we stop them
            )
        self._processes.append(process)
        deadline = time.monotonic() + START_WITHIN_SECONDS
        while not listens(socket_path or port):
            if process.poll() is not None:
                raise BenchError(f"{name} ended at start with {process.returncode}:\n{tail(log)}")
            if time.monotonic() > deadline:
                raise BenchError(f"{name} does not listen on {socket_path or port}:\n{tail(log)}")
            time.sleep(0.02)
        return process.pid

    def stop_all(self) -> None:
        """Stops every server that was started, the youngest first."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(STOP_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            # It began a session of its own, so this group is it and its workers, should any be
            # left.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._processes.clear()

    def load_command(self, *command: str | Path) -> list[str]:
        """A load generator's command, on its cores."""
        return ["taskset", "-c", self.cores.load, *map(str, command)]

    def tool(self, name: str) -> Path:
        """One of the crate bench/floor's programs."""
        path = self.tools / name
        if not path.is_file():
            raise BenchError(
                f"{path} is missing: run `cargo build --release -p kirin-floor` or give --tools DIR"
            )
        return path

    def log_of(self, name: str) -> Path:
        return self.directory / f"{name}.log"


def free_port() -> int:
    """A TCP port that nobody has now. Somebody may take it before the server does; then it fails at start."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(where: int | Path) -> bool:
    """Whether a port of 127.0.0.1 or a unix socket accepts connections."""
    address: str | tuple[str, int] = str(where) if isinstance(where, Path) else ("127.0.0.1", where)
    with socket.socket(socket.AF_UNIX if isinstance(where, Path) else socket.AF_INET) as probe:
        probe.settimeout(1)
        return probe.connect_ex(address) == 0


def tail(log: Path, lines: int = 20) -> str:
    """The end of a log, for an error message."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def version_of(*command: str) -> str:
    """The first line a program prints about its version, on either output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else "version unknown"


def debian_version(package: str) -> str:
    """The installed version of a Debian package."""
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version}", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout or f"{package} (not a Debian package here)"
