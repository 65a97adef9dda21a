"""Sessions: what requests of one visitor at the same time may do to each other.

A request inside another one comes after the first has read the session and before it writes.
"""
import logging
import unittest
from unittest import mock

from programs import Memcached

from kirin.store import Store
from kirin.store import session as sessions
from kirin.store.session import Outcome, TouchTimes, VisitorSession, is_id, new_id
from kirin.store.session_mapping import Cookie, SessionMapping

BEGIN = {"user": "tama", "count": 1, "list": [1]}


class VisitorSessionTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.memcached = Memcached().__enter__()
        cls.addClassCleanup(cls.memcached.__exit__)

    def setUp(self):
        self.store = Store(self.memcached.address)
        begun = VisitorSession(self.store)
        begun.load()
        begun.content.update({**BEGIN, "list": [1]})
        self.assertIs(begun.create(100), Outcome.STORED)
        self.id = begun.id

    def request(self):
        visitor = VisitorSession(self.store, self.id)
        visitor.load()
        return visitor

    def changed(self, change):
        """Carries out a request that changes the session."""
        visitor = self.request()
        change(visitor.content)
        self.assertIs(visitor.update(100), Outcome.STORED)

    def test_changes_of_two_requests_are_merged_by_members(self):
        def put(name, value):
            return lambda content: content.__setitem__(name, value)

        def remove(name):
            return lambda content: content.pop(name)

        for name, mine, theirs, expected in (
            ("different", put("a", 1), put("b", 2), {**BEGIN, "a": 1, "b": 2}),
            ("same", put("count", 5), put("count", 7), {**BEGIN, "count": 5}),
            ("deleted", remove("user"), put("user", "b"), {"count": 1, "list": [1]}),
            ("changed", put("user", "b"), remove("user"), {**BEGIN, "user": "b"}),
            ("inside", lambda c: c["list"].append(2), put("count", 2),
             {**BEGIN, "list": [1, 2], "count": 2}),
            ("they clear", put("count", 2), dict.clear, {"count": 2}),
            ("I clear", dict.clear, put("new", 1), {"new": 1}),
            ("put back", put("count", 1), put("count", 9), {**BEGIN, "count": 9}),
            ("type", put("count", True), put("new", 1), {**BEGIN, "count": True, "new": 1}),
        ):
            with self.subTest(name):
                self.setUp()
                visitor = self.request()
                kept = visitor.content
                self.changed(theirs)
                mine(visitor.content)
                self.assertIs(visitor.update(100), Outcome.STORED)
                stored = self.store.get(self.id)
                self.assertEqual(stored, expected)
                self.assertEqual(repr(sorted(stored.items())), repr(sorted(expected.items())))
                self.assertEqual(kept, expected, "the application sees the result")

    def test_a_session_that_has_ended_stays_ended(self):
        for name, end in (
            ("removed", lambda visitor: visitor.remove()),
            ("moved", lambda visitor: visitor.move(100)),
            ("expired", lambda visitor: self.store.touch(self.id, -1)),
            ("replaced", lambda visitor: self.store.set(self.id, "moved")),
        ):
            with self.subTest(name):
                self.setUp()
                visitor = self.request()
                visitor.content["count"] = 2
                end(self.request())
                self.assertIs(visitor.update(100), Outcome.GONE)
                self.assertNotIsInstance(self.store.get(self.id), dict)

    def test_a_session_that_ends_while_its_id_changes_does_not_live_on(self):
        visitor = self.request()
        self.request().remove()
        made = []
        with mock.patch.object(sessions, "new_id", lambda: made.append(new_id()) or made[-1]):
            self.assertIs(visitor.move(100), Outcome.GONE)
        self.assertEqual(len(made), 1)
        self.assertIsNone(self.store.get(self.id))
        self.assertIsNone(self.store.get(made[0]))

    def test_what_others_write_while_an_id_changes_is_kept(self):
        visitor = self.request()
        self.changed(lambda content: content.update(new=1))
        visitor.content["mine"] = 2
        self.assertIs(visitor.move(100), Outcome.STORED)
        self.assertNotEqual(visitor.id, self.id)
        self.assertIsNone(self.store.get(self.id))
        self.assertEqual(self.store.get(visitor.id), {**BEGIN, "new": 1, "mine": 2})
        visitor.content["later"] = 3
        self.assertIs(visitor.update(100), Outcome.STORED)
        self.assertEqual(self.store.get(visitor.id)["later"], 3)

    def test_a_second_write_of_a_request_merges_too(self):
        visitor = self.request()
        visitor.content["a"] = 1
        visitor.update(100)
        self.changed(lambda content: content.update(b=2))
        visitor.content["c"] = 3
        self.assertIs(visitor.update(100), Outcome.STORED)
        self.assertEqual(self.store.get(self.id), {**BEGIN, "a": 1, "b": 2, "c": 3})

    def test_a_merge_that_never_ends_is_given_up(self):
        visitor = self.request()
        visitor.content["mine"] = 1
        stored = self.store.cas

        def cas(*arguments):
            self.changed_quietly = self.store.set(self.id, {"n": self.store.error})
            return stored(*arguments)

        with mock.patch.object(self.store, "cas", cas), \
                self.assertLogs("kirin.store", logging.WARNING) as logs:
            self.assertIs(visitor.update(100), Outcome.FAILED)
        self.assertRegex(logs.output[0], "100 times")

    def test_changes_are_noticed_at_any_depth(self):
        for change, is_change in (
            (lambda c: c["list"], False), (lambda c: c["list"].append(2), True),
            (lambda c: c.update(user="tama"), False), (lambda c: c.update(count=1.5), True),
            (lambda c: c.update(count=True), True), (lambda c: c.pop("user"), True),
            (lambda c: c.update(user=None), True), (lambda c: c.update(bad={1}), True),
        ):
            visitor = self.request()
            self.assertFalse(visitor.is_changed())
            change(visitor.content)
            self.assertEqual(visitor.is_changed(), is_change)

    def test_ids_of_clients_are_never_accepted_unless_the_store_has_them(self):
        self.store.set("a" * 40, "no session")
        for cookie in (new_id(), "a" * 40, "A" * 40, self.id[:39], self.id + "\n", "", None,
                       self.id + "0", 7, "../" + self.id):
            visitor = VisitorSession(self.store, cookie)
            visitor.load()
            self.assertFalse(visitor.is_stored())
            self.assertEqual(visitor.content, {})
            visitor.create(100)
            self.assertNotEqual(visitor.id, cookie)
        self.assertEqual(self.store.get("a" * 40), "no session")
        self.assertEqual(len({new_id() for _ in range(1000)}), 1000)
        self.assertTrue(is_id(new_id()))

    def test_a_value_that_cannot_be_stored_is_a_mistake_of_the_application(self):
        visitor = self.request()
        visitor.content["bad"] = {1}
        with self.assertRaisesRegex(TypeError, "cannot be stored"):
            visitor.update(100)
        self.assertEqual(self.store.get(self.id), BEGIN)

    def test_a_session_is_touched_once_in_a_tenth_of_its_life(self):
        times = TouchTimes()
        visitor = self.request()
        with mock.patch.object(sessions.time, "monotonic") as now:
            touched = []
            for now.return_value in (1000.0, 1001.0, 1009.9, 1010.1, 1019.0):
                touched.append(visitor.touch(100, times))
        self.assertEqual(touched, [True, False, False, True, False])


