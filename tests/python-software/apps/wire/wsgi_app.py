"""Answers in the ways that PEP 3333 allows, and in some that it does not."""
import hashlib


def echo(environ, start_response):
    body = environ["wsgi.input"].read()
    return say(start_response, environ, body)


def unread(environ, start_response):
    return say(start_response, environ, b"")


def say(start_response, environ, body):
    target = environ["PATH_INFO"] + "?" + environ["QUERY_STRING"]
    text = f"{environ['REQUEST_METHOD']} {target} {len(body)} {hashlib.sha1(body).hexdigest()}"
    return answer(start_response, [text.encode("latin-1")])


def answer(start_response, parts, status="200 OK", fields=()):
    start_response(status, [("Content-Type", "text/plain"), *fields])
    return parts


def field(environ, start_response):
    # Servers join several fields with and without a blank.
    value = environ.get("HTTP_X_FIELD", "none").replace(", ", ",")
    return answer(start_response, [value.encode("latin-1")])


def parts(environ, start_response):
    return answer(start_response, iter([b"one ", b"", b"two ", b"three"]))


def hints(environ, start_response):
    environ["wsgi.early_hints"]([("Link", "</a.css>; rel=preload; as=style")])
    return answer(start_response, [b"hinted"])


def close(environ, start_response):
    return answer(start_response, [b"the end"], fields=[("Connection", "close")])


def empty(environ, start_response):
    return answer(start_response, [])


def no_content(environ, start_response):
    start_response("204 No Content", [])
    return []


def broken(environ, start_response):
    raise RuntimeError("broken before the response")


# More than a server keeps back until it knows whether the response is complete.
LARGE = b"x" * 8_000_000


def broken_later(environ, start_response):
    yield from answer(start_response, [LARGE], fields=[("Content-Length", "9000000")])
    raise RuntimeError("broken in the response")


def broken_early(environ, start_response):
    yield from answer(start_response, [b"123"], fields=[("Content-Length", "10")])
    raise RuntimeError("broken in the response")


def broken_chunks(environ, start_response):
    yield from answer(start_response, [LARGE])
    raise RuntimeError("broken in the response")


def no_response(environ, start_response):
    return []


def split(environ, start_response):
    return answer(start_response, [b"split"], fields=[("X-Split", "a\r\nX-Injected: b")])


def application(environ, start_response):
    name = environ["PATH_INFO"].split("/")[1].replace("-", "_")
    return globals()[name](environ, start_response)
