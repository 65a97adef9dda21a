"""The log: STDERR that cannot be written, and texts of visitors."""
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from fake_front import ADAPTER, FakeFront

APP = r'''
import os, signal, sys, warnings, logging
print("to STDOUT")
print("loading", file=sys.stderr)
logging.basicConfig()
def app(environ, start_response):
    if environ["PATH_INFO"] == "/talk":
        if environ["QUERY_STRING"] == "default":
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for _ in range(40):
            print("e" * 5000, file=environ["wsgi.errors"])
            environ["wsgi.errors"].write("part")
            print("o" * 5000)
            print("p" * 5000, file=sys.stderr)
            sys.stderr.buffer.write(b"b" * 5000)
            sys.stderr.flush()
            logging.error("l" * 5000)
            warnings.warn("w" * 5000)
            os.system("echo a program speaks >&2")
        if environ["QUERY_STRING"]:
            raise ValueError("talked enough")
    start_response("200 OK", [])
    return [b"%d" % os.getpid()]
'''


class UnwritableLogTest(unittest.TestCase):
    def check(self, stderr, **options):
        with FakeFront(APP, stderr=stderr, **options) as front:
            if options.get("preload") == "false":
                pid = front.started()
                self.assertEqual(front.control_line(), "ready")
            else:
                pid = front.ready()
            for _ in range(3):
                self.assertEqual(front.get("/talk").body, b"%d" % pid)
            self.assertEqual(front.get("/talk", QUERY_STRING="raise").status, 500)
            self.assertEqual(front.get("/talk", QUERY_STRING="default").status, 500)
            self.assertEqual(front.get("/").body, b"%d" % pid)
            os.kill(pid, signal.SIGTERM)
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            front.started()
            front.connect()
            self.assertEqual(front.get("/").status, 200)
            self.assertEqual(front.stop(), 0)

    def test_a_disk_that_is_full(self):
        full = os.open("/dev/full", os.O_WRONLY)
        self.check(full)
        os.close(full)

    def test_a_pipe_without_a_reader(self):
        read, write = os.pipe()
        os.close(read)
        self.check(write)
        os.close(write)

    def test_a_pipe_that_nobody_reads(self):
        read, write = os.pipe()
        self.check(write)
        fcntl.fcntl(read, fcntl.F_SETFL, os.O_NONBLOCK)
        self.assertIn(b"loading\n", os.read(read, 65536))
        os.close(read)
        os.close(write)

    def test_a_file_that_is_only_read(self):
        null = os.open("/dev/null", os.O_RDONLY)
        self.check(null)
        os.close(null)

    def test_no_stderr_at_all(self):
        # A shell closes it and starts the interpreter.
        with tempfile.TemporaryDirectory() as directory:
            shell = os.path.join(directory, "python")
            with open(shell, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec "{sys.executable}" "$@" 2>&-\n')
            os.chmod(shell, 0o755)
            self.check(None, python=shell)
            self.check(None, python=shell, preload="false")


class LineTest(unittest.TestCase):
    def logged(self, text):
        code = ("import sys; sys.path.insert(0, sys.argv[1]); from kirin import log; log.keep();"
                "log.line(eval(sys.argv[2]))")
        done = subprocess.run([sys.executable, "-c", code, ADAPTER + "/src", repr(text)],
                              capture_output=True, check=True)
        self.assertRegex(done.stderr, rb"\A[0-9-]{10}T[0-9:]{8}\.[0-9]{6}Z ")
        return done.stderr.decode()[28:]

    def test_the_text_of_a_visitor_forges_no_line_and_controls_no_terminal(self):
        self.assertEqual(self.logged("no \x1b]0;x\x07\n2026-01-01T00:00:00Z  INFO forged\n"),
                         "no ?]0;x?\n  2026-01-01T00:00:00Z  INFO forged\n")
        self.assertEqual(self.logged("a\rb\x9bc"), "a?b?c\n")

    def test_stacks_and_letters_stay_as_they_are(self):
        self.assertEqual(self.logged("died\n\tf()\n  more"), "died\n\tf()\n  more\n")
        self.assertEqual(self.logged("M\xfcller \u2026 \ud800"), "M\xfcller \u2026 \\ud800\n")


if __name__ == "__main__":
    unittest.main()
