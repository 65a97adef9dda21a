"""An HTTP/2 client for several requests at once, by the library h2."""
import random

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from .wire import Answer, Broken, Socket, WrongFraming

# The codes of a stream that was cut, or was not begun.
CUT = (
    h2.errors.ErrorCodes.NO_ERROR,
    h2.errors.ErrorCodes.INTERNAL_ERROR,
    h2.errors.ErrorCodes.CANCEL,
    h2.errors.ErrorCodes.REFUSED_STREAM,
    # There is no room for the bytes of this client.
    h2.errors.ErrorCodes.ENHANCE_YOUR_CALM,
)


class Http2Connection:
    """A connection on which all requests are sent together, and then all answers are read."""

    def __init__(self, address, tls):
        self.scheme = "https" if tls else "http"
        self.socket = Socket(address, tls, ["h2"])
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self.engine = h2.connection.H2Connection(config)
        self.engine.initiate_connection()
        self._flush()

    def close(self):
        """Ends the connection."""
        self.socket.close()

    def _flush(self):
        self.socket.send(self.engine.data_to_send())

    def exchange(self, requests, choices: random.Random):
        """Sends requests: method, path and body. Returns an answer for each, or None for one that
        was cut."""
        answers, unsent = {}, {}
        for method, path, body in requests:
            stream = self.engine.get_next_available_stream_id()
            fields = [(":method", method), (":path", path), (":scheme", self.scheme), (":authority", "a")]
            if method == "POST":
                fields.append(("content-length", str(len(body))))
                unsent[stream] = body
            self.engine.send_headers(stream, fields, end_stream=method != "POST")
            answers[stream] = Answer(0, [], b"")
        open_streams = set(answers)
        try:
            while open_streams:
                self._send_bodies(unsent, choices)
                for event in self._receive():
                    self._note(event, answers, open_streams, unsent)
        except Broken:
            answers.update(dict.fromkeys(open_streams))
        return list(answers.values())

    def _send_bodies(self, unsent, choices):
        """Sends what the windows allow, in pieces of several streams by turns."""
        has_sent = True
        while has_sent:
            has_sent = False
            for stream in list(unsent):
                window = self.engine.local_flow_control_window(stream)
                piece = choices.choice((1, 5000, 16384))
                size = min(window, self.engine.max_outbound_frame_size, piece)
                if size > 0:
                    has_sent = True
                    data, unsent[stream] = unsent[stream][:size], unsent[stream][size:]
                    self.engine.send_data(stream, data, end_stream=not unsent[stream])
                    if not unsent[stream]:
                        del unsent[stream]
            self._flush()

    def _receive(self):
        data = self.socket.receive()
        try:
            return self.engine.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            # The library takes no frame behind GOAWAY, although streams may still go on.
            if "ConnectionState.CLOSED" in str(error):
                raise Broken("GOAWAY") from error
            raise WrongFraming(f"HTTP/2: {error}") from error

    def _note(self, event, answers, open_streams, unsent):
        if isinstance(event, h2.events.ConnectionTerminated):
            if event.error_code not in (h2.errors.ErrorCodes.NO_ERROR, h2.errors.ErrorCodes.INTERNAL_ERROR):
                raise WrongFraming(f"HTTP/2: GOAWAY {event.error_code!r}")
            raise Broken("GOAWAY")
        stream = getattr(event, "stream_id", None)
        if stream not in answers:
            return
        answer = answers[stream]
        if isinstance(event, h2.events.ResponseReceived):
            fields = [(name, value) for name, value in event.headers]
            answer.status = int(fields[0][1])
            answer.fields = fields[1:]
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            self.engine.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamEnded):
            length = answer.field("content-length")
            if length is not None and int(length) != len(answer.body):
                raise WrongFraming(f"HTTP/2: {len(answer.body)} bytes, and {length} announced")
            open_streams.discard(stream)
            if unsent.pop(stream, None) is not None:
                self.engine.reset_stream(stream)
        elif isinstance(event, h2.events.StreamReset):
            if event.error_code not in CUT:
                raise WrongFraming(f"HTTP/2: RST_STREAM {event.error_code!r}")
            # The answer was cut, and says so.
            if event.error_code != h2.errors.ErrorCodes.NO_ERROR or stream in open_streams:
                answers[stream] = None
            open_streams.discard(stream)
            unsent.pop(stream, None)
