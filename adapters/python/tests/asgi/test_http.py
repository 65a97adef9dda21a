"""Requests and responses of ASGI applications."""
import contextlib
import json
import os
import subprocess
import tempfile
import unittest
import zlib

from asgi_front import AsgiFront, program
from fake_front import DEFAULTS, encode, wait_until

SCOPE = program('''
def text(value):
    if isinstance(value, bytes): return value.decode("latin-1")
    return [text(part) for part in value] if isinstance(value, (list, tuple)) else value
await answer(send, repr({name: text(value) for name, value in scope.items()}).encode())
''')

BODY = program('''
sizes, body, more = [], b"", True
while more:
    event = await receive()
    assert event["type"] == "http.request", event
    sizes.append(len(event["body"])); body += event["body"]; more = event["more_body"]
import json, zlib
await answer(send, json.dumps([sizes, zlib.crc32(body)]).encode())
''')

RESPONSES = program('''
path = scope["path"]
async def part(data, more=True):
    await send({"type": "http.response.body", "body": data, "more_body": more})
async def start(*headers, status=200):
    await send({"type": "http.response.start", "status": status, "headers": headers})
if path == "/list": await answer(send, b"hello", headers=[(b"X-One", b"1"), (b"x-one", b"2")])
elif path == "/length": await answer(send, b"hello", headers=[(b"content-length", b"5")])
elif path == "/stream":
    await start(); await part(b"one"); await part(b"two"); await part(b"", False)
elif path == "/counted":
    await start((b"content-length", b"6")); await part(b"one"); await part(b"two", False)
elif path == "/early":
    await start((b"content-length", b"3")); await part(b"one"); await noted("go-early")
    await part(b"", False); note("ended")
elif path == "/long": await start((b"content-length", b"2")); await part(b"one", False)
elif path == "/longer":
    await start((b"content-length", b"2")); await part(b"one"); await part(b"", False)
elif path == "/short": await start((b"content-length", b"9")); await part(b"one", False)
elif path == "/shorter":
    await start((b"content-length", b"9")); await part(b"one"); await part(b"", False)
elif path == "/304": await start(status=304); await part(b"", False)
elif path == "/204": await start(status=204); await part(b"ignored", False)
elif path == "/bytearray": await start(); await part(bytearray(b"ab"), False)
elif path == "/nothing": return
elif path == "/head-only": await start()
elif path == "/cut": await start(); await part(b"one")
elif path == "/raise": raise RuntimeError("on purpose")
elif path == "/exit": raise SystemExit(3)
elif path == "/raise-late": await start(); await part(b"one"); raise RuntimeError("on purpose")
elif path == "/line": await answer(send, headers=[(b"x", b"a\\r\\nb: c")])
elif path == "/str": await answer(send, headers=[("x", "a")])
elif path == "/informational": await answer(send, status=103)
elif path == "/twice":
    await answer(send, b"one")
    try: await part(b"two", False)
    except Exception as error: note("refused")
elif path == "/own-fields": await answer(send, headers=[(b"connection", b"close"),
    (b"transfer-encoding", b"chunked"), (b"kirin-file", b"x"), (b"x-sendfile", b"/x")])
elif path == "/hint":
    await send({"type": "http.response.early_hint", "links": [b"</a>; rel=preload", b"</b>"]})
    await answer(send, b"done")
elif path == "/unknown": await send({"type": "websocket.accept"})
else: await answer(send, b"alive")
''')


