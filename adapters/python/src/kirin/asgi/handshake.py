"""The handshake of WebSocket (RFC 6455 section 4.2)."""
import base64
import binascii
import hashlib

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16


def is_websocket(environ):
    """Returns whether a request with `Upgrade` asks for a WebSocket."""
    return (
        environ[b"REQUEST_METHOD"] == b"GET"
        and environ.get(b"SERVER_PROTOCOL") == b"HTTP/1.1"
        and b"websocket" in [name.strip() for name in environ[b"HTTP_UPGRADE"].lower().split(b",")]
    )


def refusal(environ):
    """Returns the status and the headers of the answer to a wrong handshake, otherwise None."""
    if environ.get(b"HTTP_SEC_WEBSOCKET_VERSION") != b"13":
        return "426 Upgrade Required", [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
    try:
        key = base64.b64decode(environ.get(b"HTTP_SEC_WEBSOCKET_KEY", b""), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _KEY_BYTES:
        return "400 Bad Request", []
    return None


def accept_value(environ):
    """Returns the value of `Sec-WebSocket-Accept`."""
    digest = hashlib.sha1(environ[b"HTTP_SEC_WEBSOCKET_KEY"] + _GUID).digest()
    return base64.b64encode(digest).decode("ascii")
