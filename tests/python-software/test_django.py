"""A Django site, compared with gunicorn and WhiteNoise, and with uvicorn."""
import os
import unittest

import software
from content import Chunked, Form, Multipart
from differences import OF_THE_FILE_SERVER, TIME_FOR_PEOPLE
from differential import Differential
from project import Project
from served import Served

TOKEN = r'name="csrfmiddlewaretoken" value="(\w+)"'
RANDOM = [TOKEN, TIME_FOR_PEOPLE]

LARGE = bytes(range(256)) * 12_000


def with_token(make, pairs):
    """Returns a form with the CSRF token of the page that the browser saw last."""
    return lambda browser: make(
        [("csrfmiddlewaretoken", browser.last.find(TOKEN)), *pairs]
    )


class Site(unittest.TestCase):
    """Starts both servers once for all tests of a class, because a start takes a second."""

    environment = {}

    @classmethod
    def setUpClass(cls):
        project = Project(os.path.join(software.APPS, "django"))
        cls.addClassCleanup(project.remove)
        project.run("fill.py")
        cls.kirin = cls.start_kirin(project.copy("kirin"))
        cls.addClassCleanup(cls.kirin.stop)
        cls.other = cls.start_other(project.copy("other"))
        cls.addClassCleanup(cls.other.stop)

    @classmethod
    def start_kirin(cls, directory):
        return Served.by_kirin(directory, ".", **cls.environment)

    @classmethod
    def start_other(cls, directory):
        return Served.by_gunicorn(
            directory, "shelf.wsgi:application", SHELF_STATIC_FILES="whitenoise"
        )

    def setUp(self):
        self.session = Differential(self, self.kirin, self.other, RANDOM)
        self.step = self.session.step

    def sign_in(self):
        self.step("the form", "GET", "/admin/login/?next=/admin/", 200, body=TOKEN)
        self.step(
            "signing in", "POST", "/admin/login/?next=/admin/", 302, field=("Location", "/admin/"),
            content=with_token(Form, [("username", "ann"), ("password", "oak")]),
        )


