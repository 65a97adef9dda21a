"""Commands of the store: values, keys, tags, prefixes, and everything that is refused."""
import gc
import itertools
import os
import pickle
import unittest
import weakref

from programs import Memcached, wait_until

from kirin.store import Store

ALL_BYTES = bytes(range(256))

# A memcached that is not Kirin, if there is one.
PLAIN = [path for path in ["/usr/bin/memcached"] if os.access(path, os.X_OK)]


def setUpModule():
    global memcached, store
    memcached = Memcached().__enter__()
    unittest.addModuleCleanup(memcached.__exit__)
    store = Store(memcached.address)


class Commands:
    """Commands of any memcached."""

    def test_storing_and_deleting_say_what_they_did(self):
        store = self.store
        self.assertIsNone(store.get("a"))
        self.assertIsNone(store.error, "a missing item is no failure")
        self.assertEqual(store.get("a", "other"), "other")
        self.assertIs(store.set("a", "one"), True)
        self.assertEqual(store.get("a"), "one")
        self.assertIs(store.add("a", "two"), False)
        self.assertIs(store.replace("b", "two"), False)
        self.assertIs(store.add("b", "two"), True)
        self.assertIs(store.replace("b", "three"), True)
        self.assertEqual(store.get_multi(["a", "b", "c"]), {"a": "one", "b": "three"})
        self.assertEqual(store.get_multi([]), {})
        self.assertIs(store.delete("a"), True)
        self.assertIs(store.delete("a"), False)
        self.assertIs(store.touch("b", 100), True)
        self.assertIs(store.touch("gone", 100), False)
        self.assertIsNone(store.error)

    def test_numbers_are_counted(self):
        store = self.store
        self.assertIs(store.incr("n"), False)
        self.assertIs(store.set("n", 5), True)
        self.assertEqual(store.incr("n"), 6)
        self.assertEqual(store.incr("n", 10), 16)
        self.assertEqual(store.get("n"), 16)
        self.assertEqual(store.decr("n", 9), 7)
        self.assertEqual(store.get("n"), 7, "a shorter number may have a space behind it")
        zero = store.decr("n", 20)
        self.assertEqual(zero, 0)
        self.assertIsNot(zero, False)
        self.assertIsNone(store.error)
        store.set("b", "text")
        self.assertIsNone(store.incr("b"))
        self.assertRegex(store.error, "non-numeric")
        store.set("n", b"41")
        self.assertEqual(store.incr("n"), 42)

    def test_a_value_comes_back_as_it_was(self):
        values = [
            b"", b"0", b"END\r\n", ALL_BYTES, (ALL_BYTES + b"\r\n") * 3000,
            "", "text", "黒\r\n", 0, -7, 2**70, 1.5, True, False, None,
            {"a": [1, None, "黒", {"b": 0.25}]}, [], {},
        ]
        for value in values:
            with self.subTest(repr(value)[:40]):
                self.assertIs(self.store.set("v", value), True, self.store.error)
                found = self.store.get("v", "missing")
                self.assertTrue(found == value, repr(found)[:80])
                self.assertIs(type(found), type(value))
        for value in (bytearray(b"x"), memoryview(b"x")):
            self.store.set("v", value)
            self.assertEqual(self.store.get("v"), b"x")
        self.store.set("v", (1, 2))
        self.assertEqual(self.store.get("v"), [1, 2])

    def test_many_items_are_stored_and_read(self):
        many = {f"key{i}": i for i in range(2500)}
        self.assertEqual(self.store.set_multi(many), [])
        self.assertIsNone(self.store.error)
        self.assertEqual(self.store.get_multi(many), many)
        large = {f"large{i}": b"x" * 300_000 for i in range(12)}
        self.assertEqual(self.store.set_multi(large, 100), [])
        # A comparison of texts this long would take minutes.
        self.assertTrue(self.store.get_multi(iter(large)) == large)
        self.assertEqual(self.store.set_multi({}), [])

    def test_one_item_that_is_refused_does_not_keep_others_out(self):
        values = {"one": 1, "a b": 2, "large": b"x" * 2_000_000, "set": {1}, "two": 2}
        self.assertEqual(sorted(self.store.set_multi(values)), ["a b", "large", "set"])
        self.assertTrue(self.store.error)
        self.assertEqual(self.store.get_multi(["one", "two", "large"]), {"one": 1, "two": 2})

    def test_a_time_to_live_is_a_duration(self):
        store = self.store
        store.set("t", "x", -1)
        self.assertIsNone(store.get("t"))
        store.set("t", "x", 60 * 60 * 24 * 365)
        self.assertEqual(store.get("t"), "x", "a year is a duration and no date")
        for many in (2**31, 10**10, 10**30, 1e300):
            self.assertIs(store.set("t", many, many), True, store.error)
            self.assertEqual(store.get("t"), many, "so long a time is not over at once")
        store.set("t", "x", 0)
        self.assertEqual(store.get("t"), "x")
        store.set("t", "x", 0.5)
        self.assertEqual(store.get("t"), "x", "half a second is not nothing")
        wait_until(lambda: store.get("t") is None, "half a second is not for ever")

    def test_cas_stores_only_what_nobody_has_changed(self):
        store = self.store
        self.assertIsNone(store.gets("c"))
        self.assertIsNone(store.error)
        store.set("c", {"n": 1})
        unique, value = store.gets("c")
        self.assertEqual(value, {"n": 1})
        self.assertIs(store.cas("c", unique, {"n": 2}, 100), True)
        self.assertIs(store.cas("c", unique, {"n": 3}), False)
        self.assertEqual(store.get("c"), {"n": 2})
        store.delete("c")
        self.assertIs(store.cas("c", unique, 1), False)

    def test_get_or_set_makes_a_missing_value_once(self):
        store = self.store
        store.delete("g")
        self.assertEqual(store.get_or_set("g", lambda: [1], 60), [1])
        self.assertEqual(store.get_or_set("g", self.fail, 60), [1])
        store.delete("g")
        self.assertEqual(store.get_or_set("g", "plain"), "plain")
        store.set("g", None)
        self.assertIsNone(store.get_or_set("g", self.fail))


