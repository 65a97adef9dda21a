"""A WebSocket client (RFC 6455) for tests: text messages in one frame."""
import base64
import json
import os
import socket
import struct
import time

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
LIMIT_SECS = 30.0 * float(os.environ.get("KIRIN_TEST_WAIT_FACTOR") or 1)


class WebSocket:
    """A connection. `status` is that of the response: 101 if there is a WebSocket."""

    def __init__(self, address, path, origin):
        self._socket = socket.create_connection(address, timeout=LIMIT_SECS)
        self._stream = self._socket.makefile("rb")
        host = "{}:{}".format(*address)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            .encode()
        )
        self.status = int(self._stream.readline().split()[1])
        while self._stream.readline().strip():
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stream.close()
        self._socket.close()

    def send(self, data):
        """Sends data as JSON."""
        self.send_text(json.dumps(data).encode())

    def send_text(self, text, kind=TEXT):
        """Sends a frame. Clients mask their frames."""
        mask = os.urandom(4)
        length = len(text)
        head = bytes([0x80 | kind])
        if length < 126:
            head += bytes([0x80 | length])
        else:
            head += bytes([0x80 | 126]) + struct.pack("!H", length)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(text))
        self._socket.sendall(head + mask + masked)

    def receive(self):
        """Returns the data of the next message, or None if the connection has been closed."""
        # Pings keep the connection busy, so its own time limit is not enough.
        end = time.monotonic() + LIMIT_SECS
        while time.monotonic() < end:
            head = self._stream.read(2)
            if len(head) < 2:
                return None
            length = head[1]
            if length == 126:
                length, = struct.unpack("!H", self._stream.read(2))
            content = self._stream.read(length)
            kind = head[0] & 15
            if kind == CLOSE:
                return None
            if kind == PING:
                self.send_text(content, PONG)
            elif kind == TEXT:
                return json.loads(content)
        raise TimeoutError("no message came")

    def receive_until(self, name):
        """Returns the value of the first message that has this member."""
        while (data := self.receive()) is not None:
            if name in data:
                return data[name]
        raise AssertionError(f"the connection was closed before {name} came")
