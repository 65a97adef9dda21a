"""The front's side of the protocol, for tests.

It starts kirin-worker with an application and talks to its workers:

    with FakeFront("def app(environ, start_response): …") as front:
        response = front.request(PATH_INFO="/")
"""
import array
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from waiting import WAIT_SECONDS, wait_until

ADAPTER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ADAPTER, "bin", "kirin-worker")

DEFAULTS = {
    "SCGI": "1",
    "REQUEST_METHOD": "GET",
    "REQUEST_URI": "/",
    "SCRIPT_NAME": "",
    "PATH_INFO": "/",
    "QUERY_STRING": "",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "REMOTE_ADDR": "127.0.0.1",
    "REMOTE_PORT": "1",
    "HTTP_HOST": "localhost",
}


def is_alive(pid):
    """Returns whether a process exists and is not only waiting to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# The numbers of recvmsg(2) on x86_64 and aarch64.
RECEIVES = ("47", "212")


def system_call(pid):
    """Returns the number of the system call in which a process waits, or another word."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().split()[0]


def encode(values, body=b""):
    """Returns the bytes of a request."""
    parts = []
    for name, value in values:
        parts += (name, value)
    head = b"".join(
        (part if isinstance(part, bytes) else part.encode("latin-1")) + b"\0" for part in parts
    )
    return b"%d:%b,%b" % (len(head), head, body)


class Cut(Exception):
    """The worker has closed the connection within a response."""


class Response:
    """A response as a front reads it."""

    def __init__(self, status, headers):
        self.status = status
        self.headers = headers
        self.header = {name.lower(): value for name, value in headers}
        self.body = b""
        self.chunks = 0
        self.is_cut = False

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:200]!r}{' cut' * self.is_cut}>"


class FrontConnection:
    """A connection to a worker, as a front opens it."""

    def __init__(self, path):
        self.path = path
        self.connection = None
        self.unread = bytearray()
        self.greeting = None

    def connect(self):
        """Opens a connection. Returns the greeting."""
        self.disconnect()
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(WAIT_SECONDS)
        self.connection.connect(self.path)
        self.unread = bytearray()
        self.greeting = self.read_until(b"\n").decode()
        return self.greeting

    def disconnect(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def send(self, body=b"", descriptor=None, **values):
        """Sends a request with these names and values."""
        if self.connection is None:
            self.connect()
        length = os.fstat(descriptor).st_size if descriptor is not None else len(body)
        pairs = [("CONTENT_LENGTH", str(length)), *{**DEFAULTS, **values}.items()]
        data = encode(pairs, body)
        if descriptor is None:
            self.connection.sendall(data)
            return
        self.connection.sendmsg(
            [data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        )

    def response(self, method="GET"):
        """Reads a response. Raises `Cut` if there is none."""
        status_line, *lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        found = re.fullmatch("HTTP/1.1 ([0-9]{3})(?: .*)?", status_line)
        if not found:
            raise AssertionError(f"status line: {status_line}")
        response = Response(int(found[1]), [tuple(line.split(": ", 1)) for line in lines])
        header = response.header
        if method == "HEAD" or response.status < 200 or response.status in (204, 304):
            return response
        try:
            if header.get("transfer-encoding") == "chunked":
                while True:
                    data = self.read_bytes(int(self.read_until(b"\r\n"), 16) + 2)
                    if len(data) == 2:
                        break
                    response.body += data[:-2]
                    response.chunks += 1
            elif "content-length" in header:
                response.body = self.read_bytes(int(header["content-length"]))
            else:
                raise AssertionError(f"the response has no framing: {response}")
        except Cut:
            response.is_cut = True
            return response
        # A cleanup ends with a line end.
        if self.unread and not ("kirin-cleanup" in header and self.unread == b"\n"):
            raise AssertionError(f"bytes after the response: {bytes(self.unread)!r}")
        return response

    def request(self, **values):
        self.send(**values)
        return self.response(values.get("REQUEST_METHOD", "GET"))

    def get(self, path, **values):
        return self.request(PATH_INFO=path, REQUEST_URI=path, **values)

    def read_until(self, end):
        searched = 0
        while True:
            at = self.unread.find(end, searched)
            if at >= 0:
                part = bytes(self.unread[:at])
                del self.unread[: at + len(end)]
                return part
            searched = max(0, len(self.unread) - len(end))
            self._receive()

    def read_bytes(self, count):
        while len(self.unread) < count:
            self._receive()
        part = bytes(self.unread[:count])
        del self.unread[:count]
        return part

    def is_closed(self):
        """Waits for the end of the connection. Returns False if bytes come before it."""
        try:
            self._receive()
        except Cut:
            return True
        return False

    def _receive(self):
        try:
            data = self.connection.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Cut
        self.unread += data


class FakeFront(FrontConnection):
    """A front with one app parent, and one connection to a worker at a time."""

    def __init__(self, program, *, target="app.py", files=None, stderr=None, python=sys.executable,
                 environment=None, **options):
        """`program` is the text of app.py, `files` are others by their names.

        `stderr` is a descriptor in place of the log file. `options` are those of kirin-worker.
        """
        self.directory = tempfile.mkdtemp(prefix="kirin-python-")
        for name, text in {"app.py": program, **(files or {})}.items():
            path = os.path.join(self.directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        super().__init__(os.path.join(self.directory, "workers"))
        self.log_path = os.path.join(self.directory, "log")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(16)
        self.control, control = os.pipe()
        self.control_text = b""
        arguments = []
        for name, value in options.items():
            arguments += (f"--{name.replace('_', '-')}", str(value))
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            [python, PROGRAM, "--front", str(os.getpid()), *arguments, "--", target],
            stdin=listener,
            stdout=control,
            stderr=log if stderr is None else stderr,
            cwd=self.directory,
            env={**os.environ, **(environment or {})},
        )
        log.close()
        listener.close()
        os.close(control)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.disconnect()
        self.stop()
        os.close(self.control)
        shutil.rmtree(self.directory, ignore_errors=True)

    # ---------------------------------------------------------------- the control channel

    def control_line(self):
        """Returns the next line of the control channel, or None at its end."""
        end = time.monotonic() + WAIT_SECONDS
        while b"\n" not in self.control_text:
            if not select.select([self.control], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no line on the control channel; the log: {self.log()}")
            part = os.read(self.control, 65536)
            if not part:
                return None
            self.control_text += part
        line, _, self.control_text = self.control_text.partition(b"\n")
        return line.decode()

    def has_control_line(self):
        """Returns whether a line is there."""
        return b"\n" in self.control_text or bool(select.select([self.control], [], [], 0)[0])

    def started(self):
        """Returns the process id of the next worker that starts, skipping other lines."""
        while True:
            line = self.control_line()
            if line is None:
                raise AssertionError(f"the parent has ended; the log: {self.log()}")
            found = re.fullmatch("started ([0-9]+)", line)
            if found:
                return int(found[1])

    def ready(self):
        """Waits for `ready` and the first worker with preloading. Returns the worker's id."""
        line = self.control_line()
        if line != "ready":
            raise AssertionError(f"not ready: {line}; the log: {self.log()}")
        return self.started()

    # ---------------------------------------------------------------- the process

    def log(self):
        """Returns what parent and workers have written to STDERR."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self, number):
        os.kill(self.process.pid, number)

    def wait(self):
        """Waits for the parent, and returns its exit status."""
        return self.process.wait(WAIT_SECONDS)

    def stop(self, number=signal.SIGTERM):
        """Ends the parent, and returns its exit status."""
        if self.process.returncode is None:
            self.kill(number)
        return self.wait()
