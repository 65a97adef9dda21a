"""Compressed messages of WebSocket: permessage-deflate (RFC 7692)."""
import zlib

from kirin.asgi.frames import INVALID_TEXT, TOO_LARGE, FrameError

# A window of 4 KiB and little memory for the search: a worker may have thousands of connections.
WINDOW_BITS = 12
MEMORY_LEVEL = 5

# Shorter messages do not become shorter.
SMALLEST_BYTES = 64

# What ends a compressed message, which is not sent (RFC 7692 section 7.2.1).
_TAIL = b"\x00\x00\xff\xff"

_WINDOWS = ("server_max_window_bits", "client_max_window_bits")
_TAKEOVERS = ("server_no_context_takeover", "client_no_context_takeover")


class Deflate:
    """What one connection has agreed on, and its compressor and decompressor."""

    def __init__(self, parameters):
        """`parameters` are those of an offer, as `offered` returns them."""
        self._window = min(parameters.get("server_max_window_bits") or 15, WINDOW_BITS)
        self._client_window = 15
        self.answer = f"permessage-deflate; server_max_window_bits={self._window}"
        if "client_max_window_bits" in parameters:
            self._client_window = min(parameters["client_max_window_bits"] or 15, WINDOW_BITS)
            self.answer += f"; client_max_window_bits={self._client_window}"
        self._forgets = "server_no_context_takeover" in parameters
        self._client_forgets = "client_no_context_takeover" in parameters
        for name in _TAKEOVERS:
            if name in parameters:
                self.answer += f"; {name}"
        self._compressor = self._decompressor = None

    def compress(self, data):
        """Returns the payload of a compressed message."""
        if self._compressor is None or self._forgets:
            self._compressor = zlib.compressobj(
                zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -self._window, MEMORY_LEVEL
            )
        compressed = self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        return compressed[: -len(_TAIL)]

    def decompress(self, data, most_bytes):
        """Returns a message, or raises `FrameError` if it is broken or too large."""
        if self._decompressor is None or self._client_forgets:
            self._decompressor = zlib.decompressobj(-self._client_window)
        try:
            message = self._decompressor.decompress(data + _TAIL, most_bytes + 1)
        except zlib.error:
            raise FrameError(INVALID_TEXT, "the compressed message is broken") from None
        if len(message) > most_bytes or self._decompressor.unconsumed_tail:
            raise FrameError(TOO_LARGE, f"a message has more than {most_bytes} bytes")
        if self._decompressor.eof:
            # The client has ended the stream of blocks. The next message begins a new one.
            self._decompressor = None
        return message


def agreed(field):
    """Returns a `Deflate` for the first offer in `Sec-WebSocket-Extensions` that fits, or None."""
    for offer in field.split(","):
        name, *words = (word.strip() for word in offer.split(";"))
        if name.lower() == "permessage-deflate":
            parameters = _parameters(words)
            if parameters is not None:
                return Deflate(parameters)
    return None


def _parameters(words):
    """Returns the parameters of an offer, or None if they are not valid, or not possible here."""
    parameters = {}
    for word in words:
        name, sign, value = (part.strip() for part in word.partition("="))
        value = value.strip('"')
        if name in parameters:
            return None
        if name in _TAKEOVERS and not sign:
            parameters[name] = True
        elif name in _WINDOWS and value in ("9", "10", "11", "12", "13", "14", "15"):
            # zlib has no window of 8 bits.
            parameters[name] = int(value)
        elif name == "client_max_window_bits" and not sign:
            parameters[name] = None
        else:
            return None
    return parameters
