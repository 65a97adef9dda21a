"""Pages that Kirin answers from its store, with includes, sites and sessions."""
import unittest

from programs import Memcached, Serving

from kirin.store import Store
from kirin.store.session import VisitorSession


class ServedPageTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kirin = Serving().__enter__()
        cls.addClassCleanup(cls.kirin.__exit__)
        cls.store = Store(cls.kirin.address)

    def test_a_page_is_served_until_it_is_purged(self):
        store, get = self.store, self.kirin.get
        store.set("part", "with a part")
        html = "<p>é <!--# include part -->"
        self.assertIs(
            store.set_page("/page?x=1", "text/html; charset=UTF-8", html, 60, tags=["t"]), True
        )
        status, head, body = get("/page?x=1")
        self.assertEqual((status, body.decode()), (200, "<p>é with a part"))
        self.assertIn("text/html; charset=UTF-8", head)
        self.assertEqual(get("/page")[0], 404)
        self.assertEqual(store.purge(tags="t"), 1)
        self.assertEqual(get("/page?x=1")[0], 404)

    def test_a_complete_response_is_served_with_its_status(self):
        self.store.set_page("/old", (301, [("Location", "/new")], b""))
        status, head, _ = self.kirin.get("/old")
        self.assertEqual(status, 301)
        self.assertRegex(head, r"(?i)location: /new")
        self.store.set_response("/gone", "404 Not Found", {"X-A": "é"}, ["no", b" page"], ttl=60)
        status, head, body = self.kirin.get("/gone")
        self.assertEqual((status, body), (404, b"no page"))
        self.assertIn("é", head)

    def test_a_fragment_is_no_page(self):
        self.store.set("/secret", "a fragment")
        self.assertEqual(self.kirin.get("/secret")[0], 404)

    def test_a_page_belongs_to_its_site(self):
        shop = Store(self.kirin.address, site="shop.test")
        shop.set_page("/site", "text/plain", "the shop")
        self.assertEqual(self.kirin.get("/site", "shop.test")[2], b"the shop")
        self.assertEqual(self.kirin.get("/site")[0], 404)
        self.assertEqual(self.store.purge("/site"), 0)
        self.assertEqual(shop.purge("/site"), 1)
        self.assertEqual(self.kirin.get("/site", "shop.test")[0], 404)

    def test_a_page_shows_the_session_of_its_visitor(self):
        self.store.set_page(
            "/hello", "text/html",
            '<!--# if expr="$session.name" --><!--# echo var="session.name" -->'
            '<!--# else -->nobody<!--# endif -->',
        )
        session = VisitorSession(self.store)
        session.load()
        session.content["name"] = "Tama"
        session.create(100)
        cookie = f"Cookie: simple_session={session.id}\r\n"
        self.assertEqual(self.kirin.get("/hello", fields=cookie)[2], b"Tama")
        session.move(100)
        self.assertEqual(self.kirin.get("/hello", fields=cookie)[2], b"nobody")
        cookie = f"Cookie: simple_session={session.id}\r\n"
        self.assertEqual(self.kirin.get("/hello", fields=cookie)[2], b"Tama")
        session.remove()
        self.assertEqual(self.kirin.get("/hello", fields=cookie)[2], b"nobody")


class StoredPageTests(unittest.TestCase):
    def test_a_page_is_stored_as_it_was_given(self):
        with Memcached() as memcached:
            store = Store(memcached.address)
            response = (
                404,
                [("A", "1"), ("content-length", 7), ("Connection", "close"),
                 ("Kirin-Store", "ttl=1"), ("Transfer-Encoding", "chunked")],
                [b"x", "y"],
            )
            for arguments, options, stored in (
                (("text/plain", "x"), {}, b"text/plain\r\nx"),
                (("text/plain", b"x", 100), {"tags": ["t"]}, b"text/plain\r\nx"),
                (("text/plain", "x"), {"ttl": 100}, b"text/plain\r\nx"),
                ((response,), {"tags": ["t"]}, b"HTTP/1.1 404\r\nA: 1\r\n\r\nxy"),
                (((200, {}, "x"),), {"ttl": 100}, b"HTTP/1.1 200\r\n\r\nx"),
            ):
                with self.subTest(arguments):
                    self.assertIs(store.set_page("/page", *arguments, **options), True, store.error)
                    self.assertEqual(store.get("/page"), stored)
                    if "tags" in options:
                        self.assertEqual(store.purge(tags="t"), 1)
                        self.assertIsNone(store.get("/page"))


if __name__ == "__main__":
    unittest.main()
