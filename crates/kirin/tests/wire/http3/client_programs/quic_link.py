"""A QUIC connection of a client on a UDP socket, by the package aioquic.

It can do what a library does not offer: send frames as they are given, leave streams unread, send
no acknowledgements, and move to another local port."""
import collections
import os
import select
import socket
import ssl
import time
from urllib.parse import urlsplit

from aioquic import tls
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicFrameType, QuicPacketType

# Seconds that a wait may take.
LIMIT = 60 * float(os.environ.get("KIRIN_TEST_WAIT_FACTOR", "1"))


class Failure(Exception):
    """Something that the server did not do."""


class Connection(QuicConnection):
    """A connection that sends the frames of `raw_packets` too, one packet for each entry."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.raw_packets = collections.deque()
        self.unread, self.reads_nothing, self.sends_no_acks = set(), False, False
        # What the server closed the connection with: kind, code, frame type, reason.
        self.close_received = None

    def _write_application(self, builder, network_path, now):
        crypto = self._cryptos[tls.Epoch.ONE_RTT]
        while self.raw_packets and crypto.send.is_valid():
            builder.start_packet(QuicPacketType.ONE_RTT, crypto)
            # The packet counts as one that elicits no acknowledgement: it is never sent again, and
            # the congestion window does not stop it.
            builder._buffer.push_bytes(self.raw_packets.popleft())
        super()._write_application(builder, network_path, now)

    def _write_stream_limits(self, builder, space, stream):
        if not self.reads_nothing and stream.stream_id not in self.unread:
            super()._write_stream_limits(builder, space, stream)

    def _write_connection_limits(self, builder, space):
        if not self.reads_nothing:
            super()._write_connection_limits(builder, space)

    def _write_ack_frame(self, builder, space, now):
        if self.sends_no_acks and self._handshake_confirmed:
            space.ack_at = None
        else:
            super()._write_ack_frame(builder, space, now)

    def _handle_connection_close_frame(self, context, frame_type, buf):
        kind = "transport" if frame_type == QuicFrameType.TRANSPORT_CLOSE else "application"
        super()._handle_connection_close_frame(context, frame_type, buf)
        event = self._close_event
        if self.close_received is None:
            self.close_received = (kind, event.error_code, event.frame_type, event.reason_phrase)


def server_address(url):
    """Returns the address of the server at a URL."""
    url = urlsplit(url)
    found = socket.getaddrinfo(url.hostname, url.port or 443, type=socket.SOCK_DGRAM)
    return found[0][4]


def new_socket(address):
    """Returns a socket on a free port, for datagrams to an address."""
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    opened.bind(("::1" if len(address) == 4 else "127.0.0.1", 0))
    opened.setblocking(False)
    return opened


def configuration(server_name="localhost", **options):
    """Returns the configuration of a client that trusts every certificate."""
    options.setdefault("alpn_protocols", ["h3"])
    options.setdefault("idle_timeout", 2 * LIMIT)
    return QuicConfiguration(
        is_client=True, verify_mode=ssl.CERT_NONE, server_name=server_name, **options
    )


class Link:
    """A connection, and the socket that it uses."""

    def __init__(self, url, **options):
        self.address = server_address(url)
        self.tickets, self.tokens, self.events = [], [], []
        self.socket = new_socket(self.address)
        self.quic = Connection(
            configuration=configuration(**options),
            session_ticket_handler=self.tickets.append,
            token_handler=self.tokens.append,
        )
        self.handshake, self.is_reset = None, False
        self.datagrams = [0, 0]
        # Whether nothing is sent.
        self.is_held = False
        # The datagrams that were sent before the first one came.
        self.first_flight = []
        # Takes each event as it arrives.
        self.on_event = self.events.append

    def start(self):
        """Sends the first packets."""
        self.quic.connect(self.address, now=self.now())
        return self

    @property
    def closed(self):
        """What ended the connection, as a dictionary, or None."""
        if self.quic.close_received is not None:
            kind, code, frame, reason = self.quic.close_received
            return {"by": "server", "kind": kind, "code": code, "frame": frame, "reason": reason}
        if self.is_reset:
            return {"by": "server", "kind": "stateless reset", "code": None, "reason": ""}
        event = self.quic._close_event
        if event is None:
            return None
        # A code of our own, or the idle timeout.
        return {"by": "client", "kind": "", "code": event.error_code, "reason": event.reason_phrase}

    @staticmethod
    def now():
        """Returns the time of the connection's clock, in seconds."""
        return time.monotonic()

    def transmit(self):
        """Sends what the connection has to send."""
        if self.is_held:
            return
        for datagram, address in self.quic.datagrams_to_send(now=self.now()):
            if self.datagrams[0] == 0:
                self.first_flight.append(datagram)
            while True:
                try:
                    self.socket.sendto(datagram, address)
                    break
                except BlockingIOError:
                    select.select([], [self.socket], [], 1)
                except OSError:
                    # The kernel has no room, or nobody listens there: the datagram is lost.
                    break
            self.datagrams[1] += 1

    def step(self, wait):
        """Sends, receives, and passes the events on. Takes at most `wait` seconds."""
        self.transmit()
        now = self.now()
        timer = self.quic.get_timer()
        if timer is not None:
            wait = max(0, min(wait, timer - now))
        readable, _, _ = select.select([self.socket], [], [], wait)
        if readable:
            for _ in range(64):
                try:
                    datagram, address = self.socket.recvfrom(65536)
                except (BlockingIOError, ConnectionRefusedError):
                    break
                self.datagrams[0] += 1
                self.look_for_reset(datagram)
                self.quic.receive_datagram(datagram, address, now=self.now())
        if timer is not None and self.now() >= timer:
            self.quic.handle_timer(now=max(timer, self.now()))
        while (event := self.quic.next_event()) is not None:
            if isinstance(event, events.HandshakeCompleted):
                self.handshake = event
            self.on_event(event)

    def look_for_reset(self, datagram):
        """Sees whether a datagram is a stateless reset (RFC 9000 section 10.3)."""
        known = [self.quic._peer_cid, *self.quic._peer_cid_available]
        tokens = [known_id.stateless_reset_token for known_id in known]
        if datagram[0] & 0x80 == 0 and any(token and datagram.endswith(token) for token in tokens):
            self.is_reset = True

    def wait(self, what, condition, limit=None):
        """Goes on until a condition is met. An end of the connection is a failure."""
        end = self.now() + (LIMIT if limit is None else limit)
        while not condition():
            if self.closed is not None:
                raise Failure(f"the connection has ended while waiting for {what}: {self.closed}")
            if self.now() > end:
                raise Failure(f"waited for {what}")
            self.step(max(0, end - self.now()))
        self.transmit()

    def wait_until_connected(self):
        """Goes on until the handshake is complete."""
        self.wait("the handshake", lambda: self.handshake is not None)
        return self

    def settle(self, seconds):
        """Goes on for a time, or until the connection has ended."""
        end = self.now() + seconds
        while self.closed is None and self.now() < end:
            self.step(max(0, end - self.now()))

    def send_frames(self, *packets):
        """Sends packets of these frames, in one datagram each or more of them in one."""
        self.quic.raw_packets.extend(packets)
        self.transmit()

    def move(self, new_id=True):
        """Continues from another local port: with another connection ID as a client that knows of
        it does, or without as after a change of a NAT."""
        if new_id:
            self.quic.change_connection_id()
        former, self.socket = self.socket, new_socket(self.address)
        former.close()
        self.quic.send_ping(0)
        self.transmit()

    def close(self, code=0x100):
        """Ends the connection."""
        self.quic.close(error_code=code)
        self.transmit()
        self.socket.close()

    def vanish(self):
        """Ends without a word, as a machine that loses its power."""
        self.socket.close()
