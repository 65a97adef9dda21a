"""Django: the cache backend and the session engine. Django's own tests are in another file."""
import asyncio
import logging
import unittest
from unittest import mock

from programs import Memcached, software

software("django")

from django.conf import settings  # noqa: E402

if not settings.configured:
    settings.configure(
        SECRET_KEY="secret", USE_TZ=True, SESSION_ENGINE="kirin.store.django_sessions"
    )

from django.contrib.sessions.backends.base import UpdateError  # noqa: E402
from django.contrib.sessions.exceptions import SessionInterrupted  # noqa: E402
from django.contrib.sessions.middleware import SessionMiddleware  # noqa: E402
from django.core.cache.backends.base import InvalidCacheKey  # noqa: E402
from django.core.exceptions import ImproperlyConfigured  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import RequestFactory, override_settings  # noqa: E402

from kirin.store import Store, in_site  # noqa: E402
from kirin.store.django import KirinCache  # noqa: E402
from kirin.store.django_sessions import SessionStore  # noqa: E402


def setUpModule():
    global memcached, store
    memcached = Memcached().__enter__()
    unittest.addModuleCleanup(memcached.__exit__)
    store = Store(memcached.address)


def cache(location=None, **parameters):
    return KirinCache(memcached.address if location is None else location, parameters)


class CacheTests(unittest.TestCase):
    def tearDown(self):
        store.purge(prefixes=["django:"])

    def test_items_have_tags(self):
        django = cache()
        for tagged in (
            lambda: django.set("k", 1, tags=["t"]),
            lambda: django.add("k", 1, tags=["t"]),
            lambda: django.set_many({"k": 1, "l": 2}, tags=["t"]),
            lambda: django.get_or_set("k", lambda: 1, tags=["t"]),
            lambda: asyncio.run(django.aset("k", 1, tags=["t"])),
            lambda: asyncio.run(django.aadd("k", 1, tags=["t"])),
            lambda: asyncio.run(django.aset_many({"k": 1}, tags=["t"])),
            lambda: asyncio.run(django.aget_or_set("k", lambda: 1, tags=["t"])),
        ):
            tagged()
            self.assertEqual(django.get("k"), 1)
            self.assertEqual(django.purge(tags="t"), 1)
            self.assertIsNone(django.get("k"))
            self.assertIsNone(django.get("l"))
        store.set_page("/", "text/plain", "a page", tags=["t"])
        self.assertEqual(asyncio.run(django.apurge(tags=["t"])), 1)
        self.assertIsNone(store.get("/"), "tags are shared with pages")

    def test_after_a_soft_purge_get_or_set_renews_once(self):
        django = cache()
        django.set("k", "old", tags=["t"])
        django.purge(tags=["t"], soft=True)
        self.assertEqual(django.get("k"), "old")
        self.assertEqual(django.get_or_set("k", lambda: "new"), "new")
        self.assertEqual(django.get_or_set("k", self.fail), "new")

    def test_clear_removes_its_own_items_only(self):
        one, two = cache(), cache(KEY_PREFIX="two")
        custom = cache(KEY_FUNCTION=lambda key, prefix, version: f"{key}-{version}")
        for each in (one, two, custom):
            each.set("k", 1)
        store.set("k", "of another program")
        one.clear()
        self.assertEqual([each.get("k") for each in (one, two, custom)], [None, 1, 1])
        two.clear()
        self.assertEqual([each.get("k") for each in (one, two, custom)], [None, None, 1])
        one.set("k", 1)
        custom.clear()
        self.assertEqual([each.get("k") for each in (one, two, custom)], [None, None, None])
        self.assertEqual(store.get("k"), "of another program")

    def test_items_belong_to_the_site_of_the_request(self):
        django = cache()
        with in_site("one.org"):
            django.set("k", 1)
            self.assertEqual(django.get("k"), 1)
        self.assertIsNone(django.get("k"))
        self.assertEqual(store.get("one.org:django::1:k"), 1)
        self.assertEqual(cache(OPTIONS={"site": "one.org"}).get("k"), 1)

    def test_values_need_pickle_only_if_json_cannot_hold_them(self):
        django, pickles = cache(), cache(OPTIONS={"serializer": "pickle"})
        for value in ({1}, object(), HttpResponse("x")):
            for change in (lambda: django.set("k", value), lambda: django.add("k", value),
                           lambda: django.set_many({"k": value}),
                           lambda: django.get_or_set("k", value)):
                with self.assertRaises(TypeError):
                    change()
        pickles.set("k", {1: (2,)})
        self.assertEqual(pickles.get("k"), {1: (2,)})
        path = cache(OPTIONS={"serializer": "django.core.signing.JSONSerializer"})
        path.set("k", {"a": [1]})
        self.assertEqual(path.get("k"), {"a": [1]})

    def test_numbers_are_counted_in_the_store(self):
        django = cache(OPTIONS={"serializer": "pickle"})
        django.set("n", 5)
        self.assertEqual(django.incr("n", 2), 7)
        self.assertEqual(django.decr("n", 100), 0)
        self.assertEqual(store.get("django::1:n"), 0)
        with self.assertRaises(ValueError):
            django.incr("none")

    def test_bad_keys_and_options_are_errors(self):
        for key in ("a b", "k" * 241, "é" * 121):
            with self.subTest(key), self.assertRaises(InvalidCacheKey):
                cache().get(key)
        self.assertIsNone(cache().get("k" * 240))
        for options in ({"serialiser": "json"}, {"timeout": 0}, {"site": "a:b"}):
            with self.assertRaises(ImproperlyConfigured):
                cache(OPTIONS=options)

    def test_a_store_that_is_away_makes_a_cache_empty(self):
        with Memcached() as other:
            django = cache(other.address)
            django.set("k", 1)
            other.stop()
            with mock.patch.object(KirinCache, "_logged", 0.0), \
                    self.assertLogs("kirin.store", logging.WARNING) as logs:
                self.assertEqual(django.get("k", "default"), "default")
                self.assertEqual(django.get_many(["k"]), {})
                self.assertIsNone(django.set("k", 1))
                self.assertIs(django.add("k", 1), False)
                self.assertIs(django.touch("k"), False)
                self.assertIs(django.delete("k"), False)
                self.assertEqual(django.set_many({"k": 1}), ["k"])
                self.assertEqual(django.get_or_set("k", lambda: 2), 2)
                self.assertIs(django.has_key("k"), False)
                django.delete_many(["k"])
                django.clear()
                django.close()
                with self.assertRaisesRegex(ValueError, "is not counted"):
                    django.incr("k")
            self.assertEqual(len(logs.output), 1, "not a line for each call")

    def test_the_address_comes_from_the_settings(self):
        with override_settings(KIRIN_STORE=memcached.address):
            cache("").set("k", 3)
        self.assertEqual(cache().get("k"), 3)


