"""Sessions of ASGI applications: the middleware alone, and under Starlette."""
import asyncio
import logging
import re
import threading
import unittest

from programs import Memcached, software

from kirin.store import Store
from kirin.store.starlette import SessionMiddleware


class Browser:
    """Sends requests to an ASGI application, and keeps cookies."""

    def __init__(self, app):
        self.app = app
        self.cookies = {}
        self.headers = []
        self.set_cookies = []

    async def get(self, path="/", kind="http"):
        """Returns the body of the response."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": kind, "method": "GET", "path": path, "raw_path": path.encode(),
            "root_path": "", "scheme": "http", "query_string": b"", "http_version": "1.1",
            "headers": [(b"host", b"x")] + ([(b"cookie", cookies.encode())] if cookies else []),
        }
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        self.headers = list(sent[0].get("headers", ()))
        self.set_cookies = [v.decode() for n, v in self.headers if n.lower() == b"set-cookie"]
        for line in self.set_cookies:
            name, _, rest = line.partition("=")
            value = rest.split(";")[0]
            # The id of a session may have these digits, too.
            if re.search("expires=[^;]*1970", line, re.IGNORECASE):
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return b"".join(message.get("body", b"") for message in sent)


class SessionCases:
    """Requests whose application is the function `view(session)`."""

    def setUp(self):
        self.memcached = Memcached().__enter__()
        self.addCleanup(self.memcached.__exit__)
        self.store = Store(self.memcached.address)
        self.browser = Browser(self.app())

    def visit(self, view, browser=None, **options):
        return asyncio.run(self.avisit(view, browser, **options))

    async def avisit(self, view, browser=None, **options):
        self.view = view
        return await (browser or self.browser).get(**options)

    def begin(self):
        self.browser.cookies.clear()
        self.visit(lambda s: s.update(user="tama", count=1, list=[1]))
        return self.browser.cookies["session"]

    def test_a_session_is_json_under_the_value_of_its_cookie(self):
        cookie = self.begin()
        self.assertRegex(cookie, r"\A[0-9a-f]{40}\Z")
        self.assertRegex(
            self.browser.set_cookies[0],
            r"\Asession=[0-9a-f]{40}; path=/; httponly; samesite=lax; max-age=1209600\Z",
        )
        self.assertIn((b"vary", b"Cookie"), [(n.lower(), v) for n, v in self.browser.headers])
        self.assertEqual(self.store.get(cookie), {"user": "tama", "count": 1, "list": [1]})
        self.assertEqual(self.visit(lambda s: s["user"]), b"tama")

    def test_a_change_at_any_depth_is_written(self):
        cookie = self.begin()
        self.visit(lambda s: s["list"].append(2))
        self.assertEqual(self.store.get(cookie)["list"], [1, 2])

    def test_requests_at_the_same_time_are_merged(self):
        cookie = self.begin()
        other = Browser(self.app())
        other.cookies["session"] = cookie

        async def nested():
            async def view(session):
                session["a"] = 1
                await self.avisit(lambda s: s.update(b=2), other)

            await self.avisit(view)

        asyncio.run(nested())
        self.assertEqual(
            self.store.get(cookie), {"user": "tama", "count": 1, "list": [1], "a": 1, "b": 2}
        )

    def test_a_session_that_has_ended_stays_ended(self):
        for end in (lambda s: s.clear(), lambda s: s.expire(), lambda s: s.change_id()):
            cookie = self.begin()
            other = Browser(self.app())
            other.cookies["session"] = cookie

            async def nested():
                async def view(session):
                    session["count"] = 2
                    await self.avisit(end, other)

                await self.avisit(view)

            asyncio.run(nested())
            self.assertIsNone(self.store.get(cookie))

    def test_ends_and_changes_of_the_id_reach_the_cookie(self):
        for end in (lambda s: s.clear(), lambda s: s.expire()):
            cookie = self.begin()
            self.visit(end)
            self.assertEqual(self.browser.cookies, {})
            self.assertIsNone(self.store.get(cookie))
        cookie = self.begin()
        self.visit(lambda s: s.change_id())
        self.assertNotEqual(self.browser.cookies["session"], cookie)
        self.assertEqual(self.visit(lambda s: s["user"]), b"tama")

    def test_a_store_that_is_away_costs_nobody_the_session(self):
        cookie = self.begin()
        content = self.store.get(cookie)
        self.memcached.stop()
        with self.assertLogs("kirin.store", logging.WARNING):
            self.assertEqual(self.visit(lambda s: s.get("user")), b"None")
            self.visit(lambda s: s.update(user="lost"))
            self.assertEqual(self.browser.set_cookies, [])
        self.memcached.begin()
        self.store.set(cookie, content)
        self.assertEqual(self.visit(lambda s: s["user"]), b"tama")


class MiddlewareTests(SessionCases, unittest.TestCase):
    def app(self, **options):
        async def application(scope, _receive, send):
            result = self.view(scope["session"])
            if asyncio.iscoroutine(result):
                result = await result
            start = {"type": "http.response.start", "status": 200, "headers": self.fields}
            if scope["type"] == "websocket":
                start = {"type": "websocket.accept"}
            await send(start)
            await send({"type": "http.response.body", "body": str(result).encode()})

        return SessionMiddleware(application, self.store, **options)

    fields = ()

    def test_a_request_that_does_not_look_writes_nothing(self):
        self.begin()
        self.visit(lambda s: None)
        self.assertEqual(self.browser.headers, [])
        self.browser.cookies.clear()
        self.store._converse = self.fail
        self.assertEqual(self.visit(lambda s: s.get("user")), b"None")
        self.assertEqual(self.browser.set_cookies, [])

    def test_the_store_is_not_used_in_the_thread_of_the_event_loop(self):
        threads = set()
        sends = self.store._converse

        def recorded(conversation, *arguments):
            threads.add(threading.current_thread())
            return sends(conversation, *arguments)

        self.store._converse = recorded
        self.begin()
        self.visit(lambda s: s.update(count=2))
        self.assertTrue(threads)
        self.assertNotIn(threading.current_thread(), threads)

    def test_a_cookie_is_sent_again_when_the_session_lives_on(self):
        self.begin()
        self.visit(lambda s: s.update(count=2))
        self.assertEqual(len(self.browser.set_cookies), 1, "written")
        self.visit(lambda s: s["count"])
        self.assertEqual(len(self.browser.set_cookies), 1, "touched")
        self.visit(lambda s: s["count"])
        self.assertEqual(self.browser.set_cookies, [], "touched a moment ago")
        browser = Browser(self.app(max_age=None))
        self.visit(lambda s: s.update(a=1), browser)
        self.assertNotIn("max-age", browser.set_cookies[0])
        self.visit(lambda s: s.update(a=2), browser)
        self.assertEqual(browser.set_cookies, [])

    def test_the_cookie_has_the_options(self):
        browser = Browser(self.app(
            session_cookie="sid", path="/app", same_site="strict", https_only=True,
            domain="example.org", partitioned=True, max_age=60,
        ))
        self.visit(lambda s: s.update(a=1), browser)
        self.assertRegex(
            browser.set_cookies[0],
            r"\Asid=[0-9a-f]{40}; path=/app; httponly; samesite=strict; secure; "
            r"domain=example.org; partitioned; max-age=60\Z",
        )

    def test_the_first_of_several_cookies_counts(self):
        cookie = self.begin()
        self.browser.cookies = {"other": "1", "session": f"{cookie}; session={'a' * 40}"}
        self.assertEqual(self.visit(lambda s: s["user"]), b"tama")

    def test_vary_is_added_once(self):
        self.begin()
        for field, expected in ((b"Accept, Cookie", 1), (b"*", 1), (b"Accept", 2)):
            self.fields = ((b"Vary", field),)
            self.visit(lambda s: s["user"])
            found = [value for name, value in self.browser.headers if name.lower() == b"vary"]
            self.assertEqual(len(found), expected)

    def test_a_websocket_has_the_session_and_writes_it_when_it_is_accepted(self):
        cookie = self.begin()
        self.visit(lambda s: s.update(socket=1), kind="websocket")
        self.assertEqual(self.store.get(cookie)["socket"], 1)
        self.browser.cookies.clear()
        self.visit(lambda s: s.update(socket=1), kind="websocket")
        self.assertEqual(self.store.get(self.browser.cookies["session"]), {"socket": 1})

    def test_other_messages_of_the_protocol_pass(self):
        seen = []

        async def application(scope, _receive, _send):
            seen.append(scope)

        asyncio.run(SessionMiddleware(application, self.store)({"type": "lifespan"}, None, None))
        self.assertEqual(seen, [{"type": "lifespan"}])

    def test_a_dict_in_place_of_the_session_is_taken(self):
        async def application(scope, _receive, send):
            scope["session"] = {"mine": 1}
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body"})

        cookie = self.begin()
        self.browser.app = SessionMiddleware(application, self.store)
        self.visit(None)
        self.assertEqual(self.store.get(cookie), {"mine": 1})


class StarletteTests(SessionCases, unittest.TestCase):
    def app(self):
        software("starlette")
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route

        async def index(request):
            result = self.view(request.session)
            if asyncio.iscoroutine(result):
                result = await result
            return PlainTextResponse(str(result))

        return Starlette(
            routes=[Route("/", index)],
            middleware=[Middleware(SessionMiddleware, store=self.store)],
        )


if __name__ == "__main__":
    unittest.main()
