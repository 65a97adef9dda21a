"""The chat behind Kirin: what visitors see, and which part has answered."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../../tests/gallery")]

from example import Example  # noqa: E402
from websocket import WebSocket  # noqa: E402


class TestChat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.chat = Example("chat")
        cls.chat.__enter__()
        cls.addClassCleanup(lambda: cls.witness.__exit__())
        # Leaving it checks that TERM ends Kirin and the chat, and that the log has no error. The
        # witness is still connected then.
        cls.addClassCleanup(cls.chat.__exit__, None, None, None)
        cls.witness = WebSocket(cls.chat.address, "/socket", cls.chat.url)

    def try_to_connect(self, origin=None):
        socket = WebSocket(self.chat.address, "/socket", origin or self.chat.url)
        self.addCleanup(socket.__exit__)
        return socket

    def connect(self):
        """Connects, if needed after Kirin has noticed that the sockets of other tests are closed."""

        def connected():
            socket = self.try_to_connect()
            return socket if socket.status == 101 else None

        return self.chat.wait_for(connected, "no WebSocket")

    def enter(self, name):
        visitor = self.connect()
        visitor.send({"name": name})
        self.assertEqual(visitor.receive_until("welcome"), name)
        return visitor

    def wait_for_presence(self, visitor, *names):
        """Reads until the visitor sees these names. Visitors of other tests may still be leaving."""
        while visitor.receive_until("present") != list(names):
            pass

    def wait_for_line(self, *parts):
        self.chat.wait_for(
            lambda: any(all(part in line for part in parts) for line in self.chat.log().splitlines()),
            f"the access log has no line with {parts}",
        )

    def test_the_page_and_its_files_come_from_memory(self):
        for path, media_type in (
            ("/", "text/html"), ("/chat.js", "text/javascript"), ("/chat.css", "text/css"),
        ):
            status, headers, body = self.chat.get(path)
            self.assertEqual(status, 200, path)
            self.assertIn(media_type, headers["Content-Type"])
            self.assertIn("script-src 'self'", headers["Content-Security-Policy"])
            self.assertTrue(body)
            self.wait_for_line(f'"GET {path} HTTP/1.1" 200', " files ")

    def test_visitors_see_each_other_and_what_they_write(self):
        ann = self.enter("Ann")
        bea = self.enter("Bea")
        self.wait_for_presence(ann, "Ann", "Bea")
        bea.send({"text": "<b>tea</b> for two, 麒麟"})
        for visitor in ann, bea:
            message, = visitor.receive_until("messages")
            self.assertEqual((message["name"], message["text"]), ("Bea", "<b>tea</b> for two, 麒麟"))
        bea.__exit__()
        self.wait_for_presence(ann, "Ann")
        self.wait_for_line('"GET /socket HTTP/1.1" 101', " proxy ")

    def test_the_last_messages_are_a_page_that_kirin_keeps_for_two_seconds(self):
        cai = self.enter("Cai")
        cai.send({"text": "<script>alert(1)</script>"})
        cai.receive_until("messages")

        def hit_with_the_message():
            _, headers, body = self.chat.get("/messages")
            return b"&lt;script&gt;" in body and "hit" in headers["Cache-Status"] and body

        body = self.chat.wait_for(hit_with_the_message, "no page from the cache has the message")
        self.assertIn(b"<b>Cai</b>", body)
        self.assertNotIn(b"<script>", body)

    def test_a_page_of_another_site_gets_no_websocket(self):
        self.connect().__exit__()
        self.assertEqual(self.try_to_connect("http://evil.example").status, 403)

    def test_a_bad_message_is_refused_and_the_visitor_stays(self):
        dag = self.connect()
        for bad in ["Dag"], {"name": {"x": 1}}, {"name": "x" * 21}, {"name": " "}:
            dag.send(bad)
            self.assertTrue(dag.receive_until("error"), bad)
        dag.send_text(b"{")
        self.assertIn("not a message", dag.receive_until("error"))
        dag.send({"name": "Dag"})
        dag.receive_until("welcome")
        dag.send({"text": "x" * 501})
        self.assertIn("500", dag.receive_until("error"))
        twin = self.connect()
        twin.send({"name": "dag"})
        self.assertIn("has this name", twin.receive_until("error"))

    def test_a_visitor_who_writes_too_fast_is_slowed_down(self):
        eve = self.enter("Eve")
        for number in range(50):
            eve.send({"text": f"buy {number}"})
        self.assertIn("too many", eve.receive_until("error"))

    def test_a_bad_request_and_paths_without_a_page(self):
        self.assertEqual(self.chat.get("/../chat.pl")[0], 400)
        self.assertEqual(self.chat.get("/chat.pl")[0], 404)
        # The chat has no page here, only a WebSocket.
        self.assertEqual(self.chat.get("/socket")[0], 404)

    def test_one_address_has_at_most_twenty_websockets(self):
        # The witness is one of them.
        statuses = [self.try_to_connect().status for _ in range(20)]
        self.assertEqual(statuses[-1], 503)
        self.assertIn(101, statuses)


if __name__ == "__main__":
    unittest.main()