class Scenarios:
    """What a visitor sees by WSGI and by ASGI.

    The day in the admin is the first test by its name, because it counts the books.
    """

    def test_a_working_day_in_the_admin(self):
        step = self.step
        step("without a session", "GET", "/admin/", 302,
             field=("Location", "/admin/login/?next=/admin/"))
        step("the form", "GET", "/admin/login/", 200, body=TOKEN)
        step("a wrong password", "POST", "/admin/login/", 200, body="correct username",
             content=with_token(Form, [("username", "ann"), ("password", "elm")]))
        step("a form without a token", "POST", "/admin/login/", 403, body="CSRF",
             content=Form([("username", "ann"), ("password", "oak")]))
        self.sign_in()
        step("the index", "GET", "/admin/", 200, body="Welcome.*ann.*Books")
        step("the list", "GET", "/admin/library/book/", 200, body="Kirin")
        step("an empty form", "GET", "/admin/library/book/add/", 200, body=TOKEN)
        step("a number that is none", "POST", "/admin/library/book/add/", 200,
             body="Enter a whole number",
             content=with_token(Multipart, [("title", "Oaks"), ("pages", "many")]))
        step("another book", "POST", "/admin/library/book/add/", 302,
             field=("Location", "/admin/library/book/"),
             content=with_token(Multipart, [
                 ("title", "Üble <Eichen>"), ("pages", "300"),
                 ("text", ("oaks.txt", "text/plain", b"Oaks are trees.")),
             ]))
        step("its message", "GET", "/admin/library/book/", 200,
             body="was added successfully.*Üble &lt;Eichen&gt;")
        step("the search", "GET", "/admin/library/book/?q=Eichen", 200, body="1 result")
        step("the filter", "GET", "/admin/library/book/?pages=7", 200, body="Kirin")
        step("the book", "GET", "/admin/library/book/2/change/", 200, body="Üble &lt;Eichen&gt;")
        step("a change, and on with it", "POST", "/admin/library/book/2/change/", 302,
             content=with_token(Multipart, [
                 ("title", "Eichen"), ("pages", "301"), ("_continue", "1"),
             ]))
        step("its history", "GET", "/admin/library/book/2/history/", 200, body="Changed Title")
        step("the list again", "GET", "/admin/library/book/", 200, body="Eichen")
        step("an action", "POST", "/admin/library/book/", 200, body="Are you sure",
             content=with_token(Form, [
                 ("action", "delete_selected"), ("_selected_action", "2"),
             ]))
        step("the action is confirmed", "POST", "/admin/library/book/", 302,
             content=with_token(Form, [
                 ("action", "delete_selected"), ("_selected_action", "2"), ("post", "yes"),
             ]))
        step("one book is left", "GET", "/admin/library/book/", 200, body="1 book")
        step("a book that is not there", "GET", "/admin/library/book/2/change/", 302)
        step("the other passwords", "GET", "/admin/password_change/", 200, body=TOKEN)
        step("the end of the session", "POST", "/admin/logout/", 200, body="Logged out",
             content=with_token(Form, []))
        step("there is none", "GET", "/admin/library/book/", 302)

    def test_sessions_messages_and_redirects(self):
        step = self.step
        step("a visit", "GET", "/visits/", 200, body="^visit 1$")
        step("and another", "GET", "/visits/", 200, body="^visit 2$")
        step("cookies", "GET", "/cookies/", 200)
        step("come back", "GET", "/cookies/", 200, body="a b;c")
        step("a redirect", "GET", "/moved/", 301,
             field=("Location", "/inside/?from=%C3%BC"))
        step("a page for members", "GET", "/inside/?from=%C3%BC", 302)
        self.sign_in()
        step("a member", "GET", "/inside/", 200, body="Hello ann")
        step("a missing slash", "GET", "/visits", 301, field=("Location", "/visits/"))
        step("with a query", "GET", "/visits?a=1&b=%26", 301)
        step("POST without the slash", "POST", "/visits", 301, content=Form([("a", "1")]))
        step("nothing there", "GET", "/nothing", 404, body="not found")
        step("nothing below a number", "GET", "/books/99/text", 404)
        step("a site that is not ours", "GET", "/", 400, fields={"Host": "evil.example"})
        step("a method without a token", "DELETE", "/", 403)
        step("a method that is not allowed", "OPTIONS", "/", 405)
        step("a coroutine", "GET", "/asynchronous/", 200, body="^from a coroutine$")
        for browser in self.session.browsers:
            self.assertEqual(browser.connections, 1, "the connection was kept")

    def test_what_the_application_sees(self):
        step = self.step
        for target in (
            "/echo/?a=1&a=2&b=%C3%BC&c&d=", "/echo/a%20b/%E9%BA%92?x=+y%2B", "/echo/a%2Fb;p=1",
            "/echo/%25?%", "/echo/plus+plus?", "/echo/~user/?q=a;b", "/echo/" + "x" * 3000,
        ):
            step(target, "GET", target, 200)
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            step(method, method, "/echo/", 200, content=Form([("a", "1"), ("a", "ü & b")]))
        step("no content", "POST", "/echo/", 200, fields={"Content-Length": "0"})
        step("fields", "GET", "/echo/", 200, fields={
            "X-One": "a, b", "X-Two": "\t padded", "X-Latin": "\xe9", "Accept": "*/*",
            "X-Long": "x" * 4000, "Referer": "http://a.example/",
            "Accept-Language": "de;q=0.9, en", "Cookie": "a=1; b=\"x y\"; c",
        })
        seen = step("the address of another client, which Kirin believes only proxies", "GET",
                    "/echo/", 200, fields={"X-Forwarded-For": "10.1.1.1"}, other_status=200)
        self.assertNotIn(b"10.1.1.1", seen.body)
        step("HEAD", "HEAD", "/echo/?x", 200)
        step("a large form", "POST", "/echo/", 200,
             content=Form([(f"field{n}", "ü" * 100) for n in range(900)]))
        step("a form with too many fields", "POST", "/echo/", 400,
             content=Form([(f"field{n}", "x") for n in range(1200)]))
        step("a form in chunks", "POST", "/describe/", 200, body='"fields": {"a": \\["1"\\]}',
             content=lambda _: Chunked(Form([("a", "1")])), other_status=200)
        step("HEAD of a page with a form", "HEAD", "/", 200)

    def test_uploads_and_downloads(self):
        step = self.step
        step("files of all sizes", "POST", "/describe/", 200,
             body="TemporaryUploadedFile",
             content=Multipart([
                 ("note", "zwei Stück"),
                 ("file", ("麒麟.txt", "text/plain", b"one\r\n--two\r\n")),
                 ("file", ("empty.txt", "text/plain", b"")),
                 ("file", ("large.bin", "application/octet-stream", LARGE)),
             ]))
        step("small files", "POST", "/describe/", 200, body="InMemoryUploadedFile",
             content=Multipart([("file", ("a.txt", "text/plain", b"a" * 5000))] * 3))
        step("the form", "GET", "/", 200, body=TOKEN)
        step("a large book", "POST", "/", 302, field=("Location", "/"),
             content=with_token(Multipart, [
                 ("title", "Large"), ("text", ("large.bin", "application/octet-stream", LARGE)),
             ]))
        shelf = step("its message, and its size", "GET", "/", 200,
                     body=f"is on the shelf.*{len(LARGE)}")
        book = shelf.find(r'"(/books/\d+/)text"')
        found = step("the download", "GET", book + "text", 200)
        self.assertEqual(found.body, LARGE)
        step("with a name", "GET", book + "text?save", 200,
             field=("Content-Disposition", 'attachment; filename="large.bin"'))
        step("its head", "HEAD", book + "text", 200, field=("Content-Length", str(len(LARGE))))
        found = step("as a file of the system", "GET", book + "file", 200)
        self.assertEqual(found.body, LARGE)

    def test_streams_conditions_and_failures(self):
        step = self.step
        found = step("a stream", "GET", "/pages/", 200, body="^page 1\n.*page 50\n$")
        self.assertEqual(found.body.count(b"\n"), 5000)
        step("HEAD of a stream", "HEAD", "/pages/", 200)
        step("a tag", "GET", "/conditional/", 200, field=("ETag", '"seven"'))
        step("is matched", "GET", "/conditional/", 304, fields={"If-None-Match": '"seven"'})
        step("is not matched", "GET", "/conditional/", 412, fields={"If-Match": '"eight"'})
        step("an error", "GET", "/broken/", 500, body="Server Error")
        step("and on with the same connection", "GET", "/visits/", 200)
        for server in (self.kirin, self.other):
            server.has_logged(r"(?s)Traceback.*RuntimeError: the shelf has fallen down")
        step("HEAD of an error", "HEAD", "/broken/", 500)


