"""A front for ASGI workers, which has many connections to one worker.

    with AsgiFront("async def app(scope, receive, send): …") as front:
        front.ready()
        first, second = front.open(), front.open()
"""
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ADAPTER = os.path.dirname(TESTS)

for place in (TESTS, os.path.join(ADAPTER, "src")):
    if place not in sys.path:
        sys.path.insert(0, place)

from fake_front import FakeFront, FrontConnection  # noqa: E402
from software import software  # noqa: E402

# A program begins with this. Its `handle` answers requests, and `answer` sends a response.
PROLOGUE = '''
import asyncio, os
here = os.path.dirname(os.path.abspath(__file__))
def note(name):
    open(os.path.join(here, name), "w").close()
async def noted(name):
    while not os.path.exists(os.path.join(here, name)):
        await asyncio.sleep(0.005)
async def answer(send, body=b"", status=200, headers=(), more=False):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body, "more_body": more})
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    await handle(scope, receive, send)
'''


def python_with(name):
    """Returns the Python of the virtual environment that has a package."""
    return os.path.join(software(name), "bin", "python")


def program(handle):
    """Returns an application whose `handle` has this body."""
    lines = "\n".join("    " + line for line in handle.strip("\n").split("\n"))
    return PROLOGUE + "async def handle(scope, receive, send):\n" + lines + "\n"


class AsgiFront(FakeFront):
    """A front that opens as many connections as a test needs."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.opened = []

    def __exit__(self, *details):
        for connection in self.opened:
            connection.disconnect()
        return super().__exit__(*details)

    def ready(self):
        """Waits for `ready`. Returns the id of the first worker, which has started before."""
        pid = self.started()
        line = self.control_line()
        if line != "ready":
            raise AssertionError(f"not ready: {line}; the log: {self.log()}")
        return pid

    def exited(self):
        """Returns the next line about the end of a worker. Another one may have started before."""
        line = self.control_line()
        while line is not None and line.startswith("started "):
            line = self.control_line()
        return line

    def open(self):
        """Returns another connection, whose greeting has been read."""
        connection = FrontConnection(self.path)
        self.opened.append(connection)
        connection.connect()
        return connection

    def noted(self, name):
        """Returns whether the application has called `note` with this name."""
        return os.path.exists(os.path.join(self.directory, name))

    def text(self, name):
        """Returns what the application has written to a file, or "" if there is none."""
        if not self.noted(name):
            return ""
        with open(os.path.join(self.directory, name), encoding="utf-8") as file:
            return file.read()

    def note(self, name):
        """Ends a wait of the application for `noted`."""
        open(os.path.join(self.directory, name), "w", encoding="ascii").close()
