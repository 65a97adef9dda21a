"""WebSockets of ASGI applications."""
import signal
import threading
import unittest

from asgi_front import AsgiFront, program
from client_frames import sent
from fake_front import wait_until

from kirin.asgi import frames
from kirin.asgi.frames import BINARY, CLOSE, PING, TEXT

SOCKET = program('''
if scope["type"] == "http": return await answer(send, b"alive")
path = scope["path"]
assert (await receive())["type"] == "websocket.connect"
def told(event):
    with open(os.path.join(here, "told-" + path[1:]), "w") as file:
        file.write(f"{event['type']} {event.get('code')} {event.get('reason')}")
if path == "/refuse": return await send({"type": "websocket.close"})
if path == "/nothing": return
if path == "/raise": raise RuntimeError("on purpose")
if path == "/denial":
    await send({"type": "websocket.http.response.start", "status": 418,
        "headers": [(b"x-why", b"tea")]})
    await send({"type": "websocket.http.response.body", "body": b"no ", "more_body": True})
    await send({"type": "websocket.http.response.body", "body": b"coffee"})
    return told(await receive())
if path == "/wait":
    note("waiting"); told(await receive())
    try: await send({"type": "websocket.accept"})
    except OSError: note("refused")
    return
protocols = scope["subprotocols"]
await send({"type": "websocket.accept", "subprotocol": protocols[-1] if protocols else None,
    "headers": [(b"x-own", b"1")]})
if path == "/return": return
if path == "/fail": raise RuntimeError("on purpose")
if path == "/close": await send({"type": "websocket.close", "code": 4000, "reason": "enough"})
if path == "/flood":
    try:
        while True: await send({"type": "websocket.send", "bytes": b"x" * 100000})
    except OSError: note("stopped")
    return
if path == "/lazy": await noted("go")
if path == "/drain":
    await noted("go")
    count = 0
    while (event := await receive())["type"] == "websocket.receive": count += len(event["text"])
    return told({**event, "reason": count})
while True:
    event = await receive()
    if event["type"] == "websocket.disconnect":
        told(event)
        try: await send({"type": "websocket.send", "text": "late"})
        except OSError: note("late-refused")
        return
    await send({"type": "websocket.send", "text": event["text"], "bytes": event["bytes"]})
''')

HANDSHAKE = {
    "HTTP_UPGRADE": "websocket",
    "HTTP_CONNECTION": "Upgrade",
    "HTTP_SEC_WEBSOCKET_VERSION": "13",
    "HTTP_SEC_WEBSOCKET_KEY": "dGhlIHNhbXBsZSBub25jZQ==",
}


