"""One HTTP request: `receive` and `send` of the application."""
import io

from kirin import file_handed_back, own_response, response_head, trace
from kirin.asgi import scope as scopes
from kirin.asgi.exchange import Exchange
from kirin.connection import ClientGone
from kirin.file_handed_back import FileWrapper
from kirin.framing import (
    CHUNKED,
    EMPTY_LINE,
    FramedResponse,
    ResponseError,
    as_bytes,
    has_no_body,
    head_and_body,
)

# The most bytes of an event with a part of a body that is in a file. A body that is in memory comes
# with one event, which then needs no copy.
FILE_EVENT_BYTES = 256 * 1024

# The most heads that are kept after they have been checked, and the most bytes of each.
KNOWN_HEADS = 500
KNOWN_HEAD_BYTES = 1024

_known_heads = {}


class Http(Exchange, FramedResponse):
    """A request and its response."""

    # Whether the front has the complete response, and the connection is free for another request.
    # This may be before the application says that its response ends.
    is_delivered = False

    # Whether the application has said that trailers follow the body, whether the body has ended,
    # and the trailers so far.
    has_trailers = False
    awaits_trailers = False
    trailers = b""

    def __init__(self, connection, environ, body=None):
        """`body` is a file, or None if there is no body."""
        Exchange.__init__(self, connection, environ)
        if environ[b"REQUEST_METHOD"] == b"HEAD":
            self.is_head = True
        self.body = body
        self.unread = int(environ[b"CONTENT_LENGTH"]) if body is not None else 0
        self.is_read = False

    def scope(self, state):
        """Returns the scope."""
        return scopes.of_http(self.environ, state)

    # ------------------------------------------------------------------ from the client

    async def receive(self):
        """Returns the next event: a part of the body, or the end of the request."""
        if self.is_gone or self.is_delivered:
            return {"type": "http.disconnect"}
        if not self.is_read:
            if self.body is None:
                self.is_read = True
                return {"type": "http.request", "body": b"", "more_body": False}
            return self._part_of_body()
        await self.wait()
        return {"type": "http.disconnect"}

    def _part_of_body(self):
        body = self.body
        data = body.read() if type(body) is io.BytesIO else body.read(FILE_EVENT_BYTES)
        self.unread -= len(data)
        if self.unread <= 0 or not data:
            self.is_read = True
            self.close_body()
        return {"type": "http.request", "body": data, "more_body": not self.is_read}

    def close_body(self):
        """Gives the memory or the descriptor of the body back."""
        if self.body is not None:
            self.body.close()
            self.body = None

    # ------------------------------------------------------------------ to the client

    async def send(self, message):
        """Sends what a message of the application says."""
        kind = message["type"]
        if self.is_gone:
            raise ClientGone
        if kind == "http.response.body":
            if self.head is None:
                raise ResponseError("http.response.body comes before http.response.start")
            if self.is_over or self.awaits_trailers:
                raise ResponseError("the response has ended")
            body = message.get("body", b"")
            if type(body) is not bytes:
                body = as_bytes(body)
            if message.get("more_body", False):
                if body:
                    await self._send_part(body)
            elif self.has_trailers:
                await self._send_before_trailers(body)
            elif self.is_sent:
                await self._send_last(body)
            else:
                length = self.length
                if (
                    (length is None or length == len(body))
                    and not self.is_head
                    and not self.worker.is_leaving
                    and not has_no_body(self.status)
                ):
                    self.is_over = True
                    output = head_and_body(self.head, body)
                else:
                    output = self._whole(body)
                await self._deliver(output)
        elif kind == "http.response.start":
            self._start(message)
        elif kind == "http.response.trailers":
            await self._send_trailers(message)
        elif kind == "http.response.early_hint":
            await self._send_early_hint(message["links"])
        elif kind == "http.response.pathsend":
            await self._send_file(message["path"])
        else:
            raise ResponseError(f"{kind!r} is no message for a request")

    def _start(self, message):
        if self.is_sent or self.is_over:
            raise ResponseError("http.response.start comes after the response has begun")
        status, headers = message["status"], tuple(message.get("headers", ()))
        try:
            key = (status, *headers)
            known = _known_heads.get(key)
        except TypeError:
            # A name and its value may be in a list.
            key = known = None
        if known is None:
            headers = [
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in headers
            ]
            known = response_head.head(str(int(status)), headers)
            if known[0] < 200:
                raise ResponseError(f"{known[0]} is no answer to this request")
            if key is not None and len(known[1]) <= KNOWN_HEAD_BYTES:
                if len(_known_heads) >= KNOWN_HEADS:
                    _known_heads.clear()
                _known_heads[key] = known
        self.status, self.head, self.length = known
        self.has_trailers = message.get("trailers", False)
        if self.has_trailers and not self.is_head and not has_no_body(self.status):
            # Trailers follow a body in chunks only (RFC 9112 section 7.1.2).
            self.length = None

    def _whole(self, body):
        """Returns the complete response with a body, in some unusual circumstance."""
        if self.is_head and not body and self.length is None:
            # The application may have left the body out, so nobody knows its length.
            self.is_over = True
            return self.complete_head()
        return self.whole(body)

    async def _send_part(self, data):
        output = self.part(data)
        self.is_sent = True
        if self.framing is CHUNKED or self.left:
            await self.connection.write(output)
        else:
            # The front has all bytes of the Content-Length then, or needs none.
            await self._deliver(output)

    async def _send_before_trailers(self, data):
        if data or not self.is_sent:
            await self._send_part(data)
        self.awaits_trailers = True

    async def _send_trailers(self, message):
        if not self.awaits_trailers or self.is_over:
            raise ResponseError(
                "http.response.trailers comes before the end of the body, or after its own, or"
                " without `trailers` in http.response.start"
            )
        headers = [
            (as_bytes(name).decode("latin-1"), as_bytes(value).decode("latin-1"))
            for name, value in message.get("headers", ())
        ]
        self.trailers += response_head.trailers(headers)
        if not message.get("more_trailers", False):
            await self._deliver(self.end(self.trailers))

    async def _send_last(self, data):
        output = self.part(data) if data else b""
        end = self.end()
        if type(output) is tuple:
            await self._deliver((*output, end))
        else:
            await self._deliver(output + end)

    async def _deliver(self, output):
        """Sends the end of the response. Then the connection is free for another request."""
        if self.is_delivered:
            return
        self.is_sent = self.is_delivered = True
        full = self.connection.write_last(output)
        if full is not None and not await full:
            raise ClientGone

    async def _send_early_hint(self, links):
        if self.is_sent or self.is_over:
            raise ResponseError("http.response.early_hint comes after the response has begun")
        headers = [("Link", as_bytes(link).decode("latin-1")) for link in links]
        _, head, _ = response_head.head("103", headers)
        await self.connection.write(head + EMPTY_LINE)

    # ------------------------------------------------------------------ files

    async def _send_file(self, path):
        """Has the front send a file, or sends it if that is not possible."""
        if self.head is None:
            raise ResponseError("http.response.pathsend comes before http.response.start")
        if self.is_sent or self.is_over:
            raise ResponseError("http.response.pathsend comes after the response has begun")
        with open(path, "rb") as file:
            wrapper = FileWrapper(file)
            value = self._file_field(wrapper)
            if value is not None:
                self.is_over = True
                await self._deliver(
                    b"%bKirin-File: %b\r\nContent-Length: 0\r\n%b"
                    % (self.head, value, self.last_fields())
                )
                return
            if self.length is None:
                self.length = wrapper.remaining_bytes()
            if self.is_head or has_no_body(self.status):
                await self._deliver(self.whole(b""))
                return
            while True:
                # A slow disk must not stop the other requests.
                data = await self.loop.run_in_executor(None, file.read, FILE_EVENT_BYTES)
                if not data or self.is_too_long:
                    break
                await self._send_part(data)
            if self.is_sent:
                await self._send_last(b"")
            else:
                await self._deliver(self.whole(b""))

    def _file_field(self, wrapper):
        if (
            self.environ[b"REQUEST_METHOD"] not in (b"GET", b"HEAD")
            or b"KIRIN_SENDFILE" in self.environ
            or has_no_body(self.status)
        ):
            return None
        return file_handed_back.field_value(wrapper, self.length)

    def last_fields(self):
        """Returns the end of the head."""
        self.says_close = self.worker.is_leaving
        return b"Connection: close\r\n\r\n" if self.says_close else EMPTY_LINE

    # ------------------------------------------------------------------ the end

    def finished(self):
        """Tells the application that the client has the complete response."""
        self.close_body()
        if self.waiters:
            self.wake()

    def gone(self):
        """Tells the application that the client has gone."""
        self.close_body()
        Exchange.gone(self)
        if not self.is_sent and self.is_overdue():
            self.cancel_overdue()

    def returned(self):
        """Ends a response that the application has not ended."""
        if self.is_delivered or self.is_gone:
            return
        if self.is_sent:
            self.log("the application has returned before the end of its response; it is cut")
            self.connection.close()
            return
        self.log("the application has returned without a response")
        self.answer("500 Internal Server Error")

    def failed(self, error):
        """Answers for an application that has raised an exception."""
        trace.log_failure(self.names(), error)
        if self.is_delivered:
            return
        if self.is_sent:
            self.connection.close()
            return
        self.answer("500 Internal Server Error")

    def answer(self, status, headers=()):
        """Sends a response of the worker itself."""
        own, text = own_response.parts(status, self.names().get("HTTP_X_REQUEST_ID"))
        self.status, self.head, _ = response_head.head(status, [*own, *headers])
        self.length = None
        self.is_sent = self.is_delivered = True
        self.connection.write_last(self.whole(text))
