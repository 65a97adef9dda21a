"""How the body of a response is framed, for applications of either kind."""
from kirin import log

# How a body is framed. With SWITCHED the bytes belong to another protocol.
NO_BODY = "no body"
BY_LENGTH = "by length"
CHUNKED = "chunked"
SWITCHED = "switched"

# The end of a head without a further field.
EMPTY_LINE = b"\r\n"

# From this size on, a copy takes longer than a system call that sends several buffers.
LARGE_BYTES = 32 * 1024


class ResponseError(Exception):
    """A mistake of the application in its response."""


def has_no_body(status):
    """Returns whether responses with this status have no body (RFC 9110 section 6.4.1)."""
    return status == 204 or status == 304 or status < 200


def as_bytes(part):
    """Returns a part of a body as bytes, or raises `TypeError`."""
    if isinstance(part, (bytes, bytearray, memoryview)):
        return bytes(part)
    raise TypeError(f"a part of the response body is no bytes, but {type(part).__name__}")


def joined(*buffers):
    """Returns buffers as one, or as a tuple if one of them is so large that it is not copied."""
    return buffers if max(map(len, buffers)) >= LARGE_BYTES else b"".join(buffers)


def head_and_body(head, body):
    """Returns a complete response as `joined` does. `head` has no Content-Length yet."""
    length = len(body)
    if length < LARGE_BYTES:
        # One formatting is faster than a join.
        return b"%bContent-Length: %d\r\n\r\n%b" % (head, length, body)
    return b"%bContent-Length: %d\r\n\r\n" % (head, length), body


class FramedResponse:
    """A response in the making. Nothing here sends it.

    What the methods return is bytes, or a tuple of bytes (`joined`).
    """

    is_head = False

    # The number of the status, the head without framing, and the application's Content-Length.
    status = 0
    head = None
    length = None

    # How the body is framed, once the head is complete, and the bytes that are left of its length.
    framing = None
    left = 0

    # Whether bytes may have been sent, so that no other response can replace this one.
    is_sent = False
    # Whether the application can no longer change anything.
    is_over = False
    # Whether the application has given more bytes than its Content-Length says.
    is_too_long = False

    def last_fields(self):
        """Returns the fields about the future of the worker, and the end of the head."""
        raise NotImplementedError

    def whole(self, body):
        """Returns the complete response with a body."""
        length = self.length
        lines = [self.head]
        if self.is_head or has_no_body(self.status):
            # This is the length that the body of a GET would have. An empty body stands for one
            # that was left out.
            if length is None and body:
                length = len(body)
            if length is not None and self.status != 204:
                lines.append(b"Content-Length: %d\r\n" % length)
            body = b""
        else:
            if length is None:
                length = len(body)
            elif length < len(body):
                self._cut()
                body = body[:length]
            elif length > len(body):
                raise self._too_short(length - len(body))
            lines.append(b"Content-Length: %d\r\n" % length)
        lines.append(self.last_fields())
        self.is_over = True
        return joined(b"".join(lines), body)

    def part(self, data):
        """Returns a part of the body with its framing, behind the head if it is the first part."""
        head = b"" if self.is_sent else self.complete_head()
        framing = self.framing
        if framing is CHUNKED:
            if data:
                return joined(b"%b%x\r\n" % (head, len(data)), data, b"\r\n")
        elif framing is BY_LENGTH:
            if len(data) > self.left:
                self._cut()
                data = data[: self.left]
            self.left -= len(data)
        elif framing is NO_BODY:
            data = b""
        return joined(head, data) if head else data

    def end(self, trailers=b""):
        """Returns what ends the body. Raises `ResponseError` if the body is too short.

        `trailers` is lines. There is no place for them behind a body that is not in chunks.
        """
        if self.framing is BY_LENGTH and self.left:
            raise self._too_short(self.left)
        self.is_over = True
        return b"0\r\n%b\r\n" % trailers if self.framing is CHUNKED else b""

    def complete_head(self):
        """Returns the head with its framing, and decides about the framing."""
        lines = [self.head]
        if self.is_head or has_no_body(self.status):
            self.framing = NO_BODY
            if self.length is not None and self.status != 204:
                lines.append(b"Content-Length: %d\r\n" % self.length)
        elif self.length is not None:
            self.framing, self.left = BY_LENGTH, self.length
            lines.append(b"Content-Length: %d\r\n" % self.length)
        else:
            self.framing = CHUNKED
            lines.append(b"Transfer-Encoding: chunked\r\n")
        lines.append(self.last_fields())
        return b"".join(lines)

    @staticmethod
    def _too_short(missing):
        return ResponseError(
            f"the response body is {missing} bytes shorter than its Content-Length"
        )

    def _cut(self):
        if not self.is_too_long:
            self.is_too_long = True
            log.line(
                f"kirin: worker {log.pid()}: the response body is longer than its Content-Length;"
                " it is cut"
            )
