"""Requests byte by byte, and what comes back for them.

The cases are those of the tests of uvicorn (`tests/protocols/test_http.py`) and daphne
(`tests/test_http_request.py`) that a client can see. Those tests call the classes of their server
in the same process, so they cannot be used for another one.
"""
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from raw_http import WAIT


@dataclass
class Case:
    """What is sent, and the statuses of the responses.

    `is_open` says whether the connection is open afterwards. `body` is a pattern of the last body.
    `elsewhere` says what another server does that does not do the same: its statuses, and whether
    the connection is open. None: it is not asked. `reason` says why that is no mistake of Kirin.
    """

    what: str
    pieces: List[object]
    statuses: List[int]
    is_open: bool = True
    body: Optional[str] = None
    elsewhere: Dict[str, Optional[Tuple[List[int], bool]]] = field(default_factory=dict)
    reason: str = ""


def get(target, *lines, version="HTTP/1.1", method="GET"):
    fields = "".join(f"{line}\r\n" for line in ("Host: a", *lines))
    return f"{method} {target} {version}\r\n{fields}\r\n".encode("latin-1")


def post(target, body, *lines):
    return get(target, *lines, f"Content-Length: {len(body)}", method="POST") + body


def chunked(target, *lines):
    return get(target, *lines, "Transfer-Encoding: chunked", method="POST")


CHUNKS = b"3\r\nabc\r\n4;note=1\r\ndefg\r\n0\r\n\r\n"
ABCDEFG = "7 2fb5e13419fc89246865e7a324f476ec624e8740"
BYTES = [bytes([byte]) for byte in post("/echo/", b"in single bytes")]

WHY_CLOSED = "the others close after an error, for which there is no reason"


def closes(status=500):
    return {"gunicorn": ([status], False), "uvicorn": ([status], False)}


