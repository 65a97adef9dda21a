"""Answers as wsgi_app.py does, and in the ways that only ASGI has."""
import hashlib
import urllib.parse


async def read(receive):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def echo(scope, receive, send):
    await say(scope, send, await read(receive))


async def unread(scope, receive, send):
    await say(scope, send, b"")


async def say(scope, send, body):
    target = scope["path"].encode().decode("latin-1") + "?" + scope["query_string"].decode()
    text = f"{scope['method']} {target} {len(body)} {hashlib.sha1(body).hexdigest()}"
    await answer(send, [text.encode("latin-1")])


async def start(send, status=200, fields=()):
    fields = [(b"content-type", b"text/plain"), *fields]
    await send({"type": "http.response.start", "status": status, "headers": fields})


async def answer(send, parts, status=200, fields=()):
    await start(send, status, fields)
    for part in parts[:-1]:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"".join(parts[-1:])})


async def field(scope, receive, send):
    # Servers may join several fields, as HTTP allows, or not.
    values = [value for name, value in scope["headers"] if name == b"x-field"]
    await answer(send, [b",".join(values).replace(b", ", b",")])


async def parts(scope, receive, send):
    await answer(send, [b"one ", b"", b"two ", b"three"])


async def close(scope, receive, send):
    await answer(send, [b"the end"], fields=[(b"connection", b"close")])


async def empty(scope, receive, send):
    await answer(send, [])


async def no_content(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def broken(scope, receive, send):
    raise RuntimeError("broken before the response")


# More than a server keeps back until it knows whether the response is complete.
LARGE = b"x" * 8_000_000


async def broken_later(scope, receive, send):
    await start(send, fields=[(b"content-length", b"9000000")])
    await send({"type": "http.response.body", "body": LARGE, "more_body": True})
    raise RuntimeError("broken in the response")


async def broken_early(scope, receive, send):
    await start(send, fields=[(b"content-length", b"10")])
    await send({"type": "http.response.body", "body": b"123", "more_body": True})
    raise RuntimeError("broken in the response")


async def broken_chunks(scope, receive, send):
    await start(send)
    await send({"type": "http.response.body", "body": LARGE, "more_body": True})
    raise RuntimeError("broken in the response")


async def no_response(scope, receive, send):
    pass


async def partial(scope, receive, send):
    await start(send, fields=[(b"content-length", b"9000000")])
    await send({"type": "http.response.body", "body": LARGE, "more_body": True})


async def too_long(scope, receive, send):
    await answer(send, [b"12345"], fields=[(b"content-length", b"3")])


async def too_short(scope, receive, send):
    await answer(send, [b"123"], fields=[(b"content-length", b"5")])


async def split(scope, receive, send):
    await answer(send, [b"split"], fields=[(b"x-split", b"a\r\nx-injected: b")])


async def twice(scope, receive, send):
    await start(send)
    await start(send)


async def no_start(scope, receive, send):
    await send({"type": "http.response.body", "body": b"123"})


async def after_the_end(scope, receive, send):
    await answer(send, [b"the end"])
    await send({"type": "http.response.body", "body": b"and more"})


async def value(scope, receive, send):
    await answer(send, [b"a value"])
    return 123


async def read_after_the_end(scope, receive, send):
    await read(receive)
    await answer(send, [b"the end"])
    assert (await receive())["type"] == "http.disconnect"
    print("read after the end")


async def fields_of_an_iterator(scope, receive, send):
    fields = iter([(b"x-one", b"1"), (b"x-one", b"2")])
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"iterated"})


async def raw(scope, receive, send):
    text = scope["raw_path"].decode() + " " + urllib.parse.quote(scope["path"])
    await answer(send, [text.encode()])


async def application(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError("only requests are served")
    name = scope["path"].split("/")[1].replace("-", "_")
    await globals()[name](scope, receive, send)
