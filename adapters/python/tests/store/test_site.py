"""Sites: what is before keys and tags, and where the name of the site comes from."""
import asyncio
import base64
import contextvars
import threading
import unittest
from unittest import mock

from programs import Memcached

from kirin.store import Store, current_site, in_site, site
from kirin.store.connection import Connection


class SiteTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.memcached = Memcached().__enter__()
        cls.addClassCleanup(cls.memcached.__exit__)

    def setUp(self):
        self.address = self.memcached.address
        # This one sees the keys as they are stored.
        self.all = Store(self.address, site="")

    def test_a_site_that_was_given_is_before_every_key(self):
        store, everything = Store(self.address, site="example.org"), self.all
        self.assertIs(store.set("a", "one"), True)
        self.assertEqual(store.get("a"), "one")
        self.assertIsNone(everything.get("a"))
        self.assertEqual(everything.get("example.org:a"), "one")
        store.add("b", "two")
        store.replace("b", "three")
        self.assertEqual(store.get_multi(["a", "b", "c"]), {"a": "one", "b": "three"})
        unique, _ = store.gets("a")
        self.assertIs(store.cas("a", unique, "four"), True)
        store.set_multi({"n": 5})
        self.assertEqual(store.incr("n"), 6)
        self.assertIs(store.touch("n", 100), True)
        self.assertEqual(store.get_or_set("a", self.fail), "four")
        self.assertIs(store.delete("a"), True)
        self.assertEqual(everything.get("example.org:n"), 6)

    def test_the_site_of_the_request_counts_unless_one_was_given(self):
        any_site, fixed = Store(self.address), Store(self.address, site="fixed")
        for name, key in (("one.org", "one.org:k"), ("two.org", "two.org:k"), (None, "k"),
                          ("", "k")):
            with self.subTest(name), mock.patch.object(site, "of_process", name):
                self.assertEqual(current_site(), name or "")
                self.assertIs(any_site.set("k", name), True)
                self.assertEqual(self.all.get(key, "missing"), name)
                self.assertIsNone(fixed.get("k"))
                self.assertIs(any_site.delete("k"), True)
                self.assertIsNone(self.all.get(key))
        with in_site("one.org"):
            fixed.set("k", "x")
            self.assertEqual(self.all.get("fixed:k"), "x")
            self.all.set("k", "y")
            self.assertIsNone(any_site.get("k"))

    def test_a_thread_of_a_request_has_its_site(self):
        seen = []
        with mock.patch.object(site, "of_process", "one.org"):
            thread = threading.Thread(target=lambda: seen.append(current_site()))
            thread.start()
            thread.join()
        self.assertEqual(seen, ["one.org"])

    def test_requests_at_the_same_time_have_their_own_sites(self):
        async def request(name):
            site.set_in_context(name)
            seen = []
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(current_site())
            seen.append(await asyncio.get_running_loop().run_in_executor(
                None, contextvars.copy_context().run, current_site))
            return seen

        async def all_requests():
            return await asyncio.gather(*(request(name) for name in ("a", "b", None)))

        with mock.patch.object(site, "of_process", "process"):
            self.assertEqual(asyncio.run(all_requests()), [["a"] * 4, ["b"] * 4, [""] * 4])
            self.assertEqual(current_site(), "process")

    def test_a_block_for_another_site_ends(self):
        self.assertEqual(current_site(), "")
        with in_site("a"):
            with in_site(""):
                self.assertEqual(current_site(), "")
            self.assertEqual(current_site(), "a")
        self.assertEqual(current_site(), "")
        for name in ("a:b", "a/b", "a b", "a\n", None):
            with self.assertRaises(ValueError), in_site(name):
                self.fail("unreachable")

    def test_the_namespace_is_behind_the_site(self):
        Store(self.address, site="shop", namespace="memo:").set("a", "x")
        self.assertEqual(self.all.get("shop:memo:a"), "x")

    def test_tags_and_purges_are_those_of_the_site(self):
        sent = []
        sends = Connection.send

        def recorded(connection, data):
            sent.extend(bytes(data).split(b"\r\n"))
            sends(connection, data)

        store = Store(self.address, site="shop")
        with mock.patch.object(Connection, "send", recorded):
            store.purge(keys="/a", prefixes="/b/", tags="t")
            store.set("k", "v", 60, tags=["t", "u"])
        for line in (
            b"md shop:/a", b"md shop:/b/ Pprefix", b"md shop:t Ptag",
            b"md %b b Ptag" % base64.b64encode(b"\0cshop:/a"),
            b"md %b b Pprefix" % base64.b64encode(b"\0cshop:/b/"),
            b"ms shop:k 1 T60 F4 MS Ptags=shop:t,shop:u",
        ):
            self.assertIn(line, sent)

    def test_a_long_target_also_purges_cached_responses_that_start_with_it(self):
        sent = []
        with mock.patch.object(Connection, "send", lambda _, data: sent.append(data)), \
                mock.patch.object(Connection, "line", lambda _: b"HD"):
            Store(self.address).purge("/" + "x" * 249)
        tag = base64.b64encode(b"\0c/" + b"x" * 183)
        self.assertEqual(len(tag), 248)
        self.assertIn(b"md %b b Pprefix\r\n" % tag, sent[0])

    def test_names_that_would_leave_the_site_are_refused(self):
        store = Store(self.address, site="x" * 128)
        self.assertIs(store.set("k" * 121, "v"), True)
        self.assertIsNone(store.set("k" * 122, "v"))
        self.assertRegex(store.error, "1 to 250 bytes")
        self.assertIs(store.set("shop:other", "v"), True)
        self.assertIsNone(self.all.get("shop:other"), "it is a key of this site")


if __name__ == "__main__":
    unittest.main()
