"""Responses: their framing, their errors, and responses that WSGI does not allow."""
import os
import signal
import unittest

from fake_front import Cut, FakeFront, is_alive, wait_until

APP = r'''
import os, sys

class Lines:
    def __init__(self, *lines, error=None, close_error=None):
        self.lines, self.error, self.close_error = list(lines), error, close_error
    def __iter__(self):
        yield from self.lines
        if self.error:
            raise self.error
    def close(self):
        print("closed", flush=True)
        if self.close_error:
            raise self.close_error

def reply(start_response, body=(b"a",), status="200 OK", headers=()):
    start_response(status, list(headers))
    return body

class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")

def inner():
    raise ValueError("from inner")

def later(start_response):
    start_response("200 OK", [])
    yield b"later"

def replaced(start_response, early):
    write = start_response("200 OK", [("X-A", "first")])
    if early:
        write(b"part")
    try:
        raise KeyError("the cause")
    except KeyError:
        start_response("503 Service Unavailable", [("X-A", "second")], sys.exc_info())
    return [b"replaced"]

def writes(start_response, parts, headers=(), body=()):
    write = start_response("200 OK", list(headers))
    for part in parts:
        write(part)
    return body

def deep(n=0):
    return deep(n + 1)

def raises(error):
    raise error

L = "Content-Length"
kind = {
    "list": lambda e, s: reply(s, [b"a", b"b", b"c"], headers=[("Content-Type", "text/plain")]),
    "one": lambda e, s: reply(s, [bytes(range(256))]),
    "tuple": lambda e, s: reply(s, (b"a", b"b")),
    "empty": lambda e, s: reply(s, []),
    "latin": lambda e, s: reply(s, headers=[("X-A", "caf\xe9")]),
    "generator": lambda e, s: later(s),
    "object": lambda e, s: reply(s, Lines(b"one", b"", b"two")),
    "nothing-in-it": lambda e, s: reply(s, Lines(b"", b"")),
    "exact": lambda e, s: reply(s, Lines(b"one", b"two"), headers=[(L, "6")]),
    "long": lambda e, s: reply(s, Lines(b"one", b"two"), headers=[(L, "3")]),
    "long-list": lambda e, s: reply(s, [b"one", b"two"], headers=[(L, "3")]),
    "long-write": lambda e, s: writes(s, [b"one", b"two"], headers=[(L, "3")]),
    "short": lambda e, s: reply(s, Lines(b"one"), headers=[(L, "9")]),
    "short-list": lambda e, s: reply(s, [b"one"], headers=[(L, "9")]),
    "short-nothing": lambda e, s: reply(s, Lines(), headers=[(L, "9")]),
    "no-length": lambda e, s: reply(s, [b"one"], headers=[(L, "three")]),
    "huge-length": lambda e, s: reply(s, [b"one"], headers=[(L, "9" * 5000)]),
    "write": lambda e, s: writes(s, [b"one", b"", b"two"]),
    "write-and-list": lambda e, s: writes(s, [b"one"], body=[b"two"]),
    "write-length": lambda e, s: writes(s, [b"one"], headers=[(L, "3")]),
    "chunked": lambda e, s: reply(s, [b"plain"], headers=[("Transfer-Encoding", "chunked")]),
    "204": lambda e, s: reply(s, [b"abc"], "204 No Content", [(L, "3")]),
    "304": lambda e, s: reply(s, [], "304 Not Modified", [("ETag", '"a"')]),
    "304-generator": lambda e, s: reply(s, Lines(b"x"), "304 Not Modified", [("ETag", '"a"')]),
    "connection": lambda e, s: reply(s, headers=[("Connection", "close"), ("keep-alive", "x")]),
    "forged": lambda e, s: reply(s, headers=[("Kirin-File", "1 2 3 4 5 /etc/passwd"),
                                             ("KIRIN-CLEANUP", "1"), ("X-Sendfile", "/x")]),
    "replaced": lambda e, s: replaced(s, False),
    "replaced-late": lambda e, s: replaced(s, True),
    "raise": lambda e, s: inner(),
    "raise-late": lambda e, s: reply(s, Lines(b"part", error=ValueError("too late"))),
    "raise-first": lambda e, s: reply(s, Lines(error=ValueError("too early"))),
    "raise-close": lambda e, s: reply(s, Lines(b"a", close_error=ValueError("in close"))),
    "exit": lambda e, s: sys.exit(3),
    "exit-late": lambda e, s: reply(s, Lines(b"part", error=SystemExit(3))),
    "interrupt": lambda e, s: raises(KeyboardInterrupt()),
    "generator-exit": lambda e, s: raises(GeneratorExit()),
    "stop-iteration": lambda e, s: raises(StopIteration()),
    "memory": lambda e, s: raises(MemoryError()),
    "recursion": lambda e, s: deep(),
    "unprintable": lambda e, s: raises(Unprintable()),
    "none": lambda e, s: reply(s, None),
    "never": lambda e, s: [b"a"],
    "never-generator": lambda e, s: Lines(b"a"),
    "never-empty": lambda e, s: [],
    "twice": lambda e, s: (reply(s), reply(s))[1],
    "str": lambda e, s: reply(s, "text"),
    "list-of-str": lambda e, s: reply(s, ["text"]),
    "list-of-two-str": lambda e, s: reply(s, ["a", "b"]),
    "list-of-none": lambda e, s: reply(s, [None]),
    "bytes": lambda e, s: reply(s, b"text"),
    "number": lambda e, s: reply(s, 42),
    "dict": lambda e, s: reply(s, {"a": 1}),
    "buffers": lambda e, s: reply(s, [bytearray(b"a"), memoryview(b"b")]),
    "status-number": lambda e, s: reply(s, status=200),
    "status-only": lambda e, s: reply(s, status="200"),
    "status-bytes": lambda e, s: reply(s, status=b"200 OK"),
    "status-line-end": lambda e, s: reply(s, status="200 OK\r\nX-A: b"),
    "status-0": lambda e, s: reply(s, status="0 OK"),
    "status-99": lambda e, s: reply(s, status="99 OK"),
    "status-100": lambda e, s: reply(s, status="100 Continue"),
    "status-101": lambda e, s: reply(s, status="101 Switching Protocols"),
    "status-1000": lambda e, s: reply(s, status="1000 OK"),
    "status-600": lambda e, s: reply(s, status="600 OK"),
    "status-digits": lambda e, s: reply(s, status="\u0662\u0660\u0660 OK"),
    "status-none": lambda e, s: reply(s, status=None),
    "header-bytes": lambda e, s: reply(s, headers=[(b"X-A", b"b")]),
    "header-value-bytes": lambda e, s: reply(s, headers=[("X-A", b"b")]),
    "header-value-number": lambda e, s: reply(s, headers=[("X-A", 1)]),
    "header-value-none": lambda e, s: reply(s, headers=[("X-A", None)]),
    "header-alone": lambda e, s: reply(s, headers=[("X-A",)]),
    "header-list": lambda e, s: reply(s, headers=[(["X-A"], "b")]),
    "headers-dict": lambda e, s: (s("200 OK", {"X-A": "b"}), [b"a"])[1],
    "headers-none": lambda e, s: (s("200 OK", None), [b"a"])[1],
    "name-empty": lambda e, s: reply(s, headers=[("", "x"), ("X-A", "a")]),
    "name-space": lambda e, s: reply(s, headers=[("X Y", "x"), ("X-A", "a")]),
    "name-colon": lambda e, s: reply(s, headers=[("X:Y", "x"), ("X-A", "a")]),
    "name-line-end": lambda e, s: reply(s, headers=[("X-A: 1\r\nX-B", "x")]),
    "value-line-end": lambda e, s: reply(s, headers=[("X-A", "a\nX-B: b")]),
    "value-return": lambda e, s: reply(s, headers=[("X-A", "a\rb")]),
    "value-nul": lambda e, s: reply(s, headers=[("X-A", "a\0b")]),
    "value-control": lambda e, s: reply(s, headers=[("X-A", "a\x01b\tc\x7f")]),
    "value-wide": lambda e, s: reply(s, headers=[("X-A", "\u263a")]),
    "value-long": lambda e, s: reply(s, headers=[("X-A", "a" * 70000)]),
    "file-of-text": lambda e, s: reply(s, e["wsgi.file_wrapper"](open(__file__))),
    "pid": lambda e, s: reply(s, [str(os.getpid()).encode()]),
}

def app(environ, start_response):
    return kind[environ["PATH_INFO"][1:]](environ, start_response)
'''

