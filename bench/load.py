"""The loads of comparisons: requests for every server, and the numbers of a load generator.

`HttpLoad` is wrk, `MemcachedLoad` is kirin-memload. Both are closed loops with a fixed number of
connections.
"""

from __future__ import annotations

import gzip
import http.client
import socket
import ssl
import subprocess
from dataclasses import dataclass
from typing import Protocol

from host import BenchError, Host, Server

GRACE_SECONDS = 30.0
"""The time that a load generator may take longer than asked. After it the run has failed."""


STARVED = 0.25
"""The least share of the kept connections that must be served on average. With less the run has
failed.
"""


@dataclass(frozen=True)
class Outcome:
    """The numbers of one run of a load generator."""

    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    failure: str = ""
    """The reason why the numbers must not be used, or an empty string."""


class Load(Protocol):
    """A load that a server can get for some seconds."""

    @property
    def title(self) -> str:
        ...

    def prepare(self, host: Host, server: Server) -> int:
        """Checks that the server answers correctly. Returns the size of its answer in bytes."""
        ...

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        ...


# wrk loads this once. It defines no `response`, and `request` only for WRK_PAGES, because they run
# for every request.
WRK_SCRIPT = """
{setup}
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format("outcome %d %d %f %f %f %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency.mean, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
"""

# Requests the pages in turn. All requests are made before the first one is sent.
WRK_PAGES = """
local requests, turn = {{}}, 0
init = function()
  for page = 1, {pages} do requests[page] = wrk.format("GET", ("{path}"):format(page % 100, page)) end
end
request = function()
  turn = turn % {pages} + 1
  return requests[turn]
end
"""

WRK_FORM = """
wrk.method = "POST"
wrk.body = "{form}"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
"""