class AwayTests(unittest.TestCase):
    def test_a_store_that_is_away_costs_nobody_the_session(self):
        with Memcached() as memcached:
            store = Store(memcached.address)
            begun = VisitorSession(store)
            begun.load()
            begun.content["n"] = 1
            begun.create(100)
            memcached.stop()
            with self.assertLogs("kirin.store", logging.WARNING) as logs:
                visitor = VisitorSession(store, begun.id)
                visitor.load()
            self.assertRegex(logs.output[0], "session is not read: unix:")
            self.assertTrue(visitor.is_lost)
            mapping = SessionMapping(VisitorSession(store, begun.id))
            with self.assertLogs("kirin.store", logging.WARNING):
                mapping["n"] = 2
            self.assertIs(mapping.commit(100, TouchTimes()), Cookie.UNCHANGED)
            new = SessionMapping(VisitorSession(store))
            new["n"] = 1
            with self.assertLogs("kirin.store", logging.WARNING) as logs:
                self.assertIs(new.commit(100, TouchTimes()), Cookie.UNCHANGED)
            self.assertRegex(logs.output[0], "session is not stored")
            read = SessionMapping(VisitorSession(store, begun.id))
            read.change_id()
            with self.assertLogs("kirin.store", logging.WARNING):
                self.assertIs(read.commit(100, TouchTimes()), Cookie.UNCHANGED)
            late = SessionMapping(VisitorSession(store, begun.id))
            with self.assertLogs("kirin.store", logging.WARNING):
                late["n"] = 3
            memcached.begin()
            store.set(begun.id, {"n": 1})
            self.assertIs(late.commit(100, TouchTimes()), Cookie.UNCHANGED)
            self.assertEqual(store.get(begun.id), {"n": 1}, "a session that was not read")
            self.assertEqual(SessionMapping(VisitorSession(store, begun.id)), {"n": 1})


