"""The real programs that these tests use: a store, and a Kirin that serves pages from its store.

    with Memcached() as memcached:
        store = Store(memcached.address)

Everything is on unix sockets in a temporary directory, so no port is taken.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ADAPTER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPOSITORY = os.path.dirname(os.path.dirname(ADAPTER))
SOURCES = os.path.join(ADAPTER, "src")
PERL_LIBRARY = os.path.join(REPOSITORY, "adapters", "perl", "lib")

for place in (SOURCES, os.path.join(ADAPTER, "tests")):
    if place not in sys.path:
        sys.path.insert(0, place)

from software import software  # noqa: E402, F401
from waiting import WAIT_SECONDS, wait_until  # noqa: E402


def kirin():
    """Returns the path of the built program. A missing one fails the test."""
    given = os.environ.get("KIRIN_BINARY")
    if given:
        return given
    path = os.path.join(REPOSITORY, "target", "debug", "kirin")
    if not os.access(path, os.X_OK):
        raise FileNotFoundError("kirin is not built: cargo build -p kirin")
    return path


class Program:
    """A process with a directory of its own, which listens on a unix socket."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="kirin-store-")
        self.process = None

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def command(self):
        raise NotImplementedError

    def begin(self):
        """Starts the program, and waits until it listens."""
        if os.path.exists(self.path("store")):
            os.unlink(self.path("store"))
        environment = {**os.environ, "KIRIN_ADMIN_DIRECTORY": self.directory}
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, env=environment, cwd=self.directory
            )
        try:
            wait_until(self._listens, "the program listens")
        except BaseException:
            self.stop()
            raise

    def _listens(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the program has ended:\n{self.log()}")
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(self.path("store"))
            except OSError:
                return False
        return True

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def address(self):
        return "unix:" + self.path("store")

    def pause(self):
        """Stops all threads of the program. A signal alone returns before that."""
        self.process.send_signal(signal.SIGSTOP)
        wait_until(self._is_paused, "the program is stopped")

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def _is_paused(self):
        tasks = f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/stat", encoding="latin-1") as file:
                if file.read().rpartition(")")[2].split()[0] != "T":
                    return False
        return True

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Memcached(Program):
    """A store alone: `kirin memcached`, or another program with the same options."""

    def __init__(self, program=None, options=()):
        super().__init__()
        self._program = [program] if program else [kirin(), "memcached"]
        self._options = options

    def command(self):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        return [*self._program, *user, *self._options, "-s", self.path("store")]


class Serving(Program):
    """`kirin serve` with a memcached socket. Routes answer from the store."""

    CONFIGURATION = """
[[listener]]
address = "unix:http.sock"
[store]
memory = "16MB"
memcached = ["unix:store"]
session_cookie = "simple_session"
[[route]]
path = "/"
try = ["store"]
[[site]]
hosts = ["shop.test"]
[[site.route]]
path = "/"
try = ["store"]
"""

    def __init__(self):
        super().__init__()
        with open(self.path("kirin.toml"), "w", encoding="utf-8") as file:
            file.write(self.CONFIGURATION)

    def command(self):
        return [kirin(), "serve", "--config", self.path("kirin.toml")]

    def get(self, target, host="other.test", fields=""):
        """Returns status, head and body of a response."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WAIT_SECONDS)
            client.connect(self.path("http.sock"))
            client.sendall(
                f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n"
                .encode("latin-1")
            )
            received = b""
            while True:
                data = client.recv(65536)
                if not data:
                    break
                received += data
        head, _, body = received.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), head.decode("latin-1"), body
