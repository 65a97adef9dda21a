"""A connection of HTTP/3 that sends what it is told, and notes what the server did."""
from urllib.parse import urlsplit

import pylsqpack
from aioquic.h3.connection import ErrorCode
from aioquic.quic import events
from aioquic.quic.packet import QuicErrorCode

import raw_h3 as h3
from quic_link import LIMIT, Link


def code_name(code, kind="application"):
    """Returns the number of an error code, and its name if it has one."""
    try:
        return f"{code:#x} {(QuicErrorCode if kind == 'transport' else ErrorCode)(code).name}"
    except ValueError:
        return f"{code:#x}"


class RawStream:
    """A stream as far as the server has sent it."""

    def __init__(self):
        self.data, self.is_complete, self.reset, self.stopped = bytearray(), False, None, None

    @property
    def has_ended(self):
        """Whether nothing more can arrive."""
        return self.is_complete or self.reset is not None

    @property
    def status(self):
        """The status of the response, or None. The server must not use a dynamic table."""
        for kind, payload in h3.frames_of(bytes(self.data)):
            if kind == h3.HEADERS:
                _, fields = pylsqpack.Decoder(0, 0).feed_header(0, payload)
                status = int(dict(fields)[b":status"])
                if status >= 200:
                    return status
        return None

    @property
    def body_length(self):
        """The number of bytes in complete DATA frames."""
        frames = h3.frames_of(bytes(self.data))
        return sum(len(payload) for kind, payload in frames if kind == h3.DATA)

    def __str__(self):
        parts = [f"status {self.status}"] if self.status else []
        parts += ["complete"] if self.is_complete else []
        parts += [f"reset {code_name(self.reset)}"] if self.reset is not None else []
        parts += [f"stopped {code_name(self.stopped)}"] if self.stopped is not None else []
        return ", ".join(parts) or "nothing"


class RawConnection:
    """A connection with a control stream and two QPACK streams, unless they are not wanted."""

    def __init__(self, url, control=h3.settings(), qpack=True, **options):
        self.authority = urlsplit(url).netloc
        self.link = Link(url, **options)
        self.link.on_event = self.take
        self.streams = {}
        self.link.start().wait_until_connected()
        self.control = self.encoder = self.decoder = None
        if control is not None:
            self.control = self.open(h3.CONTROL, control)
        if qpack:
            self.encoder, self.decoder = self.open(h3.ENCODER), self.open(h3.DECODER)

    def take(self, event):
        """Takes an event of the connection."""
        if isinstance(event, events.StreamDataReceived):
            stream = self.stream(event.stream_id)
            stream.data += event.data
            stream.is_complete |= event.end_stream
        elif isinstance(event, events.StreamReset):
            self.stream(event.stream_id).reset = event.error_code
        elif isinstance(event, events.StopSendingReceived):
            self.stream(event.stream_id).stopped = event.error_code

    def stream(self, number):
        """Returns a stream by its number."""
        return self.streams.setdefault(number, RawStream())

    def send(self, stream, data=b"", fin=False):
        """Sends bytes on a stream that exists or is the next one of its kind."""
        self.link.quic.send_stream_data(stream, data, fin)
        self.link.transmit()
        return stream

    def open(self, kind=None, data=b"", fin=False):
        """Opens a unidirectional stream of a type, and returns its number."""
        number = self.link.quic.get_next_available_stream_id(is_unidirectional=True)
        return self.send(number, (b"" if kind is None else h3.varint(kind)) + data, fin)

    def new_request(self, data=b"", fin=False):
        """Opens a bidirectional stream with these bytes, and returns its number."""
        return self.send(self.link.quic.get_next_available_stream_id(), data, fin)

    def fields(self, method="GET", path="/hello.txt", *more):
        """Returns the fields of a request."""
        return [(":method", method), (":scheme", "https"), (":authority", self.authority),
                (":path", path), *more]

    def head(self, *arguments):
        """Returns the HEADERS frame of a request."""
        return h3.frame(h3.HEADERS, h3.section(self.fields(*arguments)))

    def get(self, path="/hello.txt", *fields):
        """Begins a GET, and returns its stream."""
        return self.new_request(self.head("GET", path, *fields), fin=True)

    def may_open(self, count=1):
        """Returns whether the server allows so many more requests."""
        quic = self.link.quic
        next_number = quic.get_next_available_stream_id() // 4
        return next_number + count <= quic._remote_max_streams_bidi

    def wait(self, condition, limit=None):
        """Goes on until a condition is met, the connection has ended or the time is over."""
        self.link.transmit()
        end = self.link.now() + (LIMIT if limit is None else limit)
        while not condition() and self.link.closed is None and self.link.now() < end:
            self.link.step(max(0, min(1, end - self.link.now())))
        return condition()

    def probe(self):
        """Returns whether the connection still serves: a GET that is answered by 200."""
        if self.link.closed is not None or not self.may_open():
            return False
        stream = self.stream(self.get())
        self.wait(lambda: stream.has_ended)
        return stream.status == 200 and stream.is_complete

    def react(self, stream=None):
        """Waits until the server has done something: it has ended the connection or the stream, or
        answers requests that were sent later."""
        if stream is not None:
            self.wait(lambda: self.stream(stream).has_ended, 2)
        # A request can overtake what another stream has.
        serves = self.probe() and self.probe()
        self.link.settle(0.1)
        return Outcome(self, stream, serves and self.link.closed is None)


class Outcome:
    """What a server did about an attack."""

    def __init__(self, connection, stream=None, serves=False, note=""):
        self.closed, self.serves, self.note = connection.link.closed, serves, note
        self.stream = None if stream is None else connection.stream(stream)
        self.status = self.stream and self.stream.status

    def __str__(self):
        parts = [self.note] if self.note else []
        if self.stream is not None:
            parts.append(f"stream: {self.stream}")
        if self.closed is not None:
            kind, code = self.closed["kind"], self.closed["code"]
            name = "" if code is None else code_name(code, kind or "transport")
            by = "" if self.closed["by"] == "server" else " by the client"
            parts.append(f"closed{by}: {kind} {name} {self.closed['reason']!r}")
        else:
            parts.append("serves" if self.serves else "open")
        return "; ".join(parts)
