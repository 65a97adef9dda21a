"""The smallest Python application, for WSGI and for ASGI. BENCH_FRAMING=length adds a
Content-Length, because some servers do not add one. The code that starts such a server sets it.
"""
import os

BODY = b"Hello World"
FIELDS = [("Content-Type", "text/plain")]
if os.environ.get("BENCH_FRAMING") == "length":
    FIELDS.append(("Content-Length", str(len(BODY))))
ASGI_FIELDS = [(name.lower().encode(), value.encode()) for name, value in FIELDS]


def application(environ, start_response):
    start_response("200 OK", FIELDS.copy())
    return [BODY]


async def asgi(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": ASGI_FIELDS})
    await send({"type": "http.response.body", "body": BODY})
