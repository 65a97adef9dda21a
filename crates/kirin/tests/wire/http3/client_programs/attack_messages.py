"""Requests that are malformed (RFC 9114 section 4), and field sections that are too large."""
import raw_h3 as h3
from attack import HOLDS, Attack, answers, either, refuses
from raw_h3 import frame

BODY = frame(h3.DATA, b"12345")
# The fields of each request.
METHOD, SCHEME, PATH = (":method", "GET"), (":scheme", "https"), (":path", "/hello.txt")


def sends(*fields, rest=b"", fin=True):
    """Returns an attack that sends a request with these fields. `None` is the authority."""
    def run(connect):
        it = connect()
        named = [(":authority", it.authority) if field is None else field for field in fields]
        named = [(name, it.authority if value is None else value) for name, value in named]
        return it.react(it.new_request(frame(h3.HEADERS, h3.section(named)) + rest, fin))
    return run


def get(*more, **rest):
    """Returns an attack that sends a GET with more fields."""
    return sends(METHOD, SCHEME, None, PATH, *more, **rest)


def post(*more, rest):
    """Returns an attack that sends a POST with more fields and a body."""
    return sends((":method", "POST"), SCHEME, None, (":path", "/app/body"), *more, rest=rest)


def trailers(*fields):
    """Returns an attack that sends these trailers."""
    return post(rest=BODY + frame(h3.HEADERS, h3.section(fields)))


