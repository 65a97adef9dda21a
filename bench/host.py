"""The machine of a benchmark: its cores, a temporary directory, and the processes that run there.

`compare.py` makes one `Host` for a run and passes it to the peers, which start their servers with
it.
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
    """An error that the user of the benchmark can correct."""


@dataclass(frozen=True)
class Cores:
    """The cores for the servers and for the load, in the notation of `taskset -c`."""

    server: str
    load: str

    @property
    def shared(self) -> bool:
        return self.server == self.load

    def server_numbers(self) -> list[int]:
        return [int(core) for core in self.server.split(",")]


@dataclass
class Server:
    """A started peer: its address, and the processes whose CPU time and memory are measured."""

    port: int
    roots: list[int]
    """The process ids. Each counts with all its descendants."""

    about: str
    """The version and the important settings, for the report."""

    store: str = ""
    """The address of the memcached protocol, as HOST:PORT or unix:/path. Empty if there is none."""

    canned_body: bytes = b""
    """The body that the server always sends. Empty for a real server."""

    socket_path: Path | None = None
    """The socket of the server, if it does not listen on a port."""

    behind: list[int] = field(default_factory=list)
    """Those of `roots` that are a server behind the compared one, whose part of the CPU time has a
    column.
    """


@dataclass
class Host:
    """The place where the servers of one comparison run. The end of its context stops them all."""

    cores: Cores
    kirin: Path
    tools: Path
    scale: float = 1.0
    """The share of the full size, for comparisons that count requests and not seconds."""

    directory: Path = field(init=False)
    shared: dict[str, Server] = field(default_factory=dict)
    """The servers behind several rows, by name."""

    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Host:
        hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
        self.directory = Path(tempfile.mkdtemp(prefix="kirin-bench-"))
        self.directory.chmod(0o755)  # Servers that give up root must read it.
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
        """Starts a server on the server's cores, waits until it listens, and returns its process
        id.

        A server behind the compared ones runs with `beside_load`, on the load's cores.
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
                start_new_session=True,  # Ctrl-C is for the benchmark, which stops the servers.
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
        """Stops every server that was started, the last one first."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(STOP_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            # The server began a session of its own. This group is the server with its workers, if
            # any are left.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._processes.clear()
        self.shared.clear()

    def load_command(self, *command: str | Path) -> list[str]:
        """Returns the command that runs a load generator on its cores."""
        return ["taskset", "-c", self.cores.load, *map(str, command)]

    def tool(self, name: str) -> Path:
        """Returns one of the programs of the crate bench/floor."""
        path = self.tools / name
        if not path.is_file():
            raise BenchError(
                f"{path} is missing: run `cargo build --release -p kirin-floor` or give --tools DIR"
            )
        return path

    def log_of(self, name: str) -> Path:
        return self.directory / f"{name}.log"


def free_port() -> int:
    """Returns a free TCP port. Another process may take it before the server does; then the server
    fails to start.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(where: int | Path) -> bool:
    """Returns whether a port of 127.0.0.1 or a unix socket accepts connections."""
    address: str | tuple[str, int] = str(where) if isinstance(where, Path) else ("127.0.0.1", where)
    with socket.socket(socket.AF_UNIX if isinstance(where, Path) else socket.AF_INET) as probe:
        probe.settimeout(1)
        return probe.connect_ex(address) == 0


def has_ended(pid: int) -> bool:
    """Returns whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def tail(log: Path, lines: int = 20) -> str:
    """Returns the end of a log, for an error message."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def version_of(*command: str) -> str:
    """Returns the first line that a program prints about its version, on either output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else "version unknown"


def debian_version(package: str) -> str:
    """Returns the installed version of a Debian package."""
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version}", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout or f"{package} (not a Debian package here)"
