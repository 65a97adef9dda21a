"""Frames of QUIC that are wrong (RFC 9000), in packets that are right."""
import raw_h3 as h3
from attack import SERVES_ON, Attack, answers, either, transport_error
from raw_h3 import stream_frame, varint

FLOW_CONTROL, STREAM_LIMIT, STREAM_STATE, FINAL_SIZE = 0x3, 0x4, 0x5, 0x6
ENCODING, ID_LIMIT, VIOLATION, CRYPTO_EXCEEDED = 0x7, 0x9, 0xa, 0xd
RESET_STREAM, STOP_SENDING, CRYPTO, NEW_TOKEN, MAX_DATA, MAX_STREAM_DATA = 4, 5, 6, 7, 16, 17
MAX_STREAMS, DATA_BLOCKED, STREAM_DATA_BLOCKED, STREAMS_BLOCKED = 18, 20, 21, 22
NEW_CONNECTION_ID, RETIRE_CONNECTION_ID, PATH_CHALLENGE, PATH_RESPONSE = 24, 25, 26, 27
HANDSHAKE_DONE, ACK, PING = 30, 2, 1


def quic_frame(kind, *numbers, rest=b""):
    """Returns a frame of QUIC that has numbers first."""
    return varint(kind) + b"".join(varint(number) for number in numbers) + rest


def new_id(sequence, retire_prior_to, identifier=None):
    """Returns a NEW_CONNECTION_ID frame."""
    identifier = sequence.to_bytes(8, "big") if identifier is None else identifier
    return (quic_frame(NEW_CONNECTION_ID, sequence, retire_prior_to)
            + bytes([len(identifier)]) + identifier + bytes(16))


def sends(*packets):
    """Returns an attack that sends packets of these frames. Each can be a function of the
    connection."""
    def run(connect):
        it = connect()
        # The server confirms the handshake first, so that nothing is lost.
        it.probe()
        for packet in packets:
            it.link.send_frames(packet(it) if callable(packet) else packet)
        return it.react()
    return run


def post(it, body=b""):
    """Begins a POST with `aioquic` and returns its stream and the offset behind what was sent."""
    data = it.head("POST", "/app/body") + body
    return it.new_request(data), len(data)


def behind_a_post(make):
    """Returns an attack that sends the frames that a function makes of a stream and its offset."""
    def run(connect):
        it = connect()
        it.probe()
        stream, offset = post(it)
        it.link.settle(0.05)
        it.link.send_frames(make(stream, offset, it))
        return it.react()
    return run


def window(it, stream):
    """Returns the largest offset that the server allows on a stream."""
    return it.link.quic._streams[stream].max_stream_data_remote


def over_the_connection(connect):
    """Sends the last byte of each stream's window, on as many streams as the connection's window
    has no room for."""
    it = connect()
    it.probe()
    quic = it.link.quic
    each = quic._remote_max_stream_data_bidi_remote
    count = quic._remote_max_data // each + 2
    first = quic.get_next_available_stream_id()
    if first // 4 + count > quic._remote_max_streams_bidi:
        # Not so many streams are allowed, so the streams' windows are the limit.
        it.link.send_frames(stream_frame(first, b"x", each))
    else:
        for number in range(count):
            it.link.send_frames(stream_frame(first + 4 * number, b"x", each - 1))
    return it.react()


