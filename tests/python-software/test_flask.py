"""A Flask application, compared with gunicorn."""
import os
import unittest

import software
from content import Chunked, Form, Multipart
from differential import Differential
from project import Project
from served import Served

LARGE = bytes(range(256)) * 12_000


class Notes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        project = Project(os.path.join(software.APPS, "flask"))
        cls.addClassCleanup(project.remove)
        cls.kirin = Served.by_kirin(project.made, "notes:application")
        cls.addClassCleanup(cls.kirin.stop)
        cls.gunicorn = Served.by_gunicorn(project.made, "notes:application")
        cls.addClassCleanup(cls.gunicorn.stop)

    def setUp(self):
        self.session = Differential(self, self.kirin, self.gunicorn)
        self.step = self.session.step

    def test_a_session_with_messages(self):
        step = self.step
        step("the first page begins a session", "GET", "/", 200, body="visit 1<")
        step("which goes on", "GET", "/", 200, body="visit 2<")
        step("a note", "POST", "/note", 302, field=("Location", "/"),
             content=Form({"text": "麒麟 & <b>"}))
        step("its message", "GET", "/", 200,
             body='<p class="success">noted: 麒麟 &amp; &lt;b&gt;</p>.*<li>麒麟 &amp;')
        step("which is shown once", "GET", "/", 200, body=r"visit 4</p>\n<ul>")
        step("no text", "POST", "/note", 422, body='"error":"a note has a text"',
             content=Form({"text": " "}))
        step("no field", "POST", "/note", 400, body="error page: 400", content=Form({}))
        step("the end", "GET", "/logout", 302)
        step("another session", "GET", "/", 200, body="visit 1<")
        step("cookies", "GET", "/cookies", 200, body="before: None")
        step("come back", "GET", "/cookies", 200, body="before: käse; a=b")
        for browser in self.session.browsers:
            self.assertEqual(browser.connections, 1, "the connection was kept")

    def test_the_same_application_under_a_mount(self):
        step = self.step
        step("a blueprint", "GET", "/archive/1999/", 200, body="http://site.example/archive/1999/")
        step("under the mount", "GET", "/mounted/archive/1999/", 200,
             body="http://site.example/mounted/archive/1999/")
        step("no slash at the end", "GET", "/archive/1999", 308,
             field=("Location", "http://site.example/archive/1999/"))
        step("the same under the mount", "GET", "/mounted/archive/1999?a=1", 308,
             field=("Location", "http://site.example/mounted/archive/1999/?a=1"))
        step("a redirect", "GET", "/mounted/logout", 302, field=("Location", "/mounted/"))
        for target in (
            "/echo/a%20b/%E9%BA%92?x=1&x=2&y=%C3%BC&z", "/echo/a%2Fb;p=1?a+b=c%2Bd;e=f",
            "/mounted/echo/plus+plus?", "/echo/%25?%E9%BA%92=%E9%BA%9F&=noname&%zz=%",
        ):
            step(target, "GET", target, 200)

    def test_bodies_of_requests(self):
        step = self.step
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            step(method, method, "/echo/x", 200, content=Form([("a", "1"), ("a", "ü & b")]))
        step("a large one", "POST", "/echo/x", 200, content=Form({"a": "ü" * 60_000}))
        upload = [
            ("note", "zwei Stück"),
            ("file", ("麒麟.txt", "text/plain", b"one\r\n--two\r\n")),
            ("file", ("large.bin", "application/octet-stream", LARGE)),
        ]
        step("files", "POST", "/upload", 200, body="large.bin", content=Multipart(upload))
        step("files in chunks", "POST", "/upload", 200, body="large.bin",
             content=lambda _: Chunked(Multipart(upload)))
        step("a few bytes in chunks", "POST", "/echo/x", 200, body='"a":\\["1234567"\\]',
             content=lambda _: Chunked(Form({"a": "1234567"}), size=2))
        # gunicorn closes the connection while the client still sends, so it is not asked.
        kirin = self.session.browsers[0]
        huge = Multipart([("file", ("huge.bin", "text/plain", LARGE * 2))])
        refused = kirin.request("POST", "/upload", huge)
        self.assertEqual((refused.status, refused.body.split()[2]), (413, b"413"), refused)
        self.assertEqual(kirin.request("GET", "/archive/1/").status, 200)
        self.assertEqual(kirin.connections, 1, "the connection was kept")

    def test_files(self):
        step = self.step
        for name in ("/picture", "/static/picture.svg"):
            found = step(name, "GET", name, 200, body="<svg")
            for what, fields, status in (
                ("its tag", {"If-None-Match": found.field("ETag")}, 304),
                ("another tag", {"If-None-Match": '"other"'}, 200),
                ("its date", {"If-Modified-Since": found.field("Last-Modified")}, 304),
                ("a range", {"Range": "bytes=5-14"}, 206),
                ("the end", {"Range": "bytes=-7"}, 206),
                ("a range of another file", {"Range": "bytes=5-14", "If-Range": '"other"'}, 200),
            ):
                step(f"{name}: {what}", "GET", name, status, fields=fields)
            step(f"{name}: its head", "HEAD", name, 200)
        step("a download", "GET", "/plain-picture", 200,
             field=("Content-Disposition", "attachment; filename=picture.svg"))

    def test_streams_and_statuses(self):
        step = self.step
        found = step("a stream", "GET", "/stream?word=oak", 200, body="^oak 0\n.*oak 99\n$")
        self.assertEqual(found.body.count(b"\n"), 5000)
        step("its head", "HEAD", "/stream?word=oak", 200)
        step("an empty stream", "GET", "/empty-stream", 200, body="^$")
        for code in (200, 201, 202, 204, 304, 400, 401, 404, 410, 418, 451, 500, 503, 599):
            step(f"status {code}", "GET", f"/status/{code}", code)
        step("nothing there", "GET", "/nothing", 404, body="error page: 404 Not Found")
        step("a method that is not allowed", "DELETE", "/note", 405)
        step("OPTIONS", "OPTIONS", "/note", 200)
        step("an error", "GET", "/broken", 500, body="error page: 500")
        for server in (self.kirin, self.gunicorn):
            server.has_logged(r"(?s)Traceback.*ValueError: no such luck")


if __name__ == "__main__":
    unittest.main()
