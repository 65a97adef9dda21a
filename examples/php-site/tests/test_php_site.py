"""The guest book: entries, their page in memory, uploads, and what must stay private."""
import os
import re
import sys
import unittest
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "gallery"))
from example import Example  # noqa: E402

# The smallest GIF: one pixel.
PICTURE = bytes.fromhex(
    "47494638396101000100800000ffffff00000021f90401000000002c000000000100010000020144003b"
)
SOURCE = b"<?php"


class Visitor:
    """A browser: it has one cookie and the token of its last form."""

    def __init__(self, site):
        self.site = site
        _, fields, page = site.get("/write")
        self.cookie = fields["Set-Cookie"].split(";")[0]
        self.csrf = re.search(r'name="csrf" value="(\w+)"', page.decode())[1]

    def write(self, text, picture=None, csrf=None):
        """Sends the form."""
        boundary = uuid.uuid4().hex
        values = {"csrf": csrf or self.csrf, "name": "Mari <3", "text": text}
        parts = [
            f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode()
            for name, value in values.items()
        ]
        if picture is not None:
            head = 'Content-Disposition: form-data; name="picture"; filename="evil.php"\r\n'
            parts.append(f"{head}Content-Type: image/gif\r\n\r\n".encode() + picture)
        mark = f"--{boundary}\r\n".encode()
        body = b"".join(mark + part + b"\r\n" for part in parts) + f"--{boundary}--\r\n".encode()
        headers = {
            "Cookie": self.cookie,
            "Content-Type": f"multipart/form-data; boundary={boundary}",
        }
        return self.site.request("POST", "/", body, headers)


class PhpSite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = Example("php-site").__enter__()
        cls.addClassCleanup(cls.site.__exit__, None, None, None)

    def test_an_entry_is_on_the_page_at_once(self):
        visitor = Visitor(self.site)
        self.assertIn(b"Bruno &amp; Lea", self.site.get("/")[2])
        status, fields, _ = visitor.write("<script>alert(1)</script>")
        self.assertEqual((303, "/"), (status, fields["Location"]))
        page = self.site.get("/")[2]
        self.assertIn(b"&lt;script&gt;alert(1)&lt;/script&gt;", page)
        self.assertIn(b"Mari &lt;3", page)
        self.assertNotIn(b"<script>", page)

    def test_the_list_comes_from_memory_until_somebody_writes(self):
        visitor = Visitor(self.site)
        self.site.get("/")
        # The page is the same with another query, and for visitors with a session.
        for path in "/", "/?from=mail":
            fields = self.site.get(path, Cookie=visitor.cookie)[1]
            self.assertIn("Kirin; hit", fields["Cache-Status"])
        visitor.write("Snow again.")
        for path, answer in ("/?from=mail", "fwd=uri-miss"), ("/", "hit"):
            _, fields, page = self.site.get(path)
            self.assertIn(answer, fields["Cache-Status"])
            self.assertIn(b"Snow again.", page)
        line = r'"GET /\?from=mail HTTP/1.1" 200 .* cache '
        self.site.wait_for(lambda: re.search(line, self.site.log()), "no line of a hit")

    def test_a_form_needs_the_token_of_its_session(self):
        visitor = Visitor(self.site)
        self.assertEqual(403, visitor.write("Spam", csrf="0" * 32)[0])
        visitor.cookie = Visitor(self.site).cookie
        self.assertEqual(403, visitor.write("Spam")[0])
        visitor.cookie = ""
        self.assertEqual(403, visitor.write("Spam")[0])
        self.assertNotIn(b"Spam", self.site.get("/")[2])
        self.assertEqual(422, Visitor(self.site).write("  ")[0])

    def test_a_picture_is_served_without_php(self):
        visitor = Visitor(self.site)
        self.assertEqual(303, visitor.write("A dot", PICTURE)[0])
        address = re.search(r'/pictures/\w+\.gif', self.site.get("/")[2].decode())[0]
        status, fields, picture = self.site.get(address)
        self.assertEqual((200, "image/gif", PICTURE), (status, fields["Content-Type"], picture))
        self.assertIn("immutable", fields["Cache-Control"])
        self.assertIn("sandbox", fields["Content-Security-Policy"])

    def test_other_uploads_are_refused(self):
        visitor = Visitor(self.site)
        status, _, page = visitor.write("No picture", SOURCE + b" echo 1;")
        self.assertEqual(422, status)
        self.assertIn(b"Only JPEG, PNG, GIF and WebP", page)
        # PHP refuses a picture of more than 256 KB, Kirin a form of more than 320 KB.
        status, _, page = visitor.write("Large", PICTURE + bytes(300_000))
        self.assertEqual(422, status)
        self.assertIn(b"more than 256 KB", page)
        status, _, page = visitor.write("Larger", PICTURE + bytes(400_000))
        self.assertEqual(413, status)
        self.assertIn(b"Too large", page)

    def test_no_source_is_ever_served(self):
        for directory in "pictures", "":
            path = os.path.join(self.site.directory, "data", directory, "evil.php")
            with open(path, "wb") as file:
                file.write(SOURCE + b" echo 'it runs';")
        paths = ["/pictures/evil.php", "/pictures/evil.PHP", "/index.php", "/index.php/", "/INDEX.PHP"]
        paths += ["/src/Site.php", "/../src/Site.php", "/data/evil.php", "/data/guestbook.sqlite"]
        for path in paths:
            status, _, page = self.site.get(path)
            self.assertIn(status, (400, 404), path)
            self.assertNotIn(SOURCE, page, path)
            self.assertNotIn(b"it runs", page, path)
        self.assertEqual(404, self.site.get("/none")[0])
        self.assertEqual(404, self.site.request("DELETE", "/")[0])


if __name__ == "__main__":
    unittest.main()
