"""Requests: the environ, bodies, and what is no request."""
import os
import tempfile
import unittest

from fake_front import DEFAULTS, FakeFront, encode

APP = r'''
import io, os, resource, sys
kept = []
def app(environ, start_response):
    path, stream = environ["PATH_INFO"], environ["wsgi.input"]
    if path == "/close":
        stream.close()
        with stream:
            pass
    if path == "/fill":
        try:
            stream.write(b"left over")
        except io.UnsupportedOperation:
            pass
    if path == "/error":
        print("a line for the log", file=environ["wsgi.errors"])
        environ["wsgi.errors"].write("two\nlines and a part")
        environ["wsgi.errors"].writelines([" of one", "\ud800"])
        environ["wsgi.errors"].flush()
        environ["wsgi.errors"].close()
    if path == "/keep":
        kept.append(stream)
    if path == "/kept":
        start_response("200 OK", [])
        return [repr([one.closed for one in kept]).encode()]
    if path == "/limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    if path == "/no-descriptors":
        for _ in range(1000):
            try:
                kept.append(os.dup(0))
            except OSError:
                break
    if path == "/descriptors":
        for number in kept:
            os.close(number)
        kept.clear()
    parts = {
        "read": lambda: [stream.read()],
        "read-size": lambda: list(iter(lambda: stream.read(3), b"")),
        "readline": lambda: list(iter(stream.readline, b"")),
        "readline-size": lambda: list(iter(lambda: stream.readline(2), b"")),
        "readlines": lambda: stream.readlines(),
        "readlines-hint": lambda: stream.readlines(1) + stream.readlines(),
        "iterate": lambda: list(stream),
    }.get(environ["QUERY_STRING"], lambda: [stream.read()])()
    start_response("200 OK", [])
    if path == "/long":
        length = len(parts[0])
        return [repr((length, parts[0] == b"abcdefg" * (length // 7))).encode()]
    plain = {key: value for key, value in environ.items()
             if type(value) in (str, bool, int, tuple, list)}
    return [repr((plain, parts)).encode()]
'''


class RequestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.front = FakeFront(APP, workers=2)
        cls.front.ready()

    @classmethod
    def tearDownClass(cls):
        cls.front.__exit__()

    def ask(self, path="/", **values):
        response = self.front.get(path, **values)
        self.assertEqual(response.status, 200, response)
        return eval(response.body)

    def test_the_keys_of_pep_3333(self):
        environ, parts = self.ask("/caf\xe9", QUERY_STRING="a=b", HTTP_X_EMPTY="",
                                  HTTP_X_LATIN=b"\xc3\xa9", REMOTE_USER="alice", KIRIN_SITE="s")
        self.assertEqual(environ["wsgi.version"], (1, 0))
        self.assertEqual(environ["wsgi.url_scheme"], "http")
        self.assertIs(environ["wsgi.multithread"], False)
        self.assertIs(environ["wsgi.multiprocess"], True)
        self.assertIs(environ["wsgi.run_once"], False)
        self.assertIs(environ["wsgi.input_terminated"], True)
        self.assertEqual(environ["PATH_INFO"], "/caf\xe9")
        self.assertEqual(environ["QUERY_STRING"], "a=b")
        self.assertEqual(environ["HTTP_X_EMPTY"], "")
        self.assertEqual(environ["HTTP_X_LATIN"], "\xc3\xa9")
        self.assertEqual(environ["REMOTE_USER"], "alice")
        self.assertEqual(environ["KIRIN_SITE"], "s")
        self.assertEqual(environ["SCRIPT_NAME"], "")
        self.assertEqual(environ["CONTENT_LENGTH"], "0")
        self.assertEqual(environ["kirin.cleanup"], [])
        self.assertNotIn("CONTENT_TYPE", environ)
        self.assertNotIn("", environ)
        self.assertNotIn(",", environ)
        self.assertEqual(parts, [b""])

    def test_fields_about_the_body_have_one_name_only(self):
        environ, _ = self.ask(HTTP_CONTENT_LENGTH="5", HTTP_CONTENT_TYPE="text/plain",
                              CONTENT_TYPE="text/html", body=b"abc")
        self.assertEqual((environ["CONTENT_LENGTH"], environ["CONTENT_TYPE"]), ("3", "text/html"))
        self.assertNotIn("HTTP_CONTENT_LENGTH", environ)
        self.assertNotIn("HTTP_CONTENT_TYPE", environ)

    def test_no_request_sees_what_another_has_left(self):
        self.ask(HTTP_X_FIRST="1", HTTPS="on", CONTENT_TYPE="text/plain", body=b"abc")
        environ, parts = self.ask()
        for name in ("HTTP_X_FIRST", "HTTPS", "CONTENT_TYPE"):
            self.assertNotIn(name, environ)
        self.assertEqual(environ["wsgi.url_scheme"], "http")
        self.assertEqual(parts, [b""])
        self.assertEqual(self.ask(HTTPS="on")[0]["wsgi.url_scheme"], "https")

    def test_no_application_can_close_or_fill_the_input_that_requests_share(self):
        self.ask("/close")
        self.ask("/fill")
        self.assertEqual(self.ask()[1], [b""])

    def test_the_methods_of_wsgi_input(self):
        body = b"one\ntwo\n\nfour"
        expected = {
            "read": [body],
            "read-size": [b"one", b"\ntw", b"o\n\n", b"fou", b"r"],
            "readline": [b"one\n", b"two\n", b"\n", b"four"],
            "readline-size": [b"on", b"e\n", b"tw", b"o\n", b"\n", b"fo", b"ur"],
            "readlines": [b"one\n", b"two\n", b"\n", b"four"],
            "readlines-hint": [b"one\n", b"two\n", b"\n", b"four"],
            "iterate": [b"one\n", b"two\n", b"\n", b"four"],
        }
        with tempfile.TemporaryFile() as file:
            file.write(body)
            file.flush()
            for how, parts in expected.items():
                with self.subTest(how):
                    self.assertEqual(self.ask(QUERY_STRING=how, body=body)[1], parts)
                    self.assertEqual(
                        self.ask(QUERY_STRING=how)[1], [b""] if how == "read" else []
                    )
                    number = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)
                    self.assertEqual(self.ask(QUERY_STRING=how, descriptor=number)[1], parts)
                    os.close(number)

    def test_bodies_of_all_sizes(self):
        for length in (1, 7, 65_536, 1_048_576, 1_048_577, 3_000_000):
            with self.subTest(length):
                length -= length % 7
                body = b"abcdefg" * (length // 7)
                self.assertEqual(self.ask("/long", REQUEST_METHOD="POST", body=body),
                                 (length, True))

    def test_a_body_with_nul_and_colons(self):
        body = b"\0:\0,5:abc,\0"
        self.assertEqual(self.ask(REQUEST_METHOD="POST", body=body)[1], [body])

    def test_a_request_may_come_a_byte_at_a_time(self):
        self.front.get("/")
        values = [("CONTENT_LENGTH", "5"), *DEFAULTS.items()]
        for byte in encode(values, b"b\0tes"):
            self.front.connection.send(bytes([byte]))
        self.assertEqual(eval(self.front.response().body)[1], [b"b\0tes"])

    def test_files_of_bodies_are_closed_after_the_request(self):
        self.ask("/keep", body=b"x" * 1_200_000)
        with tempfile.TemporaryFile() as file:
            file.write(b"abc")
            file.flush()
            self.ask("/keep", descriptor=file.fileno())
        self.assertEqual(self.ask("/kept"), [True, True])

    def test_wsgi_errors_writes_whole_lines(self):
        self.ask("/error")
        log = self.front.log()
        self.assertIn("a line for the log\ntwo\nlines and a part of one\\ud800\n", log)


class RefusedBodyTest(unittest.TestCase):
    def test_a_body_that_does_not_fit_is_507_and_the_worker_goes_on(self):
        with FakeFront(APP) as front:
            pid = front.ready()
            front.get("/limit")
            response = front.request(body=b"x" * 1_200_000, HTTP_X_REQUEST_ID="id-3")
            self.assertEqual(response.status, 507)
            self.assertEqual(response.body, b"Insufficient Storage\nRequest id: id-3\n")
            self.assertIn("the request body is refused: no room for it", front.log())
            self.assertEqual(front.get("/").status, 200)
            self.assertIn(f"pid={pid} ", front.greeting)

    def test_a_descriptor_that_does_not_fit_is_507(self):
        program = APP + (
            "\nresource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
        )
        with FakeFront(program) as front, tempfile.TemporaryFile() as file:
            front.ready()
            file.write(b"abc")
            file.flush()
            self.assertEqual(front.request(descriptor=file.fileno()).status, 200)
            front.get("/no-descriptors")
            self.assertEqual(front.request(descriptor=file.fileno()).status, 507)
            self.assertIn("its file cannot be taken over", front.log())
            front.get("/descriptors")
            self.assertEqual(front.request(descriptor=file.fileno()).status, 200)


class NoRequestTest(unittest.TestCase):
    def test_what_is_no_request_ends_the_connection(self):
        head = encode([("CONTENT_LENGTH", "0"), ("SCGI", "1")])
        for garbage in (
            b"GET / HTTP/1.0\r\n\r\n", b"99999999:", b":", b"0:,", b"1_0:" + b"a" * 9 + b"\0,",
            b"+9:" + b"a" * 8 + b"\0,", b" 9:" + b"a" * 8 + b"\0,", head[:-1] + b";", b"300000:",
            b"\0" * 20, b"5:abcd\0,", b"01:\0,", b"18:CONTENT_LENGTH\x001x\0,",
        ):
            with self.subTest(garbage), FakeFront(APP) as front:
                front.ready()
                front.connect()
                front.connection.sendall(garbage)
                self.assertTrue(front.is_closed())
                front.connect()
                self.assertEqual(front.get("/").status, 200)
                self.assertIn("no request head", front.log())

    def test_a_front_that_goes_within_a_request_loses_the_worker_without_a_log(self):
        with FakeFront(APP) as front:
            pid = front.ready()
            front.connect()
            front.connection.sendall(encode([("CONTENT_LENGTH", "5"), *DEFAULTS.items()], b"ab"))
            front.disconnect()
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            self.assertEqual(front.log(), "")


if __name__ == "__main__":
    unittest.main()
