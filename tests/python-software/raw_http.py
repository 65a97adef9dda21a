"""A client that sends any bytes, and reads the responses that come for them.

    seen = exchange(port, [b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n"], 1)
"""
import re
import socket

from answer import Answer
from waiting import WAIT_SECONDS

# A piece that stands for waiting until a response has come, such as 100 Continue.
WAIT = object()

# The application answers this request. So the client learns whether the connection is open.
LAST = b"GET /echo/last HTTP/1.1\r\nHost: a\r\n\r\n"


class Exchange:
    """The responses on a connection. Those with a status of 1xx count, too."""

    def __init__(self):
        self.answers = []
        # Whether the last response came to its end.
        self.is_complete = True
        # Whether the server still answers on this connection.
        self.is_open = False

    def statuses(self):
        return [answer.status for answer in self.answers]

    def __str__(self):
        state = ("" if self.is_complete else ", cut") + (", open" if self.is_open else ", closed")
        return "\n".join(map(str, self.answers)) + f"\n({len(self.answers)} responses{state})"


def exchange(port, pieces, count):
    """Sends pieces, and reads this number of responses, or fewer if the server closes before."""
    seen = Exchange()
    sent = [piece for piece in pieces if piece is not WAIT]
    methods = re.findall(rb"^([A-Z]+) [^\r\n]* HTTP/1\.[01]\r?$", b"".join(sent), re.MULTILINE)
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as client:
        # Each piece is a packet of its own.
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        responses = _read_responses(client.makefile("rb"), methods, seen)
        try:
            for piece in pieces:
                if piece is WAIT:
                    next(responses, None)
                else:
                    client.sendall(piece)
            while len(seen.answers) < count and next(responses, None):
                pass
            if seen.is_complete:
                client.sendall(LAST)
                last = next(responses, None)
                seen.is_open = last is not None and last.status == 200
                if last is not None:
                    seen.answers.pop()
        except ConnectionError:
            # The server has closed a connection with bytes that it has not read.
            pass
    return seen


def _read_responses(reader, methods, seen):
    """Yields each response when it has come, and ends when the server has closed."""
    methods = iter(methods)
    while seen.is_complete:
        line = reader.readline()
        if not line:
            return
        answer = Answer(int(line.split()[1]), list(_read_fields(reader)), b"")
        seen.answers.append(answer)
        if answer.status >= 200 and next(methods, b"GET") != b"HEAD":
            _read_body(reader, answer, seen)
        yield answer


def _read_fields(reader):
    while True:
        line = reader.readline().decode("latin-1").rstrip("\r\n")
        if not line:
            return
        name, _, value = line.partition(":")
        yield name, value.strip()


def _read_body(reader, answer, seen):
    length = answer.field("content-length")
    if answer.status in (204, 304):
        return
    if answer.field("transfer-encoding") == "chunked":
        seen.is_complete = False
        while True:
            size = int(reader.readline().split(b";")[0] or b"-1", 16)
            if size < 0:
                return
            part = reader.read(size)
            answer.body += part
            if len(part) < size or reader.readline() != b"\r\n":
                return
            if size == 0:
                seen.is_complete = True
                return
    elif length is not None:
        answer.body = reader.read(int(length))
        seen.is_complete = len(answer.body) == int(length)
    else:
        answer.body = reader.read()
