"""Request Tracker behind Kirin: a ticket, and which part has answered."""
import os
import pathlib
import re
import sys
import unittest
from urllib.parse import urlencode

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../tests/gallery"))

from example import LIMIT, Example  # noqa: E402

SQUISHED = re.compile(r'"(/NoAuth/(?:css|js)/[\w/-]*squished-[0-9a-f]{32}\.(?:css|js))"')
PICTURE = re.compile(r'"(/static/images/[\w/-]+\.svg)"')


class Visitor:
    """A browser with a cookie. Request Tracker believes only forms with a Referer of its site."""

    def __init__(self, tracker):
        self._tracker = tracker
        self._cookie = None
        self.page = ""

    def get(self, path):
        """Returns the status and the header fields. `page` is the body."""
        return self._request("GET", path)

    def post(self, path, referer=True, **fields):
        """Posts a form."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if referer:
            headers["Referer"] = self._tracker.url + path
        return self._request("POST", path, urlencode(fields), headers)

    def sign_in(self):
        """Signs in as root, with the password that `prepare` has made."""
        with open(f"{self._tracker.directory}/data/root-password", encoding="ascii") as file:
            password = file.read().strip()
        self.get("/")
        self.post("/NoAuth/Login.html", **{"user": "root", "pass": password})

    def _request(self, method, path, body=None, headers=()):
        headers = {**dict(headers), **({"Cookie": self._cookie} if self._cookie else {})}
        status, fields, page = self._tracker.request(method, path, body, headers)
        if "Set-Cookie" in fields:
            self._cookie = fields["Set-Cookie"].split(";")[0]
        self.page = page.decode()
        return status, fields


class TestRequestTracker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Request Tracker loads hundreds of modules, twice before it serves.
        cls.tracker = Example("request-tracker", limit=3 * LIMIT)
        cls.tracker.__enter__()
        # Leaving it checks that TERM ends it, and that the log has no error.
        cls.addClassCleanup(cls.tracker.__exit__, None, None, None)
        # Once for all tests, because one of them uses up the attempts.
        cls.root = Visitor(cls.tracker)
        cls.root.sign_in()

    def wait_for_line(self, line):
        self.tracker.wait_for(
            lambda: re.search(line, self.tracker.log()), f"the access log has no line {line}"
        )

    def test_the_login_page_and_its_files_without_a_worker(self):
        visitor = Visitor(self.tracker)
        self.assertEqual(visitor.get("/")[0], 200)
        self.assertIn("<title>Login</title>", visitor.page)
        page = visitor.page
        picture = PICTURE.search(page).group(1)
        status, fields = visitor.get(picture)
        self.assertEqual((status, fields["Content-Type"]), (200, "image/svg+xml"))
        self.wait_for_line(rf'"GET {re.escape(picture)} HTTP/1\.1" 200 .* files ')
        squished = SQUISHED.findall(page)
        self.assertEqual(len(squished), 2)
        for path in squished:
            self.assertEqual(visitor.get(path)[0], 200)
            self.assertIn("Kirin; hit", visitor.get(path)[1]["Cache-Status"])

    def test_root_creates_a_ticket_and_a_visitor_does_not_see_it(self):
        form = {
            "id": "new", "Queue": 1, "Status": "new", "Requestors": "ann@example.org",
            "Subject": "Tea & <b>cups</b>", "Content": "The kettle is broken.", "SubmitTicket": "1",
        }
        status, fields = self.root.post("/Ticket/Create.html", **form)
        self.assertEqual(status, 302)
        ticket = re.search(r"/Ticket/Display\.html\?id=\d+", fields["Location"]).group(0)
        self.root.get(ticket)
        self.assertRegex(self.root.page, "<title>#[0-9]+: Tea &#38; &lt;b&gt;cups&lt;/b&gt;</title>")
        self.assertIn("ann@example.org", self.root.page)
        self.wait_for_line(rf'"GET {re.escape(ticket)} HTTP/1\.1" 200 .* app ')
        # The mail to the requestor stays here.
        data = pathlib.Path(self.tracker.directory, "data")
        mails = "".join(file.read_text(encoding="utf-8") for file in data.glob("*.mbox"))
        self.assertIn("To: ann@example.org", mails)

        status, fields = Visitor(self.tracker).get(ticket)
        self.assertEqual(status, 302)
        self.assertIn("/NoAuth/Login.html", fields["Location"])

    def test_a_form_of_another_site_is_not_carried_out(self):
        self.root.post(
            "/Ticket/Create.html", referer=False, id="new", Queue=1, Subject="forged", SubmitTicket="1"
        )
        self.assertIn("cross-site request forgery", self.root.page)

    def test_bad_requests(self):
        self.assertEqual(self.tracker.get("/../RT_SiteConfig.pm")[0], 400)
        self.assertEqual(self.root.get("/no/such/page.html")[0], 404)
        self.assertEqual(self.tracker.get("/static/none.css")[0], 404)
        # These are no files of the site. Request Tracker sends the visitor to the login page.
        for path in "/static/../RT_SiteConfig.pm", "/data/root-password":
            status, fields, _ = self.tracker.get(path)
            self.assertEqual(status, 302, path)
            self.assertIn("/NoAuth/Login.html", fields["Location"])

    def test_a_client_that_guesses_passwords_is_stopped_before_a_worker(self):
        visitor = Visitor(self.tracker)
        guess = {"user": "root", "pass": "guess"}
        # On a slow machine an attempt may be allowed again in the meantime.
        self.tracker.wait_for(
            lambda: visitor.post("/NoAuth/Login.html", **guess)[0] == 429, "no guess is refused"
        )
        self.wait_for_line(r'"POST /NoAuth/Login\.html HTTP/1\.1" 429 .* kirin ')


if __name__ == "__main__":
    unittest.main()
