"""What an example with an adapter of its own must do, in whatever language the adapter is."""
import hashlib
import os
import re
import signal
import socket
import sys
from select import select

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "gallery"))
from example import ADDRESS, LIMIT, Example  # noqa: E402


class AdapterChecks:
    """The tests. A class with them has the attributes `example`, `application`, `language`,
    `count` (its workers), and `printing`, a change of the application that makes it print."""

    def setUp(self):
        self.site = Example(self.example)
        self.site.__enter__()
        self.addCleanup(self.site.__exit__, None, None, None)

    def app_parent(self):
        """Returns the process id of the present app parent."""
        return int(re.findall(r"app parent started .* pid=(\d+)", self.site.log())[-1])

    def kirin(self):
        return parent_of(self.app_parent())

    def workers(self, count):
        """Waits until there are so many workers, and all are idle. Returns their process ids."""

        def found():
            app = self.site.status()["apps"][0]
            pids = children_of(self.app_parent())
            return pids if len(pids) == count == app["idle_workers"] else None

        return self.site.wait_for(found, f"{count} workers")

    def replace_application(self, old, new):
        """Changes the text of the application, and waits until the new code serves."""
        path = os.path.join(self.site.directory, self.application)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        generations = self.site.log().count("new generation serves")
        os.kill(self.kirin(), signal.SIGHUP)
        self.site.wait_for(
            lambda: self.site.log().count("new generation serves") > generations, "no reload")

    def test_a_page_and_a_missing_page(self):
        status, fields, page = self.site.get("/")
        self.assertEqual((200, f"Hello, 127.0.0.1. This is {self.language}.\n".encode()),
                         (status, page))
        self.assertEqual("text/plain; charset=utf-8", fields["Content-Type"])
        self.assertEqual(str(len(page)), fields["Content-Length"])
        self.assertEqual(404, self.site.get("/none")[0])
        status, _, body = self.site.request("HEAD", "/")
        self.assertEqual((200, b""), (status, body))

    def test_bodies_arrive_whatever_their_length(self):
        for length in 0, 5, 70_000, 3_000_000:
            body = bytes(range(256)) * (length // 256 + 1)
            _, _, answer = self.site.request("POST", "/upload", body[:length])
            self.assertEqual(hashlib.sha256(body[:length]).hexdigest(), answer.decode().strip())

    def test_a_client_that_leaves_a_stream_costs_no_worker(self):
        before = self.workers(self.count)
        with socket.create_connection(ADDRESS) as client:
            client.sendall(b"GET /count HTTP/1.1\r\nHost: test\r\n\r\n")
            self.assertIn(b"Transfer-Encoding: chunked", client.recv(65_536))
        self.assertEqual(b"3\n2\n1\ngo\n", self.site.get("/count")[2])
        self.assertEqual(before, self.workers(self.count))

    def test_an_error_is_500_and_the_log_says_where(self):
        self.assertEqual((500, b"Internal Server Error\n"), self.site.get("/fail?a=b")[::2])
        line = r"worker \d+: GET /fail\?a=b: .*a bad day.* request_id=\w+\n\s"
        found = self.site.wait_for(lambda: re.search(line, self.site.log()), "no line of the error")
        self.assertIn(self.application, self.site.log()[found.start():])
        self.assertEqual(200, self.site.get("/")[0])

    def test_new_code_comes_with_a_reload_and_prints_to_the_log(self):
        old = self.app_parent()
        self.replace_application("This is", "This was")
        self.assertIn(b"This was", self.site.get("/")[2])
        self.site.wait_for(lambda: not is_alive(old), "the old app parent stays")
        self.replace_application(*self.printing)
        self.assertEqual(200, self.site.get("/")[0])
        self.site.wait_for(lambda: "\nfailed by the application\n" in self.site.log(), "no output")

    def test_the_number_of_workers_changes(self):
        before = self.workers(self.count)
        os.kill(self.kirin(), signal.SIGTTIN)
        self.assertLess(before, self.workers(self.count + 1))
        os.kill(self.kirin(), signal.SIGTTOU)
        self.assertEqual(before, self.workers(self.count))

    def test_a_worker_that_is_killed_is_replaced(self):
        victim = min(self.workers(self.count))
        os.kill(victim, signal.SIGKILL)
        self.site.wait_for(lambda: f"pid={victim}" in self.site.log(), "nobody reports its end")
        self.assertNotIn(victim, self.workers(self.count))
        self.assertEqual(200, self.site.get("/")[0])

    def test_workers_have_no_copy_of_the_control_channel(self):
        control = pipes_of(self.kirin()) & pipes_of(self.app_parent())
        self.assertEqual(1, len(control))
        for worker in self.workers(self.count):
            self.assertFalse(control & pipes_of(worker))


class KilledChecks:
    """What happens when Kirin is killed. This has no end that a clean stop would have."""

    def test_nothing_outlives_a_kirin_that_is_killed(self):
        site = Example(self.example)
        site.__enter__()
        try:
            parent = int(re.findall(r"app parent started .* pid=(\d+)", site.log())[-1])
            processes = {parent, *children_of(parent)}
            os.kill(parent_of(parent), signal.SIGKILL)
            left = [pid for pid in processes if not wait_for_end(pid)]
            self.assertEqual([], left)
        finally:
            # An exception ends the example without a look at its log.
            site.__exit__(KeyboardInterrupt, None, None)


def stat_of(pid):
    """Returns state and parent of a process, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, parent = file.read().rpartition(") ")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return state, int(parent)


def parent_of(pid):
    return stat_of(pid)[1]


def is_alive(pid):
    stat = stat_of(pid)
    return stat is not None and stat[0] != "Z"


def wait_for_end(pid):
    """Returns whether a process that is no child of this one ends."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select([descriptor], [], [], LIMIT)[0])
    finally:
        os.close(descriptor)


def children_of(pid):
    found = {int(name): stat_of(name) for name in os.listdir("/proc") if name.isdigit()}
    return {child for child, stat in found.items() if stat and stat[1] == pid and stat[0] != "Z"}


def pipes_of(pid):
    """Returns the pipes that a process has open."""
    directory = f"/proc/{pid}/fd"
    targets = {os.readlink(f"{directory}/{name}") for name in os.listdir(directory)}
    return {target for target in targets if target.startswith("pipe:")}
