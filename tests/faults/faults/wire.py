"""An HTTP/1.1 client that takes nothing for granted: it tells a whole answer from a part of one."""
import re
import socket

# How long any single answer may take. The limits of the configuration are far below it.
PATIENCE = 30.0
MOST_HEAD = 64 * 1024


class Broken(Exception):
    """The connection has ended before the answer was whole. That is allowed while faults happen."""


class WrongFraming(Exception):
    """What came is no HTTP. That is never allowed."""


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


class Connection:
    """A kept connection to the program."""

    def __init__(self, address):
        self.buffer = b""
        try:
            self.socket = socket.create_connection(address, PATIENCE)
        except OSError as error:
            raise Broken(str(error)) from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        """Ends the connection."""
        self.socket.close()

    def send(self, data):
        """Sends bytes."""
        try:
            self.socket.sendall(data)
        except TimeoutError as error:
            raise WrongFraming("the program takes no bytes") from error
        except OSError as error:
            raise Broken(str(error)) from error

    def _more(self):
        try:
            data = self.socket.recv(256 * 1024)
        except TimeoutError as error:
            raise WrongFraming(f"no byte of an answer in {PATIENCE} s") from error
        except OSError as error:
            raise Broken(str(error)) from error
        if not data:
            raise Broken("the end")
        self.buffer += data

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def _line(self):
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > MOST_HEAD:
                raise WrongFraming("a line without an end")
            self._more()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def answer(self, method="GET"):
        """Reads one answer."""
        line = self._line()
        match = re.fullmatch(rb"HTTP/1\.1 ([1-5]\d\d) [^\r\n]*", line)
        if not match:
            raise WrongFraming(f"a status line {line[:200]!r}")
        status = int(match[1])
        fields = []
        while line := self._line():
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
        if method == "HEAD" or answer.status in (204, 304):
            return b""
        length, coding = answer.field("content-length"), answer.field("transfer-encoding")
        if coding == "chunked":
            if length is not None:
                raise WrongFraming("a length and chunks")
            return self._chunks()
        if length is None:
            raise WrongFraming(f"no end of a body, status {answer.status}")
        return self._take(int(length))

    def _chunks(self):
        body = b""
        while True:
            line = self._line()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
                raise WrongFraming(f"a chunk {line[:200]!r}")
            length = int(line, 16)
            if length == 0:
                while self._line():
                    pass
                return body
            body += self._take(length)
            if self._take(2) != b"\r\n":
                raise WrongFraming("a chunk without an end")

    def get(self, target, fields=""):
        """Sends a GET and reads the answer."""
        self.send(f"GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())
        return self.answer()

    def head(self, target):
        """Sends a HEAD and reads the answer."""
        self.send(f"HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return self.answer("HEAD")
