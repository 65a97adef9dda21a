"""One response of a WSGI application: what `start_response` and `write` do, and how it is sent."""
from kirin import connection as connections
from kirin import file_handed_back, response_head
from kirin.file_handed_back import FileWrapper
from kirin.framing import (
    EMPTY_LINE,
    NO_BODY,
    SWITCHED,
    FramedResponse,
    ResponseError,
    as_bytes,
    has_no_body,
)

# Why a response is not sent. It would be data of the other protocol.
RESPONSE_AFTER_WRITE = "the application has written to kirin.socket, so its response is not sent"


class Response(FramedResponse):
    """A WSGI response in the making. A worker makes one for each request and sets `worker`."""

    worker = None
    has_announced_cleanup = False
    # Whether the client has disconnected.
    is_gone = False

    def start(self, status, headers, exc_info=None):
        """The `start_response` of PEP 3333. Returns `write`."""
        if exc_info:
            try:
                if self.is_sent:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                # Otherwise the frame and the traceback would refer to each other.
                exc_info = None
        elif self.head is not None:
            raise ResponseError("start_response has been called twice, without exc_info")
        if self.is_over:
            raise ResponseError("the response has ended")
        number, head, length = response_head.head(status, headers)
        if number < 200:
            if number != 101 or not self.worker.may_switch:
                raise ResponseError(f"{number} is no answer to this request")
            self._switch(head)
        self.status, self.length, self.head = number, length, head
        return self.write

    def early_hints(self, headers):
        """Sends a 103 response before the final one (`wsgi.early_hints`)."""
        self.informational("103 Early Hints", headers)

    def informational(self, status, headers=()):
        """Sends an informational response before the final one (`kirin.informational`)."""
        if isinstance(status, int):
            status = str(status)
        number, head, _ = response_head.head(status, headers)
        # The front has already sent 100 itself.
        if number == 100:
            return
        # 101 ends HTTP on the connection.
        if not 101 < number < 200:
            raise ValueError(f"not an informational response: {status}")
        worker = self.worker
        if self.is_sent or self.is_over or worker.response is not self or worker.is_forked:
            raise ResponseError("an informational response must come before the final one")
        worker.end_watch()
        # What comes before the final response takes the connection, and so does all that follows.
        worker.take_connection()
        connections.write_all(worker.connection, head + EMPTY_LINE)

    def write(self, data):
        """Sends a part of the body, and the head if this is the first part."""
        if type(data) is not bytes:
            data = as_bytes(data)
        if self.head is None:
            raise ResponseError("the body begins before start_response has been called")
        if self.is_over:
            raise ResponseError("the response has ended")
        if not data:
            return
        self._deliver(self.part(data))

    def send(self, result):
        """Sends the body that an application has returned. Returns the bytes that are left to send.

        Calls `close` of the result in any case. Raises what the application raises.
        """
        close = getattr(result, "close", None)
        try:
            output = self._send(result)
        except BaseException:
            if close is not None:
                self.worker.call_close(close)
            raise
        if close is not None:
            self.worker.call_close(close)
        return output

    def _send(self, result):
        if self.head is None and self.worker.has_written():
            # The application has written its response to kirin.socket.
            self.framing = SWITCHED
            return b""
        if isinstance(result, FileWrapper) and self.head is not None and not self.is_sent:
            output = self._file(result)
            if output is not None:
                return output
        if self.is_head and self.head is not None and not self.is_sent:
            # Nobody needs the body.
            return self.whole(b"")
        if isinstance(result, (list, tuple)) and self.head is not None and not self.is_sent:
            return self.whole(b"".join(result))
        try:
            parts = iter(result)
        except TypeError:
            raise ResponseError(
                f"the application has returned no iterable, but {type(result).__name__}"
            ) from None
        for part in parts:
            if part:
                self.write(part)
                if self.framing is NO_BODY or self.is_too_long:
                    break
        if self.head is None:
            if not self.worker.has_written():
                raise ResponseError("the application has not called start_response")
            self.framing = SWITCHED
            return b""
        if not self.is_sent:
            return self.whole(b"")
        self._finish()
        return b""

    def _file(self, wrapper):
        """Returns the response that hands a file back to the front, or None.

        Otherwise the length of a plain file is known. With it the front can read a small file
        completely and free this worker.
        """
        environ = self.worker.environ
        if has_no_body(self.status):
            return None
        if self.worker.method in ("GET", "HEAD") and "KIRIN_SENDFILE" not in environ:
            value = file_handed_back.field_value(wrapper, self.length)
            if value is not None:
                self.is_over = True
                return b"%bKirin-File: %b\r\nContent-Length: 0\r\n%b" % (
                    self.head,
                    value,
                    self.last_fields(),
                )
        if self.length is None:
            self.length = wrapper.remaining_bytes()
        return None

    def _finish(self):
        """Ends the body."""
        if self.is_gone:
            raise connections.ClientGone
        end = self.end()
        if end:
            self._deliver(end)

    def _switch(self, head):
        """Sends the head of a 101 at once. From then on the application speaks its own protocol."""
        self.framing = SWITCHED
        self._deliver(head + EMPTY_LINE)

    def last_fields(self):
        """Returns the fields about the future of the worker, and the end of the head."""
        worker = self.worker
        lines = b""
        if worker.is_leaving():
            lines = b"Connection: close\r\n"
        if worker.cleanups():
            self.has_announced_cleanup = True
            lines += b"Kirin-Cleanup: 1\r\n"
        return lines + EMPTY_LINE

    def _deliver(self, data):
        # A part of the bytes may be sent even if this fails.
        if not self.is_sent and self.worker.has_written():
            raise ResponseError(RESPONSE_AFTER_WRITE)
        if self.worker.response is not self:
            # A thread has outlived its request.
            raise ResponseError("the response has ended")
        self.worker.take_connection()
        self.is_sent = True
        try:
            connections.write_all(self.worker.connection, data)
        except connections.ClientGone:
            # The application may catch this.
            self.is_gone = True
            raise
