"""A FastAPI application, compared with uvicorn."""
import http.client
import os
import re
import unittest
from socket import SHUT_RDWR

import software
from browser import SITE
from content import Chunked, Form, Json, Multipart
from differential import Differential
from project import Project
from served import Served
from waiting import WAIT_SECONDS

software.make_importable()

from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

# Starlette chooses the boundary of several ranges by chance.
BOUNDARY = ["boundary=[0-9a-f]{26}", "--[0-9a-f]{26}"]

LARGE = bytes(range(256)) * 12_000


class Shop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        project = Project(os.path.join(software.APPS, "fastapi"))
        cls.addClassCleanup(project.remove)
        cls.kirin = Served.by_kirin(project.made, "main:app")
        cls.addClassCleanup(cls.kirin.stop)
        cls.uvicorn = Served.by_uvicorn(project.made, "main:app")
        cls.addClassCleanup(cls.uvicorn.stop)
        cls.servers = (cls.kirin, cls.uvicorn)

    def setUp(self):
        self.session = Differential(self, self.kirin, self.uvicorn, BOUNDARY)
        self.step = self.session.step

    def test_json_forms_and_validation(self):
        step = self.step
        step("the state of the lifespan", "GET", "/", 200, body="hello from the lifespan")
        step("an item", "POST", "/items", 201, body='"price":1.5',
             content=Json('{"name": "Stück", "price": 1.5, "tags": ["a"]}'))
        step("a price that is none", "POST", "/items", 422, body="greater than 0",
             content=Json('{"name": "x", "price": -1}'))
        step("no JSON", "POST", "/items", 422, body="JSON decode error", content=Json("{"))
        step("a number", "GET", "/items/7?q=%C3%BC", 200, body='"q":"ü"')
        step("no number", "GET", "/items/seven", 422)
        step("an error with a field", "GET", "/items/101", 404, field=("X-Reason", "too large"))
        step("without a password", "GET", "/inside", 401, field=("WWW-Authenticate", "Bearer"))
        step("a function in a thread", "GET", "/inside", 200, body="ann",
             fields={"Authorization": "Bearer oak"})
        step("a form", "POST", "/form", 200, content=Form({"text": "麒麟 & <b>", "number": "7"}))
        step("a form without its field", "POST", "/form", 422, content=Form({"number": "7"}))
        step("the schema", "GET", "/openapi.json", 200, body="HTTPValidationError")
        step("its page", "GET", "/docs", 200, body="swagger")
        step("nothing there", "GET", "/nothing", 404)
        step("a method that is not allowed", "DELETE", "/items", 405, field=("Allow", "POST"))
        step("a slash too many", "GET", "/visits/", 307)
        step("a redirect", "GET", "/moved", 308, field=("Location", "/items/7?q=%C3%BC"))
        step("an error", "GET", "/broken", 500, body="Internal Server Error")
        for server in self.servers:
            server.has_logged(r"(?s)Traceback.*RuntimeError: the application has broken")

    def test_sessions_and_middleware(self):
        step = self.step
        step("a visit", "GET", "/visits", 200, body='"visits":1')
        step("and another", "GET", "/visits", 200, body='"visits":2')
        step("cookies", "GET", "/cookies", 200, body="before: None")
        step("come back", "GET", "/cookies", 200, body="before: a b")
        origin = {"Origin": "http://a.example"}
        step("another origin", "GET", "/", 200, fields=origin,
             field=("Access-Control-Allow-Origin", "http://a.example"))
        step("asks before", "OPTIONS", "/items", 200,
             fields={**origin, "Access-Control-Request-Method": "GET"})
        step("an origin that may not", "OPTIONS", "/items", 400, fields={
            "Origin": "http://b.example", "Access-Control-Request-Method": "GET",
        })
        step("a compressed response", "GET", "/openapi.json", 200,
             fields={"Accept-Encoding": "gzip"}, field=("Content-Encoding", "gzip"))
        step("a compressed stream", "GET", "/stream", 200, fields={"Accept-Encoding": "gzip"},
             field=("Content-Encoding", "gzip"))

    def test_bodies_of_requests(self):
        step = self.step
        for target in (
            "/echo/a%20b/%E9%BA%92?x=1&x=2&y=%C3%BC&z", "/echo/a%2Fb;p=1?a+b=c%2Bd;e=f",
            "/echo/plus+plus?", "/echo/%25?%E9%BA%92=%E9%BA%9F&=noname&%zz=%", "/echo/~x/",
        ):
            step(target, "GET", target, 200)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            step(method, method, "/echo/x", 200, content=Json('{"a": 1}'))
        step("fields", "GET", "/echo/x", 200, fields={
            "X-One": "a, b", "X-Two": "\t padded", "X-Latin": "\xe9", "Cookie": "a=1; b=2",
        })
        upload = [
            ("note", "zwei Stück"),
            ("files", ("麒麟.txt", "text/plain", b"one\r\n--two\r\n")),
            ("files", ("large.bin", "application/octet-stream", LARGE)),
        ]
        step("files", "POST", "/upload", 200, body="large.bin", content=Multipart(upload))
        step("files in chunks", "POST", "/upload", 200, body="large.bin",
             content=lambda _: Chunked(Multipart(upload)))
        step("a stream in chunks", "POST", "/pieces", 200, body='"size":[1-9]',
             content=lambda _: Chunked(Multipart(upload)))
        step("a body that is not read", "POST", "/unread", 200, content=Json('"x"'))

    def test_streams_files_and_tasks(self):
        step = self.step
        for name in ("/stream", "/thread-stream"):
            step(name, "GET", name, 200, body="^line 0\n.*line 99\n$")
        for name in ("/file", "/static/picture.svg"):
            found = step(name, "GET", name, 200, body="<svg")
            step(f"{name}: its head", "HEAD", name, 405 if name == "/file" else 200)
            step(f"{name}: a range", "GET", name, 206, fields={"Range": "bytes=5-14"})
            step(f"{name}: the end", "GET", name, 206, fields={"Range": "bytes=-7"})
            step(f"{name}: two ranges", "GET", name, 206, fields={"Range": "bytes=0-3,100-102"})
        step("the tag of a static file", "GET", "/static/picture.svg", 304,
             fields={"If-None-Match": found.field("ETag")})
        step("no such file", "GET", "/static/none.svg", 404)
        step("a task", "GET", "/later?word=oak", 200, body='"later"')
        for server in self.servers:
            server.has_logged("background: oak")

    def test_a_client_of_events_that_goes_ends_their_stream(self):
        for server in self.servers:
            with self.subTest(server.name):
                client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_SECONDS)
                client.request("GET", f"/events?name={server.name}", headers={"Host": SITE})
                response = client.getresponse()
                self.assertEqual(response.getheader("Content-Type"),
                                 "text/event-stream; charset=utf-8")
                lines = [response.readline() for _ in range(6)]
                self.assertEqual(lines[3:5], [b"event: tick\n", b"data: 2\n"])
                response.close()
                client.close()
                server.has_logged(f"events of {server.name} have ended")

    def test_a_websocket_sends_back_what_comes(self):
        seen = [self._conversation(server) for server in self.servers]
        self.assertEqual(*seen)
        for server in self.servers:
            server.has_logged("socket of oak has ended: 1000 enough")

    def _conversation(self, server):
        seen = []
        with self._connect(server, "/socket/oak?q=%C3%BC", subprotocols=["one", "two"]) as socket:
            seen.append((socket.response.headers["X-Room"], socket.subprotocol))
            seen.append(socket.recv(WAIT_SECONDS))
            for message in ("kirin", "", "麒麟", b"\0\xff", b"", "x" * 200_000, b"y" * 1_000_000):
                socket.send(message)
                seen.append((message, socket.recv(WAIT_SECONDS)))
                self.assertEqual(seen[-1][1], message[::-1])
            socket.send(["in ", "three ", "pieces"])
            seen.append(socket.recv(WAIT_SECONDS))
            self.assertTrue(socket.ping().wait(WAIT_SECONDS), "a ping is answered")
            socket.close(1000, "enough")
        return seen

    def test_the_end_of_a_websocket(self):
        for server in self.servers:
            end = self._end_after(server, "close")
            self.assertEqual((end.code, end.reason), (4001, "as you like"), server.name)
            with self._connect(server, "/socket/gone") as socket:
                socket.recv(WAIT_SECONDS)
                socket.socket.shutdown(SHUT_RDWR)
            # RFC 6455 (7.1.5) says 1006 for a connection that was lost. uvicorn says 1005.
            code = 1005 if server is self.uvicorn else 1006
            server.has_logged(f"socket of gone has ended: {code}")
        # uvicorn closes the connection without the frame that says so.
        self.assertEqual(self._end_after(self.kirin, "break").code, 1011)
        self.assertIsNone(self._end_after(self.uvicorn, "break"))
        for server in self.servers:
            server.has_logged(r"(?s)Traceback.*RuntimeError: the socket has broken")

    def test_a_message_of_more_than_16_mib_ends_a_websocket(self):
        for server in self.servers:
            with self.subTest(server.name):
                self.assertEqual(self._end_after(server, "x" * (1 << 24) + "x").code, 1009)

    def _end_after(self, server, word):
        with self._connect(server, "/socket/end") as socket:
            socket.recv(WAIT_SECONDS)
            socket.send(word)
            with self.assertRaises(ConnectionClosed) as end:
                socket.recv(WAIT_SECONDS)
        return end.exception.rcvd

    def test_a_websocket_that_is_refused(self):
        for target, status in (
            ("/refused", 403), ("/refused-with-a-page", 402), ("/socket", 403), ("/nothing", 403),
        ):
            for server in self.servers:
                with self.subTest(f"{server.name} {target}"):
                    with self.assertRaises(InvalidStatus) as refused:
                        with self._connect(server, target):
                            pass
                    response = refused.exception.response
                    self.assertEqual(response.status_code, status)
                    if status == 402:
                        self.assertEqual(response.body, b"members only")
                        self.assertEqual(response.headers["X-Reason"], "money")

    @staticmethod
    def _connect(server, target, **options):
        return connect(
            f"ws://127.0.0.1:{server.port}{target}", open_timeout=WAIT_SECONDS,
            close_timeout=WAIT_SECONDS, additional_headers={"Cookie": "a=1"}, **options,
        )


class Lifespan(unittest.TestCase):
    def test_each_worker_starts_and_ends_the_application_once(self):
        project = Project(os.path.join(software.APPS, "fastapi"))
        self.addCleanup(project.remove)
        for start, workers in ((Served.by_kirin, 2), (Served.by_uvicorn, 1)):
            server = start(project.made, "main:app")
            try:
                server.has_logged(f"(?s)(lifespan: startup.*){{{workers}}}")
            finally:
                log = server.stop()
            for word in ("startup", "shutdown"):
                self.assertEqual(len(re.findall(f"lifespan: {word}", log)), workers, log)


if __name__ == "__main__":
    unittest.main()
