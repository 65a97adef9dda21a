"""What a visitor of the static site gets: pages, moved pages, compressed files, a password."""
import base64
import gzip
import hashlib
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "gallery"))
from example import Example  # noqa: E402


class StaticSite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = Example("static-site").__enter__()
        cls.addClassCleanup(cls.site.__exit__, None, None, None)

    def redirect(self, path):
        """Returns the status of a response and where it leads."""
        status, fields, _ = self.site.get(path)
        return status, fields["Location"]

    def test_a_page_is_validated_each_time(self):
        status, fields, page = self.site.get("/")
        self.assertEqual(200, status)
        self.assertIn(b"<h1>Four lights, one harbour</h1>", page)
        self.assertEqual("no-cache", fields["Cache-Control"])
        self.assertEqual("nosniff", fields["X-Content-Type-Options"])
        status, _, page = self.site.get("/", If_None_Match=fields["ETag"])
        self.assertEqual((304, b""), (status, page))

    def test_kirin_compresses_a_page_itself(self):
        _, _, page = self.site.get("/")
        _, fields, compressed = self.site.get("/", Accept_Encoding="gzip")
        self.assertEqual("gzip", fields["Content-Encoding"])
        self.assertEqual(page, gzip.decompress(compressed))

    def test_a_download_comes_as_the_file_that_lies_beside_it(self):
        for coding, extension in ("br", "br"), ("gzip", "gz"):
            _, fields, body = self.site.get("/downloads/logbook.csv", Accept_Encoding=coding)
            self.assertEqual(coding, fields["Content-Encoding"])
            path = f"{self.site.directory}/data/public/downloads/logbook.csv.{extension}"
            with open(path, "rb") as file:
                self.assertEqual(file.read(), body)
        _, fields, part = self.site.get("/downloads/logbook.csv", Range="bytes=0-2")
        self.assertEqual(b"day", part)
        self.assertEqual("max-age=3600", fields["Cache-Control"])
        self.assertIn(b"logbook.csv", self.site.get("/downloads/")[2])

    def test_the_style_sheet_stays_in_the_browser(self):
        address = re.search(r"/assets/site-(\w+)\.css", self.site.get("/")[2].decode())
        status, fields, style = self.site.get(address[0])
        self.assertEqual(200, status)
        self.assertEqual("public, max-age=31536000, immutable", fields["Cache-Control"])
        fingerprint = hashlib.sha256(style).hexdigest()[:10]
        self.assertEqual(fingerprint, address[1], "rename the style sheet when it changes")
        self.assertIsNone(self.site.get("/assets/site-0.css")[1]["Cache-Control"])

    def test_old_addresses_lead_to_the_new_ones(self):
        self.assertEqual((301, "/visit/"), self.redirect("/index.php?page=visit"))
        self.assertEqual((301, "/visit/#hours"), self.redirect("/opening-hours.html"))
        self.assertEqual((301, "/"), self.redirect("/news/2011/storm"))
        self.assertEqual((301, "/lights/?print=1"), self.redirect("/lighthouses/?print=1"))
        self.assertEqual((302, "https://tours.example.org/harbour"), self.redirect("/book-a-tour"))
        self.assertEqual((301, "/lights/"), self.redirect("/lights"))

    def test_errors_have_a_page_of_the_site(self):
        status, _, page = self.site.get("/none")
        self.assertEqual(404, status)
        self.assertIn(b"No light here", page)
        self.assertEqual(404, self.site.get("/errors/401.html")[0], "it is no page by itself")

    def test_members_need_the_password(self):
        with open(f"{self.site.directory}/data/password.txt", encoding="ascii") as file:
            password = file.read().strip()
        for path in "/members/", "/members/index.html", "/%6dembers/", "/visit/../members/":
            status, fields, page = self.site.get(path)
            self.assertEqual(401, status)
            self.assertIn("Friends of the lights", fields["WWW-Authenticate"])
            self.assertIn(b"For members", page)
        self.assertEqual(401, self.site.get("/members/", Authorization=basic("guess"))[0])
        status, fields, page = self.site.get("/members/", Authorization=basic(password))
        self.assertEqual(200, status)
        self.assertIn(b"barometer", page)
        self.assertEqual("private, no-store", fields["Cache-Control"])

    def test_what_is_no_page_is_refused(self):
        self.assertEqual(400, self.site.get("/%zz")[0])
        self.assertEqual(400, self.site.get("/../data/password.txt")[0])
        self.assertEqual(404, self.site.get("/data/password.txt")[0])
        status, fields, _ = self.site.request("POST", "/", b"name=value")
        self.assertEqual((405, "GET, HEAD, OPTIONS"), (status, fields["Allow"]))

    def test_the_access_log_says_who_answered(self):
        self.site.get("/lights/?logged")
        line = r'"GET /lights/\?logged HTTP/1.1" 200 .* files '
        self.site.wait_for(lambda: re.search(line, self.site.log()), "no line of a file")
        self.site.get("/none?logged")
        line = r'"GET /none\?logged HTTP/1.1" 404 .* kirin '
        self.site.wait_for(lambda: re.search(line, self.site.log()), "no line of an error")


def basic(password):
    """Returns the field of a request by the members' user."""
    return "Basic " + base64.b64encode(f"friend:{password}".encode()).decode()


if __name__ == "__main__":
    unittest.main()
