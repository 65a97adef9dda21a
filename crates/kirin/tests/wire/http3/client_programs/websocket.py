"""WebSocket frames on a stream of HTTP/3 (RFC 9220): a client that checks echoes."""
import hashlib
import os

from quic_link import Failure

BINARY, CLOSE = 2, 8


def masked(payload, mask):
    """Returns a payload with its mask put on, or taken off."""
    key = int.from_bytes((mask * (len(payload) // 4 + 1))[:len(payload)], "big")
    return (int.from_bytes(payload, "big") ^ key).to_bytes(len(payload), "big")


def client_frame(kind, payload):
    """Returns a frame of a client, which masks its payload (RFC 6455 section 5)."""
    size, mask = len(payload), os.urandom(4)
    if size < 126:
        head = bytes([0x80 | kind, 0x80 | size])
    elif size < 1 << 16:
        head = bytes([0x80 | kind, 0x80 | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x80 | kind, 0x80 | 127]) + size.to_bytes(8, "big")
    return head + mask + masked(payload, mask)


def first_frame(received):
    """Takes the first frame out of `received`. Returns its first byte and its payload, or None if
    it is not complete. It may have a mask: some servers send back the bytes as they are."""
    if len(received) < 2:
        return None
    start, size = 2, received[1] & 0x7f
    if size >= 126:
        start = 4 if size == 126 else 10
        size = int.from_bytes(received[2:start], "big")
    mask = b""
    if received[1] & 0x80:
        mask = bytes(received[start:start + 4])
        start += 4
    if len(received) < start + size:
        return None
    payload = bytes(received[start:start + size])
    first = received[0]
    del received[:start + size]
    return first, masked(payload, mask) if mask else payload


def check_echoes(client, command):
    """Opens a WebSocket at `path` and sends messages of `sizes` that must come back. Closes it."""
    pseudo = [(":protocol", command.get("protocol", "websocket"))]
    fields = [("origin", "https://test"), ("sec-websocket-version", "13")]
    stream = client.begin("CONNECT", command["path"], fields, pseudo, end=False)
    response = client.responses[stream]
    response.sink = received = bytearray()
    link = client.link
    link.wait("the head", lambda: response.status is not None or response.has_ended)
    if response.status != 200:
        return {"stream": stream, "status": response.status, "reset": response.reset}
    for size in command.get("sizes", []):
        payload = hashlib.shake_128(size.to_bytes(8, "big")).digest(size)
        client.send(stream, client_frame(BINARY, payload), False)
        whole = bytearray()
        while True:
            found = []

            def arrives():
                frame = first_frame(received)
                found.extend([frame] if frame else [])
                return bool(found) or response.has_ended

            link.wait(f"the echo of {size} bytes", arrives)
            if not found:
                raise Failure(f"the stream has ended before the echo of {size} bytes")
            whole += found[0][1]
            if found[0][0] & 0x80:
                break
        if whole != payload:
            raise Failure(f"an echo of {len(whole)} bytes differs from {size} bytes")
    if command.get("leave_open"):
        return {"stream": stream, "status": response.status}
    client.send(stream, client_frame(CLOSE, b"\x03\xe8"), True)
    link.wait("the end of the WebSocket", lambda: response.has_ended)
    return {"stream": stream, "status": response.status, "reset": response.reset}