# Status 500, and a text in the log.
ERRORS = {
    "raise": "ValueError: from inner",
    "raise-first": "too early",
    "exit": "SystemExit: 3",
    "interrupt": "KeyboardInterrupt",
    "generator-exit": "GeneratorExit",
    "stop-iteration": "StopIteration",
    "memory": "MemoryError",
    "recursion": "RecursionError",
    "unprintable": "Unprintable",
    "none": "returned no iterable, but NoneType",
    "never": "before start_response has been called",
    "never-generator": "before start_response has been called",
    "never-empty": "has not called start_response",
    "twice": "start_response has been called twice",
    "short-list": "6 bytes shorter than its Content-Length",
    "short-nothing": "9 bytes shorter than its Content-Length",
    "str": "no bytes, but str",
    "list-of-str": "no bytes, but str",
    "list-of-two-str": "str found",
    "list-of-none": "no bytes, but NoneType",
    "bytes": "no bytes, but int",
    "number": "returned no iterable, but int",
    "dict": "no bytes, but str",
    "status-number": "the status of the response is no str: 200",
    "status-bytes": "the status of the response is no str",
    "status-line-end": "not a number of three digits",
    "status-0": "not a number of three digits",
    "status-99": "not a number of three digits",
    "status-100": "100 is no answer",
    "status-101": "101 is no answer",
    "status-1000": "not a number of three digits",
    "status-digits": "not a number of three digits",
    "status-none": "no str: None",
    "header-bytes": "the name of a response header is no str",
    "header-value-bytes": "the value of the response header 'X-A' is no str: bytes",
    "header-value-number": "is no str: int",
    "header-value-none": "is no str: NoneType",
    "header-alone": "not enough values to unpack",
    "header-list": "unhashable",
    "headers-dict": "too many values to unpack",
    "headers-none": "not iterable",
    "name-line-end": "line end or NUL in the name of a response header",
    "value-line-end": "line end or NUL in the response header 'X-A'",
    "value-return": "line end or NUL in the response header 'X-A'",
    "value-nul": "line end or NUL in the response header 'X-A'",
    "value-wide": "a character above U+00FF",
    "value-long": "more than 64512 bytes",
    "file-of-text": "no bytes, but str",
}