class ScopeTest(unittest.TestCase):
    def scope(self, front, **values):
        return eval(front.request(**values).body)

    def test_a_scope_has_what_the_request_says(self):
        with AsgiFront(SCOPE) as front:
            front.ready()
            scope = self.scope(
                front, REQUEST_METHOD="POST", REQUEST_URI="/m/%C3%A9%2F?a=%20b", SCRIPT_NAME="/m",
                PATH_INFO=b"/\xc3\xa9/", QUERY_STRING="a=%20b", SERVER_PROTOCOL="HTTP/2",
                HTTPS="on", SERVER_NAME="example.org", SERVER_PORT="443", REMOTE_ADDR="::1",
                REMOTE_PORT="99", HTTP_HOST="example.org", HTTP_X_A_B="\xe4, 2", body=b"abc",
                CONTENT_TYPE="text/x", HTTP_CONTENT_TYPE="bad", HTTP_CONTENT_LENGTH="7",
            )
            headers = {name: value for name, value in scope["headers"]}
            self.assertEqual(headers, {
                "host": "example.org", "x-a-b": "\xe4, 2", "content-type": "text/x",
                "content-length": "3",
            })
            del scope["headers"]
            self.assertEqual(scope, {
                "type": "http", "asgi": {"version": "3.0", "spec_version": "2.5"},
                "http_version": "2", "method": "POST", "scheme": "https", "path": "/m/é/",
                "raw_path": "/m/%C3%A9%2F", "query_string": "a=%20b", "root_path": "/m",
                "client": ["::1", 99], "server": ["example.org", 443], "state": {},
                "extensions": {
                    "http.response.early_hint": {},
                    "http.response.pathsend": {},
                    "http.response.trailers": {},
                },
            })
            scope = self.scope(front, SERVER_PROTOCOL="HTTP/1.0", REMOTE_ADDR="unix:",
                               REMOTE_PORT="0", PATH_INFO=b"/\xff", REQUEST_URI="/%FF")
            self.assertEqual(scope["http_version"], "1.0")
            self.assertIsNone(scope["client"])
            self.assertEqual(scope["path"], "/\ufffd")
            scope = self.scope(front, REQUEST_METHOD="OPTIONS", PATH_INFO="", REQUEST_URI="*")
            self.assertEqual(scope["path"], "*")

    def test_many_names_of_fields_are_read_correctly(self):
        with AsgiFront(SCOPE) as front:
            front.ready()
            for number in range(3):
                names = {f"HTTP_X_{number}_{index}": str(index) for index in range(600)}
                headers = dict(self.scope(front, **names)["headers"])
                self.assertEqual(headers.pop("host"), "localhost")
                self.assertEqual(
                    headers, {f"x-{number}-{index}": str(index) for index in range(600)}
                )


class BodyTest(unittest.TestCase):
    def test_bodies_come_in_events(self):
        # A body in memory comes with one event, and one in a file with small ones.
        with AsgiFront(BODY) as front:
            front.ready()
            for size in (0, 1, 65536, 65537, 1 << 20, (1 << 20) + 1, 3_000_000):
                for way in ("bytes", "descriptor"):
                    with self.subTest(size=size, way=way), tempfile.TemporaryFile() as file:
                        data = os.urandom(size)
                        file.write(data)
                        file.flush()
                        if way == "bytes":
                            front.send(data, REQUEST_METHOD="POST")
                        else:
                            os.lseek(file.fileno(), 0, os.SEEK_SET)
                            front.send(descriptor=file.fileno(), REQUEST_METHOD="POST")
                        sizes, checksum = json.loads(front.response().body)
                        self.assertEqual((sum(sizes), checksum), (size, zlib.crc32(data)))
                        is_in_memory = way == "bytes" and size <= 1 << 20
                        self.assertLessEqual(max(sizes), size if is_in_memory else 256 * 1024)

    def test_a_request_may_come_in_pieces(self):
        with AsgiFront(BODY) as front:
            front.ready()
            data = encode([("CONTENT_LENGTH", "5"), *DEFAULTS.items()], b"hello")
            front.connect()
            for number in range(len(data)):
                front.connection.sendall(data[number:number + 1])
            self.assertEqual(json.loads(front.response().body)[0], [5])

    def test_what_is_no_request_ends_only_its_connection(self):
        with AsgiFront(BODY) as front:
            pid = front.ready()
            for data in (b"GET / HTTP/1.1\r\n\r\n", b"99999999:", b"3:abc,", b"0:,",
                         b"24:CONTENT_LENGTH\0x\0SCGI\x001\0,", b"5:CONTENT", b"12:" + b"x" * 13):
                with self.subTest(data):
                    other = front.open()
                    other.connection.sendall(data)
                    if data == b"5:CONTENT":
                        # The worker may have ended the connection already.
                        with contextlib.suppress(BrokenPipeError):
                            other.connection.sendall(b"x")
                    self.assertTrue(other.is_closed())
            self.assertIn(f"pid={pid} ", front.connect())
            self.assertEqual(front.get("/").status, 200)

    def test_a_body_without_room_is_507(self):
        limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        with AsgiFront(limit + BODY, stderr=subprocess.DEVNULL) as front:
            front.ready()
            front.send(b"x" * 2_000_000, REQUEST_METHOD="POST")
            self.assertEqual(front.response().status, 507)
            self.assertEqual(front.get("/").status, 200)


class ResponseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.front = AsgiFront(RESPONSES)
        cls.addClassCleanup(cls.front.__exit__)
        cls.front.ready()

    def test_framing(self):
        for path, length, body in (
            ("/list", "5", b"hello"), ("/length", "5", b"hello"), ("/stream", None, b"onetwo"),
            ("/counted", "6", b"onetwo"), ("/long", "2", b"on"), ("/longer", "2", b"on"),
            ("/bytearray", "2", b"ab"),
        ):
            with self.subTest(path):
                response = self.front.get(path)
                self.assertEqual((response.status, response.body), (200, body))
                self.assertEqual(response.header.get("content-length"), length)
                self.assertFalse(response.is_cut)
        self.assertEqual(self.front.get("/list").headers[:2], [("X-One", "1"), ("x-one", "2")])
        self.assertIn("is longer than its Content-Length", self.front.log())

    def test_responses_without_a_body(self):
        for status in (204, 304):
            response = self.front.get(f"/{status}")
            self.assertEqual((response.status, response.headers), (status, []))
        for path, length in (("/list", "5"), ("/length", "5"), ("/stream", None)):
            response = self.front.get(path, REQUEST_METHOD="HEAD")
            self.assertEqual(response.header.get("content-length"), length)
        self.assertEqual(self.front.get("/").body, b"alive")

    def test_a_response_that_has_all_its_bytes_frees_the_connection(self):
        for method in ("GET", "HEAD"):
            self.assertEqual(self.front.get("/early", REQUEST_METHOD=method).status, 200)
            self.assertEqual(self.front.get("/").body, b"alive")
        self.assertFalse(self.front.noted("ended"))
        self.front.note("go-early")
        wait_until(lambda: self.front.noted("ended"))

    def test_a_failure_before_the_head_is_500(self):
        for path, reason in (
            ("/raise", "RuntimeError: on purpose"), ("/exit", "SystemExit: 3"),
            ("/nothing", "has returned without a response"),
            ("/head-only", "has returned without a response"),
            ("/short", "6 bytes shorter than its Content-Length"),
            ("/line", "line end or NUL in the response header 'x'"),
            ("/str", "AttributeError"), ("/informational", "103 is no answer"),
            ("/unknown", "is no message for a request"),
        ):
            with self.subTest(path):
                response = self.front.get(path, HTTP_X_REQUEST_ID="id-" + path[1:])
                self.assertEqual(response.status, 500)
                self.assertIn(b"Request id: id-" + path[1:].encode(), response.body)
                log = self.front.log()
                self.assertIn(reason, log)
                self.assertIn(f"request_id=id-{path[1:]}", log)
        self.assertEqual(self.front.get("/").body, b"alive")

    def test_a_failure_after_the_head_cuts_the_response(self):
        for path in ("/cut", "/raise-late", "/shorter"):
            with self.subTest(path):
                response = self.front.open().get(path)
                self.assertTrue(response.is_cut)
        self.assertEqual(self.front.get("/").body, b"alive")

    def test_messages_behind_the_response_are_refused(self):
        self.assertEqual(self.front.get("/twice").body, b"one")
        wait_until(lambda: self.front.noted("refused"))

    def test_fields_of_the_protocol_cannot_be_set(self):
        response = self.front.get("/own-fields")
        self.assertEqual(response.headers, [("x-sendfile", "/x"), ("Content-Length", "0")])

    def test_early_hints(self):
        self.front.send(PATH_INFO="/hint")
        text = self.front.read_until(b"\r\n\r\n")
        self.assertEqual(text, b"HTTP/1.1 103\r\nLink: </a>; rel=preload\r\nLink: </b>")
        self.assertEqual(self.front.response().body, b"done")


FILE = program('''
path = os.path.join(here, scope["query_string"].decode())
headers = [(b"content-length", b"9")] if scope["path"] == "/length" else []
await send({"type": "http.response.start", "status": 200, "headers": headers})
await send({"type": "http.response.pathsend", "path": path})
''')