class MappingTests(unittest.TestCase):
    """What the frameworks have in common."""

    def setUp(self):
        self.memcached = Memcached().__enter__()
        self.addCleanup(self.memcached.__exit__)
        self.store = Store(self.memcached.address)
        self.cookie = None
        self.sent = []
        sends = self.store._converse

        def recorded(conversation, *arguments):
            self.sent.append(str(arguments))
            return sends(conversation, *arguments)

        self.store._converse = recorded
        self.times = TouchTimes()

    def visit(self, action, cookie=None):
        """Carries out a request. Returns what the cookie becomes, and the number of commands."""
        self.sent.clear()
        session = SessionMapping(VisitorSession(self.store, cookie or self.cookie))
        action(session)
        outcome = session.commit(1000, self.times)
        commands = len(self.sent)
        if outcome is Cookie.SEND:
            self.cookie = session.id
        elif outcome is Cookie.DELETE:
            self.cookie = None
        return outcome, commands

    def test_the_store_and_the_cookie_are_left_alone_until_the_session_is_used(self):
        visit = self.visit
        self.assertEqual(visit(lambda s: None), (Cookie.UNCHANGED, 0))
        self.assertEqual(visit(lambda s: s.get("user")), (Cookie.UNCHANGED, 0))
        self.assertEqual(visit(lambda s: s.update(user="tama", l=[])), (Cookie.SEND, 1))
        self.assertEqual(visit(lambda s: None), (Cookie.UNCHANGED, 0))
        self.assertEqual(visit(lambda s: s["user"]), (Cookie.UNCHANGED, 2), "read and touched")
        self.assertEqual(visit(lambda s: s["user"]), (Cookie.UNCHANGED, 1))
        self.assertEqual(visit(lambda s: s.update(user="tama")), (Cookie.UNCHANGED, 1))
        self.assertEqual(visit(lambda s: s["l"].append(1)), (Cookie.UNCHANGED, 2))
        self.assertEqual(self.store.get(self.cookie), {"user": "tama", "l": [1]})
        self.assertEqual(visit(lambda s: setattr(s, "modified", True)), (Cookie.UNCHANGED, 0))

    def test_an_id_that_was_read_is_kept(self):
        self.assertEqual(self.visit(lambda s: s.pop("x", None)), (Cookie.UNCHANGED, 0))
        ids = []
        self.assertEqual(self.visit(lambda s: ids.append(s.id)), (Cookie.SEND, 1))
        self.visit(lambda s: ids.append(s.id))
        self.assertEqual(ids, [self.cookie] * 2)

    def test_a_session_that_was_put_in_and_taken_out_leaves_none(self):
        def action(session):
            session["x"] = 1
            del session["x"]

        self.assertEqual(self.visit(action), (Cookie.UNCHANGED, 0))

    def test_change_id_and_the_ends(self):
        self.visit(lambda s: s.update(user="tama"))
        first = self.cookie
        self.assertIs(self.visit(lambda s: s.change_id())[0], Cookie.SEND)
        self.assertNotEqual(self.cookie, first)
        self.assertIsNone(self.store.get(first))
        self.assertEqual(self.store.get(self.cookie), {"user": "tama"})
        for end in (lambda s: s.expire(), lambda s: s.clear(), lambda s: s.pop("user")):
            self.visit(lambda s: s.update(user="tama"))
            last = self.cookie
            self.assertIs(self.visit(end)[0], Cookie.DELETE)
            self.assertIsNone(self.store.get(last))
        self.assertEqual(self.visit(lambda s: s.expire()), (Cookie.UNCHANGED, 0))

    def test_a_request_in_progress_does_not_bring_a_session_back(self):
        for end in (lambda s: s.expire(), lambda s: s.clear(), lambda s: s.change_id()):
            self.cookie = None
            self.visit(lambda s: s.update(user="tama"))
            first = self.cookie

            def action(session):
                session["count"] = 1
                self.visit(end, first)

            self.assertIs(self.visit(action, first)[0], Cookie.UNCHANGED)
            self.assertIsNone(self.store.get(first))

    def test_it_behaves_like_a_dict(self):
        session = SessionMapping(VisitorSession(self.store))
        session["a"] = 1
        session.setdefault("b", []).append(2)
        session.update(c=3)
        self.assertEqual(session, {"a": 1, "b": [2], "c": 3})
        self.assertEqual((len(session), list(session), "a" in session), (3, ["a", "b", "c"], True))
        self.assertEqual(session.copy(), {"a": 1, "b": [2], "c": 3})
        self.assertEqual(session.pop("a"), 1)
        with self.assertRaises(KeyError):
            session["a"]
        self.assertTrue(session.new)
        self.assertTrue(session.modified)
        session.clear()
        self.assertFalse(session)


if __name__ == "__main__":
    unittest.main()
