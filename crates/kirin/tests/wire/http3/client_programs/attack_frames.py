"""Frames and streams in the wrong place, of the wrong type or of the wrong form (RFC 9114)."""
import raw_h3 as h3
from attack import SERVES_ON, Attack, answers, closes, either, refuses
from raw_h3 import frame, settings, varint

CREATION, CRITICAL, UNEXPECTED, FRAME_ERROR = 0x103, 0x104, 0x105, 0x106
ID_ERROR, SETTINGS_ERROR, MISSING, INCOMPLETE = 0x108, 0x109, 0x10a, 0x10d
# Types and settings that HTTP/2 has and HTTP/3 does not.
HTTP2_FRAMES, HTTP2_SETTINGS = (2, 6, 8, 9), (0, 2, 3, 4, 5)


def on_control(*rest, first=settings()):
    """Returns an attack that sends bytes on the control stream, which begins with `first`."""
    def run(connect):
        it = connect(control=first)
        for part in rest:
            it.send(it.control, part)
        return it.react()
    return run


def on_request(*parts, fin=True):
    """Returns an attack that sends parts on a request stream. A part can be a function of the
    connection."""
    def run(connect):
        it = connect()
        data = b"".join(part(it) if callable(part) else part for part in parts)
        return it.react(it.new_request(data, fin))
    return run


def with_connection(act, **options):
    """Returns an attack that calls a function with the connection. It may return a stream."""
    def run(connect):
        it = connect(**options)
        return it.react(act(it))
    return run


def head(it):
    """Returns the HEADERS frame of a GET."""
    return it.head()


def post(it):
    """Returns the HEADERS frame of a POST, which waits for a body."""
    return it.head("POST", "/app/body")


TRAILERS = frame(h3.HEADERS, h3.section([("x-a", "b")]))
BODY = frame(h3.DATA, b"12345")


def end_of(which, how):
    """Returns an attack that ends one of the client's critical streams."""
    def act(it):
        # The server has read the stream's type, which a reset could drop otherwise.
        it.probe()
        stream = getattr(it, which)
        if how == "FIN":
            it.send(stream, b"", fin=True)
        else:
            it.link.quic.reset_stream(stream, 0x100)
            it.link.transmit()
    return with_connection(act)


def stop_of(number):
    """Returns an attack that stops one of the server's critical streams."""
    def act(it):
        it.wait(lambda: number in it.streams, 5)
        it.link.quic.stop_stream(number, 0x100)
        it.link.transmit()
    return with_connection(act)


