"""An HTTP/1.1 client that takes nothing for granted: it tells a whole answer from a part of one."""
import functools
import re
import socket
import ssl

# How long nothing may move. The limits of the configuration are far below it, or far above.
PATIENCE = 30.0
MOST_HEAD = 64 * 1024


class Broken(Exception):
    """The connection has ended before the answer was whole. That is allowed while faults happen."""


class WrongFraming(Exception):
    """What came is no HTTP or memcached, or nothing moves. That is never allowed."""


class Answer:
    """A whole answer."""

    def __init__(self, status, fields, body):
        self.status = status
        self.fields = fields
        self.body = body

    def is_last(self):
        """Returns whether the connection ends after it."""
        return self.field("connection") == "close"

    def field(self, name):
        """Returns the value of a field, or None."""
        return next((value for known, value in self.fields if known == name), None)


def connected(address):
    """Returns a socket that is connected to an address or a path."""
    if isinstance(address, tuple):
        connection = socket.create_connection(address, PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE)
    connection.connect(address)
    return connection


class Socket:
    """A connected socket, with or without TLS."""

    def __init__(self, address, tls=False, protocols=("http/1.1",)):
        self.buffer = b""
        try:
            self.socket = connected(address)
            if tls:
                self.socket = client_context(tuple(protocols)).wrap_socket(self.socket)
        except OSError as error:
            raise broken(error) from error

    def close(self):
        """Ends the connection."""
        self.socket.close()

    def send(self, data):
        """Sends bytes."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise broken(error) from error

    def receive(self):
        """Returns the next bytes."""
        try:
            data = self.socket.recv(256 * 1024)
        except OSError as error:
            raise broken(error) from error
        if not data:
            raise Broken("the end")
        return data

    def take(self, count):
        """Returns as many bytes."""
        while len(self.buffer) < count:
            self.buffer += self.receive()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def line(self):
        """Returns a line, without its end."""
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > MOST_HEAD:
                raise WrongFraming("a line without an end")
            self.buffer += self.receive()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line


@functools.cache
def client_context(protocols):
    """Returns the settings of TLS. Which server it is does not matter."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context


def broken(error):
    """Returns the exception for an error of a socket."""
    if isinstance(error, TimeoutError):
        return WrongFraming(f"nothing moves for {PATIENCE} s")
    # A connection may end anywhere, but what comes must be the bytes that were sent.
    if isinstance(error, ssl.SSLError) and re.search("MAC|DECRYPT|WRONG_VERSION|UNEXPECTED_MESSAGE", str(error)):
        return WrongFraming(f"TLS: {error}")
    return Broken(str(error))


class Connection(Socket):
    """A kept connection to the program."""

    def answer(self, method="GET"):
        """Reads one answer."""
        line = self.line()
        match = re.fullmatch(rb"HTTP/1\.1 ([1-5]\d\d) [^\r\n]*", line)
        if not match:
            raise WrongFraming(f"a status line {line[:200]!r}")
        status = int(match[1])
        fields = []
        while line := self.line():
            name, colon, value = line.partition(b":")
            if not colon or not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
                raise WrongFraming(f"a field {line[:200]!r}")
            fields.append((name.decode().lower(), value.strip().decode("latin-1")))
        if status == 100:
            return self.answer(method)
        answer = Answer(status, fields, b"")
        answer.body = self._body(answer, method)
        return answer

    def _body(self, answer, method):
        if method == "HEAD" or answer.status in (101, 204, 304):
            return b""
        length, coding = answer.field("content-length"), answer.field("transfer-encoding")
        if coding == "chunked":
            if length is not None:
                raise WrongFraming("a length and chunks")
            return self._chunks()
        if length is None:
            raise WrongFraming(f"no end of a body, status {answer.status}")
        return self.take(int(length))

    def _chunks(self):
        body = b""
        while True:
            line = self.line()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
                raise WrongFraming(f"a chunk {line[:200]!r}")
            length = int(line, 16)
            if length == 0:
                while self.line():
                    pass
                return body
            body += self.take(length)
            if self.take(2) != b"\r\n":
                raise WrongFraming("a chunk without an end")

    def get(self, target, fields=""):
        """Sends a GET and reads the answer."""
        self.send(f"GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())
        return self.answer()

    def head(self, target):
        """Sends a HEAD and reads the answer."""
        self.send(f"HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return self.answer("HEAD")
