"""Times grow with the length of the input, and not with its square.

Eight times the input should take eight times as long, and must take less than 24 times as long. The
least processor time of several runs counts.
"""
import os
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src"))

from kirin import log, request, request_body, response_head, target  # noqa: E402
from kirin.response import Response  # noqa: E402

TIMES = 8
MOST = 24
LEAST_SECONDS = 0.002
RUNS = 20


def seconds(repeats, work, argument):
    start = time.thread_time()
    for _ in range(repeats):
        work(argument)
    return time.thread_time() - start


class DoublingTest(unittest.TestCase):
    def check(self, small, shape, work):
        one, other = shape(small), shape(small * TIMES)
        repeats = 1
        while repeats < 1 << 16 and seconds(repeats, work, one) < LEAST_SECONDS:
            repeats *= 2
        less = more = float("inf")
        for run in range(RUNS):
            less = min(less, seconds(repeats, work, one))
            more = min(more, seconds(repeats, work, other))
            if run > 2 and more < MOST * less:
                break
        self.assertLess(more / less, MOST)

    def test_a_head_in_pieces(self):
        class Pieces:
            def __init__(self, data):
                self.view, self.at = memoryview(data), 0

            def recv(self, _size):
                self.at += 16
                return bytes(self.view[self.at - 16 : self.at])

        def read(head):
            received, comma = request.complete_head(Pieces(head[1:]), head[:1])
            self.assertEqual((received, comma), (head, len(head) - 1))

        def shape(count):
            values = b"CONTENT_LENGTH\x000\0" + b"HTTP_X\0y\0" * count
            return b"%d:%b," % (len(values), values)

        self.check(3500, shape, read)

    def test_words_of_a_head(self):
        self.check(300, lambda count: b"9:CONTENT_LENGTH\x000\0" + b"a\0b\0" * count + b",",
                   request.words_of)
        self.check(300, lambda count: b"9:CONTENT_LENGTH\x000\0a\0" + b"b" * count + b"\0,",
                   request.words_of)

    def test_a_body_in_pieces(self):
        for size in (50_000, 400_000):
            def read(length):
                own, front = socket.socketpair()
                with own, front:
                    def write():
                        data = b"x" * 1000
                        for _ in range(length // len(data)):
                            front.sendall(data)
                    writer = threading.Thread(target=write)
                    writer.start()
                    with request_body.receive(own, length, b"") as body:
                        self.assertEqual(len(body.read()), length)
                    writer.join()

            self.check(size, lambda length: length, read)

    def test_response_heads(self):
        self.check(100, lambda count: [("X-A", "b")] * count,
                   lambda headers: response_head.head("200 OK", headers))
        for piece in ("b", "b\t", " ", "\x01", "\xe9"):
            self.check(1000, lambda count, piece=piece: [("X-A", piece * count)],
                       lambda headers: response_head.head("200 OK", headers))
        self.check(1000, lambda count: "200 " + "r" * count,
                   lambda status: response_head.head(status, []))

    def test_names_that_are_kept_are_bounded(self):
        for number in range(3 * response_head.KNOWN_NAMES):
            response_head.head(f"200 {number}", [(f"X-{number}", "")])
        self.assertLessEqual(len(response_head._known_names), response_head.KNOWN_NAMES)
        self.assertLessEqual(len(response_head._known_statuses), response_head.KNOWN_NAMES)

    def test_bodies_of_many_parts(self):
        class Worker:
            environ, method, may_switch = {}, "GET", False
            is_leaving = cleanups = has_written = staticmethod(lambda: False)
            call_close = staticmethod(lambda close: close())
            take_connection = staticmethod(lambda: None)

        def send(count):
            own, front = socket.socketpair()
            with own, front:
                def read():
                    while front.recv(1 << 16):
                        pass
                reader = threading.Thread(target=read)
                reader.start()
                response = Response()
                response.worker = worker = Worker()
                worker.connection, worker.response = own, response
                response.start("200 OK", [])
                response.send(part for part in [b"x"] * count)
                own.shutdown(socket.SHUT_WR)
                reader.join()

        self.check(300, lambda count: count, send)

    def test_wsgi_errors(self):
        stream = log.ErrorStream()

        def write(text):
            for letter in text:
                stream.write(letter)

        self.check(3000, lambda count: "x" * count, write)
        self.check(3000, lambda count: "x\n" * count, write)

    def test_targets(self):
        def parse(text):
            try:
                target.parse(text)
            except target.TargetError:
                pass

        for piece in ("a.", "a", "(", "()", ":", "a:", ". ", "a(", " "):
            for begin in ("app:", "a", "app:a("):
                self.check(2000, lambda count, b=begin, p=piece: b + p * count, parse)


if __name__ == "__main__":
    unittest.main()
