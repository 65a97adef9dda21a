"""Three machines behind a balancer: what one writes all have, and one may die."""
import http.client
import os
import re
import signal
import subprocess
import sys
import unittest
from urllib.parse import urlencode

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "gallery"))
from example import Example  # noqa: E402

PORTS = {"web1": 8081, "web2": 8082, "web3": 8083}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Machines(unittest.TestCase):
    """The machines, for the tests of the other classes."""

    @classmethod
    def setUpClass(cls):
        cls.site = Example("three-machines").__enter__()
        cls.addClassCleanup(cls.site.__exit__, None, None, None)
        cls.site.wait_for(cls.all_are_there, "the machines do not know each other")
        cls.site.wait_for(lambda: cls.available() == 3, "the balancer does not have them all")

    @classmethod
    def all_are_there(cls):
        """Returns whether all three serve and are known at the origin."""
        try:
            answers = [cls.machine(name, "GET", "/health")[0] for name in PORTS]
        except OSError:
            return False
        return answers == [200] * 3 and cls.machines().startswith("3 machines\n\n")

    @classmethod
    def machines(cls):
        """Returns what `kirin status --all` prints."""
        try:
            return cls.site.run("kirin", "status", "--all", "--config", "web1.toml")
        except AssertionError as away:
            return str(away)

    @classmethod
    def available(cls):
        """Returns the number of machines that the balancer sends requests to."""
        servers = cls.site.status()["upstreams"]["machines"]["servers"]
        return sum(server["availability"] == "available" for server in servers)

    @staticmethod
    def machine(name, method, path, body=None, headers=None):
        """Sends a request to one machine, without the balancer."""
        connection = http.client.HTTPConnection("127.0.0.1", PORTS[name], timeout=30)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def write(self, send, text, token=None):
        """Writes a note. `send` is a function that sends a request."""
        _, fields, page = send("GET", "/write")
        page = page.decode() if isinstance(page, bytes) else page
        cookie = fields["Set-Cookie"].split(";")[0]
        token = token or re.search(r'name="token" value="(\w+)"', page)[1]
        body = urlencode({"token": token, "text": text})
        return send("POST", "/notes", body, {**FORM, "Cookie": cookie})[0]

    def on(self, name):
        """Returns a function that sends requests to one machine."""
        return lambda *arguments: self.machine(name, *arguments)

    def boards(self, has):
        """Waits until all machines serve the same page and it has `has`. Returns the page."""

        def same():
            pages = {self.machine(name, "GET", "/")[2] for name in PORTS}
            return pages.pop() if len(pages) == 1 and has in next(iter(pages)) else None

        return self.site.wait_for(same, f"not all machines have {has}")


class ThreeMachines(Machines):
    def test_what_one_machine_writes_all_have(self):
        for name in PORTS:
            self.assertEqual(303, self.write(self.on(name), f"<b>from {name}</b>"))
        page = self.boards("&lt;b&gt;from web3")
        for name in PORTS:
            self.assertIn(f"&lt;b&gt;from {name}&lt;/b&gt; <small>written on {name}<", page)
        # One machine has made the page. The others have it from their memory.
        maker = re.search(r"This page was made on (web\d)", page)[1]
        for name in PORTS.keys() - {maker}:
            self.site.wait_for(lambda: f'{name} "GET / HTTP/1.1" 200 store' in self.site.log(), name)
            self.assertEqual(name, self.machine(name, "GET", "/")[1]["X-Machine"])

    def test_a_purge_holds_on_all_machines(self):
        # The machine that is asked first after a purge makes the page for all of them.
        for name in "web1", "web3":
            self.boards("This page was made on")
            printed = self.site.run("kirin", "purge", "--tag", "board", "--config", "web2.toml")
            self.assertEqual("purged 1 of 1 tags on 3 machines\n", printed)
            self.site.wait_for(
                lambda: f"made on {name}" in self.machine(name, "GET", "/")[2],
                f"{name} still has the page of before",
            )
            self.boards(f"made on {name}")

    def test_bad_requests_are_refused(self):
        self.assertEqual(403, self.write(self.site.request, "Spam", token="0" * 32))
        self.assertEqual(422, self.write(self.site.request, " "))
        self.assertEqual(413, self.write(self.site.request, "x" * 5_000))
        self.assertEqual(404, self.site.get("/none")[0])
        self.assertEqual(400, self.site.get("/%zz")[0])
        self.assertNotIn(b"Spam", self.site.get("/")[2])


class OneMachineDies(Machines):
    def test_one_machine_dies_and_the_site_goes_on(self):
        self.assertEqual(303, self.write(self.site.request, "Before"))
        with open(f"{self.site.directory}/data/web2.pid", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        answered = [self.site.get("/") for _ in range(20)]
        self.assertEqual([200] * 20, [status for status, _, _ in answered])
        self.assertEqual({"web1", "web3"}, {fields["X-Machine"] for _, fields, _ in answered})
        for number in range(4):
            self.assertEqual(303, self.write(self.site.request, f"After {number}"))
        for name in "web1", "web3":
            self.site.wait_for(lambda: "After 3" in self.machine(name, "GET", "/")[2], name)
        self.site.wait_for(lambda: "! no answer" in self.machines(), "nobody misses web2")
        self.site.wait_for(lambda: self.available() == 2, "the balancer still asks web2")

        with open(f"{self.site.directory}/data/web2.log", "wb") as log:
            again = subprocess.Popen(
                ["./machine", "web2"],
                cwd=self.site.directory,
                env=self.site.environment(),
                stdout=log,
                stderr=log,
            )
        self.addClassCleanup(self.end, again)
        self.site.wait_for(lambda: self.available() == 3, "web2 does not come back")
        self.assertIn("After 3", self.boards("Before"))

    @staticmethod
    def end(process):
        """Ends a machine that a test has started, and looks at its exit status."""
        process.terminate()
        if process.wait(60) != 0:
            raise AssertionError(f"the machine ended with {process.returncode}")


if __name__ == "__main__":
    unittest.main()
