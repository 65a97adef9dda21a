"""Datagrams that are no packets, packets of no connection, and packets with another source."""
import os
import select
import time

from aioquic.quic.crypto import CryptoPair

import raw_h3 as h3
from attack import SERVES_ON, Attack, Expectation
from attack_floods import HOLDS, finish
from quic_link import Link, new_socket, server_address
from raw_connection import Outcome, RawConnection

VERSION_1 = 1
# Bytes of an Initial's datagram (RFC 9000 section 14.1).
DATAGRAM = 1200
# A source that has not proven its address gets three times what it sent (RFC 9000 section 8.1).
AMPLIFICATION = 3
# Bytes of a datagram with a challenge, which a server may send to a path that it does not know yet
# (RFC 9000 section 8.2.1 wants it large, and section 9.3.1 small).
CHALLENGE = 1472


def initial(frames, size=DATAGRAM, token=b"", version=VERSION_1, destination=None):
    """Returns a datagram with an Initial packet of a client."""
    destination, source = destination or os.urandom(8), os.urandom(8)
    crypto = CryptoPair()
    crypto.setup_initial(cid=destination, is_client=True, version=VERSION_1)
    start = (bytes([0xc1]) + version.to_bytes(4, "big") + bytes([8]) + destination + bytes([8])
             + source + h3.varint(len(token)) + token)
    # Two bytes of length, two of the packet's number, and the tag.
    payload = frames.ljust(size - len(start) - 2 - 2 - 16, b"\0")
    length = (len(payload) + 2 + 16 | 0x4000).to_bytes(2, "big")
    return crypto.encrypt_packet(start + length + b"\0\0", payload, 0)


def client_hello(url, **options):
    """Returns the first datagram of a client, which is as long as an Initial has to be."""
    link = Link(url, **options)
    link.socket.close()
    link.quic.connect(link.address, now=link.now())
    return link.quic.datagrams_to_send(now=link.now())