class ByWsgi(Scenarios, Site):
    def test_kirin_sends_the_files_that_the_application_opens(self):
        step = self.step
        step("the form", "GET", "/", 200, body=TOKEN)
        step("a book", "POST", "/", 302, content=with_token(Multipart, [
            ("title", "Zoology"), ("text", ("zoo.bin", "application/octet-stream", LARGE)),
        ]))
        shelf = step("the shelf", "GET", "/", 200, body="Zoology")
        book = shelf.find(r'<li>Zoology\s*<a href="(/books/\d+/)text"') + "file"
        found = step("the file", "GET", book, 200)
        part = step("a part", "GET", book, 206, fields={"Range": "bytes=1000000-1000255"},
                    other_status=200)
        self.assertEqual(part.body, LARGE[1000000:1000256])
        step("its tag", "GET", book, 304, fields={"If-None-Match": found.field("ETag")},
             other_status=200)

    def test_static_files_are_as_those_of_whitenoise(self):
        step = self.step
        style = "/static/library/shelf.css"
        found = step("a style", "GET", style, 200, body="made of oak", ignored=OF_THE_FILE_SERVER)
        date = {"If-Modified-Since": found.field("Last-Modified")}
        step("is not modified", "GET", style, 304, fields=date, ignored=OF_THE_FILE_SERVER)
        step("was modified since", "GET", style, 200, ignored=OF_THE_FILE_SERVER,
             fields={"If-Modified-Since": "Sat, 01 Jan 2000 00:00:00 GMT"})
        for part in ("bytes=3-12", "bytes=-10", "bytes=100-"):
            step(part, "GET", style, 206, fields={"Range": part}, ignored=OF_THE_FILE_SERVER)
        step("no such range", "GET", style, 416, fields={"Range": "bytes=9999-"}, other_status=416)
        step("its head", "HEAD", style, 200, ignored=OF_THE_FILE_SERVER)
        step("the admin's style", "GET", "/static/admin/css/base.css", 200,
             ignored=OF_THE_FILE_SERVER)
        step("the admin's picture", "GET", "/static/admin/img/icon-yes.svg", 200,
             ignored=OF_THE_FILE_SERVER)
        step("no such file", "GET", "/static/library/none.css", 404, other_status=404)
        step("out of the directory", "GET", "/static/../db.sqlite3", 404, other_status=404)
        self.kirin.has_logged(f'"GET {style} HTTP/1.1" 200 .* files ')


class ByAsgi(Scenarios, Site):
    @classmethod
    def start_kirin(cls, directory):
        return Served.by_kirin(directory, "shelf.asgi:application")

    @classmethod
    def start_other(cls, directory):
        return Served.by_uvicorn(directory, "shelf.asgi:application")


class SessionsInTheStore(Site):
    """On Kirin's side, sessions are in kirin.store. A browser sees no difference."""

    environment = {"SHELF_SESSIONS": "kirin"}

    def test_a_visit_signing_in_and_the_end(self):
        step = self.step
        step("a visit", "GET", "/visits/", 200, body="^visit 1$")
        before = self.session.browsers[0].cookies["sessionid"]
        step("and another", "GET", "/visits/", 200, body="^visit 2$")
        self.sign_in()
        after = self.session.browsers[0].cookies["sessionid"]
        self.assertNotEqual(before, after, "signing in gives another id")
        self.assertRegex(after, "^[0-9a-f]{40}$", "it is a session of the store")
        step("what was before, goes on", "GET", "/visits/", 200, body="^visit 3$")
        step("a member", "GET", "/inside/", 200, body="Hello ann")
        step("another book", "GET", "/admin/library/book/add/", 200, body=TOKEN)
        step("is added", "POST", "/admin/library/book/add/", 302,
             content=with_token(Multipart, [("title", "Ash"), ("pages", "3")]))
        step("its message", "GET", "/admin/library/book/", 200, body="was added.*Ash")
        step("the end", "POST", "/admin/logout/", 200, content=with_token(Form, []))
        step("there is no session", "GET", "/inside/", 302)
        step("a new one", "GET", "/visits/", 200, body="^visit 1$")


if __name__ == "__main__":
    unittest.main()