class KirinTests(Commands, unittest.TestCase):
    def setUp(self):
        self.store = store
        store.purge(prefixes=list("abcdefghijklmnopqrstuvwxyz/"))


@unittest.skipUnless(PLAIN, "memcached is not installed")
class MemcachedTests(Commands, unittest.TestCase):
    """A plain memcached. The client sends it nothing that it does not know."""

    def setUp(self):
        memcached = Memcached(PLAIN[0]).__enter__()
        self.addCleanup(memcached.__exit__)
        self.store = Store(memcached.address)


class SerializerTests(unittest.TestCase):
    def test_other_values_need_a_serializer_that_was_asked_for(self):
        pickles = Store(memcached.address, serializer=pickle)
        for value in ({1, 2}, (1, 2), {3: (4,)}, 1j, True, bytearray(b"x"), None):
            self.assertIs(pickles.set("p", value), True, pickles.error)
            found = pickles.get("p", "missing")
            self.assertEqual(found, value)
            self.assertIs(type(found), type(value))
        pickles.set("p", {1})
        self.assertIsInstance(store.get("p"), bytes, "nothing is unpickled unless that is wanted")
        store.set("p", {"json": [1]})
        self.assertEqual(pickles.get("p"), {"json": [1]})
        for value in (b"x", "x", 5):
            pickles.set("p", value)
            self.assertEqual(store.get("p"), value)
        pickles.set("p", 5)
        self.assertEqual(pickles.incr("p"), 6)

    def test_an_item_that_cannot_be_read_is_a_failure_with_a_reason(self):
        pickles = Store(memcached.address, serializer=pickle)
        broken = Store(memcached.address, serializer=Broken())
        broken.set("one", {1})
        store.set("two", 2)
        self.assertIsNone(pickles.get("one"))
        self.assertRegex(pickles.error, "cannot be read")
        self.assertEqual(pickles.get_multi(["one", "two"]), {"two": 2})
        self.assertRegex(pickles.error, "cannot be read")


class Broken:
    def dumps(self, value):
        return b"no pickle"

    def loads(self, data):
        raise AssertionError


