"""wsgiref.validate between the worker and an application, in both directions."""
import unittest

from fake_front import FakeFront

APP = r'''
import sys
from wsgiref.validate import validator

class Body:
    def __init__(self, *parts):
        self.parts = parts
    def __iter__(self):
        return iter(self.parts)
    def close(self):
        pass

def inner(environ, start_response):
    path, stream = environ["PATH_INFO"], environ["wsgi.input"]
    body = b""
    for read in (lambda: stream.read(3), lambda: stream.readline(),
                 lambda: b"".join(stream.readlines()), lambda: stream.read(10)):
        body += read()
    errors = environ["wsgi.errors"]
    errors.write("written\n")
    errors.writelines(["a ", "line\n"])
    errors.flush()
    headers = [("Content-Type", "text/plain"), ("X-Length", str(len(body)))]
    if path == "/empty":
        start_response("204 No Content", [])
        return []
    if path == "/write":
        start_response("200 OK", headers)(b"written ")
        return [b"and returned"]
    if path == "/error":
        try:
            raise ValueError("x")
        except ValueError:
            start_response("500 Error", headers, sys.exc_info())
        return [b"error"]
    if path == "/length":
        headers.append(("Content-Length", str(len(body))))
    start_response("200 OK", headers)
    if path == "/object":
        return Body(b"one", b"two")
    if path == "/generator":
        return (part for part in (b"one", b"two"))
    if path == "/file":
        return environ["wsgi.file_wrapper"](open(__file__, "rb"))
    return [body]

app = validator(inner)
'''


class ValidateTest(unittest.TestCase):
    def test_neither_side_breaks_a_rule(self):
        body = b"first line\nsecond line\nthird"
        with FakeFront(APP) as front:
            front.ready()
            for path in ("/", "/length", "/empty", "/write", "/error", "/object", "/generator",
                         "/file"):
                for values in (
                    {},
                    {"REQUEST_METHOD": "POST", "body": body, "CONTENT_TYPE": "text/plain"},
                    {"REQUEST_METHOD": "POST", "body": b"x" * 1_200_000},
                    {"REQUEST_METHOD": "HEAD"},
                    {"SCRIPT_NAME": "/mount", "HTTPS": "on"},
                    {"HTTP_UPGRADE": "websocket"},
                    {"REQUEST_METHOD": "OPTIONS"},
                ):
                    if path == "/empty" and values.get("REQUEST_METHOD") == "HEAD":
                        continue
                    with self.subTest(path, **{k: v[:20] for k, v in values.items()}):
                        response = front.get(path, **values)
                        self.assertEqual(
                            response.status, {"/empty": 204, "/error": 500}.get(path, 200),
                            front.log()[-2000:])
                        self.assertFalse(response.is_cut)
                        if path != "/empty":
                            self.assertEqual(response.header["content-type"], "text/plain")
            log = front.log()
            self.assertNotIn("AssertionError", log)
            self.assertNotIn("WSGIWarning", log)
            self.assertIn("written\na line\n", log)


if __name__ == "__main__":
    unittest.main()
