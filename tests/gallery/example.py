"""Runs an example of the gallery in a copy of its folder, as `make demo` does, for its tests.

The tests run in a network of their own (`scripts/own-network`), so the example's port is free.
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "examples")
# Seconds for the start and for the end of an example.
LIMIT = 60.0 * float(os.environ.get("KIRIN_TEST_WAIT_FACTOR") or 1)
ADDRESS = ("127.0.0.1", 8080)
# What a run leaves in a folder.
LEFT_BEHIND = shutil.ignore_patterns("data", "tests", ".venv", "__pycache__")


class Example:
    """A running example; a context manager that ends it and looks at its log."""

    def __init__(self, name, address=ADDRESS, limit=LIMIT):
        self.name = name
        self.address = address
        self.url = "http://{}:{}".format(*address)
        self._limit = limit
        # Short, because the path of a unix socket has at most 107 bytes.
        self._scratch = tempfile.mkdtemp(prefix="kx-")
        self.directory = os.path.join(self._scratch, name)
        self._log = os.path.join(self._scratch, "log")
        self._process = None

    def __enter__(self):
        try:
            shutil.copytree(os.path.join(EXAMPLES, self.name), self.directory, ignore=LEFT_BEHIND)
            self._prepare()
            self._start()
            self.wait_for(self._serves, "the example does not serve")
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            print(f"--- log of {self.name}\n{self.log()}")
            self._kill()
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(self._limit)
        except subprocess.TimeoutExpired:
            status = "none: it has not ended"
        log = self.log()
        self._kill()
        errors = [line for line in log.splitlines() if " ERROR " in line]
        if status != 0 or errors:
            raise AssertionError(f"{self.name} ended with {status}, and its log is\n{log}")

    def log(self):
        """Returns what the example has printed so far."""
        with open(self._log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def environment(self):
        """Returns the environment of the example's programs: `kirin` is the built one."""
        programs = os.path.join(self._scratch, "bin")
        if not os.path.exists(programs):
            os.mkdir(programs)
            kirin = os.environ.get("KIRIN_BINARY") or f"{ROOT}/target/debug/kirin"
            os.symlink(os.path.realpath(kirin), os.path.join(programs, "kirin"))
            os.mkdir(os.path.join(self._scratch, "admin"), 0o700)
        # Debian's packages are for Debian's own interpreters, which need not be the first in PATH.
        path = f"{programs}:/usr/bin:/usr/sbin:{os.environ.get('PATH', os.defpath)}"
        return {
            **os.environ,
            "PATH": path,
            "KIRIN_SOURCE": ROOT,
            "KIRIN_ADMIN_DIRECTORY": os.path.join(self._scratch, "admin"),
        }

    def run(self, *command):
        """Runs a command in the folder of the example, and returns what it prints."""
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self._limit,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def status(self):
        """Returns what `kirin status --json` says, once it does: a port is open before that."""
        command = ("kirin", "status", "--config", "kirin.toml", "--json")
        return json.loads(self.wait_for(lambda: self._output(command), "kirin status fails"))

    def _output(self, command):
        """Returns what a command prints, or nothing if it fails."""
        try:
            return self.run(*command)
        except AssertionError:
            return ""

    def get(self, path, **headers):
        """Sends a GET. A header's name has underscores for hyphens.

        Returns the status, the header fields and the body.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("GET", path, headers=named)

    def request(self, method, path, body=None, headers=None):
        """Sends a request. Returns the status, the header fields and the body, as bytes."""
        connection = http.client.HTTPConnection(*self.address, timeout=self._limit)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def wait_for(self, condition, what):
        """Waits until `condition()` is true, and returns what it gave."""
        end = time.monotonic() + self._limit
        while not (value := condition()):
            if self._process.poll() is not None:
                raise AssertionError(f"{self.name} has ended:\n{self.log()}")
            if time.monotonic() > end:
                raise AssertionError(f"{what}:\n{self.log()}")
            time.sleep(0.05)
        return value

    def _prepare(self):
        if os.path.exists(os.path.join(self.directory, "prepare")):
            self.run("./prepare")

    def _start(self):
        own = os.path.exists(os.path.join(self.directory, "serve"))
        command = ["./serve"] if own else ["kirin", "serve", "--config", "kirin.toml"]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _serves(self):
        try:
            return self.get("/")[0] < 500
        except OSError:
            return False

    def _kill(self):
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)