BODIES = {
    "list": b"abc",
    "one": bytes(range(256)),
    "tuple": b"ab",
    "empty": b"",
    "latin": b"a",
    "generator": b"later",
    "object": b"onetwo",
    "nothing-in-it": b"",
    "exact": b"onetwo",
    "long": b"one",
    "long-list": b"one",
    "long-write": b"one",
    "no-length": b"one",
    "huge-length": b"one",
    "write": b"onetwo",
    "write-and-list": b"onetwo",
    "write-length": b"one",
    "chunked": b"plain",
    "connection": b"a",
    "buffers": b"ab",
    "raise-close": b"a",
    "status-only": b"a",
    "name-empty": b"a",
    "name-space": b"a",
    "name-colon": b"a",
    "value-control": b"a",
}


class ResponseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.front = FakeFront(APP)
        cls.worker = cls.front.ready()

    @classmethod
    def tearDownClass(cls):
        cls.front.__exit__()

    def get(self, kind, **values):
        return self.front.get("/" + kind, **values)

    def check_worker(self):
        """Checks that the same worker answers the next request."""
        self.assertEqual(self.get("pid").body, str(self.worker).encode())

    def test_bodies_come_complete(self):
        for kind, body in BODIES.items():
            with self.subTest(kind):
                response = self.get(kind)
                self.assertEqual((response.status, response.body), (200, body), response)
                self.assertFalse(response.is_cut)
        self.check_worker()

    def test_a_known_length_is_sent(self):
        for kind, length in {"list": "3", "empty": "0", "nothing-in-it": "0", "exact": "6",
                             "write-length": "3", "chunked": "5", "no-length": "3"}.items():
            with self.subTest(kind):
                self.assertEqual(self.get(kind).header.get("content-length"), length)
        self.assertEqual(self.get("list").header["content-type"], "text/plain")

    def test_an_unknown_length_is_chunked_and_empty_parts_are_no_chunks(self):
        self.assertEqual(self.get("object").chunks, 2)
        self.assertEqual(self.get("write").chunks, 2)

    def test_the_head_goes_with_the_first_part(self):
        front = self.front
        for kind in ("exact", "object", "write", "generator"):
            with self.subTest(kind):
                front.send(PATH_INFO="/" + kind)
                first = front.connection.recv(65536)
                self.assertRegex(first, rb"(?s)\r\n\r\n.*[a-z]")
                front.unread += first
                front.response()

    def test_fields_of_the_worker_are_not_the_applications(self):
        response = self.get("connection")
        self.assertNotIn("connection", response.header)
        self.assertNotIn("keep-alive", response.header)
        response = self.get("forged")
        self.assertNotIn("kirin-file", response.header)
        self.assertNotIn("kirin-cleanup", response.header)
        self.assertEqual(response.header["x-sendfile"], "/x")
        self.assertNotIn("transfer-encoding", self.get("chunked").header)

    def test_statuses_without_a_body_have_no_framing(self):
        for kind, status in {"204": 204, "304": 304, "304-generator": 304}.items():
            with self.subTest(kind):
                response = self.get(kind)
                self.assertEqual(response.status, status)
                self.assertNotIn("content-length", response.header)
                self.assertNotIn("transfer-encoding", response.header)
        self.assertEqual(self.get("status-600").status, 600)
        self.check_worker()

    def test_head_has_the_fields_of_get_and_no_body(self):
        for kind in ("list", "one", "exact", "generator", "object", "write", "write-length",
                     "long"):
            with self.subTest(kind):
                get, head = self.get(kind), self.get(kind, REQUEST_METHOD="HEAD")
                self.assertEqual(head.header.get("content-length"),
                                 get.header.get("content-length"))
                self.assertNotIn("transfer-encoding", head.header)
        head = self.get("short-list", REQUEST_METHOD="HEAD")
        self.assertEqual(head.header["content-length"], "9")
        self.assertEqual(self.get("raise", REQUEST_METHOD="HEAD").status, 500)
        self.check_worker()

    def test_errors_before_the_head_are_500_and_the_log_says_why(self):
        for kind, text in ERRORS.items():
            with self.subTest(kind):
                before = len(self.front.log())
                response = self.get(kind, HTTP_X_REQUEST_ID="id-1")
                self.assertEqual(response.status, 500)
                self.assertEqual(response.body, b"Internal Server Error\nRequest id: id-1\n")
                self.assertEqual(response.header["x-request-id"], "id-1")
                added = self.front.log()[before:]
                self.assertIn(text, added)
                self.assertIn(f"GET /{kind}: ", added)
                self.assertRegex(added, r"(?m)^.* request_id=id-1$")
        self.check_worker()

    def test_the_log_has_the_stack_without_the_workers_frames(self):
        before = len(self.front.log())
        self.get("raise")
        added = self.front.log()[before:]
        self.assertIn("in inner", added)
        self.assertIn('raise ValueError("from inner")', added)
        self.assertNotIn("worker.py", added)

    def test_errors_after_the_head_cut_the_response(self):
        for kind, text in {"raise-late": "too late", "short": "6 bytes shorter",
                           "exit-late": "SystemExit", "replaced-late": "the cause"}.items():
            with self.subTest(kind):
                before = len(self.front.log())
                response = self.get(kind)
                self.assertTrue(response.is_cut, response)
                self.assertIn(text, self.front.log()[before:])
                self.front.connect()
                self.check_worker()

    def test_exc_info_replaces_a_response_that_has_not_begun(self):
        response = self.get("replaced")
        self.assertEqual((response.status, response.body), (503, b"replaced"))
        self.assertEqual([value for name, value in response.headers if name == "X-A"], ["second"])

    def test_a_body_that_is_too_long_is_cut_and_logged_once(self):
        for kind in ("long", "long-list", "long-write"):
            before = len(self.front.log())
            self.get(kind)
            self.get("pid")
            self.assertEqual(self.front.log()[before:].count("longer than its Content-Length"), 1)

    def test_close_is_called_once_in_any_case(self):
        for kind in ("object", "long", "raise-first", "never-generator"):
            with self.subTest(kind):
                before = len(self.front.log())
                self.get(kind)
                self.get("pid")
                self.assertEqual(self.front.log()[before:].count("closed\n"), 1)
        for values in ({"REQUEST_METHOD": "HEAD"},):
            before = len(self.front.log())
            self.get("object", **values)
            self.get("pid")
            self.assertEqual(self.front.log()[before:].count("closed\n"), 1)
        before = len(self.front.log())
        self.get("raise-close")
        self.get("pid")
        self.assertIn("ValueError: in close", self.front.log()[before:])

    def test_names_that_are_no_tokens_are_left_out(self):
        for kind in ("name-empty", "name-space", "name-colon"):
            self.assertEqual(self.get(kind).headers[0], ("X-A", "a"))
        self.assertIn("'X Y' is left out", self.front.log())

    def test_control_characters_in_values_become_spaces(self):
        self.assertEqual(self.get("value-control").header["x-a"], "a b\tc ")
        self.assertEqual(self.get("latin").header["x-a"], "caf\xe9")