class SessionTests(unittest.TestCase):
    """Requests through Django's middleware."""

    def setUp(self):
        override = override_settings(KIRIN_STORE=memcached.address)
        override.enable()
        self.addCleanup(override.disable)
        self.cookie = None

    def visit(self, view, cookie=None):
        """Carries out a request. Returns its response, and keeps the cookie as a browser does."""

        def response_of(request):
            view(request.session)
            return HttpResponse()

        request = RequestFactory().get("/")
        if cookie or self.cookie:
            request.COOKIES["sessionid"] = cookie or self.cookie
        response = SessionMiddleware(response_of)(request)
        sent = response.cookies.get("sessionid")
        if sent is not None:
            self.cookie = None if sent["max-age"] == 0 else sent.value
        return response

    def begin(self):
        self.cookie = None
        self.visit(lambda s: s.update({"user": "tama", "count": 1, "list": [1]}))
        return self.cookie

    def test_a_session_is_json_under_the_value_of_its_cookie(self):
        cookie = self.begin()
        self.assertRegex(cookie, r"\A[0-9a-f]{40}\Z")
        self.assertEqual(store.get(cookie), {"user": "tama", "count": 1, "list": [1]})

    def test_a_change_at_any_depth_is_written(self):
        cookie = self.begin()
        self.visit(lambda s: s["list"].append(2))
        self.assertEqual(store.get(cookie)["list"], [1, 2])
        unique, _ = store.gets(cookie)
        response = self.visit(lambda s: s["list"])
        self.assertEqual(store.gets(cookie)[0], unique, "reading does not write")
        self.assertNotIn("sessionid", response.cookies)

    def test_a_request_that_does_not_look_costs_nothing(self):
        self.begin()
        with mock.patch.object(Store, "_converse", side_effect=AssertionError):
            self.visit(lambda s: None)

    def test_changes_of_requests_at_the_same_time_are_merged(self):
        cookie = self.begin()

        def view(session):
            session["a"] = 1
            self.visit(lambda s: s.update({"b": 2, "count": 7}))
            session["count"] = 5

        self.visit(view)
        self.assertEqual(
            store.get(cookie), {"user": "tama", "list": [1], "a": 1, "b": 2, "count": 5}
        )

    def test_a_session_that_was_cleared_unread_keeps_what_others_add(self):
        cookie = self.begin()

        def view(session):
            session.clear()
            session["new"] = 1

        self.visit(view)
        self.assertEqual(store.get(cookie), {"new": 1})

    def test_a_request_in_progress_does_not_undo_a_sign_out(self):
        for end in (lambda s: s.flush(), lambda s: s.cycle_key()):
            cookie = self.begin()

            def view(session):
                session["count"] = 2
                self.visit(end)

            with self.assertRaises(SessionInterrupted):
                self.visit(view, cookie)
            self.assertIsNone(store.get(cookie))

    def test_cycle_key_moves_what_others_have_written(self):
        cookie = self.begin()

        def view(session):
            session["user"]
            self.visit(lambda s: s.update({"new": 1}), cookie)
            session.cycle_key()
            session["later"] = 2

        self.visit(view)
        self.assertNotEqual(self.cookie, cookie)
        self.assertIsNone(store.get(cookie))
        self.assertEqual(
            store.get(self.cookie),
            {"user": "tama", "count": 1, "list": [1], "new": 1, "later": 2},
        )

    def test_a_session_that_ends_while_its_id_changes_begins_empty(self):
        cookie = self.begin()

        def view(session):
            session["user"]
            self.visit(lambda s: s.flush(), cookie)
            session.cycle_key()
            session["later"] = 2

        self.visit(view, cookie)
        self.assertEqual(store.get(self.cookie), {"later": 2})

    def test_an_asynchronous_view_moves_it_too(self):
        cookie = self.begin()
        session = SessionStore(cookie)
        session["user"]
        self.visit(lambda s: s.update({"new": 1}))
        asyncio.run(session.acycle_key())
        self.assertIsNone(store.get(cookie))
        self.assertEqual(store.get(session.session_key)["new"], 1)

    def test_ids_of_clients_are_not_accepted(self):
        store.set("django-item", {"a": 1})
        for cookie in ("a" * 40, "django-item", "12345678"):
            self.cookie = None
            self.visit(lambda s: s.update({"x": s.get("a", 0)}), cookie)
            self.assertNotEqual(self.cookie, cookie)
            self.assertEqual(store.get(self.cookie), {"x": 0})

    def test_flush_ends_session_and_cookie(self):
        cookie = self.begin()
        self.visit(lambda s: s.flush())
        self.assertIsNone(self.cookie)
        self.assertIsNone(store.get(cookie))

    def test_save_of_a_session_that_is_gone_says_so(self):
        cookie = self.begin()
        for change in (lambda s: s["user"], lambda s: s.clear()):
            session = SessionStore(cookie)
            change(session)
            store.delete(cookie)
            with self.assertRaises(UpdateError):
                session.save()
            cookie = self.begin()

    def test_a_time_to_live_that_is_over_ends_a_session(self):
        cookie = self.begin()
        self.visit(lambda s: s.set_expiry(-1))
        self.assertIsNone(store.get(cookie))

    def test_another_serializer_is_used(self):
        serializer = "django.core.signing.JSONSerializer"
        with override_settings(SESSION_SERIALIZER=f"{__name__}.Upper"):
            cookie = self.begin()
            self.assertEqual(store.get(cookie)[:5], b"UPPER")
            self.visit(lambda s: s["list"].append(2))
            self.assertEqual(SessionStore(cookie)["list"], [1, 2])
        with override_settings(SESSION_SERIALIZER=serializer):
            self.begin()

    def test_a_value_that_is_no_json_is_an_error(self):
        self.begin()
        with self.assertRaises(TypeError):
            self.visit(lambda s: s.update({"bad": {1}}))

    def test_a_store_that_is_away_costs_nobody_the_session(self):
        with Memcached() as other, override_settings(KIRIN_STORE=other.address):
            cookie = self.begin()
            content = Store(other.address).get(cookie)
            other.stop()
            with self.assertLogs("kirin.store", logging.WARNING) as logs:
                self.assertEqual(self.visit(lambda s: s.get("user")).cookies, {})
                self.assertRegex(logs.output[0], "session is not read: unix:")
                response = self.visit(lambda s: s.update({"user": "lost"}))
                self.assertEqual(response.cookies, {})
                self.visit(lambda s: s.cycle_key())
                self.assertEqual(self.cookie, cookie)
                self.cookie = None
                self.visit(lambda s: s.update({"new": 1}))
            other.begin()
            Store(other.address).set(cookie, content)
            seen = []
            self.visit(lambda s: seen.append(s["user"]), cookie)
            self.assertEqual(seen, ["tama"])


class Upper:
    """A serializer whose output is no JSON."""

    def dumps(self, value):
        return b"UPPER" + repr(value).encode()

    def loads(self, data):
        import ast

        return ast.literal_eval(data[len(b"UPPER"):].decode())


if __name__ == "__main__":
    unittest.main()
