"""The frames of WebSocket, alone and against the package `websockets`."""
import random
import unittest

from asgi_front import software
from client_frames import KEY, sent

from kirin.asgi import deflate, frames, handshake
from kirin.asgi.frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, FrameError, Receiver

software("websockets")

from websockets.client import ClientProtocol  # noqa: E402
from websockets.extensions.permessage_deflate import (  # noqa: E402
    ClientPerMessageDeflateFactory,
)
from websockets.frames import Opcode  # noqa: E402
from websockets.http11 import Response  # noqa: E402
from websockets.datastructures import Headers  # noqa: E402
from websockets.uri import parse_uri  # noqa: E402

def events(data, receiver=None):
    receiver = receiver or Receiver()
    receiver.feed(data)
    found = []
    while True:
        event = receiver.next()
        if event is None:
            return found
        found.append(tuple(event))


class ReceiverTest(unittest.TestCase):
    def test_a_mask_is_an_exclusive_or_with_its_four_bytes(self):
        for size in range(70):
            data = random.randbytes(size)
            expected = bytes(byte ^ KEY[index % 4] for index, byte in enumerate(data))
            self.assertEqual(frames.mask(data, KEY), expected)

    def test_messages_and_control_frames(self):
        for size in (0, 1, 125, 126, 65535, 65536, 100_000):
            with self.subTest(size):
                self.assertEqual(events(sent(BINARY, b"x" * size)), [(BINARY, b"x" * size)])
        self.assertEqual(events(sent(TEXT, "é".encode())), [(TEXT, "é")])
        data = (
            sent(TEXT, b"\xc3", first=0) + sent(PING, b"1") + sent(CONTINUATION, b"", first=0)
            + sent(PONG, b"2") + sent(CONTINUATION, b"\xa9") + sent(CLOSE, b"\x03\xe8bye")
        )
        expected = [(PING, b"1"), (PONG, b"2"), (TEXT, "é"), (CLOSE, (1000, "bye"))]
        self.assertEqual(events(data), expected)
        receiver, found = Receiver(), []
        for byte in data:
            found += events(bytes([byte]), receiver)
        self.assertEqual(found, expected)
        self.assertEqual(events(sent(CLOSE, b"")), [(CLOSE, (1005, ""))])

    def test_wrong_frames_are_refused(self):
        for name, code, data in (
            ("no mask", 1002, b"\x81\x01a"),
            ("reserved bit", 1002, sent(TEXT, b"", first=0x90)),
            ("reserved bit", 1002, sent(TEXT, b"", first=0xA0)),
            ("compressed without agreement", 1002, sent(TEXT, b"", first=0xC0)),
            ("unknown opcode", 1002, sent(3, b"")),
            ("unknown control opcode", 1002, sent(11, b"")),
            ("fragmented ping", 1002, sent(PING, b"", first=0)),
            ("long ping", 1002, sent(PING, b"x" * 126)),
            ("long close", 1002, sent(CLOSE, b"\x03\xe8" + b"x" * 124)),
            ("compressed ping", 1002, sent(PING, b"", first=0xC0)),
            ("continuation of nothing", 1002, sent(CONTINUATION, b"")),
            ("message in a message", 1002, sent(TEXT, b"", first=0) + sent(TEXT, b"")),
            ("length not shortest", 1002, sent(BINARY, b"x", length=b"\xfe\x00\x01")),
            ("length not shortest", 1002,
             sent(BINARY, b"x", length=b"\xff" + (1).to_bytes(8, "big"))),
            ("huge length", 1009, sent(BINARY, b"", length=b"\xff" + b"\xff" * 8)),
            ("too long", 1009,
             sent(BINARY, b"", length=b"\xff" + (frames.MESSAGE_BYTES + 1).to_bytes(8, "big"))),
            ("text not UTF-8", 1007, sent(TEXT, b"\xff")),
            ("text ends in a character", 1007, sent(TEXT, b"\xc3")),
            ("surrogate", 1007, sent(TEXT, b"\xed\xa0\x80")),
            ("reason not UTF-8", 1007, sent(CLOSE, b"\x03\xe8\xff")),
            ("half a code", 1002, sent(CLOSE, b"\x03")),
            ("code 999", 1002, sent(CLOSE, (999).to_bytes(2, "big"))),
            ("code 1005", 1002, sent(CLOSE, (1005).to_bytes(2, "big"))),
            ("code 5000", 1002, sent(CLOSE, (5000).to_bytes(2, "big"))),
        ):
            with self.subTest(name), self.assertRaises(FrameError) as raised:
                events(data)
            self.assertEqual(raised.exception.code, code, name)

    def test_a_message_of_many_fragments_has_a_limit(self):
        receiver = Receiver(message_bytes=100)
        self.assertEqual(events(sent(TEXT, b"x" * 60, first=0), receiver), [])
        for _ in range(1000):
            self.assertEqual(events(sent(CONTINUATION, b"", first=0), receiver), [])
        with self.assertRaises(FrameError) as raised:
            events(sent(CONTINUATION, b"x" * 41)[:6], receiver)
        self.assertEqual(raised.exception.code, 1009)

    def test_random_bytes_raise_nothing_else(self):
        generator = random.Random(1)
        for _ in range(3000):
            receiver = Receiver(deflate.agreed("permessage-deflate").decompress)
            data = bytearray(sent(generator.choice((0, 1, 2, 8, 9)), generator.randbytes(20)))
            for _ in range(generator.randrange(4)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            try:
                events(bytes(data), receiver)
            except FrameError:
                continue

    def test_a_close_frame_fits_into_a_control_frame(self):
        for reason in ("é" * 100, "x" * 200, "x" + "é" * 100):
            data = frames.close_frame(1000, reason)
            self.assertLessEqual(len(data), 2 + 125)
            self.assertTrue(reason.startswith(data[4:].decode()))
            self.assertGreaterEqual(len(data), 2 + 124)


class DeflateTest(unittest.TestCase):
    def test_offers(self):
        for field, answer in (
            ("", None), ("x-webkit-deflate-frame", None), ("permessage-deflate; x", None),
            ("permessage-deflate; server_max_window_bits=8", None),
            ("permessage-deflate; server_max_window_bits", None),
            ("permessage-deflate; server_max_window_bits=16", None),
            ("permessage-deflate; client_max_window_bits=10; client_max_window_bits", None),
            ("permessage-deflate; server_no_context_takeover=1", None),
            ("permessage-deflate", "permessage-deflate; server_max_window_bits=12"),
            ("permessage-deflate; server_max_window_bits=8, permessage-deflate",
             "permessage-deflate; server_max_window_bits=12"),
            ('Permessage-Deflate; server_max_window_bits="9"; client_max_window_bits;'
             " client_no_context_takeover; server_no_context_takeover",
             "permessage-deflate; server_max_window_bits=9; client_max_window_bits=12;"
             " server_no_context_takeover; client_no_context_takeover"),
        ):
            with self.subTest(field):
                agreed = deflate.agreed(field)
                self.assertEqual(agreed and agreed.answer, answer)

    def test_a_small_message_cannot_become_a_large_one(self):
        agreed = deflate.agreed("permessage-deflate")
        bomb = agreed.compress(b"\0" * 2_000_000)
        self.assertLess(len(bomb), 10_000)
        receiver = Receiver(agreed.decompress, message_bytes=1_000_000)
        with self.assertRaises(FrameError) as raised:
            events(sent(BINARY, bomb, first=0xC0), receiver)
        self.assertEqual(raised.exception.code, 1009)
        with self.assertRaises(FrameError) as raised:
            broken = Receiver(deflate.agreed("permessage-deflate").decompress)
            events(sent(BINARY, b"\xff\xff", first=0xC0), broken)
        self.assertEqual(raised.exception.code, 1007)

    def test_websockets_understands_what_is_sent_and_the_other_way_round(self):
        for options in (
            None, {}, {"client_max_window_bits": 9}, {"server_max_window_bits": 9},
            {"client_no_context_takeover": True, "server_no_context_takeover": True},
        ):
            with self.subTest(options):
                client, agreed = self.client(options)
                receiver = Receiver(agreed and agreed.decompress)
                for size in (0, 5, 64, 500, 70_000):
                    text = "".join(random.choices("abcé ", k=size))
                    client.send_text(text.encode())
                    client.send_binary(text.encode())
                    found = events(b"".join(client.data_to_send()), receiver)
                    self.assertEqual(found, [(TEXT, text), (BINARY, text.encode())])
                    data = text.encode()
                    is_compressed = agreed is not None and size >= deflate.SMALLEST_BYTES
                    payload = agreed.compress(data) if is_compressed else data
                    client.receive_data(frames.frame(TEXT, payload, is_compressed))
                    event = client.events_received()[-1]
                    self.assertEqual((event.opcode, event.data), (Opcode.TEXT, data))
                client.receive_data(frames.close_frame(4001, "end"))
                self.assertEqual((client.close_rcvd.code, client.close_rcvd.reason), (4001, "end"))

    def client(self, options):
        """Returns a client of `websockets` behind its handshake, and what has been agreed on."""
        extensions = None if options is None else [ClientPerMessageDeflateFactory(**options)]
        client = ClientProtocol(parse_uri("ws://localhost/"), extensions=extensions)
        request = client.connect()
        client.send_request(request)
        client.data_to_send()
        agreed = deflate.agreed(request.headers.get("Sec-WebSocket-Extensions", ""))
        value = handshake.accept_value(
            {b"HTTP_SEC_WEBSOCKET_KEY": request.headers["Sec-WebSocket-Key"].encode()}
        )
        headers = Headers(Upgrade="websocket", Connection="Upgrade")
        headers["Sec-WebSocket-Accept"] = value
        if agreed:
            headers["Sec-WebSocket-Extensions"] = agreed.answer
        client.receive_data(Response(101, "Switching Protocols", headers).serialize())
        self.assertIsNone(client.handshake_exc)
        return client, agreed


if __name__ == "__main__":
    unittest.main()