class FileTest(unittest.TestCase):
    def test_a_file_is_handed_back_or_read(self):
        with AsgiFront(FILE, files={"small": "the file\n", "empty": "",
                                    "large": "x" * 700_000}) as front:
            front.ready()
            path = os.path.join(front.directory, "small")
            for method in ("GET", "HEAD"):
                response = front.get("/", QUERY_STRING="small", REQUEST_METHOD=method)
                self.assertRegex(response.header["kirin-file"], rf"^\d+ \d+ 9 \d+ \d+ {path}$")
                self.assertEqual(response.header["content-length"], "0")
            for name, size in (("small", 9), ("empty", 0), ("large", 700_000)):
                for values in ({"KIRIN_SENDFILE": "0"}, {"REQUEST_METHOD": "POST"}):
                    response = front.get("/", QUERY_STRING=name, **values)
                    self.assertNotIn("kirin-file", response.header)
                    self.assertEqual(response.header["content-length"], str(size))
                    self.assertEqual(len(response.body), size)
            response = front.get("/length", QUERY_STRING="small", KIRIN_SENDFILE="0")
            self.assertEqual(response.body, b"the file\n")
            response = front.get("/", QUERY_STRING="small", KIRIN_SENDFILE="0",
                                 REQUEST_METHOD="HEAD")
            self.assertEqual(response.header["content-length"], "9")
            self.assertEqual(front.get("/", QUERY_STRING="missing").status, 500)


STREAM = program('''
path = scope["path"]
if path == "/endless":
    await answer(send, b"x", more=True)
    try:
        while True:
            await send({"type": "http.response.body", "body": b"x" * 100000, "more_body": True})
            note("sent")
    except OSError:
        note("stopped"); assert (await receive())["type"] == "http.request"
elif path == "/wait":
    await receive(); note("waiting")
    assert (await receive())["type"] == "http.disconnect"; note("disconnected")
    try: await answer(send, b"late")
    except OSError: note("refused")
    await noted("end")
elif path == "/parts":
    framing = scope["query_string"].decode()
    parts = [bytes([number]) * number * 997 for number in range(1, 100)]
    length = str(sum(map(len, parts))).encode()
    headers = [(b"content-length", length)] if framing == "length" else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sending = [
        asyncio.ensure_future(
            send({"type": "http.response.body", "body": part, "more_body": True}))
        for part in parts
    ]
    await asyncio.sleep(0)
    note(f"begun-{framing}")
    await asyncio.gather(*sending)
    await send({"type": "http.response.body"})
    note(f"sent-{framing}")
elif path == "/two":
    await receive()
    async def listen():
        assert (await receive())["type"] == "http.disconnect"; note("heard")
    tasks = [asyncio.ensure_future(listen()), asyncio.ensure_future(listen())]
    await asyncio.sleep(0); tasks[1].cancel()
    await answer(send, b"done"); await tasks[0]
    assert (await receive())["type"] == "http.disconnect"; note("again")
elif path == "/background":
    await answer(send, b"done"); await noted("end"); note("ended")
else: await answer(send, b"alive")
''')


