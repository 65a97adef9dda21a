"""Reads the parameters of the request with the standard library, as small applications do. The
response contains all of them. It is wrong if the server passes the request on wrongly.
"""
import os
from urllib.parse import parse_qsl

WITH_LENGTH = os.environ.get("BENCH_FRAMING") == "length"


def body(environ):
    text = environ["QUERY_STRING"]
    if environ["REQUEST_METHOD"] == "POST":
        text = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode("latin-1")
    parameters = dict(parse_qsl(text))
    return ",".join(f"{name}={parameters[name]}" for name in "abcde").encode()


def application(environ, start_response):
    content = body(environ)
    fields = [("Content-Type", "text/plain")]
    if WITH_LENGTH:
        fields.append(("Content-Length", str(len(content))))
    start_response("200 OK", fields)
    return [content]
