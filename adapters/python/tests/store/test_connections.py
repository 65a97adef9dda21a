"""Stores that are away, slow or no stores, and processes and threads that share a client."""
import os
import signal
import socket
import tempfile
import threading
import time
import unittest
from unittest import mock

from programs import Memcached, wait_until

from kirin.store import Store
from kirin.store import endpoint as endpoints
from kirin.store.connection import Connection


class Peer:
    """A server on a unix socket that answers each connection with a function."""

    def __init__(self, answer):
        self._directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self._directory.name, "peer")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(5)
        self.received = []
        self._answer = answer
        self._connections = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.listener.close()
        for connection in self._connections:
            connection.close()
        self._directory.cleanup()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self.received.append(connection.recv(65536))
            self._answer(connection)


def reply(data):
    def answer(connection):
        connection.sendall(data)
        connection.close()

    return answer


def hold(_connection):
    """Leaves a client without a reply."""


class AwayTests(unittest.TestCase):
    CALLS = {
        "get": ("a",), "gets": ("a",), "set": ("a", 1), "add": ("a", 1), "replace": ("a", 1),
        "cas": ("a", 1, 1), "delete": ("a",), "incr": ("a",), "decr": ("a",), "touch": ("a",),
        "purge": ("a",), "set_page": ("/", "text/plain", "x"),
        "set_response": ("/", 200, [], "x"),
    }

    def test_no_method_raises_and_the_next_command_connects_again(self):
        with Memcached() as memcached:
            store = Store(memcached.address)
            self.assertIs(store.set("a", 1), True)
            memcached.stop()
            for method, arguments in self.CALLS.items():
                with self.subTest(method):
                    self.assertIsNone(getattr(store, method)(*arguments))
                    self.assertTrue(store.error.startswith(memcached.address + ": "), store.error)
            self.assertEqual(store.get("a", "default"), "default")
            self.assertEqual(store.get_multi(["a"]), {})
            self.assertTrue(store.error)
            self.assertEqual(store.set_multi({"a": 1, "b": 2}), ["a", "b"])
            self.assertTrue(store.error)
            self.assertEqual(store.get_or_set("a", lambda: 7), 7)
            self.assertTrue(store.error)
            memcached.begin()
            self.assertIs(store.set("a", 2), True)
            self.assertIsNone(store.error)
            self.assertEqual(store.get("a"), 2)

    def test_a_restart_between_two_commands_is_not_noticed(self):
        with Memcached() as memcached:
            store = Store(memcached.address)
            store.set("a", 1)
            memcached.stop()
            memcached.begin()
            self.assertIs(store.set("a", 2), True, store.error)

    def test_the_address_is_looked_for_when_it_is_needed(self):
        with Memcached() as memcached, mock.patch.dict(os.environ):
            os.environ.pop("KIRIN_STORE", None)
            store = Store()
            self.assertIsNone(store.get("a"))
            self.assertRegex(store.error, "KIRIN_STORE is not set")
            os.environ["KIRIN_STORE"] = memcached.address
            self.assertIs(store.set("a", 1), True, store.error)
            self.assertEqual(Store(memcached.address[len("unix:"):]).get("a"), 1)

    def test_a_path_may_be_relative_to_the_working_directory(self):
        with Memcached() as memcached:
            directory, name = os.path.split(memcached.address[len("unix:"):])
            before = os.getcwd()
            os.chdir(directory)
            try:
                self.assertTrue(Store("unix:" + name).set("a", 1))
            finally:
                os.chdir(before)

    def test_addresses_that_cannot_be(self):
        for address, reason in (
            ("localhost", "is not HOST:PORT"), ("", "is not HOST:PORT"),
            ("unix:" + "/x" * 60, "too long"), ("127.0.0.1:99999999", "."),
            ("unix:/nowhere/store", "No such file"), ("x\0:1", "."),
        ):
            with self.subTest(address):
                store = Store(address)
                self.assertIsNone(store.get("a"))
                self.assertRegex(store.error, reason)

    def test_tcp_and_a_refused_port(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            store = Store(f"localhost:{port}")
            # It does not listen, so the port is taken and refuses.
            self.assertIsNone(store.get("a"))
            self.assertRegex(store.error, "refused")
            listener.listen()

            def answer():
                connection, _ = listener.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(b"VALUE a 0 1\r\nx\r\nEND\r\n")

            thread = threading.Thread(target=answer)
            thread.start()
            self.assertEqual(store.get("a"), b"x")
            thread.join()
            store.close()


class OddPeerTests(unittest.TestCase):
    def test_a_peer_that_is_no_memcached_is_a_failure_with_a_reason(self):
        for data, reason in (
            (b"VALUE a 0 5\r\nab", "closed"),
            (b"HTTP/1.1 400 Bad Request\r\n", "HTTP/1.1 400"),
            (b"x" * 20_000, "no reply of a memcached"),
            (b"VALUE a 0 1\r\nabcdef\r\nEND\r\n", "no reply of a memcached"),
            (b"VALUE a 0 -1\r\nEND\r\n", "VALUE a 0 -1"),
            (b"\xff\x00\r\n", "no reply of a memcached"),
            (b"", "closed"),
            (b"SERVER_ERROR out of memory\r\n", "out of memory"),
            (b"VALUE a 8 1\r\n{\r\nEND\r\n", "cannot be read"),
            (b"VALUE a 4 1\r\n\xff\r\nEND\r\n", "cannot be read"),
            (b"VALUE a 8 60000\r\n" + b"[" * 60000 + b"\r\nEND\r\n", "cannot be read"),
        ):
            with self.subTest(data[:40]), Peer(reply(data)) as peer:
                store = Store("unix:" + peer.path)
                self.assertIsNone(store.get("a"))
                self.assertRegex(store.error, reason)

    def test_unexpected_bytes_are_not_the_reply_to_the_next_command(self):
        sent = iter((b"VALUE a 0 1\r\nx\r\nEND\r\nVALUE a 0 5\r\nwrong\r\nEND\r\n",
                     b"VALUE a 0 5\r\nright\r\nEND\r\n"))

        def answer(connection):
            connection.sendall(next(sent))

        with Peer(answer) as peer:
            store = Store("unix:" + peer.path)
            self.assertEqual(store.get("a"), b"x")
            self.assertEqual(store.get("a"), b"right")
            store.close()

    def test_a_store_that_closes_kills_no_process_that_has_changed_sigpipe(self):
        with Peer(lambda connection: connection.close()) as peer:
            pid = os.fork()
            if not pid:
                code = 1
                try:
                    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                    if Store("unix:" + peer.path).set("a", b"x" * 30_000_000) is None:
                        code = 0
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_value_in_small_pieces_is_read(self):
        data = b"VALUE a 0 3000\r\n" + b"xyz" * 1000 + b"\r\nEND\r\n"

        def answer(connection):
            for i in range(len(data)):
                connection.send(data[i:i + 1])

        with Peer(answer) as peer:
            store = Store("unix:" + peer.path)
            self.assertEqual(store.get("a"), b"xyz" * 1000, store.error)
            store.close()


class SilentPeerTests(unittest.TestCase):
    def test_a_silent_store_costs_the_time_limit_once_in_a_pause(self):
        with Peer(hold) as peer:
            store = Store("unix:" + peer.path, timeout=0.05)
            self.assertIsNone(store.incr("a"))
            self.assertRegex(store.error, "no answer within 0.05 s")
            for _ in range(100):
                self.assertIsNone(store.get("a"))
            self.assertRegex(store.error, "no new try for a moment")
            other = Store("unix:" + peer.path, timeout=0.05)
            self.assertIsNone(other.get("a"))
            self.assertRegex(other.error, "no new try", "clients of one address share the pause")
            self.assertEqual(peer.received, [b"incr a 1\r\n"], "no command was sent again")

    def test_after_the_pause_it_is_tried_again(self):
        with Peer(hold) as peer, mock.patch.object(endpoints, "PAUSE_SECONDS", 0.01):
            store = Store("unix:" + peer.path, timeout=0.02)
            store.get("a")

            def tried():
                store.get("b")
                return "no new try" not in store.error

            wait_until(tried)
            self.assertEqual(len(peer.received), 2)

    def test_a_stopped_program_is_used_again_when_it_goes_on(self):
        with Memcached() as memcached:
            store = Store(memcached.address, timeout=0.1)
            store.set("a", 1)
            memcached.pause()
            try:
                self.assertIsNone(store.set("a", 2))
                self.assertRegex(store.error, "no answer")
            finally:
                memcached.go_on()
            wait_until(lambda: store.get("a") is not None, "it answers")

    def test_an_exception_of_a_signal_handler_leaves_no_reply_for_the_next_command(self):
        class Overdue(SystemExit):
            pass

        def on_alarm(_number, _frame):
            raise Overdue

        with Memcached() as memcached:
            store = Store(memcached.address, timeout=20)
            store.set("a", "first")
            store.set("b", "second")
            memcached.pause()
            before = signal.signal(signal.SIGALRM, on_alarm)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with self.assertRaises(Overdue):
                    store.get("a")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            sends = Connection.send

            def sent_before_the_reply(connection, data):
                sends(connection, data)
                memcached.go_on()

            with mock.patch.object(Connection, "send", sent_before_the_reply):
                self.assertEqual(store.get("b"), "second", store.error)


class SharingTests(unittest.TestCase):
    def setUp(self):
        self.memcached = Memcached().__enter__()
        self.addCleanup(self.memcached.__exit__)
        self.store = Store(self.memcached.address, timeout=20)

    def test_each_process_has_a_connection_of_its_own(self):
        store = self.store
        store.set("whose", "all")
        children = []
        for number in range(3):
            pid = os.fork()
            if not pid:
                good = False
                try:
                    good = all(
                        store.set(f"child{number}", number)
                        and store.get(f"child{number}") == number
                        for _ in range(200)
                    )
                finally:
                    os._exit(0 if good else 1)
            children.append(pid)
        for _ in range(200):
            self.assertEqual(store.get("whose"), "all")
        for pid in children:
            self.assertEqual(os.waitpid(pid, 0)[1], 0, "a child reads its own replies")

    def test_threads_share_a_client(self):
        failures = []

        def work(number):
            for count in range(200):
                self.store.set(f"key{number}", count)
                if self.store.get(f"key{number}") != count or self.store.error:
                    failures.append((number, count, self.store.error))
                self.store.incr("all")

        self.store.set("all", 0)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.store.get("all"), 1600)

    def test_the_error_is_that_of_the_thread(self):
        self.store.get("a b")
        self.assertTrue(self.store.error)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(self.store.error))
        thread.start()
        thread.join()
        self.assertEqual(seen, [None])

    def test_connections_are_kept_up_to_a_limit(self):
        ready = threading.Barrier(endpoints.IDLE_CONNECTIONS + 4)

        class Waiting:
            """Keeps a connection in use until all threads have one."""

            def __call__(self, connection):
                ready.wait(30)

        target = endpoints.endpoint(self.memcached.address, 20)
        threads = [
            threading.Thread(target=target.converse, args=(Waiting(),))
            for _ in range(endpoints.IDLE_CONNECTIONS + 4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertLessEqual(len(target._idle), endpoints.IDLE_CONNECTIONS)
        self.assertGreater(len(target._idle), 0)
        self.store.close()
        self.assertEqual(len(target._idle), 0)


class LinearTimeTests(unittest.TestCase):
    def test_reading_a_large_value_takes_linear_time(self):
        def seconds(size):
            data = b"VALUE a 0 %d\r\n%b\r\nEND\r\n" % (size, b"x" * size)
            with Peer(lambda connection: connection.sendall(data)) as peer:
                store = Store("unix:" + peer.path, timeout=20)
                begin = time.process_time()
                self.assertEqual(len(store.get("a")), size)
                store.close()
                return time.process_time() - begin

        # If it were quadratic, it would take 64 times as long.
        small = min(seconds(4_000_000) for _ in range(3))
        large = min(seconds(32_000_000) for _ in range(3))
        self.assertLess(large, 32 * max(small, 0.005))


if __name__ == "__main__":
    unittest.main()