@dataclass(frozen=True)
class HttpLoad:
    """A load that repeats one request on each of the connections."""

    title: str
    expect: bytes
    """The body of a correct response."""

    path: str = "/"
    connections: int = 64
    threads: int = 1
    keep_alive: bool = True
    form: str = ""
    """A urlencoded form to POST, or empty for a GET."""

    tls: bool = False
    cookie: str = ""
    """The cookie of a visitor on a second visit."""

    accept_encoding: str = ""
    """The content coding. Only gzip can be checked. Empty for a client without `Accept-Encoding`.
    """

    pages: int = 0
    """The number of pages that are requested in turn. 0 for `path` only."""

    pages_path: str = ""
    """The paths of the pages: a format of `page % 100` and `page`, from 1 on. `path` is one of them."""

    def prepare(self, host: Host, server: Server) -> int:
        connection = (
            http.client.HTTPSConnection("127.0.0.1", server.port, timeout=10, context=trusting())
            if self.tls
            else http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if self.form else {}
        # By itself http.client would ask for identity.
        headers["Accept-Encoding"] = self.accept_encoding
        if self.cookie:
            headers["Cookie"] = self.cookie
        if not self.keep_alive:
            headers["Connection"] = "close"
        try:
            connection.request("POST" if self.form else "GET", self.path, self.form or None, headers)
            response = connection.getresponse()
            body = response.read()
            if response.getheader("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            elif self.accept_encoding and not server.canned_body:
                raise BenchError(f"{self.path} is not compressed")
        finally:
            connection.close()
        if response.status != 200 or (server.canned_body or self.expect) != body:
            raise BenchError(f"wrong answer to {self.path}: {response.status} {body[:60]!r}")
        self._request_all_pages(server)
        return self._response_bytes(server)

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        script = host.directory / "wrk.lua"
        script.write_text(WRK_SCRIPT.format(setup=self.setup(server)))
        more = [] if self.keep_alive else ["-H", "Connection: close"]
        if self.cookie:
            more += ["-H", f"Cookie: {self.cookie}"]
        if self.accept_encoding:
            more += ["-H", f"Accept-Encoding: {self.accept_encoding}"]
        output = run_generator(
            host.load_command(
                "wrk", "-t", str(self.threads), "-c", str(self.connections), "-d", f"{seconds:.0f}s",
                "-s", script, *more, f"http{'s' * self.tls}://127.0.0.1:{server.port}{self.path}",
            ),
            seconds,
        )  # fmt: skip
        line = next((line for line in output.splitlines() if line.startswith("outcome ")), None)
        if line is None:
            raise BenchError(f"wrk said nothing:\n{output}")
        requests, duration_us, mean_us, p50_us, p99_us, *errors = map(float, line.split()[1:])
        names = ("connect", "read", "write", "non-2xx", "timeout")
        failures = [f"{count:.0f} {name}" for name, count in zip(names, errors, strict=True) if count]
        # Little's law. wrk does not notice connections that are never answered: no latency includes
        # them, and its "timeout" counts only responses that came late. (A connection for one
        # request also needs time to be opened, so the law does not hold for those.)
        served = mean_us * requests / duration_us
        if self.keep_alive and served < self.connections * STARVED and not failures:
            failures.append(f"only {served:.0f} of {self.connections} connections served")
        return Outcome(int(requests), duration_us / 1e6, p50_us, p99_us, ", ".join(failures))

    def setup(self, _server: Server) -> str:
        """Returns the part of wrk's script that is for this load."""
        setup = WRK_FORM.format(form=self.form) if self.form else ""
        if self.pages:
            setup += WRK_PAGES.format(pages=self.pages, path=self.pages_path)
        return setup

    def _request_all_pages(self, server: Server) -> None:
        """Requests each page once, so that a slow machine too begins with a filled cache."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for number in range(1, self.pages + 1):
            connection.request("GET", self.pages_path % (number % 100, number))
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise BenchError(f"page {number}: {response.status}")
        connection.close()

    def _response_bytes(self, server: Server) -> int:
        """Returns the size of the complete response: head, framing and body."""
        head = [f"{'POST' if self.form else 'GET'} {self.path} HTTP/1.1", "Host: 127.0.0.1"]
        if self.form:
            head += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(self.form)}"]
        if not self.keep_alive:
            head.append("Connection: close")
        if self.cookie:
            head.append(f"Cookie: {self.cookie}")
        if self.accept_encoding:
            head.append(f"Accept-Encoding: {self.accept_encoding}")
        received = 0
        plain = socket.create_connection(("127.0.0.1", server.port))
        with trusting().wrap_socket(plain) if self.tls else plain as connection:
            connection.sendall(("\r\n".join(head) + "\r\n\r\n" + self.form).encode())
            connection.settimeout(0.3)  # A kept connection is silent afterwards.
            try:
                while chunk := connection.recv(65536):
                    received += len(chunk)
            except TimeoutError:
                pass
        return received


@dataclass(frozen=True)
class MemcachedLoad:
    """A load of gets and sets over the memcached protocol. `store` of the server is the address."""

    title: str
    value_bytes: int = 100
    keys: int = 10_000
    depth: int = 1
    set_percent: int = 0
    keys_per_get: int = 1
    connections: int = 64

    def prepare(self, host: Host, server: Server) -> int:
        run_generator([str(part) for part in self._command(host, server, "--fill")], 10)
        return self.keys_per_get * self.value_bytes

    def run(self, host: Host, server: Server, seconds: float) -> Outcome:
        output = run_generator(host.load_command(*self._command(host, server, "--seconds", f"{seconds}")), seconds)
        values = {name: float(value) for name, value in (line.split() for line in output.splitlines())}
        misses = int(values["misses"])
        return Outcome(
            int(values["commands"]),
            values["seconds"],
            values["p50_us"],
            values["p99_us"],
            f"{misses} misses" if misses else "",
        )

    def _command(self, host: Host, server: Server, *more: str) -> list[str]:
        return [
            str(host.tool("kirin-memload")), server.store, *more,
            "--connections", str(self.connections), "--keys", str(self.keys), "--value", str(self.value_bytes),
            "--depth", str(self.depth), "--sets", str(self.set_percent), "--keys-per-get", str(self.keys_per_get),
        ]  # fmt: skip


def trusting() -> ssl.SSLContext:
    """Returns a TLS context that accepts the certificates of the benchmark."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def run_generator(command: list[str], seconds: float) -> str:
    """Runs a load generator to its end. Returns its output."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + GRACE_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise BenchError(f"{command[0]} is not installed; README.md lists the Debian packages") from error
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{' '.join(command)} did not end") from error
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)} failed:\n{done.stderr}{done.stdout}")
    return done.stdout