class DisconnectTest(unittest.TestCase):
    def setUp(self):
        self.front = AsgiFront(STREAM)
        self.addCleanup(self.front.__exit__)
        self.front.ready()

    def test_send_waits_while_the_socket_is_full_and_ends_with_the_client(self):
        slow = self.front.open()
        slow.send(PATH_INFO="/endless")
        wait_until(lambda: self.front.noted("sent"))
        self.assertEqual(self.front.get("/").body, b"alive")
        slow.disconnect()
        wait_until(lambda: self.front.noted("stopped"))
        self.assertEqual(self.front.get("/").body, b"alive")

    def test_what_does_not_fit_into_the_socket_comes_later_and_in_order(self):
        expected = b"".join(bytes([number]) * number * 997 for number in range(1, 100))
        for framing in ("chunked", "length"):
            with self.subTest(framing):
                slow = self.front.open()
                slow.send(PATH_INFO="/parts", QUERY_STRING=framing)
                # Small and large parts wait at the same time.
                wait_until(lambda name=framing: self.front.noted(f"begun-{name}"))
                self.assertEqual(self.front.get("/").body, b"alive")
                self.assertEqual(slow.response().body, expected)
                wait_until(lambda name=framing: self.front.noted(f"sent-{name}"))

    def test_receive_tells_that_the_client_has_gone(self):
        gone = self.front.open()
        gone.send(PATH_INFO="/wait")
        wait_until(lambda: self.front.noted("waiting"))
        gone.connection.shutdown(1)
        # The connection is closed although the application goes on.
        self.assertTrue(gone.is_closed())
        wait_until(lambda: self.front.noted("refused"))
        self.assertTrue(self.front.noted("disconnected"))
        self.assertEqual(self.front.get("/").body, b"alive")
        self.front.note("end")
        self.assertEqual(self.front.stop(), 0)
        self.assertEqual(self.front.log(), "")

    def test_receive_ends_with_the_response(self):
        self.assertEqual(self.front.get("/two").body, b"done")
        wait_until(lambda: self.front.noted("heard") and self.front.noted("again"))

    def test_a_coroutine_may_go_on_behind_its_response(self):
        self.assertEqual(self.front.get("/background").body, b"done")
        self.assertEqual(self.front.get("/").body, b"alive")
        self.assertFalse(self.front.noted("ended"))
        self.front.note("end")
        wait_until(lambda: self.front.noted("ended"))


GARBAGE = program('''
import gc
if scope["path"] == "/count":
    await answer(send, b"%d" % gc.collect())
elif scope["path"] == "/endless":
    await answer(send, b"x", more=True)
    try:
        while True:
            note("sent")
            await send({"type": "http.response.body", "body": b"x" * 1000000, "more_body": True})
    finally:
        note("stopped")
else:
    gc.disable()
    await answer(send, b"x")
''')


class GarbageTest(unittest.TestCase):
    def test_requests_leave_nothing_for_the_collector(self):
        # Asynchronous generators of the application would end late otherwise.
        with AsgiFront(GARBAGE) as front:
            front.ready()
            front.get("/")
            front.get("/count")
            for _ in range(10):
                front.get("/")
            self.assertEqual(front.get("/count").body, b"0")
            gone = front.open()
            gone.send(PATH_INFO="/endless")
            wait_until(lambda: front.noted("sent"))
            self.assertEqual(front.get("/").body, b"x")
            gone.disconnect()
            wait_until(lambda: front.noted("stopped"))
            self.assertEqual(front.get("/count").body, b"0")


CONCURRENT = program('''
from kirin.store import current_site
name = scope["path"][1:]
note("begun-" + name)
await noted("go-" + name)
import sys
await answer(send, f"{name} {current_site()}".encode())
raise ValueError("end of " + name)
''')


class ConcurrencyTest(unittest.TestCase):
    def test_requests_run_at_the_same_time_with_their_own_context(self):
        with AsgiFront(CONCURRENT) as front:
            front.ready()
            connections = [front.open() for _ in range(5)]
            for number, connection in enumerate(connections):
                values = {"KIRIN_SITE": f"site-{number}"} if number else {}
                connection.send(PATH_INFO=f"/{number}", HTTP_X_REQUEST_ID=f"id-{number}", **values)
            for number in range(5):
                wait_until(lambda: front.noted(f"begun-{number}"))
            for number in reversed(range(5)):
                front.note(f"go-{number}")
                site = f"site-{number}" if number else ""
                self.assertEqual(connections[number].response().body, f"{number} {site}".encode())
                wait_until(lambda: f"ValueError: end of {number} request_id=id-{number}\n"
                           in front.log())

    def test_a_connection_takes_request_after_request(self):
        with AsgiFront(RESPONSES) as front:
            pid = front.ready()
            connection = front.open()
            for _ in range(200):
                self.assertEqual(connection.get("/stream").body, b"onetwo")
            self.assertIn(f"pid={pid} ", connection.greeting)

    def test_bytes_within_a_request_end_its_connection(self):
        with AsgiFront(STREAM) as front:
            front.ready()
            bad = front.open()
            bad.send(PATH_INFO="/wait")
            wait_until(lambda: front.noted("waiting"))
            bad.connection.sendall(b"x")
            self.assertTrue(bad.is_closed())
            self.assertEqual(front.get("/").body, b"alive")
            front.note("end")


if __name__ == "__main__":
    unittest.main()
