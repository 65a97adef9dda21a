"""An application behind a server in its own process.

    kirin = Served.by_kirin(directory, "app.py")
    self.addCleanup(kirin.stop)

Each server takes a free port itself, and its log says which.
"""
import os
import re
import shutil
import subprocess
import tempfile

import software
from waiting import WAIT_SECONDS, wait_until

# What must not change the mode of a framework or a server. KIRIN_RING=0 runs without the ring.
NOT_INHERITED = re.compile(
    "(KIRIN(?!_RING$)|DJANGO|FLASK|GUNICORN|UVICORN|WEB_CONCURRENCY|FORWARDED|PYTHON|VIRTUAL_ENV)"
)

ADDRESS = re.compile(r"http://127\.0\.0\.1:([1-9]\d*)")

WORKERS = "2"


class Served:
    def __init__(self, name, command, directory, environment):
        self.name = name
        self.files = tempfile.mkdtemp(prefix=f"{name}-")
        inherited = {k: v for k, v in os.environ.items() if not NOT_INHERITED.match(k)}
        with open(self._log_path(), "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={
                    **inherited,
                    "VIRTUAL_ENV": software.environment(),
                    # Frameworks write sets into responses, such as the methods of Allow.
                    "PYTHONHASHSEED": "0",
                    # Other Kirins of this machine are not found from here.
                    "KIRIN_ADMIN_DIRECTORY": self.files,
                    **environment,
                },
            )
        try:
            self.port = int(wait_until(self._address, f"{name} serves").group(1))
        except BaseException as error:
            log = self.log()
            self.stop()
            raise AssertionError(f"{name} has not started:\n{log}") from error

    @classmethod
    def by_kirin(cls, directory, target, **environment):
        """Starts `kirin serve`."""
        command = [software.kirin(), "serve", target, "--listen", "0", "--workers", WORKERS]
        return cls("kirin", command, directory, environment)

    @classmethod
    def by_kirin_toml(cls, directory, **environment):
        """Starts `kirin serve` with the configuration file of the directory."""
        return cls("kirin", [software.kirin(), "serve"], directory, environment)

    @classmethod
    def by_gunicorn(cls, directory, target, **environment):
        """Starts gunicorn with threads, because its workers without threads keep no connection."""
        command = [
            software.python(), "-m", "gunicorn", "--bind", "127.0.0.1:0", "--no-control-socket",
            "--worker-class", "gthread", "--threads", "4", "--keep-alive", "60", target,
        ]
        return cls("gunicorn", command, directory, environment)

    @classmethod
    def by_uvicorn(cls, directory, target, **environment):
        """Starts uvicorn with the parser and the WebSockets that its users have."""
        command = [
            software.python(), "-m", "uvicorn", "--host", "127.0.0.1", "--port", "0",
            "--http", "httptools", "--ws", "websockets-sansio", "--timeout-keep-alive", "60",
            target,
        ]
        return cls("uvicorn", command, directory, environment)

    def _log_path(self):
        return os.path.join(self.files, "log")

    def _address(self):
        log = self.log()
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} has ended")
        return ADDRESS.search(log)

    def log(self):
        with open(self._log_path(), encoding="utf-8", errors="replace") as file:
            return file.read()

    def has_logged(self, pattern):
        """Waits until the log has this, because a line can be later than the response."""
        return wait_until(lambda: re.search(pattern, self.log()), f"{self.name} logs {pattern}")

    def stop(self):
        """Ends the server, and returns its log. One that does not end by itself is an error."""
        self.process.terminate()
        try:
            self.process.wait(WAIT_SECONDS)
            return self.log()
        finally:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.files)
