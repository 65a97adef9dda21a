"""Talks HTTP/2 to the server at the URL on the command line, by the package h2, and says OK, or what
went wrong. The second argument is a file that the server has as /large.bin."""
import hashlib
import socket
import ssl
import sys
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events

LIMIT = 60


class Response:
    """A response, and the body of the request that is still to be sent."""

    def __init__(self, body, trailers):
        self.status, self.body, self.is_ended = None, bytearray(), False
        self.rest, self.trailers = memoryview(body), trailers


class Client:
    """A connection that the server must speak HTTP/2 on."""

    def __init__(self, url):
        self.url = urlsplit(url)
        self.socket = socket.create_connection((self.url.hostname, self.url.port), LIMIT)
        if self.url.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
            assert self.socket.selected_alpn_protocol() == "h2", "no HTTP/2"
        config = h2.config.H2Configuration(header_encoding="utf-8")
        self.connection = h2.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.responses = {}

    def begin(self, method, path, body=b"", trailers=None):
        """Begins a request, and returns its stream."""
        stream = self.connection.get_next_available_stream_id()
        fields = [
            (":method", method),
            (":scheme", self.url.scheme),
            (":authority", self.url.netloc),
            (":path", path),
        ]
        is_whole = not body and not trailers
        self.connection.send_headers(stream, fields, end_stream=is_whole)
        self.responses[stream] = Response(body, trailers)
        if not is_whole:
            self.send_body(stream)
        return stream

    def send_body(self, stream):
        """Sends as much of a body as the server's windows allow."""
        response = self.responses[stream]
        while response.rest:
            room = self.connection.local_flow_control_window(stream)
            room = min(room, self.connection.max_outbound_frame_size, len(response.rest))
            if room == 0:
                return
            piece, response.rest = response.rest[:room], response.rest[room:]
            is_last = not response.rest and not response.trailers
            self.connection.send_data(stream, bytes(piece), end_stream=is_last)
            if not response.rest and response.trailers:
                self.connection.send_headers(stream, response.trailers, end_stream=True)

    def finish(self, streams):
        """Waits for the responses, and returns them."""
        responses = [self.responses[stream] for stream in streams]
        while not all(response.is_ended for response in responses):
            self.socket.sendall(self.connection.data_to_send())
            received = self.socket.recv(1 << 16)
            assert received, "the connection has ended"
            for event in self.connection.receive_data(received):
                self.take(event)
        self.socket.sendall(self.connection.data_to_send())
        return responses

    def take(self, event):
        """Takes an event of the connection."""
        if isinstance(event, h2.events.ResponseReceived):
            self.responses[event.stream_id].status = dict(event.headers)[":status"]
        elif isinstance(event, h2.events.DataReceived):
            self.responses[event.stream_id].body += event.data
            length = event.flow_controlled_length
            self.connection.acknowledge_received_data(length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.responses[event.stream_id].is_ended = True
        elif isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            for stream, response in self.responses.items():
                if response.rest and not response.is_ended:
                    self.send_body(stream)
        elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
            raise AssertionError(f"{event}")


def main():
    url, name = sys.argv[1:]
    with open(name, "rb") as file:
        large = file.read()
    client = Client(url)

    def ask(*request):
        response = client.finish([client.begin(*request)])[0]
        what = f"{request[:2]}: {response.status} {bytes(response.body[:100])}"
        assert response.status == "200", what
        return bytes(response.body), what

    body, what = ask("GET", "/hello.txt")
    assert body == b"hello\n", what
    body, what = ask("GET", "/large.bin")
    assert body == large, f"{what}: {len(body)} bytes"
    body, what = ask("POST", "/app/body", large)
    assert body.decode() == f"{len(large)} {hashlib.md5(large).hexdigest()}", what
    body, what = ask("POST", "/app/body", b"12345", [("x-a", "trailer")])
    assert body.startswith(b"5 "), what
    paths = {"/hello.txt": b"hello\n", "/app/protocol": b"HTTP/2"}
    expected = list(paths.items()) * 50
    streams = [client.begin("GET", path) for path, _ in expected]
    for (path, want), response in zip(expected, client.finish(streams)):
        what = f"{path}: {response.status} {bytes(response.body[:100])}"
        assert response.status == "200" and response.body == want, what
    print("OK")


main()
