"""HTTP/3 made by hand, for what a library refuses to send: frames, field sections, settings, and
frames of QUIC."""
from aioquic.buffer import encode_uint_var as varint

# Types of unidirectional streams.
CONTROL, PUSH, ENCODER, DECODER = range(4)
DATA, HEADERS, CANCEL_PUSH, SETTINGS, PUSH_PROMISE, GOAWAY, MAX_PUSH_ID = 0, 1, 3, 4, 5, 7, 13
PRIORITY_UPDATE, PRIORITY_UPDATE_OF_PUSH = 0xF0700, 0xF0701
# A type that nobody may give a meaning (RFC 9114 section 7.2.8).
GREASE = 0x1F * 1000 + 0x21
# The longest length that a frame can have.
GIANT = 1 << 60


def frame(kind, payload=b"", length=None):
    """Returns a frame of HTTP/3. `length` can be another one than that of the payload."""
    return varint(kind) + varint(len(payload) if length is None else length) + payload


def long_varint(value):
    """Returns a number in eight bytes, which is allowed for every number."""
    return (value | 3 << 62).to_bytes(8, "big")


def prefixed(first, bits, value):
    """Returns an integer of QPACK behind the high bits of `first` (RFC 7541 section 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    encoded, value = bytearray([first | most]), value - most
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def literal(name, value):
    """Returns a field line with a literal name (RFC 9204 section 4.5.6)."""
    name, value = (text.encode("latin-1") if isinstance(text, str) else text
                   for text in (name, value))
    return prefixed(0x20, 3, len(name)) + name + prefixed(0, 7, len(value)) + value


def section(fields, prefix=b"\0\0"):
    """Returns a field section without references to the dynamic table."""
    return prefix + b"".join(literal(name, value) for name, value in fields)


def settings(*pairs):
    """Returns a SETTINGS frame."""
    return frame(SETTINGS, b"".join(varint(name) + varint(value) for name, value in pairs))


def stream_frame(stream, data, offset=0, fin=False):
    """Returns a STREAM frame of QUIC, with an offset and a length."""
    return (bytes([0x0E | fin]) + varint(stream) + varint(offset) + varint(len(data)) + data)


def read_varint(data, at):
    """Returns a number of `data` and the place behind it."""
    size = 1 << (data[at] >> 6)
    if len(data) < at + size:
        raise IndexError
    value = int.from_bytes(data[at:at + size], "big") & ((1 << (8 * size - 2)) - 1)
    return value, at + size


def frames_of(data):
    """Yields the type and the payload of each complete frame that a stream begins with."""
    at = 0
    while True:
        try:
            kind, start = read_varint(data, at)
            length, start = read_varint(data, start)
        except IndexError:
            return
        if len(data) < start + length:
            return
        at = start + length
        yield kind, data[start:at]