class Sources:
    """Sockets that send datagrams to a server, and count what comes back."""

    def __init__(self, url):
        self.address, self.sockets = server_address(url), []
        self.sent, self.received, self.largest = 0, 0, 0
        self.datagrams = []

    def send(self, datagram, new=True):
        """Sends a datagram, from a port of its own or from that of the last one."""
        if new or not self.sockets:
            self.sockets.append(new_socket(self.address))
        self.sockets[-1].sendto(datagram, self.address)
        self.sent += len(datagram)

    def receive(self, seconds):
        """Counts what arrives in this time, at most until nothing has come for half of it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select(self.sockets, [], [], left)
            for ready in readable:
                datagram = ready.recv(65536)
                self.received += len(datagram)
                self.datagrams.append(datagram)
        return self

    def close(self):
        """Closes the sockets."""
        for each in self.sockets:
            each.close()

    def __str__(self):
        return f"sent {self.sent} bytes, got {self.received} in {len(self.datagrams)} datagrams"


def judged(connect, sources):
    """Returns the outcome for datagrams of sources."""
    it = connect()
    outcome = finish(connect, it, str(sources))
    outcome.serves, outcome.sources = it.probe(), sources
    sources.close()
    return outcome


AMPLIFIES_LITTLE = Expectation(
    "sends at most three times the bytes", lambda outcome: outcome.serves
    and outcome.sources.received <= AMPLIFICATION * outcome.sources.sent)
SAYS_NOTHING = Expectation("says nothing", lambda outcome: outcome.serves
                           and outcome.sources.received == 0)
SAYS_LESS = Expectation(
    "says less than was sent", lambda outcome: outcome.serves
    and outcome.sources.received < outcome.sources.sent)


def datagrams(*made, seconds=0.5):
    """Returns an attack that sends datagrams from ports of their own. A function makes one of the
    URL."""
    def run(connect):
        sources = Sources(connect.url)
        for datagram in made:
            sources.send(datagram(connect.url) if callable(datagram) else datagram)
        return judged(connect, sources.receive(seconds))
    return run


def many(count, make, seconds=1):
    """Returns a flood of datagrams from many ports, which the client does not answer."""
    def run(connect):
        sources = Sources(connect.url)
        for number in range(count):
            # There are fewer descriptors than ports.
            sources.send(make(connect.url, number), new=number < 500 or number % 500 == 0)
            if len(sources.sockets) > 520:
                sources.sockets.pop(0).close()
        return judged(connect, sources.receive(seconds))
    return run


def first_hello(url, _number=0):
    """Returns a ClientHello of a new connection."""
    return client_hello(url)[0][0]


def abandoned(connect):
    """Begins 300 handshakes and completes each, but never says so again."""
    for _ in range(300):
        Link(connect.url).start().wait_until_connected().vanish()
    return finish(connect, connect(), "300 connections")


def unanswered(connect):
    """Sends one ClientHello, and looks what the server sends in ten seconds of silence."""
    sources = Sources(connect.url)
    for datagram, _ in client_hello(connect.url):
        sources.send(datagram, new=False)
    return judged(connect, sources.receive(5))


def handshake(**options):
    """Returns an attack that tries to connect with other options."""
    def run(connect):
        link = Link(connect.url, **options).start()
        end = link.now() + 5
        while link.closed is None and link.handshake is None and link.now() < end:
            link.step(0.5)
        outcome = Outcome.__new__(Outcome)
        outcome.closed, outcome.stream, outcome.status = link.closed, None, None
        outcome.note = "connected" if link.handshake else "no handshake"
        outcome.serves = RawConnection(connect.url).probe()
        link.close()
        return outcome
    return run


def spoofed(connect):
    """Lets another address send the packets of a client first, as somebody on the path can."""
    it = connect(max_data=1 << 25, max_stream_data=1 << 25)
    it.probe()
    other = Sources(connect.url)
    stream = it.stream(it.get("/large.bin"))
    for _ in range(8):
        it.wait(lambda: len(stream.data) > 10_000, 1)
        it.link.quic.send_ping(1)
        for datagram, _ in it.link.quic.datagrams_to_send(now=it.link.now()):
            other.send(datagram, new=False)
            it.link.socket.sendto(datagram, it.link.address)
    it.wait(lambda: stream.has_ended, 10)
    other.receive(1)
    outcome = Outcome(it, None, it.probe(), f"{other}; {len(stream.data)} bytes of the file")
    outcome.sources, outcome.is_whole = other, stream.is_complete
    other.close()
    return outcome


def hijacked(connect):
    """Moves to an address that never answers, and asks for much: the server must not send more than
    three times of what came from there until it has validated the path."""
    it = connect(max_data=1 << 25, max_stream_data=1 << 25)
    it.probe()
    it.link.settle(0.1)
    other = Sources(connect.url)
    it.link.quic.send_stream_data(it.link.quic.get_next_available_stream_id(),
                                  it.head("GET", "/large.bin"), True)
    for datagram, _ in it.link.quic.datagrams_to_send(now=it.link.now()):
        other.send(datagram, new=False)
    other.receive(2)
    outcome = judged(connect, other)
    return outcome


def alternating(connect):
    """Sends small packets from two addresses in turn, of which one never answers. A server that
    starts its count with each move sends that one a large datagram for each small one."""
    it = connect(max_data=1 << 25, max_stream_data=1 << 25)
    it.probe()
    it.link.settle(0.1)
    other, quic = Sources(connect.url), it.link.quic
    it.get("/large.bin")
    for _ in range(50):
        quic.send_ping(1)
        for datagram, _ in quic.datagrams_to_send(now=it.link.now()):
            if len(datagram) < 100:
                other.send(datagram, new=False)
            else:
                it.link.socket.sendto(datagram, it.link.address)
        other.receive(0.02)
        quic.send_ping(2)
        it.link.step(0.02)
    return judged(connect, other.receive(0.5))


ATTACKS = [
    Attack("a ClientHello without an answer", "9000 8.1", AMPLIFIES_LITTLE, unanswered),
    Attack("an Initial with PING only", "9000 8.1", AMPLIFIES_LITTLE,
           datagrams(initial(b"\1"), seconds=3)),
    Attack("an Initial of 1199 bytes", "9000 14.1", SAYS_NOTHING,
           datagrams(initial(b"\1", size=1199))),
    Attack("a ClientHello of which the start is cut off", "9000 14.1", SAYS_NOTHING,
           datagrams(lambda url: first_hello(url)[:1100])),
    Attack("an Initial of another version", "9000 6.1", SAYS_LESS,
           datagrams(initial(b"\1", version=0x1a2a3a4a))),
    Attack("a small Initial of another version", "9000 6.1", SAYS_NOTHING,
           datagrams(initial(b"\1", size=600, version=0x1a2a3a4a))),
    Attack("a Version Negotiation packet", "9000 6.1", SAYS_NOTHING,
           datagrams(b"\x80\0\0\0\0\x08" + bytes(8) + b"\x08" + bytes(8) + b"\0\0\0\1")),
    Attack("an Initial with a token that nobody gave", "9000 8.1.3", AMPLIFIES_LITTLE,
           datagrams(initial(b"\1", token=b"x" * 60))),
    Attack("short packets of no connection", "9000 10.3", SAYS_LESS,
           datagrams(*(b"\x40" + os.urandom(99) for _ in range(50)))),
    Attack("short packets of 21 bytes", "9000 10.3.3", SAYS_LESS,
           datagrams(*(b"\x40" + os.urandom(20) for _ in range(50)))),
    Attack("datagrams that are no packets", "9000 5.2", SAYS_LESS,
           datagrams(b"", b"\0", b"\xff", b"\xc0", b"\xc0\0\0\0\1\xff", b"GET / HTTP/1.1\r\n\r\n",
                     *(os.urandom(size) for size in range(1, 1500, 29)))),
    Attack("0-RTT of no connection", "9000 5.2.2", SAYS_LESS, datagrams(
        *(b"\xd0\0\0\0\1\x08" + os.urandom(8) + b"\x08" + os.urandom(8) + b"\x44\xb0"
          + os.urandom(1200) for _ in range(50)))),
    Attack("1000 Initials with PING only", "9000 8.1", AMPLIFIES_LITTLE,
           many(1000, lambda _url, _number: initial(b"\1"))),
    Attack("1000 ClientHellos of many ports", "9000 8.1, 21.2", AMPLIFIES_LITTLE,
           many(1000, first_hello)),
    Attack("one ClientHello from 300 ports", "9000 21.2", AMPLIFIES_LITTLE,
           lambda connect: many(300, lambda _url, _number, same=first_hello(connect.url): same)
           (connect)),
    Attack("300 connections that are abandoned", "9000 10.1", HOLDS, abandoned),
    Attack("a protocol that is not HTTP/3", "9001 8.1", Expectation(
        "closes with 0x178 no_application_protocol", lambda outcome: outcome.serves
        and outcome.closed is not None and outcome.closed["code"] == 0x178),
        handshake(alpn_protocols=["hq-interop"])),
    Attack("another version that the server need not know", "9368", SERVES_ON,
           handshake(supported_versions=[0x6b3343cf])),
    Attack("packets that another address sends first", "9000 9.3", Expectation(
        "serves the client, and sends a challenge or three times the bytes to the other",
        lambda outcome: outcome.serves and outcome.is_whole and outcome.sources.received
        <= max(CHALLENGE, AMPLIFICATION * outcome.sources.sent)), spoofed),
    Attack("a move to an address that says no more", "9000 8.2, 9.3.1", AMPLIFIES_LITTLE, hijacked),
    Attack("moves between two addresses of which one says no more", "9000 8.2, 9.3.1",
           AMPLIFIES_LITTLE, alternating),
]