class RefusedTests(unittest.TestCase):
    def test_what_cannot_be_stored_is_refused_before_it_is_sent(self):
        cases = [
            ("set", "", 1), ("set", "a b", 1), ("set", "a\r\nflush_all", 1), ("set", "x" * 251, 1),
            ("set", "é" * 126, 1), ("set", "\x7f", 1), ("set", "\ud800", 1), ("set", 7, 1),
            ("set", None, 1), ("get", "a\0"), ("gets", "a\t"), ("touch", "a b", 1),
            ("set", "k", "\ud800"), ("set", "k", {1}), ("set", "k", float("nan")),
            ("set", "k", object()), ("set", "k", 1, "soon"), ("set", "k", 1, float("inf")),
            ("set", "k", 1, True), ("incr", "k", "1 noreply"), ("incr", "k", -1),
            ("incr", "k", 2**64), ("incr", "k", 1.0), ("cas", "k", "1", 1), ("cas", "k", None, 1),
            ("delete", "a b"),
            ("set_page", "/", "text/html\r\nX: y", ""), ("set_page", "/", "", ""),
            ("set_page", "/", "text", ""), ("set_page", "/", "text/html", 7),
            ("set_page", "/", (200, [])), ("set_page", "/", (200, [], b""), b"x"),
            ("set_page", "/", (200, [("X\r\n", "1")], b"")), ("set_page", "/", ("x", [], b"")),
            ("set_page", "/", (99, [], b"")), ("set_page", "/", (200, ["X: 1"], b"")),
            ("set_page", "/", (200, [("X", "黒")], b"")), ("set_page", "/", (200, [("X", "")], 1)),
            ("set_response", "/", 200, 5, b""),
            ("purge", ["a", ""]), ("purge", (), "/\r\n"), ("purge", (), (), ["a,b"]),
            ("purge", (), (), "x" * 65), ("purge", 5),
        ]
        for method, *arguments in cases:
            with self.subTest(method=method, arguments=arguments):
                self.assertIsNone(getattr(store, method)(*arguments))
                self.assertTrue(store.error)
                self.assertNotIn("\n", store.error)
        for tags in (["a,b"], ["x" * 65], list("abcdefghijklmnopq"), [""], ["a b"], [5], 5):
            with self.subTest(tags=tags):
                self.assertIsNone(store.set("k", 1, 0, tags=tags))
                self.assertTrue(store.error)
        self.assertIs(store.set("k", 1), True, "the connection is good")
        self.assertIsNone(store.error)

    def test_a_failure_keeps_no_value_of_the_application_alive(self):
        class Value:
            pass

        for fail in (
            lambda value: self.assertIsNone(store.set("k", [value])),
            lambda value: self.assertEqual(store.set_multi({"k": [value]}), ["k"]),
        ):
            value = Value()
            gone = weakref.ref(value)
            fail(value)
            self.assertTrue(store.error)
            del value
            gc.collect()
            self.assertIsNone(gone())

    def test_a_value_that_is_too_large_for_the_store_is_refused_by_it(self):
        store.set("k", 1)
        self.assertIsNone(store.set("k", b"x" * 2_000_000))
        self.assertRegex(store.error, "too large")
        self.assertIsNone(store.get("k"), "an old value would be wrong")
        self.assertIsNone(store.error)

    def test_a_refused_value_among_many_leaves_the_others(self):
        with Memcached(options=["-I", "20k"]) as small:
            many = Store(small.address)
            values = {f"key{i}": b"x" * (30_000 if i % 3 == 1 else 10) for i in range(30)}
            refused = [key for key, value in values.items() if len(value) > 10]
            self.assertEqual(many.set_multi(values), refused)
            self.assertRegex(many.error, "too large")
            self.assertEqual(sorted(many.get_multi(values)), sorted(set(values) - set(refused)))

    def test_wrong_arguments_of_the_constructor_raise(self):
        for arguments in (
            {"servers": 5}, {"servers": []}, {"servers": ["a:1", "b:1"]}, {"timeout": 0},
            {"timeout": None}, {"site": "a:b"}, {"site": "a/b"}, {"site": "a b"}, {"site": 5},
            {"serializer": object()},
        ):
            with self.subTest(arguments), self.assertRaises(ValueError):
                Store(**arguments)
        with self.assertRaises(TypeError):
            store.set("k", 1, ttl=1, tag="a")
        Store([memcached.address])


