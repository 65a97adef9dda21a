"""Large bodies, for WSGI and for ASGI: a GET is answered with a megabyte, a POST with the length of
its body.
"""
LARGE = bytes(range(250)) * 4000
FIELDS = [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(LARGE)))]
ASGI_FIELDS = [(name.lower().encode(), value.encode()) for name, value in FIELDS]
PIECE_BYTES = 64 * 1024


def application(environ, start_response):
    if environ["REQUEST_METHOD"] == "GET":
        start_response("200 OK", FIELDS.copy())
        return [LARGE]
    length, source = 0, environ["wsgi.input"]
    while piece := source.read(PIECE_BYTES):
        length += len(piece)
    body = str(length).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["method"] == "GET":
        fields, body = ASGI_FIELDS, LARGE
    else:
        length, more = 0, True
        while more:
            event = await receive()
            length += len(event.get("body", b""))
            more = event.get("more_body", False)
        body = str(length).encode()
        fields = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
