"""The frames that a client of WebSocket sends, right or wrong."""
from kirin.asgi import frames

KEY = b"\x12\x34\x56\x78"


def sent(opcode, payload, first=0x80, key=KEY, length=None):
    """Returns a frame of a client, right or wrong."""
    size = len(payload)
    if length is None:
        length = bytes([0x80 | size]) if size < 126 else (
            b"\xfe" + size.to_bytes(2, "big") if size < 65536
            else b"\xff" + size.to_bytes(8, "big"))
    return bytes([first | opcode]) + length + key + frames.mask(payload, key)
