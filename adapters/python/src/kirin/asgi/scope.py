"""Makes the scope of an ASGI application from the names and values of a request.

`environ` has the names and values of docs/worker-protocol.md as bytes.
"""
ASGI = {"version": "3.0", "spec_version": "2.5"}

_VERSIONS = {b"HTTP/1.0": "1.0", b"HTTP/1.1": "1.1", b"HTTP/2": "2"}

# The most names that are kept. Clients choose names.
KNOWN_NAMES = 1000


class _FieldNames(dict):
    """The names of fields, by those of a request. A name that is no field has an empty one."""

    def __missing__(self, name):
        field = b""
        if name.startswith(b"HTTP_"):
            field = name[5:].replace(b"_", b"-").lower()
        if len(self) >= KNOWN_NAMES:
            self.clear()
            self.update(_NAMES)
        self[name] = field
        return field


# An application must not see two lengths or types of a body.
_NAMES = {b"CONTENT_TYPE": b"content-type", b"HTTP_CONTENT_LENGTH": b"", b"HTTP_CONTENT_TYPE": b""}
_field_names = _FieldNames(_NAMES)


def of_http(environ, state):
    """Returns the scope of a request."""
    names = _field_names
    headers = [(field, value) for name, value in environ.items() if (field := names[name])]
    length = environ[b"CONTENT_LENGTH"]
    if length != b"0":
        headers.append((b"content-length", length))
    get = environ.get
    root = get(b"SCRIPT_NAME", b"").decode("utf-8", "replace")
    client = get(b"REMOTE_ADDR", b"").decode("latin-1")
    return {
        "type": "http",
        "asgi": ASGI.copy(),
        "http_version": _VERSIONS.get(get(b"SERVER_PROTOCOL"), "1.1"),
        "method": environ[b"REQUEST_METHOD"].decode("latin-1"),
        "scheme": "https" if b"HTTPS" in environ else "http",
        # `OPTIONS *` has no path.
        "path": root + get(b"PATH_INFO", b"").decode("utf-8", "replace") or "*",
        "raw_path": get(b"REQUEST_URI", b"").partition(b"?")[0],
        "query_string": get(b"QUERY_STRING", b""),
        "root_path": root,
        "headers": headers,
        # A client on a unix socket has no address.
        "client": None if client == "unix:" else (client, int(get(b"REMOTE_PORT", b"0"))),
        "server": (get(b"SERVER_NAME", b"").decode("latin-1"), int(get(b"SERVER_PORT", b"0"))),
        "state": state.copy(),
        "extensions": {
            "http.response.early_hint": {},
            "http.response.pathsend": {},
            "http.response.trailers": {},
        },
    }


def of_websocket(environ, state):
    """Returns the scope of a WebSocket."""
    scope = of_http(environ, state)
    del scope["method"]
    scope["type"] = "websocket"
    scope["scheme"] = "wss" if scope["scheme"] == "https" else "ws"
    offered = environ.get(b"HTTP_SEC_WEBSOCKET_PROTOCOL", b"").decode("latin-1").split(",")
    scope["subprotocols"] = [name.strip() for name in offered if name.strip()]
    scope["extensions"] = {"websocket.http.response": {}}
    return scope