ATTACKS = [
    *(Attack(f"a second {name} stream", "9114 6.2", closes(CREATION),
             with_connection(lambda it, kind=kind: it.open(kind) and None))
      for name, kind in [("control", h3.CONTROL), ("encoder", h3.ENCODER),
                         ("decoder", h3.DECODER)]),
    Attack("a push stream of a client", "9114 6.2.2", closes(CREATION),
           with_connection(lambda it: it.open(h3.PUSH, b"\0") and None)),
    *(Attack(f"{how} of the {which} stream", "9114 6.2.1, 9204 4.2", closes(CRITICAL),
             end_of(which, how))
      for which in ("control", "encoder", "decoder") for how in ("FIN", "RESET_STREAM")),
    Attack("STOP_SENDING of the server's control stream", "9114 6.2.1", closes(CRITICAL),
           stop_of(3)),
    *(Attack(f"{name} before SETTINGS", "9114 6.2.1", closes(MISSING), on_control(first=first))
      for name, first in [("GOAWAY", frame(h3.GOAWAY, b"\0")),
                          ("an unknown frame", frame(h3.GREASE)),
                          ("MAX_PUSH_ID", frame(h3.MAX_PUSH_ID, b"\0"))]),
    Attack("SETTINGS twice", "9114 7.2.4", closes(UNEXPECTED), on_control(settings())),
    Attack("SETTINGS on a request", "9114 7.2.4", closes(UNEXPECTED),
           on_request(post, settings(), fin=False)),
    Attack("DATA on the control stream", "9114 7.2.1", closes(UNEXPECTED), on_control(BODY)),
    Attack("HEADERS on the control stream", "9114 7.2.2", closes(UNEXPECTED),
           on_control(TRAILERS)),
    Attack("PUSH_PROMISE on the control stream", "9114 7.2.5", closes(UNEXPECTED),
           on_control(frame(h3.PUSH_PROMISE, b"\0\0\0"))),
    Attack("PUSH_PROMISE on a request", "9114 7.2.5", closes(UNEXPECTED),
           on_request(post, frame(h3.PUSH_PROMISE, b"\0\0\0"), fin=False)),
    *(Attack(f"HTTP/2 frame type {kind} on the control stream", "9114 7.2.8", closes(UNEXPECTED),
             on_control(frame(kind, b"\0" * 8))) for kind in HTTP2_FRAMES),
    *(Attack(f"HTTP/2 frame type {kind} on a request", "9114 7.2.8", closes(UNEXPECTED),
             on_request(post, frame(kind, b"\0" * 8), fin=False)) for kind in HTTP2_FRAMES),
    *(Attack(f"HTTP/2 setting {name}", "9114 7.2.4.1", closes(SETTINGS_ERROR),
             on_control(first=settings((name, 1)))) for name in HTTP2_SETTINGS),
    Attack("one setting twice", "9114 7.2.4 (may)", either(closes(SETTINGS_ERROR), SERVES_ON),
           on_control(first=settings((h3.GREASE, 1), (h3.GREASE, 1)))),
    Attack("a setting without a value", "9114 7.1", closes(FRAME_ERROR, SETTINGS_ERROR),
           on_control(first=frame(h3.SETTINGS, b"\x06"))),
    Attack("SETTINGS_ENABLE_CONNECT_PROTOCOL of 2", "8441 3, 9220 3",
           either(closes(SETTINGS_ERROR), SERVES_ON), on_control(first=settings((8, 2)))),
    Attack("DATA before HEADERS", "9114 4.1", closes(UNEXPECTED), on_request(BODY, fin=False)),
    Attack("HEADERS behind the trailers", "9114 4.1", closes(UNEXPECTED),
           on_request(post, BODY, TRAILERS, TRAILERS, fin=False)),
    Attack("DATA behind the trailers", "9114 4.1", closes(UNEXPECTED),
           on_request(post, BODY, TRAILERS, BODY, fin=False)),
    *(Attack(f"{name} on a request", f"9114 {section}", closes(UNEXPECTED),
             on_request(post, frame(kind, b"\0"), fin=False))
      for name, kind, section in [("CANCEL_PUSH", h3.CANCEL_PUSH, "7.2.3"),
                                  ("GOAWAY", h3.GOAWAY, "7.2.6"),
                                  ("MAX_PUSH_ID", h3.MAX_PUSH_ID, "7.2.7")]),
    Attack("CANCEL_PUSH of no push", "9114 7.2.3", closes(ID_ERROR),
           on_control(frame(h3.CANCEL_PUSH, b"\0"))),
    Attack("a smaller MAX_PUSH_ID", "9114 7.2.7", closes(ID_ERROR),
           on_control(frame(h3.MAX_PUSH_ID, b"\x05"), frame(h3.MAX_PUSH_ID, b"\x04"))),
    Attack("a larger GOAWAY", "9114 5.2", closes(ID_ERROR),
           on_control(frame(h3.GOAWAY, b"\x01"), frame(h3.GOAWAY, b"\x02"))),
    # Every number of a push is wrong too, as the server has promised none.
    *(Attack(f"{name} {what}", "9114 7.1",
             closes(FRAME_ERROR, *[ID_ERROR] * (kind == h3.CANCEL_PUSH)),
             on_control(frame(kind, payload)))
      for name, kind in [("MAX_PUSH_ID", h3.MAX_PUSH_ID), ("GOAWAY", h3.GOAWAY),
                         ("CANCEL_PUSH", h3.CANCEL_PUSH)]
      for what, payload in [("without a number", b""), ("with too much", b"\0\0"),
                            ("with half a number", b"\x40")]),
    *(Attack(f"FIN in {what}", "9114 7.1", closes(FRAME_ERROR), on_request(*parts))
      for what, parts in [
          ("a frame's type", (post, b"\x40")), ("a frame's length", (post, b"\0\x40")),
          ("HEADERS", (lambda it: head(it)[:-3],)), ("DATA", (post, BODY[:-2])),
          ("the trailers", (post, BODY, TRAILERS[:-1])),
          ("an unknown frame", (post, frame(h3.GREASE, b"1", length=5)))]),
    Attack("a request stream without anything", "9114 4.1", refuses(INCOMPLETE), on_request(b"")),
    Attack("a request stream with an unknown frame only", "9114 4.1", refuses(INCOMPLETE),
           on_request(frame(h3.GREASE, b"hello"))),
    Attack("PRIORITY_UPDATE on a request", "9218 7.2", closes(UNEXPECTED),
           on_request(post, frame(h3.PRIORITY_UPDATE, b"\0u=1"), fin=False)),
    Attack("PRIORITY_UPDATE of no push", "9218 7.2", closes(ID_ERROR),
           on_control(frame(h3.PRIORITY_UPDATE_OF_PUSH, b"\0u=1"))),
    Attack("PRIORITY_UPDATE of a stream that is no request", "9218 7.2", closes(ID_ERROR),
           on_control(frame(h3.PRIORITY_UPDATE, b"\x02u=1"))),
    Attack("PRIORITY_UPDATE without a stream", "9114 7.1", closes(FRAME_ERROR),
           on_control(frame(h3.PRIORITY_UPDATE))),
    Attack("PRIORITY_UPDATE of no priority", "9218 7.2 (may)", either(closes(0x101), SERVES_ON),
           on_control(frame(h3.PRIORITY_UPDATE, b"\0(((u=,"))),
    # The rest is allowed.
    Attack("a SETTINGS frame in pieces", "9114 7.1", SERVES_ON,
           on_control(*(bytes([byte]) for byte in settings((6, 70000), (h3.GREASE, 7))[1:]),
                      first=b"\x04")),
    Attack("unknown settings", "9114 7.2.4.1", SERVES_ON,
           on_control(first=settings((h3.GREASE, 7), (0x4242, 1 << 61)))),
    Attack("unknown frames on the control stream", "9114 9", SERVES_ON,
           on_control(frame(h3.GREASE, b"x" * 5000), frame(0x4242), frame(h3.GREASE))),
    Attack("unknown frames on a request", "9114 9", answers(200), on_request(
        frame(h3.GREASE, b"x" * 5000), head, frame(0x4242, b"y"), frame(h3.GREASE))),
    Attack("unknown types of streams", "9114 6.2.3", SERVES_ON, with_connection(
        lambda it: [it.open(kind, b"x" * 3000, fin) for kind, fin in
                    ((h3.GREASE, True), (0x4242, False))] and None)),
    Attack("a unidirectional stream that ends before its type", "9114 6.2", SERVES_ON,
           with_connection(lambda it: it.open(None, b"", fin=True) and None)),
    Attack("a unidirectional stream that ends within its type", "9114 6.2", SERVES_ON,
           with_connection(lambda it: it.open(None, b"\x40", fin=True) and None)),
    Attack("a stream type in eight bytes", "9114 6.2", SERVES_ON, with_connection(
        lambda it: it.open(None, h3.long_varint(h3.CONTROL) + settings()) and None, control=None)),
    Attack("no control stream", "9114 6.2.1", SERVES_ON,
           with_connection(lambda it: None, control=None)),
    Attack("no QPACK streams", "9204 4.2", SERVES_ON,
           with_connection(lambda it: None, qpack=False)),
    Attack("MAX_PUSH_ID and GOAWAY of a client", "9114 5.2, 7.2.7", SERVES_ON, on_control(
        frame(h3.MAX_PUSH_ID, b"\x05"), frame(h3.MAX_PUSH_ID, b"\x05"), frame(h3.GOAWAY, b"\x02"),
        frame(h3.GOAWAY, b"\x01"))),
    Attack("a priority of a request that comes later", "9218 7.2", SERVES_ON,
           on_control(frame(h3.PRIORITY_UPDATE, b"\0u=1, i"))),
    Attack("a request in pieces of one byte", "9114 7.1", answers(200), with_connection(
        lambda it: [it.send(0, bytes([byte])) for byte in head(it)] and it.send(0, b"", True))),
    Attack("numbers in eight bytes", "9000 16", answers(200), on_request(
        lambda it: h3.long_varint(h3.HEADERS) + h3.long_varint(len(head(it)) - 2 - 1)
        + h3.section(it.fields()))),
    Attack("empty DATA", "9114 7.2.1", answers(200),
           on_request(post, frame(h3.DATA), BODY, frame(h3.DATA))),
    Attack("trailers", "9114 4.1", answers(200), on_request(post, BODY, TRAILERS)),
    Attack("unknown frames between and behind", "9114 4.1", answers(200), on_request(
        post, frame(h3.GREASE), BODY, frame(h3.GREASE, b"z"), TRAILERS, frame(h3.GREASE))),
]
