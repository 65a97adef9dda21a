"""Field sections and instructions of QPACK that are wrong (RFC 9204)."""
import raw_h3 as h3
from attack import HOLDS, SERVES_ON, Attack, answers, closes, either, refuses
from raw_h3 import frame, literal, prefixed

FAILED, ENCODER_ERROR, DECODER_ERROR = 0x200, 0x201, 0x202
# The numbers of these settings are 1 and 7.
CAPACITY, BLOCKED = 1, 7
# The server's capacity of the dynamic table. It is 0 if SETTINGS do not name it.


def block(*parts, prefix=b"\0\0"):
    """Returns an attack that sends a request with a field section, and more lines behind it."""
    def run(connect):
        it = connect()
        data = h3.section(it.fields(), prefix) + b"".join(parts)
        return it.react(it.new_request(frame(h3.HEADERS, data), fin=True))
    return run


def only(data):
    """Returns an attack that sends a HEADERS frame with these bytes."""
    def run(connect):
        it = connect()
        return it.react(it.new_request(frame(h3.HEADERS, data), fin=True))
    return run


def instructions(which, *parts):
    """Returns an attack that sends instructions on the encoder or the decoder stream."""
    def run(connect):
        it = connect()
        for part in parts:
            it.send(getattr(it, which), part)
        return it.react()
    return run


def static_get(it):
    """Returns a GET by the static table, where this is possible."""
    authority, path = it.authority.encode(), b"/hello.txt"
    return (b"\0\0" + b"\xd1" + b"\xd7" + b"\x50" + prefixed(0, 7, len(authority)) + authority
            + b"\x51" + prefixed(0, 7, len(path)) + path)


def static_request(*more):
    """Returns an attack that sends such a GET, with more lines."""
    def run(connect):
        it = connect()
        return it.react(it.new_request(frame(h3.HEADERS, static_get(it) + b"".join(more)), True))
    return run


def insert(name, value):
    """Returns an instruction that inserts a field with a literal name."""
    return prefixed(0x40, 5, len(name)) + name + prefixed(0, 7, len(value)) + value


# An integer that needs more than 62 bits, in five and in thirty bytes more.
HUGE = b"\xff" * 12 + b"\x7f"
ENDLESS = b"\x80" * 30 + b"\x01"
HUFFMAN_EOS = b"\xff\xff\xff\xff"