# Both WSGI and ASGI applications.
CASES = [
    # The connection.
    Case("a request", [get("/echo/")], [200], body="^GET /echo/"),
    Case("keep-alive, said", [get("/echo/", "Connection: keep-alive")], [200]),
    Case("close", [get("/echo/", "Connection: close")], [200], is_open=False),
    Case("close among other options", [get("/echo/", "Connection: X-One, CLOSE")], [200],
         is_open=False, elsewhere={"gunicorn": ([200], True)},
         reason="gunicorn compares the complete value with close"),
    Case("close of the application", [get("/close/")], [200],
         elsewhere={"uvicorn": ([200], False)},
         reason="the connection to the client is Kirin's, and PEP 3333 forbids the field"),
    Case("HTTP/1.0", [get("/echo/", version="HTTP/1.0")], [200], is_open=False),
    Case("HTTP/1.0, kept", [get("/echo/", "Connection: keep-alive", version="HTTP/1.0")], [200],
         elsewhere={"gunicorn": ([200], False), "uvicorn": ([200], False)},
         reason="the others keep none of HTTP/1.0"),
    Case("HTTP/1.0 without a host", [b"GET /echo/ HTTP/1.0\r\n\r\n"], [200], is_open=False),
    Case("HTTP/1.0, a stream without a length", [get("/parts/", version="HTTP/1.0")], [200],
         is_open=False, body="^one two three$"),
    Case("two at once", [get("/echo/1") + get("/echo/2")], [200, 200], body="^GET /echo/2"),
    Case("ten at once", [b"".join(get(f"/echo/{n}") for n in range(10))], [200] * 10,
         body="^GET /echo/9"),
    Case("POST and GET at once", [post("/echo/", b"abcdefg") + get("/echo/2")], [200, 200],
         body="^GET /echo/2"),
    Case("chunks and GET at once", [chunked("/echo/") + CHUNKS + get("/echo/2")], [200, 200],
         body="^GET /echo/2"),
    Case("HEAD and GET at once", [get("/parts/", method="HEAD") + get("/echo/2")], [200, 200],
         body="^GET /echo/2"),
    Case("a body that is not read, and GET", [post("/unread/", b"x" * 50_000) + get("/echo/2")],
         [200, 200], body="^GET /echo/2"),
    Case("nothing after close", [get("/echo/1", "Connection: close") + get("/echo/2")], [200],
         is_open=False, body="^GET /echo/1"),
    Case("empty lines before a request", [b"\r\n" + get("/echo/")], [200]),
    # Requests in pieces.
    Case("byte by byte", BYTES, [200], body="^POST /echo/\\? 15 "),
    Case("two in three pieces", [
        get("/echo/1") + b"GET /ec", b"ho/2 HTTP/1.1\r\nHo", b"st: a\r\n\r\n",
    ], [200, 200], body="^GET /echo/2"),
    Case("the body later", [get("/echo/", "Content-Length: 7", method="POST"), b"abc", b"defg"],
         [200], body=ABCDEFG),
    Case("chunks", [chunked("/echo/") + CHUNKS], [200], body=ABCDEFG),
    Case("chunks in pieces", [chunked("/echo/"), CHUNKS[:5], CHUNKS[5:12], CHUNKS[12:]], [200],
         body=ABCDEFG),
    Case("chunks with a trailer", [chunked("/echo/") + CHUNKS[:-2] + b"X-Sum: 7\r\n\r\n"], [200],
         body=ABCDEFG),
    Case("no chunk", [chunked("/echo/") + b"0\r\n\r\n"], [200], body=" 0 da39a3ee"),
    Case("100 Continue", [
        get("/echo/", "Content-Length: 7", "Expect: 100-continue", method="POST"), WAIT, b"abcdefg",
    ], [100, 200], body=ABCDEFG),
    Case("100 Continue for chunks", [
        chunked("/echo/", "Expect: 100-continue"), WAIT, CHUNKS,
    ], [100, 200], body=ABCDEFG),
    # Targets and fields.
    Case("a query", [get("/echo/a?b=c&d=%20")], [200], body="^GET /echo/a\\?b=c&d=%20 "),
    Case("an encoded path", [get("/echo/one%2Ftwo%20three")], [200],
         body="^GET /echo/one/two three\\?"),
    Case("UTF-8 in the path", [get("/echo/%E9%BA%92")], [200], body="^GET /echo/麒\\?"),
    Case("an absolute target", [b"GET http://a/echo/x?y HTTP/1.1\r\nHost: a\r\n\r\n"], [200],
         body="^GET /echo/x\\?y "),
    Case("blanks around a value", [get("/field/", "X-Field: \t v w \t")], [200], body="^v w$",
         elsewhere={"uvicorn": None}, reason="uvicorn leaves the blanks at the end there"),
    Case("an empty value", [get("/field/", "X-Field:")], [200], body="^$"),
    Case("bytes of Latin-1", [get("/field/", "X-Field: \xe9\xff")], [200]),
    Case("a tab in a value", [get("/field/", "X-Field: a\tb")], [200], body="^a\tb$"),
    Case("a field twice", [get("/field/", "X-Field: a", "X-Field: b")], [200]),
    Case("a field in capitals", [get("/field/", "X-FIELD: a")], [200], body="^a$"),
    Case("any method", [get("/echo/", method="PURGE")], [200], body="^PURGE "),
    # Responses.
    Case("parts", [get("/parts/")], [200], body="^one two three$"),
    Case("parts for HEAD", [get("/parts/", method="HEAD")], [200]),
    Case("an empty body", [get("/empty/")], [200], body="^$"),
    Case("no content", [get("/no-content/")], [204]),
    Case("an error", [get("/broken/")], [500], elsewhere=closes(), reason=WHY_CLOSED),
    Case("an error in the body", [get("/broken-later/")], [200], is_open=False),
    Case("an error in a short body", [get("/broken-early/")], [502],
         elsewhere={"gunicorn": ([200], False), "uvicorn": ([200], False)},
         reason="Kirin sends a short response when it is complete"),
    Case("an error in chunks", [get("/broken-chunks/")], [200], is_open=False),
    Case("no response", [get("/no-response/")], [500], elsewhere=closes(), reason=WHY_CLOSED),
    Case("a line end in a field", [get("/split/")], [500],
         elsewhere={"gunicorn": ([500], False), "uvicorn": ([], False)},
         reason="uvicorn closes without a response"),
    # What is no request.
    Case("no HTTP", [b"any text that comes\r\n\r\n"], [400], is_open=False),
    Case("a blank in a name", [get("/echo/", "X Field: a")], [400], is_open=False),
    Case("a blank before the colon", [get("/echo/", "X-Field : a")], [400], is_open=False),
    Case("NUL in a value", [get("/echo/", "X-Field: a\0b")], [400], is_open=False),
    Case("no host", [b"GET /echo/ HTTP/1.1\r\n\r\n"], [400], is_open=False,
         elsewhere={"gunicorn": ([200], True), "uvicorn": ([200], True)},
         reason="RFC 9112 (3.2) demands 400"),
    Case("two hosts", [get("/echo/", "Host: b")], [400], is_open=False,
         elsewhere={"uvicorn": ([200], True)}, reason="RFC 9112 (3.2) demands 400"),
    Case("a continued line", [get("/echo/", "X-Field: a", " b")], [400], is_open=False),
    Case("two lengths", [get("/echo/", "Content-Length: 3", "Content-Length: 4", method="POST")],
         [400], is_open=False),
    Case("a length with a sign", [get("/echo/", "Content-Length: +3", method="POST")], [400],
         is_open=False),
    Case("a length and chunks", [chunked("/echo/", "Content-Length: 3") + CHUNKS], [400],
         is_open=False),
    Case("chunks without a size", [chunked("/echo/") + b"x\r\nabc\r\n"], [400], is_open=False),
    Case("another coding than chunks", [get("/echo/", "Transfer-Encoding: gzip", method="POST")],
         [400], is_open=False),
    Case("another coding and chunks", [
        get("/echo/", "Transfer-Encoding: gzip, chunked", method="POST") + CHUNKS,
    ], [501], is_open=False, elsewhere={"gunicorn": ([200], False), "uvicorn": ([200], True)},
         reason="RFC 9112 (6.1) wants 501, and the others give gzip to the application"),
    Case("HTTP/3.0", [get("/echo/", version="HTTP/3.0")], [505], is_open=False,
         elsewhere={"gunicorn": ([400], False), "uvicorn": ([400], False)},
         reason="505 says more"),
    Case("a huge field", [get("/echo/", "X-Field: " + "x" * 200_000)], [431], is_open=False,
         elsewhere={"gunicorn": None, "uvicorn": None},
         reason="uvicorn has no limit, and gunicorn closes while the client still sends"),
    # Upgrades that the application does not know.
    Case("another protocol", [get("/echo/", "Connection: Upgrade", "Upgrade: other")], [200]),
    Case("HTTP/2 without TLS", [
        get("/echo/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"),
    ], [200]),
]

