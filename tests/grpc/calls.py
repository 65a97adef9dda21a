#!/usr/bin/python3
"""Calls of every kind to service.py, through whatever is at ADDRESS.

calls.py [-direct | -ca CA.pem] ADDRESS [TEST ...]
"""

import os
import sys
import threading
import time
import unittest
import uuid

import grpc

PATIENCE = 20
BLOB = bytes(range(256))
channel = None


def unary(name):
    return channel.unary_unary("/test.Test/" + name)


def wait_for_end(test, name):
    """Waits until the server has noticed the end of the call with this name."""
    start = time.monotonic()
    while unary("HowEnded")(name.encode(), timeout=PATIENCE) != b"1":
        test.assertLess(time.monotonic() - start, PATIENCE, "the server works on for nobody")
        time.sleep(0.02)


class Calls(unittest.TestCase):
    def test_unary(self):
        metadata = (("x-in", "a value, and another"), ("x-blob-bin", BLOB))
        reply, call = unary("Echo").with_call(b"hello", metadata=metadata, timeout=PATIENCE)
        self.assertEqual(reply, b"hello")
        self.assertEqual(call.code(), grpc.StatusCode.OK)
        early = dict(call.initial_metadata())
        self.assertEqual((early["x-in"], early["x-early-bin"]), ("a value, and another", BLOB))
        late = dict(call.trailing_metadata())
        self.assertEqual((late["x-out"], late["x-late-bin"]), ("end", BLOB))
        self.assertEqual(unary("Echo")(b"", timeout=PATIENCE), b"")

    def test_large_messages(self):
        message = os.urandom(3 << 20)
        self.assertEqual(unary("Echo")(message, timeout=PATIENCE), message)

    def test_compressed_messages(self):
        message = b"hello " * 10000
        reply = unary("Echo")(message, timeout=PATIENCE, compression=grpc.Compression.Gzip)
        self.assertEqual(reply, message)

    def test_an_error_without_a_message(self):
        with self.assertRaises(grpc.RpcError) as raised:
            unary("Fail")(b"x", timeout=PATIENCE)
        error = raised.exception
        self.assertEqual((error.code(), error.details()), (grpc.StatusCode.NOT_FOUND, "nicht für 100% da\nx"))
        self.assertEqual(dict(error.trailing_metadata())["x-out"], "failed")

    def test_a_method_that_does_not_exist(self):
        with self.assertRaises(grpc.RpcError) as raised:
            unary("None")(b"x", timeout=PATIENCE)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_an_error_before_the_client_has_said_all(self):
        for name, expected in (("None", "UNIMPLEMENTED"), ("Interrupt", "RESOURCE_EXHAUSTED")):
            over = threading.Event()

            def speak():
                yield b"one"
                over.wait(PATIENCE)

            call = channel.stream_stream("/test.Test/" + name)(speak(), timeout=PATIENCE)
            with self.assertRaises(grpc.RpcError) as raised:
                list(call)
            self.assertEqual(raised.exception.code().name, expected)
            over.set()

    def test_server_streaming(self):
        replies = list(channel.unary_stream("/test.Test/Count")(b"500 1000", timeout=PATIENCE))
        self.assertEqual(replies, [b"%d " % index + b"x" * 1000 for index in range(500)])
        self.assertEqual(list(channel.unary_stream("/test.Test/Count")(b"0 0", timeout=PATIENCE)), [])

    def test_an_error_behind_messages(self):
        call = channel.unary_stream("/test.Test/FailLate")(b"3", timeout=PATIENCE)
        got = []
        with self.assertRaises(grpc.RpcError) as raised:
            for reply in call:
                got.append(reply)
        self.assertEqual(got, [b"0", b"1", b"2"])
        error = raised.exception
        self.assertEqual((error.code(), error.details()), (grpc.StatusCode.DATA_LOSS, "lost"))
        self.assertEqual(dict(error.trailing_metadata())["x-out"], "failed")

    def test_client_streaming(self):
        messages = [b"x" * size for size in (0, 1, 70_000, 500_000, 3)]
        reply = channel.stream_unary("/test.Test/Join")(iter(messages), timeout=PATIENCE)
        self.assertEqual(reply, b"0,1,70000,500000,3")
        self.assertEqual(channel.stream_unary("/test.Test/Join")(iter(()), timeout=PATIENCE), b"")

    def test_both_sides_in_turn(self):
        may_speak = threading.Semaphore(0)

        def speak():
            for index in range(20):
                may_speak.acquire()
                yield b"%d" % index

        call = channel.stream_stream("/test.Test/Chat")(speak(), timeout=PATIENCE)
        # It starts before the client has sent anything.
        self.assertEqual(next(call), b"welcome")
        for index in range(20):
            may_speak.release()
            self.assertEqual(next(call), b"you said %d" % index)
        self.assertEqual(list(call), [])
        self.assertEqual(call.code(), grpc.StatusCode.OK)

    def test_the_server_hears_of_the_deadline(self):
        # The deadline is rounded up on its way.
        self.assertTrue(0 < float(unary("Remaining")(b"", timeout=PATIENCE)) <= PATIENCE + 1)

    def test_a_deadline_that_is_over(self):
        name = str(uuid.uuid4())
        with self.assertRaises(grpc.RpcError) as raised:
            unary("Hang")(b"", timeout=0.3, metadata=(("x-name", name),))
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        wait_for_end(self, name)

    def test_a_call_that_is_cancelled_while_it_is_waited_for(self):
        name = str(uuid.uuid4())
        call = unary("Hang").future(b"", timeout=PATIENCE, metadata=(("x-name", name),))
        time.sleep(0.1)
        call.cancel()
        wait_for_end(self, name)

    def test_a_call_that_is_cancelled_between_messages(self):
        name = str(uuid.uuid4())
        call = channel.unary_stream("/test.Test/HangAfterOne")(b"", timeout=PATIENCE, metadata=(("x-name", name),))
        self.assertEqual(next(call), b"one")
        call.cancel()
        with self.assertRaises(grpc.RpcError) as raised:
            next(call)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.CANCELLED)
        wait_for_end(self, name)

    def test_a_call_that_is_cancelled_while_the_client_speaks(self):
        for method in (channel.stream_unary("/test.Test/HangReading").future, channel.stream_stream("/test.Test/HangTalking")):
            name, over = str(uuid.uuid4()), threading.Event()

            def speak():
                yield b"one"
                over.wait(PATIENCE)

            call = method(speak(), timeout=PATIENCE, metadata=(("x-name", name),))
            time.sleep(0.1)
            call.cancel()
            over.set()
            wait_for_end(self, name)

    def test_more_calls_at_once_than_the_server_takes_on_a_connection(self):
        calls = [unary("Slow").future(b"%d" % index, timeout=PATIENCE) for index in range(60)]
        self.assertEqual([call.result() for call in calls], [b"%d" % index for index in range(60)])

    @unittest.skipIf("-direct" in sys.argv, "a channel has one connection, on which they wait")
    def test_calls_that_stay_do_not_keep_others_out(self):
        stays = []
        for index in range(12):
            name = str(uuid.uuid4())
            call = channel.unary_stream("/test.Test/HangAfterOne")(b"", timeout=PATIENCE, metadata=(("x-name", name),))
            self.assertEqual(next(call), b"one", index)
            stays.append((call, name))
        self.assertEqual(unary("Echo")(b"hello", timeout=PATIENCE), b"hello")
        for call, name in stays:
            call.cancel()
        for call, name in stays:
            wait_for_end(self, name)


def main():
    global channel
    arguments = sys.argv[1:]
    credentials = None
    if arguments[0] == "-ca":
        with open(arguments[1], "rb") as file:
            credentials = grpc.ssl_channel_credentials(file.read())
        arguments = arguments[2:]
    elif arguments[0] == "-direct":
        arguments = arguments[1:]
    address, tests = arguments[0], arguments[1:]
    channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
    unittest.main(argv=["calls.py", "-v"] + tests)


main()