class NamespaceTests(unittest.TestCase):
    def test_a_namespace_is_before_every_key_but_not_in_results(self):
        mine = Store(memcached.address, namespace="mine:")
        mine.set("a", "x")
        self.assertEqual(store.get("mine:a"), "x")
        self.assertEqual(mine.get_multi(["a"]), {"a": "x"})

    def test_keys_are_str_or_bytes(self):
        store.set("é", 1)
        self.assertEqual(store.get("é".encode()), 1)
        self.assertEqual(store.get_multi([b"\xc3\xa9"]), {b"\xc3\xa9": 1})
        self.assertIs(store.set("k" * 250, 1), True)


class TagTests(unittest.TestCase):
    def fill(self):
        store.set("one", 1, 0, tags=["red", "small"])
        store.set_page("/two", "text/plain", "2", tags=["red"])
        store.set("/three", 3)

    def left(self):
        return sorted(store.get_multi(["one", "/two", "/three"]))

    def test_a_purge_removes_what_it_names_and_nothing_else(self):
        for purge, expected, left in (
            ({"tags": "red"}, 1, ["/three"]),
            ({"tags": ["never"]}, 0, ["/three", "/two", "one"]),
            ({"tags": ["small"]}, 1, ["/three", "/two"]),
            ({"prefixes": "/t"}, 1, ["one"]),
            ({"keys": ["/three", "none"], "tags": ["small", "never"]}, 2, ["/two"]),
            ({"keys": "one", "prefixes": ["/t"]}, 2, []),
            ({}, 0, ["/three", "/two", "one"]),
            ({"tags": "red", "keys": ["/three"], "soft": True}, 2, ["/three", "/two", "one"]),
        ):
            with self.subTest(purge):
                self.fill()
                self.assertEqual(store.purge(**purge), expected, store.error)
                self.assertEqual(self.left(), left)

    def test_more_names_than_are_sent_at_once_are_purged(self):
        many = [f"/many{i}" for i in range(1000)]
        store.set_multi({key: 1 for key in many})
        self.assertEqual(store.purge(many), 1000)
        self.assertEqual(store.get_multi(many), {})

    def test_all_commands_that_store_take_tags(self):
        self.fill()
        self.assertIs(store.add("one", 2, tags=["t"]), False)
        self.assertIs(store.replace("none", 2, tags=["t"]), False)
        unique, _ = store.gets("one")
        self.assertIs(store.cas("one", unique, 2, tags=["t"]), True)
        self.assertIs(store.cas("one", unique, 3, tags=["t"]), False)
        self.assertIs(store.cas("none", unique, 3, tags=["t"]), False)
        self.assertEqual(store.set_multi({"/two": 2, "/four": 4}, tags=iter(["t"])), [])
        self.assertEqual(store.set_multi({"/two": 2}, tags=5), ["/two"])
        self.assertRegex(store.error, "no list")
        store.delete("/three")
        store.get_or_set("/three", 3, tags=["t"])
        self.assertIs(store.replace("/three", b"bytes", 100, tags=["t", "u"]), True)
        self.assertEqual(store.get("/three"), b"bytes")
        self.assertEqual(store.purge(tags=["t"]), 1)
        self.assertEqual(self.left(), [])
        self.assertIsNone(store.get("/four"))

    def test_after_a_soft_purge_one_caller_of_get_or_set_renews(self):
        numbers = itertools.count(1)
        for key in ("soft", "/soft"):
            store.set(key, 0, tags=["s"])
            store.purge(tags=["s"], soft=True)
            with self.assertRaises(ZeroDivisionError):
                store.get_or_set(key, lambda: 1 / 0, tags=["s"])
            made = []

            def make():
                # Another caller, while this one makes the value.
                made.append(store.get_or_set(key, self.fail))
                return next(numbers)

            renewed = store.get_or_set(key, make, tags=["s"])
            self.assertEqual(made, [0], "the others get the old value")
            self.assertEqual(store.get_or_set(key, self.fail), renewed)
            self.assertEqual(store.get(key), renewed)


if __name__ == "__main__":
    unittest.main()