def handshake(*lines, version="13"):
    return get("/echo/", "Connection: Upgrade", "Upgrade: websocket",
               f"Sec-WebSocket-Version: {version}", *lines)


KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

# Only WSGI applications can do this: ASGI has an extension that uvicorn does not know.
WSGI_CASES = [
    Case("hints before the response", [get("/hints/")], [103, 200], body="^hinted$"),
]

# Only ASGI applications can do this. The one here accepts no WebSockets.
ASGI_CASES = [
    Case("a handshake that fails in the application", [handshake(KEY)], [500],
         elsewhere=closes(), reason=WHY_CLOSED),
    Case("a handshake without a key", [handshake()], [400], elsewhere=closes(400),
         reason=WHY_CLOSED),
    Case("a handshake with a short key", [handshake("Sec-WebSocket-Key: AAAA")], [400],
         elsewhere=closes(400), reason=WHY_CLOSED),
    Case("a handshake of another version", [handshake(KEY, version="8")], [426],
         elsewhere=closes(400), reason="RFC 6455 (4.2.2) wants 426"),
    Case("a path as it came", [get("/raw/one%2Ftwo%20%E9%BA%92")], [200],
         body="^/raw/one%2Ftwo%20%E9%BA%92 /raw/one/two%20%E9%BA%92$"),
    Case("a response without its end", [get("/partial/")], [200], is_open=False),
    Case("more than the length", [get("/too-long/")], [200], body="^123$",
         elsewhere={"uvicorn": ([200], False)}, reason="Kirin sends what belongs to the length"),
    Case("less than the length", [get("/too-short/")], [500], elsewhere={"uvicorn": ([200], False)},
         reason="nothing was sent yet, so that the client can learn about the error"),
    Case("a start twice", [get("/twice/")], [500], elsewhere={"uvicorn": ([200], False)},
         reason="as above"),
    Case("no start", [get("/no-start/")], [500], elsewhere=closes(), reason=WHY_CLOSED),
    Case("a part after the end", [get("/after-the-end/")], [200], body="^the end$",
         elsewhere={"uvicorn": ([200], False)},
         reason="the response was complete, so that its connection is good"),
    Case("a value", [get("/value/")], [200], body="^a value$"),
    Case("receive after the end", [get("/read-after-the-end/")], [200], body="^the end$"),
    Case("fields of an iterator", [get("/fields-of-an-iterator/")], [200], body="^iterated$"),
]
