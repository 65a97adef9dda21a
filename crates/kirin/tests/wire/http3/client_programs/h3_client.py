"""An HTTP/3 client that a test drives, by the package aioquic.

It reads commands from its standard input, one JSON object a line, and answers each with a JSON
object on a line: {"error": TEXT} if it failed. It ends with its input. The member "do" names the
command; `Commands` has a method for each.

    h3_client.py                    commands
    h3_client.py get URL PATH...    GETs on one connection at once, one line of JSON each
"""
import contextlib
import hashlib
import json
import select
import sys
from urllib.parse import urlsplit

from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events

import raw_h3
from quic_link import LIMIT, Failure, Link, new_socket
from websocket import check_echoes

# Bytes of each DATA frame of a request.
PIECE = 64 * 1024
# Bytes of a response's body that are kept as text.
TEXT = 64 * 1024


def text_fields(fields):
    """Returns fields as lists of two strings."""
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in fields]


class Response:
    """A response as far as it has arrived."""

    def __init__(self):
        self.informational, self.status, self.fields, self.trailers = [], None, [], None
        self.length, self.hash, self.start = 0, hashlib.sha256(), bytearray()
        self.is_complete, self.reset, self.stopped = False, None, None
        # Takes the body, if it is not None.
        self.sink = None
        # Keeps the body for the summary, if it is not None.
        self.whole = None

    @property
    def has_ended(self):
        """Whether nothing more can arrive."""
        return self.is_complete or self.reset is not None

    def take_fields(self, fields):
        """Takes a header section or a trailer section."""
        status = dict(fields).get(":status")
        if self.status is not None:
            self.trailers = fields
        elif status is None:
            raise Failure(f"a response without a status: {fields}")
        elif status.startswith("1"):
            self.informational.append([int(status), fields[1:]])
        else:
            self.status, self.fields = int(status), fields[1:]

    def take_body(self, data):
        """Takes a part of the body."""
        self.length += len(data)
        self.hash.update(data)
        self.start += data[:TEXT - len(self.start)]
        for place in (self.sink, self.whole):
            if place is not None:
                place += data

    def summary(self):
        """Returns the response as a dictionary."""
        return {
            "informational": self.informational, "status": self.status, "fields": self.fields,
            "trailers": self.trailers, "length": self.length, "sha256": self.hash.hexdigest(),
            "text": self.start.decode("latin-1"), "complete": self.is_complete,
            "reset": self.reset, "stopped": self.stopped,
            "body": None if self.whole is None else self.whole.hex(),
        }


class HeadConnection(H3Connection):
    """A connection that knows of HEAD: a response to it has no body, whatever its length says."""

    def __init__(self, quic):
        super().__init__(quic)
        self.of_head = set()

    def _check_content_length(self, stream):
        if stream.stream_id not in self.of_head:
            super()._check_content_length(stream)


class Client:
    """A connection of HTTP/3."""

    def __init__(self, url, **options):
        self.url = urlsplit(url)
        self.link = Link(url, **options)
        self.link.on_event = self.take
        self.h3 = HeadConnection(self.link.quic)
        self.responses = {}
        # What the server has sent on its unidirectional streams.
        self.of_server = {}

    @property
    def goaways(self):
        """The numbers of the GOAWAY frames that have come. The library passes over them."""
        controls = [data[1:] for data in self.of_server.values() if data[:1] == b"\0"]
        return [raw_h3.read_varint(payload, 0)[0] for data in controls
                for kind, payload in raw_h3.frames_of(bytes(data)) if kind == raw_h3.GOAWAY]

    def take(self, event):
        """Takes an event of the connection."""
        if isinstance(event, events.StreamDataReceived) and event.stream_id % 4 == 3:
            self.of_server.setdefault(event.stream_id, bytearray()).extend(event.data)
        if isinstance(event, events.StreamReset) and event.stream_id in self.responses:
            self.responses[event.stream_id].reset = event.error_code
        if isinstance(event, events.StopSendingReceived) and event.stream_id in self.responses:
            self.responses[event.stream_id].stopped = event.error_code
        for happened in self.h3.handle_event(event):
            response = self.responses.get(happened.stream_id)
            if response is None:
                continue
            if isinstance(happened, HeadersReceived):
                response.take_fields(text_fields(happened.headers))
            elif isinstance(happened, DataReceived):
                response.take_body(happened.data)
            response.is_complete |= happened.stream_ended

    def begin(self, method="GET", path="/", fields=(), pseudo=(), end=True, unread=False):
        """Sends the head of a request, and returns its stream."""
        stream = self.link.quic.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", self.url.netloc),
                (":path", path), *pseudo, *fields]
        # A name that is given with the value None is left out.
        given = {name: value for name, value in pseudo}
        head = [(name, value) for name, value in head if given.get(name, value) == value]
        head = [(name.encode(), value.encode("latin-1")) for name, value in head
                if value is not None]
        if unread:
            self.link.quic.unread.add(stream)
        if method == "HEAD":
            self.h3.of_head.add(stream)
        self.responses[stream] = Response()
        self.h3.send_headers(stream, head, end_stream=end)
        return stream

    def send(self, stream, data, end):
        """Sends a part of a body."""
        for at in range(0, len(data), PIECE):
            piece = data[at:at + PIECE]
            self.h3.send_data(stream, piece, end_stream=end and at + PIECE >= len(data))
        if not data:
            self.h3.send_data(stream, b"", end_stream=end)
        self.link.transmit()

    def wait_for_ends(self, streams):
        """Goes on until the responses of these streams have ended."""
        responses = [self.responses[stream] for stream in streams]
        self.link.wait("responses", lambda: all(response.has_ended for response in responses))
        return responses