ERRORS = [
    ("a stream of more than the limit", "4.6", STREAM_LIMIT,
     sends(lambda it: stream_frame(4 * (it.link.quic._remote_max_streams_bidi + 100_000), b"x"))),
    ("a unidirectional stream of more than the limit", "4.6", STREAM_LIMIT,
     sends(lambda it: stream_frame(4 * (it.link.quic._remote_max_streams_uni + 100_000) + 2, b""))),
    ("more data than the stream's window", "4.1", FLOW_CONTROL,
     behind_a_post(lambda stream, _, it: stream_frame(stream, b"x", window(it, stream)))),
    ("more data than the connection's window", "4.1", FLOW_CONTROL, over_the_connection),
    ("an offset of 2^62", "4.5, 19.8", (ENCODING, FLOW_CONTROL),
     behind_a_post(lambda stream, _, it: stream_frame(stream, b"xx", (1 << 62) - 1))),
    ("data behind the end", "4.5", FINAL_SIZE, behind_a_post(
        lambda stream, at, _: stream_frame(stream, b"", at, True)
        + stream_frame(stream, b"x", at))),
    ("another end", "4.5", FINAL_SIZE, behind_a_post(
        lambda stream, at, _: stream_frame(stream, b"", at + 5, True)
        + stream_frame(stream, b"", at + 6, True))),
    ("an end before what was sent", "4.5", FINAL_SIZE,
     behind_a_post(lambda stream, at, _: stream_frame(stream, b"", at - 1, True))),
    ("a reset before what was sent", "4.5", FINAL_SIZE,
     behind_a_post(lambda stream, at, _: quic_frame(RESET_STREAM, stream, 0x100, at - 1))),
    ("a reset with more than the window", "4.5", FLOW_CONTROL, behind_a_post(
        lambda stream, at, it: quic_frame(RESET_STREAM, stream, 0x100, window(it, stream) + 1))),
    ("STREAM of a stream of the server", "19.8", STREAM_STATE, sends(stream_frame(3, b"x"))),
    ("STREAM of a stream that the server has not opened", "19.8", STREAM_STATE,
     sends(stream_frame(1, b"x"))),
    ("RESET_STREAM of a stream of the server", "19.4", STREAM_STATE,
     sends(quic_frame(RESET_STREAM, 3, 0x100, 0))),
    ("STOP_SENDING of a stream of the client", "19.5", STREAM_STATE,
     sends(quic_frame(STOP_SENDING, 2, 0x100))),
    ("STOP_SENDING of a stream that the server has not opened", "19.5", STREAM_STATE,
     sends(quic_frame(STOP_SENDING, 1, 0x100))),
    ("MAX_STREAM_DATA of a stream of the client", "19.10", STREAM_STATE,
     sends(quic_frame(MAX_STREAM_DATA, 2, 1 << 20))),
    ("MAX_STREAM_DATA of a stream that the server has not opened", "19.10", STREAM_STATE,
     sends(quic_frame(MAX_STREAM_DATA, 1, 1 << 20))),
    ("STREAM_DATA_BLOCKED of a stream of the server", "19.13", STREAM_STATE,
     sends(quic_frame(STREAM_DATA_BLOCKED, 3, 1 << 20))),
    ("MAX_STREAMS of more than 2^60", "19.11", ENCODING,
     sends(quic_frame(MAX_STREAMS, (1 << 60) + 1))),
    ("STREAMS_BLOCKED of more than 2^60", "19.14", (ENCODING, STREAM_LIMIT),
     sends(quic_frame(STREAMS_BLOCKED, (1 << 60) + 1))),
    ("an unknown frame", "12.4", ENCODING, sends(varint(0x21))),
    ("a frame that is cut", "12.4", ENCODING, sends(quic_frame(RESET_STREAM, 0)[:2])),
    ("a frame with a length that is too large", "12.4", ENCODING,
     sends(bytes([0x0a]) + varint(0) + varint(1000) + b"x")),
    ("HANDSHAKE_DONE of a client", "19.20", VIOLATION, sends(quic_frame(HANDSHAKE_DONE))),
    ("NEW_TOKEN of a client", "19.7", VIOLATION, sends(quic_frame(NEW_TOKEN, 4, rest=b"abcd"))),
    ("an acknowledgement of packets never sent", "13.1", VIOLATION,
     sends(quic_frame(ACK, 1 << 20, 0, 0, 0))),
    ("an acknowledgement of all packets to come", "13.1", VIOLATION,
     sends(quic_frame(ACK, 1 << 20, 0, 0, 1 << 20))),
    ("an acknowledgement with a range below 0", "19.3.1", ENCODING,
     sends(quic_frame(ACK, 1, 0, 0, 5))),
    ("the retirement of an unknown connection ID", "19.16", VIOLATION,
     sends(quic_frame(RETIRE_CONNECTION_ID, 5000))),
    ("a connection ID that retires later ones", "19.15", ENCODING, sends(new_id(2, 3))),
    ("a connection ID of 21 bytes", "19.15", ENCODING, sends(new_id(2, 0, bytes(21)))),
    ("a connection ID of no bytes", "19.15", ENCODING, sends(new_id(2, 0, b""))),
    ("too many connection IDs", "5.1.1", ID_LIMIT,
     sends(b"".join(new_id(number, 0) for number in range(20, 50)))),
    # These are errors of TLS: 0x100 and an alert.
    ("a TLS message that is none", "9001 4.8", 0x10a,
     sends(quic_frame(CRYPTO, 0, 8, rest=b"\xff\0\0\x04abcd"))),
]


def expected(codes):
    """Returns the expectation of an error, or of one of several."""
    codes = codes if isinstance(codes, tuple) else (codes,)
    if codes == (0x10a,):
        return transport_error(*range(0x100, 0x200))
    return transport_error(*codes)


def overlap(connect):
    """Sends a request of which every part comes twice, and in the wrong order."""
    it = connect()
    it.probe()
    stream = it.link.quic.get_next_available_stream_id()
    data = it.head()
    parts = [stream_frame(stream, data[at:at + 7], at, at + 7 >= len(data))
             for at in range(0, len(data), 3)]
    # The library takes the response only if it knows of the stream.
    it.link.quic._get_or_create_stream_for_send(stream)
    it.link.send_frames(*reversed(parts), *parts)
    return it.react(stream)


ATTACKS = [
    *(Attack(name, section if section.startswith("9001") else f"9000 {section}", expected(codes),
             run) for name, section, codes, run in ERRORS),
    # Of these the RFC allows both.
    Attack("an answer to no path challenge", "9000 19.18 (may)",
           either(transport_error(VIOLATION), SERVES_ON),
           sends(quic_frame(PATH_RESPONSE, rest=b"12345678"))),
    # The library has issued one with this number.
    Attack("one number for two connection IDs", "9000 19.15 (may)",
           either(transport_error(VIOLATION), SERVES_ON), sends(new_id(2, 0, b"12345678"))),
    Attack("CRYPTO far behind the end", "9000 7.5 (may)",
           either(transport_error(CRYPTO_EXCEEDED), SERVES_ON),
           sends(quic_frame(CRYPTO, 1 << 30, 1, rest=b"x"))),
    Attack("smaller windows than before", "9000 4.1", SERVES_ON,
           sends(quic_frame(MAX_DATA, 1) + quic_frame(MAX_STREAMS, 1))),
    Attack("frames that say the client is blocked", "9000 4.1", SERVES_ON,
           sends(quic_frame(DATA_BLOCKED, 5) + quic_frame(STREAMS_BLOCKED, 5)
                 + quic_frame(STREAM_DATA_BLOCKED, 2, 5))),
    Attack("a challenge of the path", "9000 8.2.2", SERVES_ON,
           sends(quic_frame(PATH_CHALLENGE, rest=b"12345678"))),
    Attack("a request in overlapping pieces", "9000 2.2", answers(200), overlap),
]
