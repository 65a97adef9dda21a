"""The Django site behind Kirin: what visitors see, and which part has answered."""
import os
import re
import sys
import unittest
from urllib.parse import urlencode

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../../..")
sys.path.insert(0, os.path.join(ROOT, "tests/gallery"))

from example import Example  # noqa: E402

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


class Visitor:
    """A browser with cookies."""

    def __init__(self, site):
        self._site = site
        self.cookies = {}
        self.page = ""

    def get(self, path):
        """Returns the status and the header fields. `page` is the body."""
        return self._request("GET", path)

    def post(self, path, **fields):
        """Posts a form, with the token of the page that was read last unless there is another."""
        token = TOKEN.search(self.page)
        form = {"csrfmiddlewaretoken": token.group(1) if token else "", **fields}
        return self._request("POST", path, urlencode(form))

    def _request(self, method, path, body=None):
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        status, fields, page = self._site.request(method, path, body, headers)
        for cookie in fields.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        self.page = page.decode()
        return status, fields


class TestDjangoSite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = Example("django-site")
        cls.site.__enter__()
        # Leaving it checks that TERM ends it, and that the log has no error.
        cls.addClassCleanup(cls.site.__exit__, None, None, None)
        # Once for all tests, because one of them uses up the attempts.
        cls.admin = cls.sign_in()

    def wait_for_line(self, line):
        self.site.wait_for(
            lambda: re.search(line, self.site.log()), f"the access log has no line {line}"
        )

    @classmethod
    def sign_in(cls):
        admin = Visitor(cls.site)
        admin.get("/admin/login/")
        with open(f"{cls.site.directory}/data/admin-password", encoding="ascii") as file:
            password = file.read().strip()
        admin.post("/admin/login/", username="admin", password=password, next="/admin/")
        return admin

    def test_the_list_comes_from_the_store_and_the_files_from_memory(self):
        visitor = Visitor(self.site)
        self.assertEqual(visitor.get("/")[0], 200)
        self.assertIn("Bread &amp; patience", visitor.page)
        self.assertEqual(visitor.cookies, {})
        self.site.wait_for(
            lambda: visitor.get("/") and re.search(r'"GET / HTTP/1\.1" 200 .* store ', self.site.log()),
            "the store has not answered",
        )
        sheet = re.search(r'href="(/static/talks/site\.[0-9a-f]{12}\.css)"', visitor.page).group(1)
        status, fields = visitor.get(sheet)
        self.assertEqual(status, 200)
        self.assertIn("immutable", fields["Cache-Control"])
        self.wait_for_line(rf'"GET {re.escape(sheet)} HTTP/1\.1" 200 .* files ')
        self.assertEqual(visitor.get("/static/none.css")[0], 404)

    def test_a_visitor_books_the_last_seat_and_nobody_sees_it_as_free(self):
        ann, bea = Visitor(self.site), Visitor(self.site)
        bea.get("/")
        path = re.search(r'href="(/talk/\d+/)">A walk along', bea.page).group(1)
        for visitor in ann, bea:
            visitor.get(path)
            self.assertIn("1 free seat<", visitor.page)
        ann_books = {"name": "<b>Ann</b>", "email": "ann@example.org"}
        status, fields = ann.post(path, **ann_books)
        self.assertEqual((status, fields["Location"]), (302, "/bookings/"))
        ann.get("/bookings/")
        self.assertIn("A walk along the old railway</a> <span>for &lt;b&gt;Ann", ann.page)

        Visitor(self.site).get("/")
        status, _ = bea.post(path, name="Bea", email="bea@example.org")
        self.assertEqual(status, 400)
        self.assertIn("All seats are booked", bea.page)
        self.assertRegex(bea.page, "A walk along.*no seats left")
        for page in "/", path:
            bea.get(page)
            self.assertRegex(bea.page, "A walk along.*no seats left", page)
        bea.get("/bookings/")
        self.assertIn("not booked", bea.page)

    def test_a_change_in_the_admin_is_on_the_next_page(self):
        visitor, admin = Visitor(self.site), self.admin
        visitor.get("/")
        admin.get("/admin/talks/talk/?q=radios")
        path = re.search(r'href="(/admin/talks/talk/\d+/change/)', admin.page).group(1)
        admin.get(path)
        starts = re.search(r'name="starts_0" value="([^"]*)"', admin.page).group(1)
        status, _ = admin.post(
            path, title="Repairing gramophones", speaker="Adèle Roux", starts_0=starts,
            starts_1="20:00:00", free="20", text="",
        )
        self.assertEqual(status, 302)
        visitor.get("/")
        self.assertIn("Repairing gramophones", visitor.page)
        self.assertNotIn("radios", visitor.page)

    def test_the_admin_is_for_its_user_and_its_style_is_a_file(self):
        visitor = Visitor(self.site)
        status, fields = visitor.get("/admin/")
        self.assertEqual((status, fields["Location"]), (302, "/admin/login/?next=/admin/"))
        self.assertEqual(self.admin.get("/admin/")[0], 200)
        self.assertIn("Bookings", self.admin.page)
        base = re.compile(r'href="(/static/admin/css/base\.[0-9a-f]{12}\.css)"')
        sheet = base.search(self.admin.page).group(1)
        self.assertEqual(visitor.get(sheet)[0], 200)
        self.wait_for_line(rf'"GET {re.escape(sheet)} HTTP/1\.1" 200 .* files ')

    def test_bad_requests(self):
        visitor = Visitor(self.site)
        visitor.get("/")
        path = re.search(r'href="(/talk/\d+/)">The night', visitor.page).group(1)
        self.assertEqual(visitor.post(path, name="Eve", email="eve@example.org")[0], 403)
        visitor.get(path)
        self.assertEqual(visitor.post(path, name="Eve", email="nowhere")[0], 400)
        self.assertIn("valid email address", visitor.page)
        self.assertEqual(self.site.get("/bookings/", Host="evil.example")[0], 400)
        self.assertEqual(visitor.get("/talk/99999/")[0], 404)
        self.assertEqual(visitor.get("/static/../secret_key")[0], 404)
        self.assertEqual(visitor.get("/data/site.sqlite")[0], 404)

    def test_who_guesses_passwords_is_stopped_before_django(self):
        # The limit counts by the address. The forwarded one is not believed.
        statuses = {
            self.site.request("POST", "/admin/login/", "", {"X-Forwarded-For": f"10.0.0.{number}"})[0]
            for number in range(20)
        }
        self.assertEqual(statuses, {403, 429})


if __name__ == "__main__":
    unittest.main()