class ClientGoneTest(unittest.TestCase):
    APP = '''
import os
def endless(write=None):
    try:
        while True:
            yield b"x" * 9999
    finally:
        print("stopped", flush=True)
def app(environ, start_response):
    write = start_response("200 OK", [])
    if environ["PATH_INFO"] == "/endless":
        return endless()
    if environ["PATH_INFO"] == "/write":
        while True:
            write(b"x" * 9999)
    if environ["PATH_INFO"] == "/stubborn":
        try:
            while True:
                write(b"x" * 9999)
        except OSError:
            return []
    if environ["PATH_INFO"] == "/large":
        return [b"x" * 50_000_000]
    return [str(os.getpid()).encode()]
'''

    def test_a_response_that_the_front_cuts_costs_no_worker(self):
        with FakeFront(self.APP) as front:
            pid = str(front.ready()).encode()
            for path in ("/endless", "/write", "/stubborn", "/large"):
                with self.subTest(path):
                    front.send(PATH_INFO=path)
                    front.read_until(b"\r\n\r\n")
                    front.connect()
                    self.assertEqual(front.get("/").body, pid)
            self.assertIn("stopped\n", front.log())
            self.assertNotIn("kirin", front.log())


class EndOfProcessTest(unittest.TestCase):
    APP = '''
import os, sys
def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/os-exit":
        os._exit(0)
    if path.startswith("/fork"):
        child = os.fork()
        if child == 0:
            if path == "/fork-raise":
                raise ValueError("in the child")
            if path == "/fork-exit":
                sys.exit(7)
            if path == "/fork-write":
                start_response("200 OK", [])(b"the child")
            if path == "/fork-hints":
                environ["wsgi.early_hints"]([("Link", "</a>")])
            start_response("200 OK", [])
            if path == "/fork-generator":
                return iter([b"the child"])
            return [b"the child"]
        status = os.waitpid(child, 0)[1]
        start_response("200 OK", [])
        return [b"the worker %d" % (status >> 8)]
    start_response("200 OK", [])
    if path == "/background":
        child = os.fork()
        if child == 0:
            import time
            time.sleep(1000)
        return [str(child).encode()]
    return [str(os.getpid()).encode()]
'''

    def test_os_exit_ends_the_connection_and_another_worker_follows(self):
        with FakeFront(self.APP) as front:
            pid = front.ready()
            front.send(PATH_INFO="/os-exit")
            self.assertRaises(Cut, front.response)
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            self.assertNotEqual(front.started(), pid)

    def test_a_forked_process_does_not_answer_in_the_workers_place(self):
        with FakeFront(self.APP) as front:
            pid = front.ready()
            for path, status in {"/fork": 1, "/fork-raise": 1, "/fork-exit": 7, "/fork-write": 1,
                                 "/fork-generator": 1, "/fork-hints": 1}.items():
                with self.subTest(path):
                    self.assertEqual(front.get(path).body, b"the worker %d" % status)
                    self.assertEqual(front.get("/").body, str(pid).encode())
            self.assertIn("returned from the application", front.log())
            self.assertIn("ValueError: in the child", front.log())
            self.assertNotIn("SystemExit", front.log())

    def test_a_process_in_the_background_does_not_hold_the_connection(self):
        with FakeFront(self.APP) as front:
            pid = front.ready()
            child = int(front.get("/background").body)
            try:
                os.kill(pid, signal.SIGKILL)
                self.assertTrue(front.is_closed())
                self.assertEqual(front.control_line(), f"exited {pid} 9")
                # The handlers of the worker are not those of the process.
                os.kill(child, signal.SIGTERM)
                wait_until(lambda: not is_alive(child), "the process ends")
            finally:
                _kill(child)


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


if __name__ == "__main__":
    unittest.main()
