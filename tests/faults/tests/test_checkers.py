"""The checkers find what is wrong, and excuse what faults may cause."""
import os
import random
import socket
import sys
import tempfile
import threading
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from faults import trial, wire
from faults.content import text
from faults.visits import Visitor, Wrong


class Fake:
    """A server that sends the same bytes for each request, and then ends the connection or not."""

    def __init__(self, sent, path=None):
        self.sent = sent
        self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.socket.bind(path or ("127.0.0.1", 0))
        self.socket.listen(10)
        self.address = path or self.socket.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            with client:
                client.recv(65536)
                client.sendall(self.sent)

    def close(self):
        self.socket.close()


class Steady(random.Random):
    """Choices that are always the first one, and numbers that are never below a share."""

    def random(self):
        return 0.99

    def choice(self, seq):
        return seq[0]

    def randrange(self, start, stop=None, step=1):
        return start if stop is not None else 0


def answer(status, body, length=None):
    """Returns the bytes of an answer."""
    length = len(body) if length is None else length
    return b"HTTP/1.1 %d Word\r\nContent-Length: %d\r\n\r\n%s" % (status, length, body)


class VisitsTest(unittest.TestCase):
    def visitor(self, sent, loses_items=False, path=None):
        fake = Fake(sent, path)
        self.addCleanup(fake.close)
        visitor = Visitor(1, (fake.address, fake.address), path, Steady(), loses_items)
        self.addCleanup(visitor.close)
        return visitor

    def app(self, sent):
        """Visits a page of the application, whose name is `app1x0-1`."""
        return self.visitor(sent).visit("app")

    def test_the_right_answer_is_right(self):
        self.assertTrue(self.app(answer(200, text("app1x0-1", 1))))

    def test_an_answer_that_says_not_now_or_is_cut_is_excused(self):
        for sent in (answer(503, b"later"), answer(502, b""), answer(200, b"x", 5), b"HTTP/1.1 2", b""):
            self.assertFalse(self.app(sent), sent)

    def test_another_body_or_status_is_wrong(self):
        for sent in (answer(200, b"?"), answer(200, b""), answer(404, b"none"), answer(403, b"")):
            with self.assertRaises(Wrong, msg=sent):
                self.app(sent)

    def test_what_is_no_http_is_wrong(self):
        right = text("app1x0-1", 1)
        for sent in (
            b"HTTP/1.1 99 Word\r\n\r\n",
            b"Content-Length: 1\r\n\r\nx",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n" + right,
            b"HTTP/1.1 200 OK\r\n\r\n" + right,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
            b"HTTP/1.1 200 OK\r\nno field\r\n\r\n",
        ):
            with self.assertRaises(Wrong, msg=sent):
                self.app(sent)

    def test_pipelined_answers_must_have_their_order(self):
        first, second = text("line1x0-1", 1), text("line1x1-1", 1)
        self.assertNotEqual(first, second)
        self.assertTrue(self.visitor(answer(200, first) + answer(200, second)).visit("pipelined"))
        with self.assertRaises(Wrong):
            self.visitor(answer(200, second) + answer(200, first)).visit("pipelined")

    def test_a_part_of_a_page_is_right_or_says_that_it_failed(self):
        right = [text("part-90", 90), text("part-5000", 5000), text("file-700", 700)]
        error = b"[an error occurred while processing the directive]"

        def page(parts):
            return answer(200, b"begin" + b"|".join(parts) + b"end")

        self.assertTrue(self.visitor(page(right)).visit("parts"))
        self.assertFalse(self.visitor(page([right[0], error, right[2]])).visit("parts"))
        for parts in ([right[0], b"", right[2]], [right[1], right[0], right[2]], right[:2]):
            with self.assertRaises(Wrong):
                self.visitor(page(parts)).visit("parts")

    def stored(self, value, sent, loses_items=False):
        """Gets an item that must have this value, from a server that sends these bytes."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "store.sock")
            visitor = self.visitor(sent, loses_items, path)
            visitor.items[b"item1-0x0"] = value
            return visitor.visit("stored")

    def test_an_item_has_the_value_that_was_acknowledged(self):
        new = b"VALUE item1-0x0 0 3\r\nnew\r\nEND\r\n"
        self.assertTrue(self.stored(b"new", new))
        self.assertTrue(self.stored(None, b"END\r\n"))
        self.assertTrue(self.stored(b"new", b"END\r\n", loses_items=True))
        self.assertFalse(self.stored(b"new", b"VALUE item1-0x0 0 3\r\nne"))
        for value, sent in (
            (b"newer", new),
            (None, new),
            (b"new", b"END\r\n"),
            (b"new", b"VALUE item1-1x0 0 3\r\nnew\r\nEND\r\n"),
            (b"new", b"VALUE item1-0x0 0 3\r\nnewEND\r\n\r\n"),
        ):
            with self.assertRaises(Wrong, msg=sent):
                self.stored(value, sent)

    def test_an_item_whose_command_has_no_answer_is_given_up(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "store.sock")
            visitor = self.visitor(b"STO", path=path)
            visitor.random.random = lambda: 0.1
            self.assertFalse(visitor.visit("stored"))
            self.assertEqual((visitor.items, visitor.key("item1-0")), ({}, b"item1-0x1"))

    def test_a_program_that_says_nothing_is_wrong(self):
        self.addCleanup(setattr, wire, "PATIENCE", wire.PATIENCE)
        wire.PATIENCE = 0.05
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        visitor = Visitor(1, (silent.getsockname(),) * 2, None, Steady(), False)
        with self.assertRaises(Wrong):
            visitor.visit("app")
        visitor.close()


class TracesTest(unittest.TestCase):
    def traces(self, carried_out="", log="", access_log="", received=(), upgrades=False):
        """Returns what a run with these traces has done wrong."""
        with tempfile.TemporaryDirectory() as directory:
            for name, content in (("carried-out", carried_out), ("access.log", access_log)):
                with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                    file.write(content)
            run = trial.Trial.__new__(trial.Trial)
            run.directory, run.upgrades, run.visitors = directory, upgrades, []
            run.outcome = trial.Outcome(1, directory)
            run.upstream = types.SimpleNamespace(received=list(received))
            run.program = types.SimpleNamespace(log=lambda: log)
            run.check_traces()
            return run.outcome.wrong

    def test_traces_of_a_good_run_are_good(self):
        line = 'a - - [28/Nov/2026:16:41:55 +0000] "GET / HTTP/1.1" 200 1\n'
        self.assertEqual(self.traces("a\nb\n", "INFO\n", line + line, ("GET /a", "GET /a", "POST /b")), [])

    def test_a_request_that_is_carried_out_twice_is_wrong(self):
        self.assertEqual(len(self.traces("a\nb\na\n")), 1)
        self.assertEqual(len(self.traces(received=("POST /a", "POST /a"))), 1)

    def test_joined_lines_and_panics_are_wrong(self):
        line = 'a - - [28/Nov/2026:16:41:55 +0000] "GET / HTTP/1.1" 200 1'
        self.assertEqual(len(self.traces(access_log=f"{line}{line}\n")), 1)
        self.assertEqual(self.traces(access_log=f"{line[:20]}\n{line}\n"), [])
        self.assertEqual(len(self.traces(log="ERROR a mistake in Kirin ended a task\n")), 1)

    def test_what_is_left_is_found(self):
        before = {"0": "/dev/null", "1": "socket:[1]", "2": "/memfd:kirin-ring-web (deleted)"}
        self.assertEqual(trial.left_open(before, before), {})
        spool = {**before, "3": "/tmp/#12 (deleted)"}
        self.assertEqual(list(trial.left_open(before, spool)), ["descriptors of deleted file"])
        sockets = {**before, **{str(number): f"socket:[{number}]" for number in range(3, 20)}}
        self.assertEqual(list(trial.left_open(before, sockets)), ["descriptors of socket"])

    def test_gauges_that_are_not_zero_are_found(self):
        run = trial.Trial.__new__(trial.Trial)
        good = {'kirin_app_workers{app="web",state="idle"}': 3.0}
        good |= {'kirin_client_held_bytes{resource="memory"}': 0.0, "kirin_panics_total": 0.0, "kirin_up": 7.0}
        run.program = types.SimpleNamespace(metrics=lambda: good)
        self.assertEqual(run.left_in_metrics(), {})
        run.program = types.SimpleNamespace(metrics=lambda: {"kirin_panics_total": 0.0})
        self.assertEqual(list(run.left_in_metrics().values()), ["missing"])
        for name in ("kirin_panics_total", 'kirin_client_held_bytes{resource="memory"}'):
            run.program = types.SimpleNamespace(metrics=lambda name=name: {**good, name: 1.0})
            self.assertEqual(run.left_in_metrics(), {name: 1.0})


if __name__ == "__main__":
    unittest.main()