MALFORMED = [
    ("a name in capitals", "9114 4.2", get(("X-A", "b"))),
    ("an empty name", "9114 4.2, 9110 5.1", get(("", "b"))),
    ("a space in a name", "9114 4.2, 9110 5.1", get(("x a", "b"))),
    ("a colon in a name", "9114 4.2, 9110 5.1", get(("x:a", "b"))),
    ("a byte of 0x80 in a name", "9114 4.2, 9110 5.1", get(("x\x80", "b"))),
    ("a line feed in a name", "9114 4.2, 10.3", get(("x\na", "b"))),
    ("a line feed in a value", "9114 10.3", get(("x-a", "b\nc: d"))),
    ("a carriage return in a value", "9114 10.3", get(("x-a", "b\r"))),
    ("NUL in a value", "9114 10.3", get(("x-a", "b\0"))),
    ("no method", "9114 4.3.1", sends(SCHEME, None, PATH)),
    ("no scheme", "9114 4.3.1", sends(METHOD, None, PATH)),
    ("no path", "9114 4.3.1", sends(METHOD, SCHEME, None)),
    ("an empty path", "9114 4.3.1", sends(METHOD, SCHEME, None, (":path", ""))),
    ("a path without a slash", "9114 4.3.1", sends(METHOD, SCHEME, None, (":path", "hello.txt"))),
    ("a path with a space", "9114 4.3.1", sends(METHOD, SCHEME, None, (":path", "/hello.txt a"))),
    ("a line feed in a path", "9114 10.3", sends(METHOD, SCHEME, None, (":path", "/hello.txt\nx"))),
    ("a method with a space", "9114 4.3.1", sends((":method", "GET /"), SCHEME, None, PATH)),
    ("an empty method", "9114 4.3.1", sends((":method", ""), SCHEME, None, PATH)),
    ("neither an authority nor a host", "9114 4.3.1", sends(METHOD, SCHEME, PATH)),
    ("an empty authority", "9114 4.3.1", sends(METHOD, SCHEME, (":authority", ""), PATH)),
    ("an authority with a user", "9114 4.3.1",
     sends(METHOD, SCHEME, (":authority", "a@localhost"), PATH)),
    ("another host than the authority", "9114 4.3.1", get(("host", "other.example"))),
    ("two hosts", "9110 7.2", sends(METHOD, SCHEME, PATH, ("host", None), ("host", None))),
    ("two methods", "9114 4.3", sends(METHOD, METHOD, SCHEME, None, PATH)),
    ("two paths", "9114 4.3", sends(METHOD, SCHEME, None, PATH, PATH)),
    ("two authorities", "9114 4.3", sends(METHOD, SCHEME, None, None, PATH)),
    ("a pseudo-header behind a field", "9114 4.3", sends(METHOD, SCHEME, None, ("x-a", "b"), PATH)),
    ("an unknown pseudo-header", "9114 4.3", sends(METHOD, SCHEME, None, PATH, (":x", "y"))),
    ("a status in a request", "9114 4.3", sends(METHOD, SCHEME, None, PATH, (":status", "200"))),
    ("a protocol without CONNECT", "9220, 8441 4",
     sends(METHOD, SCHEME, None, PATH, (":protocol", "websocket"))),
    ("CONNECT with a path", "9114 4.4", sends((":method", "CONNECT"), SCHEME, None, PATH)),
    ("CONNECT without an authority", "9114 4.4", sends((":method", "CONNECT"))),
    ("CONNECT with a protocol and no path", "8441 4",
     sends((":method", "CONNECT"), (":protocol", "websocket"), SCHEME, None)),
    *((f"the field {name}", "9114 4.2", get((name, value))) for name, value in [
        ("connection", "close"), ("keep-alive", "5"), ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"), ("upgrade", "websocket")]),
    ("te with another value", "9114 4.2", get(("te", "gzip"))),
    ("a body that is shorter than its length", "9114 4.1.2",
     post(("content-length", "6"), rest=BODY)),
    ("a body that is longer than its length", "9114 4.1.2",
     post(("content-length", "4"), rest=BODY)),
    ("no body for a length", "9114 4.1.2", post(("content-length", "5"), rest=b"")),
    ("two lengths", "9114 4.1.2, 9110 8.6",
     post(("content-length", "5"), ("content-length", "6"), rest=BODY)),
    ("a length that is no number", "9110 8.6", post(("content-length", "+5"), rest=BODY)),
    ("a length of 2^64 + 5", "9110 8.6",
     post(("content-length", str((1 << 64) + 5)), rest=BODY)),
    ("a status in trailers", "9114 4.3", trailers((":status", "200"))),
    ("a path in trailers", "9114 4.3", trailers((":path", "/"))),
    ("a name in capitals in trailers", "9114 4.2", trailers(("X-A", "b"))),
    ("the field connection in trailers", "9114 4.2", trailers(("connection", "close"))),
]

LARGE = [
    ("101 fields", get(*[("x", "y")] * 101)),
    ("10,000 fields", get(*[("x", "y")] * 10_000)),
    ("100,000 fields of nothing", get(*[("x", "")] * 100_000)),
    ("a value of 1 MB", get(("x", "y" * (1 << 20)))),
    ("a name of 1 MB", get(("x" * (1 << 20), "y"))),
    ("a path of 1 MB", sends(METHOD, SCHEME, None, (":path", "/" + "x" * (1 << 20)))),
    ("1000 pseudo-headers", sends(*[METHOD] * 1000)),
    ("trailers of 1 MB", trailers(("x", "y" * (1 << 20)))),
    ("10,000 trailers", trailers(*[("x", "y")] * 10_000)),
]

ATTACKS = [
    *(Attack(name, section, refuses(), run) for name, section, run in MALFORMED),
    Attack("te: trailers", "9114 4.2", answers(200), get(("te", "trailers"))),
    Attack("an authority and the same host", "9114 4.3.1", answers(200), get(("host", None))),
    Attack("a host without an authority", "9114 4.3.1", answers(200),
           sends(METHOD, SCHEME, PATH, ("host", None))),
    Attack("a cookie in pieces", "9114 4.2.1", answers(200),
           get(("cookie", "a=b"), ("cookie", "c=d"))),
    Attack("a body that is as long as its length", "9114 4.1.2", answers(200),
           post(("content-length", "5"), rest=BODY[:2] + BODY[2:])),
    Attack("a value of spaces", "9110 5.5", either(answers(200), refuses()),
           get(("x-a", "  "))),
    Attack("a secret of many parts", "9114 4.2.1", answers(200, 431),
           get(*[("cookie", "a=b")] * 90)),
    # Such a request is refused by 431 or 414, or by H3_EXCESSIVE_LOAD of its stream or its
    # connection.
    *(Attack(name, "9114 4.2.2, 10.5", either(refuses(0x107), HOLDS), run) for name, run in LARGE),
]
