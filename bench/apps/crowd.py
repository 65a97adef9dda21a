"""Answers the crowd with a small body, for WSGI and for ASGI. /large is for slow readers: its body
is larger than the buffer of a socket.
"""
SMALL = b"Hello World"
LARGE = b"x" * (256 * 1024)


def fields_of(body):
    return [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]


def application(environ, start_response):
    body = LARGE if environ["PATH_INFO"] == "/large" else SMALL
    start_response("200 OK", fields_of(body))
    return [body]


async def asgi(scope, receive, send):
    body = LARGE if scope["path"] == "/large" else SMALL
    fields = [(name.lower().encode(), value.encode()) for name, value in fields_of(body)]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
