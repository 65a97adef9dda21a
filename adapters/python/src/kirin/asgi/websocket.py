"""One WebSocket: `receive` and `send` of the application."""
from collections import deque
from enum import Enum

from kirin import response_head, trace
from kirin.asgi import deflate, frames, handshake
from kirin.asgi import scope as scopes
from kirin.asgi.exchange import Exchange
from kirin.asgi.frames import FrameError, Receiver
from kirin.asgi.http import Http
from kirin.connection import ClientGone
from kirin.framing import ResponseError

# A client that sends nothing gets a ping after so many seconds, and is gone after so many more.
PING_SECONDS = 20.0

# How long the other side may take to answer a close frame.
CLOSING_SECONDS = 5.0

# A client waits while the application has not taken so many messages, or bytes of messages.
QUEUED_MESSAGES = 32
QUEUED_BYTES = 256 * 1024

_DENIAL = {
    "websocket.http.response.start": "http.response.start",
    "websocket.http.response.body": "http.response.body",
}


class _State(Enum):
    CONNECTING = "the application has not answered the handshake"
    DENIED = "the application has answered with an HTTP response"
    OPEN = "messages go both ways"
    CLOSING = "one side has sent a close frame, or has gone"


class WebSocket(Exchange):
    """A WebSocket, from the request for it to its end."""

    def __init__(self, connection, environ):
        super().__init__(connection, environ)
        # Sends the answer if no WebSocket is made.
        self.http = Http(connection, environ)
        self.state = _State.CONNECTING
        self.is_connect_read = False
        self.deflate = None
        self.receiver = Receiver()
        # Messages that the application has not taken yet.
        self.queue = deque()
        self.queued_bytes = 0
        # The code and the reason that the application gets at the end.
        self.code, self.reason = frames.ABNORMAL, ""
        # Whether all that follows from the client is dropped.
        self.is_ended = False
        # Whether the client has sent anything since the last ping.
        self.is_heard = True
        self.timer = None

    def scope(self, state):
        """Returns the scope, or None if the handshake is wrong, which has been answered."""
        refusal = handshake.refusal(self.environ)
        if refusal is None:
            return scopes.of_websocket(self.environ, state)
        self.state = _State.DENIED
        self.http.answer(*refusal)
        return None

    # ------------------------------------------------------------------ from the client

    async def receive(self):
        """Returns the next event."""
        if not self.is_connect_read:
            self.is_connect_read = True
            return {"type": "websocket.connect"}
        while not self.queue:
            if self.state is _State.CLOSING or self.is_gone or self.http.is_delivered:
                return {
                    "type": "websocket.disconnect", "code": self.code, "reason": self.reason
                }
            await self.wait()
        value = self.queue.popleft()
        self.queued_bytes -= len(value)
        if not self.queue:
            self._take_events()
        if isinstance(value, str):
            return {"type": "websocket.receive", "text": value, "bytes": None}
        return {"type": "websocket.receive", "text": None, "bytes": value}

    def data_came(self, data):
        """Takes bytes of the client. No bytes are its end."""
        if not data or self.state in (_State.CONNECTING, _State.DENIED):
            super().data_came(data)
        elif not self.is_ended:
            self.is_heard = True
            self.receiver.feed(data)
            self._take_events()

    def last_data_came(self, data):
        """Takes the last bytes of a client that has gone."""
        self.receiver.feed(data)

    def _take_events(self):
        """Takes events from the bytes that have come, while the queue has room for messages."""
        before = len(self.queue)
        try:
            while not self.is_ended:
                if len(self.queue) >= QUEUED_MESSAGES or self.queued_bytes >= QUEUED_BYTES:
                    self.connection.pause_reading()
                    break
                event = self.receiver.next()
                if event is None:
                    self._read_on()
                    break
                self._take(event)
        except FrameError as error:
            self._close(error.code, error.reason)
            self._end()
        if len(self.queue) > before:
            self.wake()

    def _read_on(self):
        # A client that takes nothing must not make the worker answer its pings.
        if self.connection.unsent is None:
            self.connection.resume_reading()
        else:
            self.connection.pause_reading()

    def _take(self, event):
        opcode, value = event
        if opcode == frames.CLOSE:
            self._close(*value)
            self._end()
        elif self.state is not _State.OPEN:
            # This side has closed.
            return
        elif opcode == frames.PING:
            if not self.is_gone:
                self._write(frames.frame(frames.PONG, value))
        elif opcode != frames.PONG:
            self.queue.append(value)
            self.queued_bytes += len(value)

    def has_room(self):
        """Goes on with reading when the socket has room again."""
        if self.state is not _State.CONNECTING:
            self._take_events()

    # ------------------------------------------------------------------ to the client

    async def send(self, message):
        """Sends what a message of the application says."""
        kind = message["type"]
        if self.is_gone:
            raise ClientGone
        state = self.state
        if kind == "websocket.send" and state is _State.OPEN:
            full = self._write(self._message(message))
            if full is not None and not await full:
                raise ClientGone
        elif kind == "websocket.accept" and state is _State.CONNECTING:
            await self._accept(message)
        elif kind == "websocket.close" and state is _State.CONNECTING:
            self.state = _State.DENIED
            self.http.answer("403 Forbidden")
        elif kind == "websocket.close" and state is _State.OPEN:
            code, reason = message.get("code"), message.get("reason")
            code = frames.NORMAL if code is None else code
            if code != frames.NO_CODE and not frames.may_be_sent(code):
                raise ResponseError(f"{code} is no code for websocket.close")
            self._close(code, reason or "")
        elif kind in _DENIAL and state in (_State.CONNECTING, _State.DENIED):
            self.state = _State.DENIED
            await self.http.send({**message, "type": _DENIAL[kind]})
        elif state is _State.CLOSING and kind in ("websocket.send", "websocket.close"):
            raise ClientGone
        else:
            raise ResponseError(f"{kind!r} is not possible now: {state.value}")

    def _message(self, message):
        """Returns the frame of a message."""
        data, opcode = message.get("bytes"), frames.BINARY
        if data is None:
            text = message.get("text")
            if not isinstance(text, str):
                raise ResponseError("websocket.send has neither bytes nor text")
            data, opcode = text.encode("utf-8"), frames.TEXT
        if self.deflate is not None and len(data) >= deflate.SMALLEST_BYTES:
            return frames.frame(opcode, self.deflate.compress(data), is_compressed=True)
        return frames.frame(opcode, data)

    async def _accept(self, message):
        headers = [
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Accept", handshake.accept_value(self.environ)),
        ]
        subprotocol = message.get("subprotocol")
        if subprotocol is not None:
            headers.append(("Sec-WebSocket-Protocol", subprotocol))
        offer = self.environ.get(b"HTTP_SEC_WEBSOCKET_EXTENSIONS", b"").decode("latin-1")
        self.deflate = deflate.agreed(offer)
        if self.deflate is not None:
            headers.append(("Sec-WebSocket-Extensions", self.deflate.answer))
            self.receiver.inflate = self.deflate.decompress
        for name, value in message.get("headers", ()):
            headers.append((name.decode("latin-1"), value.decode("latin-1")))
        _, head, _ = response_head.head("101", headers)
        self.state = _State.OPEN
        self.timer = self.loop.call_later(PING_SECONDS, self._keep_alive)
        full = self.connection.write_now(head + b"Connection: Upgrade\r\n\r\n")
        if self.worker.is_leaving:
            self.leave()
        if full is not None and not await full:
            raise ClientGone

    def _keep_alive(self):
        """Sends a ping, or ends the connection if the client has not answered the last one."""
        if not self.is_heard and self.connection.is_reading:
            self.connection.lost()
            return
        self.is_heard = False
        self.timer = self.loop.call_later(PING_SECONDS, self._keep_alive)
        if self.connection.unsent is None:
            self._write(frames.frame(frames.PING, b""))

    def _write(self, data):
        try:
            return self.connection.write_now(data)
        except ClientGone:
            if self.is_gone:
                return None
            raise

    def _close(self, code, reason=""):
        """Sends a close frame, and waits for that of the client for a limited time."""
        if self.state is not _State.OPEN:
            return
        self.state = _State.CLOSING
        self.code, self.reason = code, reason
        self._cancel_timer()
        self.timer = self.loop.call_later(CLOSING_SECONDS, self.connection.close)
        self._write(frames.close_frame(code, reason))
        self.wake()
        # The close frame of the client comes behind messages for which the queue had no room.
        if not self.connection.is_closed:
            self.connection.resume_reading()

    def _end(self):
        """Ends the connection as soon as everything is sent."""
        self.is_ended = True
        self.connection.close_when_sent()

    # ------------------------------------------------------------------ the end

    def gone(self):
        """Tells the application that the client has gone."""
        is_connecting = self.state is _State.CONNECTING
        self.is_gone = self.http.is_gone = True
        if self.state is _State.OPEN:
            # The client may have sent messages before it has gone.
            self._take_events()
        self.wake()
        if is_connecting and self.is_overdue():
            self.cancel_overdue()

    def closed(self):
        """Takes note of the end of the connection."""
        self._cancel_timer()

    def _cancel_timer(self):
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def leave(self):
        """Closes the WebSocket because its worker leaves."""
        self._close(frames.RESTART)

    def finished(self):
        """Takes note that an HTTP response has been sent in place of a WebSocket."""
        self.http.finished()
        self.wake()

    def returned(self):
        """Ends a WebSocket that the application has not closed."""
        if self.state is _State.DENIED:
            self.http.returned()
        elif self.state is _State.CONNECTING:
            if not self.is_gone:
                self.log("the application has returned without an answer to the handshake")
                self.state = _State.DENIED
                self.http.answer("500 Internal Server Error")
        else:
            self._close(frames.NORMAL)

    def failed(self, error):
        """Ends a WebSocket whose application has raised an exception."""
        if self.state is _State.DENIED:
            self.http.failed(error)
            return
        if isinstance(error, ClientGone):
            return
        trace.log_failure(self.names(), error)
        if self.state is _State.CONNECTING:
            self.state = _State.DENIED
            self.http.answer("500 Internal Server Error")
        else:
            self._close(frames.INTERNAL_ERROR)