class WebSocketTest(unittest.TestCase):
    def setUp(self):
        self.front = AsgiFront(SOCKET)
        self.addCleanup(lambda: self.front.__exit__())
        self.pid = self.front.ready()

    def shake(self, path, **values):
        """Returns a connection, and the response to the handshake."""
        connection = self.front.open()
        connection.send(PATH_INFO=path, REQUEST_URI=path, **{**HANDSHAKE, **values})
        return connection, connection.response()

    def opened(self, path="/echo", **values):
        connection, response = self.shake(path, **values)
        self.assertEqual(response.status, 101)
        return connection

    def frame(self, connection):
        """Returns the next short frame of the worker."""
        first, length = connection.read_bytes(2)
        return first, connection.read_bytes(length)

    def told(self, name):
        return wait_until(lambda: self.front.text("told-" + name))

    def test_a_handshake_is_answered(self):
        connection, response = self.shake("/echo", HTTP_SEC_WEBSOCKET_PROTOCOL="a, b")
        self.assertEqual(response.status, 101)
        self.assertEqual(response.headers, [
            ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            ("Sec-WebSocket-Protocol", "b"), ("x-own", "1"), ("Connection", "Upgrade"),
        ])
        connection.connection.sendall(sent(TEXT, b"hi"))
        self.assertEqual(self.frame(connection), (0x81, b"hi"))
        connection.connection.sendall(sent(PING, b"p") + sent(BINARY, b"bytes"))
        self.assertEqual(self.frame(connection), (0x8A, b"p"))
        self.assertEqual(self.frame(connection), (0x82, b"bytes"))
        connection.connection.sendall(sent(CLOSE, b"\x0f\xa1why"))
        self.assertEqual(self.frame(connection), (0x88, b"\x0f\xa1why"))
        self.assertTrue(connection.is_closed())
        self.assertEqual(self.told("echo"), "websocket.disconnect 4001 why")
        wait_until(lambda: self.front.noted("late-refused"))

    def test_messages_are_compressed_if_the_client_offers_that(self):
        offer = {"HTTP_SEC_WEBSOCKET_EXTENSIONS": "permessage-deflate; client_max_window_bits"}
        connection, response = self.shake("/echo", **offer)
        self.assertIn("permessage-deflate", response.header["sec-websocket-extensions"])
        connection.connection.sendall(sent(BINARY, b"x" * 1000))
        first, payload = self.frame(connection)
        self.assertEqual(first, 0xC2)
        self.assertLess(len(payload), 100)

    def test_wrong_handshakes_are_refused(self):
        for status, name, value in (
            (426, "HTTP_SEC_WEBSOCKET_VERSION", "12"),
            (400, "HTTP_SEC_WEBSOCKET_KEY", ""), (400, "HTTP_SEC_WEBSOCKET_KEY", "c2hvcnQ="),
            (400, "HTTP_SEC_WEBSOCKET_KEY", "dGhlIHNhbXBsZSBub25jZQ"),
            (400, "HTTP_SEC_WEBSOCKET_KEY", "\xe4" * 24),
        ):
            with self.subTest(value):
                connection, response = self.shake("/echo", **{name: value})
                self.assertEqual(response.status, status)
                self.assertEqual(connection.get("/").body, b"alive")
        for values in ({"HTTP_UPGRADE": "h2c"}, {"REQUEST_METHOD": "POST"},
                       {"SERVER_PROTOCOL": "HTTP/1.0"}):
            self.assertEqual(self.shake("/", **values)[1].body, b"alive")

    def test_an_application_may_refuse(self):
        for path, status in (("/refuse", 403), ("/nothing", 500), ("/raise", 500)):
            with self.subTest(path):
                connection, response = self.shake(path)
                self.assertEqual(response.status, status)
                self.assertEqual(connection.get("/").body, b"alive")
        connection, response = self.shake("/denial")
        self.assertEqual((response.status, response.body), (418, b"no coffee"))
        self.assertEqual(response.header["x-why"], "tea")
        self.assertEqual(self.told("denial").split()[0], "websocket.disconnect")
        self.assertEqual(connection.get("/").body, b"alive")

    def test_the_application_may_end_it(self):
        for path, code, reason in (
            ("/close", 4000, b"enough"), ("/return", 1000, b""), ("/fail", 1011, b""),
        ):
            with self.subTest(path):
                connection = self.opened(path)
                closing = code.to_bytes(2, "big") + reason
                self.assertEqual(self.frame(connection), (0x88, closing))
                connection.connection.sendall(sent(TEXT, b"late") + sent(CLOSE, closing[:2]))
                self.assertTrue(connection.is_closed())
        self.assertIn("RuntimeError: on purpose", self.front.log())

    def test_wrong_frames_end_it(self):
        for data, code in (
            (b"\x81\x01a", 1002), (sent(TEXT, b"\xff"), 1007), (sent(3, b""), 1002),
            (sent(BINARY, b"", length=b"\xff" + (1 << 40).to_bytes(8, "big")), 1009),
        ):
            with self.subTest(data):
                connection = self.opened(f"/wrong-{code}")
                connection.connection.sendall(data)
                first, payload = self.frame(connection)
                self.assertEqual((first, int.from_bytes(payload[:2], "big")), (0x88, code))
                self.assertTrue(connection.is_closed())
                self.assertRegex(self.told(f"wrong-{code}"), f"^websocket.disconnect {code} ")
        self.assertEqual(self.front.get("/").body, b"alive")

    def test_disconnect_says_why(self):
        connection = self.opened("/gone")
        connection.disconnect()
        self.assertRegex(self.told("gone"), "^websocket.disconnect 1006 ")
        connection = self.opened("/silent")
        connection.connection.sendall(sent(CLOSE, b""))
        self.assertEqual(self.frame(connection), (0x88, b""))
        self.assertRegex(self.told("silent"), "^websocket.disconnect 1005 ")

    def test_a_client_may_go_before_the_answer(self):
        connection = self.front.open()
        connection.send(PATH_INFO="/wait", **HANDSHAKE)
        wait_until(lambda: self.front.noted("waiting"))
        connection.disconnect()
        self.assertRegex(self.told("wait"), "^websocket.disconnect 1006 ")
        wait_until(lambda: self.front.noted("refused"))

    def test_bytes_before_the_answer_end_the_connection(self):
        connection = self.front.open()
        connection.send(PATH_INFO="/wait", **HANDSHAKE)
        wait_until(lambda: self.front.noted("waiting"))
        connection.connection.sendall(sent(TEXT, b"early"))
        self.assertTrue(connection.is_closed())
        wait_until(lambda: self.front.noted("refused"))

    def test_a_client_that_takes_nothing_stops_the_sender_only(self):
        slow = self.opened("/flood")
        self.assertEqual(self.front.get("/").body, b"alive")
        slow.disconnect()
        wait_until(lambda: self.front.noted("stopped"))

    def test_a_client_waits_while_the_application_receives_nothing(self):
        connection = self.opened("/lazy")
        connection.connection.settimeout(0)
        data, count = sent(BINARY, b"x" * 1000), 0
        # The socket gets full only if the worker stops to read.
        with self.assertRaises(BlockingIOError):
            while count < 100_000_000:
                count += connection.connection.send(data[count % len(data):])
        self.assertLess(count, 5_000_000)
        connection.connection.settimeout(30)
        self.front.note("go")
        rest = data[count % len(data):] if count % len(data) else b""
        # The worker takes the rest only while somebody takes its answers.
        sending = threading.Thread(target=connection.connection.sendall, args=(rest,))
        sending.start()
        self.addCleanup(sending.join)
        for _ in range(-(-count // len(data))):
            self.assertEqual(connection.read_bytes(4)[0], 0x82)
            connection.read_bytes(1000)

    def test_the_end_of_a_client_is_seen_while_nothing_is_read(self):
        connection = self.opened("/drain")
        connection.connection.settimeout(0)
        data, count = sent(TEXT, b"x" * 1000), 0
        with self.assertRaises(BlockingIOError):
            while True:
                count += connection.connection.send(data[count % len(data):])
        connection.connection.settimeout(30)
        connection.connection.shutdown(1)
        # The application still sleeps.
        self.assertTrue(connection.is_closed())
        self.front.note("go")
        complete = count // len(data) * 1000
        self.assertEqual(self.told("drain"), f"websocket.disconnect 1006 {complete}")

    def test_many_at_the_same_time(self):
        connections = [self.opened() for _ in range(50)]
        for number, connection in enumerate(connections):
            connection.connection.sendall(sent(TEXT, b"%d" % number))
        for number, connection in enumerate(connections):
            self.assertEqual(self.frame(connection), (0x81, b"%d" % number))

    def test_a_worker_that_leaves_says_so(self):
        # The front replaces a generation with QUIT.
        for number in (signal.SIGQUIT, signal.SIGTERM):
            for preload in ("true", "false"):
                with self.subTest(number=number, preload=preload):
                    self.front.__exit__()
                    self.front = AsgiFront(SOCKET, preload=preload)
                    self.front.ready()
                    self.leave(number)

    def leave(self, number):
        connection = self.opened("/leave")
        self.front.kill(number)
        self.assertEqual(self.frame(connection), (0x88, (1012).to_bytes(2, "big")))
        self.assertRegex(self.told("leave"), "^websocket.disconnect 1012 ")
        connection.connection.sendall(sent(CLOSE, (1012).to_bytes(2, "big")))
        self.assertTrue(connection.is_closed())
        self.assertEqual(self.front.wait(), 0)


class LimitTest(unittest.TestCase):
    def test_websockets_are_closed_after_the_last_request_of_a_worker(self):
        with AsgiFront(SOCKET, max_requests=2) as front:
            pid = front.ready()
            connection = front.open()
            connection.send(PATH_INFO="/echo", **HANDSHAKE)
            self.assertEqual(connection.response().status, 101)
            self.assertEqual(front.get("/").header["connection"], "close")
            closing = frames.close_frame(frames.RESTART)
            self.assertEqual(connection.read_bytes(len(closing)), closing)
            connection.disconnect()
            # Another worker does not wait for the end of this one.
            self.assertRegex(front.control_line(), "^started [0-9]+$")
            self.assertEqual(front.exited(), f"exited {pid} 0")


class KeepAliveTest(unittest.TestCase):
    def test_a_client_that_answers_no_ping_is_gone(self):
        text = "import kirin.asgi.websocket as w\nw.PING_SECONDS = 0.2\n" + SOCKET
        with AsgiFront(text) as front:
            front.ready()
            connection = front.open()
            connection.send(PATH_INFO="/ping", **HANDSHAKE)
            self.assertEqual(connection.response().status, 101)
            for _ in range(5):
                self.assertEqual(connection.read_bytes(2), b"\x89\x00")
                connection.connection.sendall(sent(frames.PONG, b""))
            while not connection.is_closed():
                self.assertLessEqual(connection.unread.count(b"\x89\x00"), 3)
            told = wait_until(lambda: front.text("told-ping"))
            self.assertRegex(told, "^websocket.disconnect 1006 ")


if __name__ == "__main__":
    unittest.main()
