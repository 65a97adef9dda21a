"""The frames of WebSocket (RFC 6455), as bytes. Nothing here reads or writes a socket."""
import struct
from typing import NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

# The codes of close frames (RFC 6455 section 7.4.1).
NORMAL = 1000
PROTOCOL_ERROR = 1002
NO_CODE = 1005
ABNORMAL = 1006
INVALID_TEXT = 1007
TOO_LARGE = 1009
INTERNAL_ERROR = 1011
RESTART = 1012

# The most bytes of a message, also after it has been decompressed.
MESSAGE_BYTES = 16 * 1024 * 1024

# The most bytes of the payload of a control frame, and of the reason in a close frame.
CONTROL_BYTES = 125
REASON_BYTES = CONTROL_BYTES - 2

_FINAL, _COMPRESSED, _RESERVED = 0x80, 0x40, 0x30
_MASKED = 0x80

# For a length that says that a longer one follows: where that ends, and the least that it may be.
_LONG_LENGTHS = {126: (4, 126), 127: (10, 65536)}


class FrameError(Exception):
    """Bytes that end the connection, with the code that the other side must get."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Event(NamedTuple):
    """A complete message or control frame: `opcode` is never CONTINUATION.

    The value of TEXT is a str, that of CLOSE a pair of code and reason, and all others are bytes.
    """

    opcode: int
    value: object


class Receiver:
    """Takes the frames of a client apart."""

    def __init__(self, inflate=None, message_bytes=MESSAGE_BYTES):
        """`inflate` decompresses a message. It is None if nothing has been agreed on."""
        self.inflate = inflate
        self._message_bytes = message_bytes
        self._buffer = bytearray()
        # The opcode and the payload of a message whose end has not come.
        self._opcode = None
        self._message = bytearray()
        self._is_compressed = False

    def feed(self, data):
        """Adds bytes that the client has sent."""
        self._buffer += data

    def next(self):
        """Returns the next `Event`, or None if its bytes have not come. Raises `FrameError`."""
        while True:
            frame = self._next_frame()
            if frame is None:
                return None
            is_final, opcode, payload = frame
            if opcode >= CLOSE:
                value = _closing(payload) if opcode == CLOSE else payload
                return Event(opcode, value)
            self._message += payload
            if is_final:
                return self._finish_message()

    def _finish_message(self):
        opcode, self._opcode = self._opcode, None
        data, self._message = bytes(self._message), bytearray()
        if self._is_compressed:
            data = self.inflate(data, self._message_bytes)
        if opcode == TEXT:
            return Event(TEXT, _text(data, "message"))
        return Event(BINARY, data)

    def _next_frame(self):
        """Returns whether the next frame is final, its opcode and its payload, or None."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        first, second = buffer[0], buffer[1]
        opcode = first & 0x0F
        self._check_head(first, second, opcode)
        length, start = second & 0x7F, 2
        if length in _LONG_LENGTHS:
            start, least = _LONG_LENGTHS[length]
            if len(buffer) < start:
                return None
            length = int.from_bytes(buffer[2:start], "big")
            if length < least:
                raise FrameError(PROTOCOL_ERROR, "the length is not in its shortest form")
        if opcode < CLOSE and len(self._message) + length > self._message_bytes:
            raise FrameError(TOO_LARGE, f"a message has more than {self._message_bytes} bytes")
        end = start + 4 + length
        if len(buffer) < end:
            return None
        payload = mask(bytes(buffer[start + 4:end]), bytes(buffer[start:start + 4]))
        del buffer[:end]
        if opcode in (TEXT, BINARY):
            self._opcode, self._is_compressed = opcode, bool(first & _COMPRESSED)
        return first & _FINAL, opcode, payload

    def _check_head(self, first, second, opcode):
        if first & _RESERVED:
            raise FrameError(PROTOCOL_ERROR, "a reserved bit is set")
        if not second & _MASKED:
            raise FrameError(PROTOCOL_ERROR, "the frame has no mask")
        if opcode >= CLOSE:
            if opcode > PONG:
                raise FrameError(PROTOCOL_ERROR, f"the opcode {opcode} is unknown")
            if not first & _FINAL or second & 0x7F > CONTROL_BYTES:
                raise FrameError(PROTOCOL_ERROR, "a control frame is fragmented or too long")
            if first & _COMPRESSED:
                raise FrameError(PROTOCOL_ERROR, "a control frame is compressed")
            return
        if opcode > BINARY:
            raise FrameError(PROTOCOL_ERROR, f"the opcode {opcode} is unknown")
        if (opcode == CONTINUATION) != (self._opcode is not None):
            raise FrameError(PROTOCOL_ERROR, "the fragments of a message are not in order")
        if first & _COMPRESSED and (opcode == CONTINUATION or self.inflate is None):
            raise FrameError(PROTOCOL_ERROR, "a reserved bit is set")


def mask(payload, key):
    """Returns the payload with the mask of four bytes applied, or removed."""
    length = len(payload)
    if not length:
        return payload
    repeated = (key * (length // 4 + 1))[:length]
    masked = int.from_bytes(payload, "little") ^ int.from_bytes(repeated, "little")
    return masked.to_bytes(length, "little")


def frame(opcode, payload, is_compressed=False):
    """Returns a frame of a server, which has a complete message."""
    first = _FINAL | opcode | (_COMPRESSED if is_compressed else 0)
    length = len(payload)
    if length < 126:
        return b"%c%c%b" % (first, length, payload)
    if length < 65536:
        return struct.pack("!BBH", first, 126, length) + payload
    return struct.pack("!BBQ", first, 127, length) + payload


def close_frame(code, reason=""):
    """Returns a close frame. `NO_CODE` leaves the code out."""
    if code == NO_CODE:
        return frame(CLOSE, b"")
    text = reason.encode("utf-8", "replace")[:REASON_BYTES]
    # A character must not be divided.
    text = text.decode("utf-8", "ignore").encode("utf-8")
    return frame(CLOSE, struct.pack("!H", code) + text)


def may_be_sent(code):
    """Returns whether a close frame may have this code (RFC 6455 section 7.4)."""
    return 1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999


def _closing(payload):
    if not payload:
        return NO_CODE, ""
    if len(payload) < 2:
        raise FrameError(PROTOCOL_ERROR, "half a code in a close frame")
    code = int.from_bytes(payload[:2], "big")
    if not may_be_sent(code):
        raise FrameError(PROTOCOL_ERROR, f"a close frame must not have the code {code}")
    return code, _text(payload[2:], "reason")


def _text(data, what):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FrameError(INVALID_TEXT, f"the {what} is not valid UTF-8") from None