def body_of(command):
    """Returns the body that a command describes by `text`, `hex`, `file`, or `size`."""
    if "text" in command:
        return command["text"].encode()
    if "hex" in command:
        return bytes.fromhex(command["hex"])
    if "file" in command:
        with open(command["file"], "rb") as file:
            return file.read()
    # Each size has its own bytes, and every place differs.
    return hashlib.shake_128(b"body").digest(command.get("size", 0))


class Commands:
    """The commands. Each takes the members of its JSON object."""

    def __init__(self):
        self.client, self.tickets, self.tokens = None, [], []

    def connect(self, command):
        """Connects to `url`. `resume` uses the last ticket, or that with the number `ticket`. `early`
        is a list of requests that are sent before the handshake. `options` are of aioquic's QuicConfiguration. `certificate`
        is a list of two files: the client's chain, and its key."""
        options = dict(command.get("options", {}))
        if command.get("resume"):
            if not self.tickets:
                raise Failure("the server has sent no ticket")
            options["session_ticket"] = self.tickets[command.get("ticket", -1)]
        if command.get("token") and self.tokens:
            options["token"] = self.tokens[-1]
        self.client = Client(command["url"], **options)
        link = self.client.link
        link.tickets, link.tokens = self.tickets, self.tokens
        link.quic._session_ticket_handler = self.tickets.append
        link.quic._token_handler = self.tokens.append
        link.quic.reads_nothing = command.get("reads_nothing", False)
        if command.get("certificate"):
            link.quic.configuration.load_cert_chain(*command["certificate"])
        link.start()
        # The library would keep a second datagram back until the server has answered the first.
        link.is_held = True
        streams = [self.request(request)["stream"] for request in command.get("early", [])]
        link.is_held = False
        link.wait_until_connected()
        shake, certificate = link.handshake, link.quic.tls._peer_certificate
        # A resumed handshake has no certificate.
        serial = str(certificate.serial_number) if certificate else None
        return {"alpn": shake.alpn_protocol, "resumed": shake.session_resumed,
                "retried": link.quic._retry_count > 0,
                "early_accepted": shake.early_data_accepted, "streams": streams,
                "serial": serial}

    def replay(self, _command):
        """Sends the first datagrams of the connection again, as an attacker does that has
        recorded them, until the server takes them for those of a new connection."""
        flight, address = self.client.link.first_flight, self.client.link.address
        end = Link.now() + LIMIT
        while Link.now() < end:
            # An event loop that has the connection knows the copy, and says nothing.
            with contextlib.closing(new_socket(address)) as recorder:
                for datagram in flight:
                    recorder.sendto(datagram, address)
                if select.select([recorder], [], [], 0.2)[0]:
                    return {"datagrams": len(flight)}
        raise Failure("the server answers no copy")

    def half_open(self, command):
        """Begins `count` handshakes with `url`, each from a port of its own, and ends none."""
        self.links = [Link(command["url"]) for _ in range(command["count"])]
        for link in self.links:
            link.start().transmit()
        return {}

    def request(self, command):
        """Sends a request with `method`, `path`, `fields`, `pseudo` and a body. `end` false leaves
        the body open. `trailers` end it. With `whole`, its response has the member `body`, in
        hexadecimal digits."""
        has_body = any(name in command for name in ("text", "hex", "file", "size"))
        trailers, end = command.get("trailers"), command.get("end", True)
        stream = self.client.begin(
            command.get("method", "GET"), command.get("path", "/"), command.get("fields", ()),
            command.get("pseudo", ()), end and not has_body and not trailers,
            command.get("unread", False))
        if command.get("whole"):
            self.client.responses[stream].whole = bytearray()
        reply = {"stream": stream}
        if has_body:
            reply |= self.data(command | {"stream": stream, "end": end and not trailers})
        if trailers:
            fields = [(name.encode(), value.encode("latin-1")) for name, value in trailers]
            self.client.h3.send_headers(stream, fields, end_stream=True)
        self.client.link.transmit()
        return reply

    def part_of_head(self, _command):
        """Sends the first byte of a request, and no more."""
        client = self.client
        stream = client.link.quic.get_next_available_stream_id()
        client.responses[stream] = Response()
        client.link.quic.send_stream_data(stream, b"\x01")
        client.link.transmit()
        return {"stream": stream}

    def data(self, command):
        """Sends a part of the body of `stream`, which `end` ends."""
        body = body_of(command)
        self.client.send(command["stream"], body, command.get("end", False))
        return {"length": len(body), "md5": hashlib.md5(body).hexdigest(),
                "sha256": hashlib.sha256(body).hexdigest()}

    def finish(self, command):
        """Waits for the ends of `streams`, and returns their responses."""
        responses = self.client.wait_for_ends(command["streams"])
        return {"responses": [response.summary() for response in responses]}

    def first_end(self, command):
        """Waits for the first end of `streams`."""
        responses = [self.client.responses[stream] for stream in command["streams"]]
        wanted = lambda: any(response.has_ended for response in responses)
        self.client.link.wait("a response", wanted)
        return {}

    def ask(self, command):
        """Sends a request and returns its response."""
        stream = self.request(command)["stream"]
        return self.client.wait_for_ends([stream])[0].summary()

    def look(self, command):
        """Waits until `stream` has a `head`, `bytes` of its body, or was `stopped`. Returns its
        response."""
        response = self.client.responses[command["stream"]]
        bytes_wanted = command.get("bytes", 0)

        def is_there():
            has_head = response.status is not None or not command.get("head")
            was_stopped = response.stopped is not None or not command.get("stopped")
            return has_head and was_stopped and response.length >= bytes_wanted

        self.client.link.wait(f"{command}", lambda: is_there() or response.has_ended)
        return response.summary()

    def read(self, command):
        """Reads an unread stream from now on."""
        self.client.link.quic.unread.discard(command["stream"])
        self.client.link.transmit()
        return {}

    def reset(self, command):
        """Resets the sending side of a stream (RESET_STREAM), with `code`."""
        code = command.get("code", 0x10c)
        self.client.link.quic.reset_stream(command["stream"], code)
        self.client.link.transmit()
        return {}

    def stop(self, command):
        """Asks the server to stop sending on a stream (STOP_SENDING), with `code`."""
        self.client.link.quic.stop_stream(command["stream"], command.get("code", 0x10c))
        self.client.link.transmit()
        return {}

    def cancel(self, command):
        """Does both, as a client that has lost interest."""
        self.reset(command)
        return self.stop(command)

    def move(self, command):
        """Continues from another local port, with a new connection ID unless `new_id` is false."""
        link = self.client.link
        before = link.socket.getsockname()[1]
        link.move(command.get("new_id", True))
        return {"from": before, "to": link.socket.getsockname()[1]}

    def update_keys(self, _command):
        """Changes the keys of the connection (RFC 9001 section 6)."""
        self.client.link.quic.request_key_update()
        self.client.link.transmit()
        return {}

    def websocket(self, command):
        """Opens a WebSocket at `path`, and sends messages of `sizes` that must come back."""
        return check_echoes(self.client, command)

    def settings(self, _command):
        """Waits for the server's SETTINGS, and returns them."""
        self.client.link.wait("SETTINGS", lambda: self.client.h3.received_settings is not None)
        settings = self.client.h3.received_settings
        return {"settings": {str(number): value for number, value in settings.items()}}

    def goaway(self, command):
        """Waits for `count` GOAWAY frames, and returns their numbers."""
        client = self.client
        client.link.wait("GOAWAY", lambda: len(client.goaways) >= command["count"])
        return {"numbers": client.goaways}

    def ticket(self, command):
        """Waits until the server has sent a ticket for a later session, and with `token` one of
        the address, too."""
        wants_token = command.get("token", False)
        self.client.link.wait("a ticket", lambda: self.tickets and (self.tokens or not wants_token))
        return {"early_bytes": self.tickets[-1].max_early_data_size}

    def run(self, command):
        """Keeps the connection alive for `seconds`, or until it has ended."""
        self.client.link.settle(command["seconds"])
        return self.state(command)

    def wait_closed(self, command):
        """Waits until the server ends the connection, and returns how."""
        self.client.link.settle(command.get("seconds", LIMIT))
        return self.state(command)

    def state(self, _command):
        """Returns how the connection was closed, or null, and what it has sent and received."""
        link = self.client.link
        return {"closed": link.closed, "datagrams": link.datagrams,
                "port": link.socket.getsockname()[1]}

    def close(self, command):
        """Ends the connection with `code`."""
        self.client.link.close(command.get("code", 0x100))
        return {}

    def vanish(self, _command):
        """Ends without a word."""
        self.client.link.vanish()
        return {}


def serve_commands():
    """Reads commands and answers them."""
    commands = Commands()
    for line in sys.stdin:
        command = json.loads(line)
        try:
            reply = getattr(commands, command["do"])(command)
        except Exception as error:
            reply = {"error": f"{command}: {type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)
    with contextlib.suppress(Exception):
        commands.client.link.close()


def get(url, paths):
    """Prints the responses to GETs that are sent at once."""
    client = Client(url)
    client.link.start().wait_until_connected()
    streams = [client.begin("GET", path) for path in paths]
    for path, response in zip(paths, client.wait_for_ends(streams)):
        print(json.dumps({"path": path} | response.summary() | {"text": None}))
    client.link.close()


def main():
    if sys.argv[1:2] == ["get"]:
        get(sys.argv[2], sys.argv[3:])
    else:
        serve_commands()


main()
