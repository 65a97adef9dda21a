"""The store as a memcached: scripts in Perl and Python, statistics, limits, a restart."""
import os
import signal
import socket
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "gallery"))
from example import Example  # noqa: E402

PERL = ("perl", "prime.pl")
PYTHON = ("python3", "prime.py")


class Memcached(unittest.TestCase):
    def setUp(self):
        self.site = Example("memcached").__enter__()
        self.addCleanup(self.site.__exit__, None, None, None)

    def stats(self, *names):
        """Returns rows of the statistics."""
        rows = self.site.run("python3", "stats.py", *names).splitlines()
        return dict(row.split(" ", 1) for row in rows)

    def test_what_one_language_stores_the_other_reads(self):
        for nth, prime, first, second in (
            ("5000", 48611, PERL, PYTHON),
            ("6000", 59359, PYTHON, PERL),
        ):
            answer = self.site.run(*first, nth)
            self.assertIn(f"prime {nth} is {prime}, calculated in P", answer)
            answer = self.site.run(*second, nth)
            self.assertIn(f"prime {nth} is {prime}, from the store", answer)
        self.assertIn("; question 5", self.site.run(*PERL, "1"))

    def test_statistics_have_the_names_of_memcached(self):
        self.site.run(*PYTHON, "100")
        before = self.stats("get_hits", "get_misses", "curr_items")
        self.assertEqual({"get_hits": "0", "get_misses": "1", "curr_items": "2"}, before)
        self.site.run(*PERL, "100")
        self.assertEqual("1", self.stats("get_hits")["get_hits"])
        self.assertEqual(str(64 << 20), self.stats("limit_maxbytes")["limit_maxbytes"])
        self.assertEqual(2, self.site.status()["store"]["items"])

    def test_kirin_purges_items_by_their_prefix(self):
        self.site.run(*PYTHON, "100")
        self.site.run("kirin", "purge", "--prefix", "prime/")
        self.assertIn("calculated in Python; question 1", self.site.run(*PYTHON, "100"))

    def test_the_status_page_can_only_be_read(self):
        status, fields, page = self.site.get("/")
        self.assertEqual(200, status)
        self.assertIn("text/html", fields["Content-Type"])
        self.assertIn(b"store", page)
        self.assertEqual(405, self.site.request("POST", "/purge", b"prefix=prime/")[0])

    def test_bad_commands_are_refused_as_memcached_does(self):
        with socket.create_connection(("127.0.0.1", 11211), timeout=30) as client:
            answers = client.makefile("rb")
            client.sendall(b"get " + b"k" * 251 + b"\r\n")
            self.assertEqual(b"CLIENT_ERROR bad command line format\r\n", answers.readline())
            client.sendall(b"nonsense\r\n")
            self.assertEqual(b"ERROR\r\n", answers.readline())
            size = 1 << 20
            client.sendall(b"set large 0 0 %d\r\n" % size + bytes(size) + b"\r\n")
            self.assertEqual(b"SERVER_ERROR object too large for cache\r\n", answers.readline())

    def test_items_survive_a_restart_with_memcached_s_own_options(self):
        address = os.path.join(self.site.directory, "data", "store.sock")
        clients = {**self.site.environment(), "MEMCACHED": address}

        def run(*command):
            return subprocess.check_output(
                command, cwd=self.site.directory, env=clients, text=True, timeout=30
            )

        for expected in "calculated in Perl; question 1", "from the store; question 2":
            # `-d` returns when the server listens.
            pid_file = os.path.join(self.site.directory, "data", "pid")
            command = ["kirin", "memcached", "-s", address, "-m", "64", "-d", "-P", pid_file]
            run(*command, "-o", "snapshot=data/own.snapshot")
            with open(pid_file, encoding="ascii") as file:
                pid = int(file.read())
            self.assertIn(expected, run(*PERL, "700"))
            os.kill(pid, signal.SIGTERM)
            # The server removes both at its end, after it has written the snapshot.
            for path in pid_file, address:
                self.site.wait_for(lambda: not os.path.exists(path), "the store does not end")


if __name__ == "__main__":
    unittest.main()