ATTACKS = [
    Attack("the static table", "9204 3.1", answers(200), static_request()),
    Attack("a value in the Huffman code", "9204 4.1.2", answers(200),
           static_request(literal("x-a", "")[:-1] + b"\x82\x1c\x64")),
    Attack("a line that is never indexed", "9204 4.5.6", answers(200),
           static_request(b"\x33x-a\x01b")),
    *(Attack(name, f"9204 {section}", closes(FAILED), run) for name, section, run in [
        ("no field section", "4.5", only(b"")),
        ("half a prefix", "4.5.1", only(b"\0")),
        ("a static entry that does not exist", "3.1", block(prefixed(0xc0, 6, 99))),
        ("a static entry of 2^40", "3.1", block(prefixed(0xc0, 6, 1 << 40))),
        ("a name of a static entry that does not exist", "3.1",
         block(prefixed(0x50, 4, 99) + b"\0")),
        ("an insert count of a table that is not allowed", "4.5.1.1", only(b"\x02\0\x80")),
        ("a dynamic entry without an insert count", "2.2.3", block(b"\x80")),
        ("a dynamic name without an insert count", "2.2.3", block(b"\x40\x01v")),
        ("an entry behind the base without an insert count", "2.2.3", block(b"\x10")),
        ("a name behind the base without an insert count", "2.2.3", block(b"\x00\x01v")),
        ("a negative base without an insert count", "4.5.1.2", block(b"\x80", prefix=b"\0\x80")),
        ("a value that is cut", "4.5.6", block(literal("x", "12345")[:-1])),
        ("a name that is cut", "4.5.6", block(b"\x27\x05ab")),
        ("a length that is cut", "4.1.1", block(b"\x27")),
        ("a length of more than 62 bits", "4.1.1", block(b"\x27" + HUGE)),
        ("an integer without an end", "4.1.1", block(b"\x27" + ENDLESS)),
        ("a length of 2^40", "4.1.1", block(prefixed(0x20, 3, 1 << 40) + b"x")),
        ("the end of the Huffman code in a value", "4.1.2, 7541 5.2",
         block(b"\x23x-a\x84" + HUFFMAN_EOS)),
        ("Huffman padding of zeros", "4.1.2, 7541 5.2", block(b"\x23x-a\x81\x18")),
        ("Huffman padding of a byte", "4.1.2, 7541 5.2", block(b"\x23x-a\x82\x1f\xff")),
        ("no section in trailers", "4.5", lambda connect: trailers_of_nothing(connect)),
    ]),
    *(Attack(name, f"9204 {section}", closes(ENCODER_ERROR), instructions("encoder", *parts))
      for name, section, parts in [
        ("a capacity of more than the limit", "4.3.1", [prefixed(0x20, 5, 1 << 30)]),
        ("a capacity of more than 62 bits", "4.1.1", [b"\x3f" + HUGE]),
        ("an entry that is larger than the table", "3.2.2", [insert(b"x", b"y" * 70_000)]),
        ("a duplicate of no entry", "4.3.4", [b"\0"]),
        ("a name of no entry", "4.3.2", [b"\x85\x01v"]),
        ("a name of no static entry", "4.3.2", [prefixed(0xc0, 6, 99) + b"\x01v"]),
        ("a name in a wrong Huffman code", "4.1.2", [b"\x64" + HUFFMAN_EOS + b"\x01v"]),
    ]),
    *(Attack(name, f"9204 {section}", closes(DECODER_ERROR), instructions("decoder", *parts))
      for name, section, parts in [
        ("an increment of 0", "4.4.3", [b"\0"]),
        ("an increment of more than was inserted", "4.4.3", [b"\x3e"]),
        ("an increment of more than 62 bits", "4.1.1", [b"\x3f" + HUGE]),
        ("an acknowledgement of no section", "4.4.1", [b"\x80"]),
    ]),
    Attack("an acknowledgement in pieces", "9204 4.4.1", closes(DECODER_ERROR),
           instructions("decoder", b"\xff", b"\x80", b"\x01")),
    Attack("a cancellation of a stream", "9204 4.4.2", SERVES_ON,
           instructions("decoder", b"\x40", b"\x44")),
    Attack("a capacity of 0", "9204 4.3.1", SERVES_ON, instructions("encoder", b"\x20")),
    # These take memory or time, if a server lets them.
    Attack("a string without an end on the encoder stream", "9204 4.1.3, 7.4",
           either(closes(ENCODER_ERROR, 0x107), HOLDS),
           instructions("encoder", prefixed(0x40, 5, 1 << 40), *[b"x" * 50_000] * 40)),
    Attack("200,000 capacities of 0", "9204 7.1", HOLDS,
           instructions("encoder", *[b"\x20" * 10_000] * 20)),
    Attack("200,000 cancellations", "9204 7.1", HOLDS,
           instructions("decoder", *[b"\x44" * 10_000] * 20)),
    # Each byte is a field of 44 bytes or more.
    Attack("60,000 references to the static table", "9204 7.1, 9114 4.2.2",
           either(refuses(0x107), HOLDS), static_request(prefixed(0xc0, 6, 57) * 30_000)),
    Attack("1,000,000 references to the static table", "9204 7.1, 9114 4.2.2",
           either(refuses(0x107), HOLDS), static_request(b"\xdd" * 1_000_000)),
]


def trailers_of_nothing(connect):
    """Sends an empty HEADERS frame behind a body."""
    it = connect()
    data = it.head("POST", "/app/body") + frame(h3.DATA, b"12345") + frame(h3.HEADERS)
    return it.react(it.new_request(data, fin=True))
