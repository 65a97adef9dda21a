"""Sessions of Flask."""
import logging
import unittest
from datetime import timedelta

from programs import Memcached, software

software("flask")

from flask import Flask, session  # noqa: E402

from kirin.store import Store  # noqa: E402
from kirin.store.flask import KirinSessionInterface  # noqa: E402


class FlaskTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.memcached = Memcached().__enter__()
        cls.addClassCleanup(cls.memcached.__exit__)

    def setUp(self):
        self.store = Store(self.memcached.address)
        self.view = None
        self.client = self.app(self.store).test_client()

    def app(self, store, **config):
        # There is no SECRET_KEY.
        app = Flask(__name__)
        app.config.update(TESTING=True, **config)
        app.session_interface = KirinSessionInterface(store)

        @app.route("/")
        def index():
            return str(self.view())

        return app

    def visit(self, view, client=None):
        before, self.view = self.view, view
        try:
            return (client or self.client).get("/")
        finally:
            self.view = before

    def cookie(self, client=None):
        cookie = (client or self.client).get_cookie("session")
        return cookie and cookie.value

    def begin(self):
        self.visit(lambda: session.update(user="tama", count=1, list=[1]))
        return self.cookie()

    def test_a_session_is_json_under_the_value_of_its_cookie(self):
        cookie = self.begin()
        self.assertRegex(cookie, r"\A[0-9a-f]{40}\Z")
        self.assertEqual(self.store.get(cookie), {"user": "tama", "count": 1, "list": [1]})
        response = self.visit(lambda: session["user"])
        self.assertEqual(response.text, "tama")
        self.assertNotIn("Set-Cookie", response.headers)
        self.assertEqual(response.headers["Vary"], "Cookie")

    def test_a_request_that_does_not_look_costs_nothing(self):
        self.begin()
        self.store._converse = self.fail
        response = self.visit(lambda: 1)
        self.assertNotIn("Set-Cookie", response.headers)
        self.assertNotIn("Vary", response.headers)

    def test_changes_at_any_depth_are_written_and_merged(self):
        cookie = self.begin()
        other = self.client.application.test_client()
        other.set_cookie("session", cookie)

        def view():
            session["list"].append(2)
            self.visit(lambda: session.update(new=1), other)

        response = self.visit(view)
        self.assertNotIn("Set-Cookie", response.headers)
        self.assertEqual(
            self.store.get(cookie), {"user": "tama", "count": 1, "list": [1, 2], "new": 1}
        )

    def test_a_session_that_has_ended_stays_ended(self):
        for end in (lambda: session.clear(), lambda: session.expire(), lambda: session.change_id()):
            cookie = self.begin()
            other = self.client.application.test_client()
            other.set_cookie("session", cookie)

            def view():
                session["count"] = 2
                self.visit(end, other)

            self.visit(view)
            self.assertIsNone(self.store.get(cookie))
            self.assertEqual(self.visit(lambda: session.get("user")).text, "None")
            self.client.delete_cookie("session")

    def test_a_permanent_session_that_has_ended_gets_no_cookie(self):
        self.visit(lambda: session.update(user="tama", _permanent=True))
        cookie = self.cookie()

        def view():
            session["count"] = 2
            self.store.delete(cookie)

        self.assertNotIn("Set-Cookie", self.visit(view).headers)

    def test_clear_and_expire_end_the_cookie(self):
        for end in (lambda: session.clear(), lambda: session.expire()):
            cookie = self.begin()
            self.visit(end)
            self.assertIsNone(self.cookie())
            self.assertIsNone(self.store.get(cookie))

    def test_change_id_moves_the_session(self):
        cookie = self.begin()
        self.visit(lambda: session.change_id())
        self.assertNotEqual(self.cookie(), cookie)
        self.assertIsNone(self.store.get(cookie))
        self.assertEqual(self.visit(lambda: session["user"]).text, "tama")

    def test_a_permanent_session_has_a_cookie_with_an_end(self):
        lifetime = timedelta(seconds=500)
        app = self.app(
            self.store, PERMANENT_SESSION_LIFETIME=lifetime, SESSION_COOKIE_SAMESITE="Strict",
            SESSION_COOKIE_SECURE=False, SESSION_COOKIE_PATH="/",
        )
        client = app.test_client()
        response = self.visit(lambda: session.update(a=1), client)
        self.assertNotIn("Expires", response.headers["Set-Cookie"])
        self.assertIn("HttpOnly", response.headers["Set-Cookie"])
        self.assertIn("SameSite=Strict", response.headers["Set-Cookie"])
        response = self.visit(lambda: setattr(session, "permanent", True), client)
        self.assertIn("Expires", response.headers["Set-Cookie"])
        response = self.visit(lambda: session["a"], client)
        self.assertIn("Expires", response.headers["Set-Cookie"], "refreshed at each request")
        app.config["SESSION_REFRESH_EACH_REQUEST"] = False
        response = self.visit(lambda: session["a"], client)
        self.assertNotIn("Set-Cookie", response.headers)
        response = self.visit(lambda: setattr(session, "permanent", False), client)
        self.assertNotIn("Expires", response.headers["Set-Cookie"])
        response = self.visit(lambda: setattr(session, "permanent", True), client)
        self.assertIn("Expires", response.headers["Set-Cookie"])

    def test_the_life_of_a_session_is_that_of_the_configuration(self):
        def sent(store, **options):
            app = self.app(store)
            app.permanent_session_lifetime = timedelta(seconds=500)
            app.session_interface = KirinSessionInterface(store, **options)
            commands = []
            sends = store._converse

            def recorded(conversation, *arguments):
                commands.append(arguments[0])
                return sends(conversation, *arguments)

            store._converse = recorded
            self.visit(lambda: session.update(a=1), app.test_client())
            return commands[0]

        self.assertIn(b" 8 500 ", sent(Store(self.memcached.address)))
        self.assertIn(b" 8 60 ", sent(Store(self.memcached.address), ttl=60))

    def test_ids_of_clients_are_not_accepted(self):
        for cookie in ("a" * 40, "A" * 40, "x"):
            self.client.set_cookie("session", cookie)
            self.visit(lambda: session.update(a=1))
            self.assertNotEqual(self.cookie(), cookie)
            self.assertIsNone(self.store.get(cookie))

    def test_a_session_transaction_of_the_test_client_works(self):
        with self.client.session_transaction() as opened:
            opened["user"] = "buchi"
        self.assertEqual(self.visit(lambda: session["user"]).text, "buchi")

    def test_flash_and_templates_work(self):
        from flask import flash, get_flashed_messages, render_template_string

        self.client.application.secret_key = "for flash in old versions"
        self.visit(lambda: flash("hello"))
        self.assertEqual(self.visit(lambda: get_flashed_messages()).text, "['hello']")
        self.begin()
        template = "{{ session.user }} {{ session['count'] }}"
        response = self.visit(lambda: render_template_string(template))
        self.assertEqual(response.text, "tama 1")

    def test_a_store_that_is_away_costs_nobody_the_session(self):
        with Memcached() as other:
            client = self.app(Store(other.address)).test_client()
            self.visit(lambda: session.update(n=1), client)
            cookie = self.cookie(client)
            other.stop()
            with self.assertLogs("kirin.store", logging.WARNING):
                response = self.visit(lambda: session.get("n"), client)
                self.assertEqual(response.text, "None")
                self.assertNotIn("Set-Cookie", response.headers)
                response = self.visit(lambda: session.update(n=2), client)
                self.assertNotIn("Set-Cookie", response.headers)
                new = client.application.test_client()
                response = self.visit(lambda: session.update(n=2), new)
                self.assertNotIn("Set-Cookie", response.headers)
            other.begin()
            Store(other.address).set(cookie, {"n": 1})
            self.assertEqual(self.visit(lambda: session["n"], client).text, "1")


if __name__ == "__main__":
    unittest.main()
