"""What both Python applications of the suite do for the tests: files, waits, ends and failures."""
import hashlib
import os
import random
import signal
import sys
import time

DIRECTORY = os.getcwd()
TABLE = "memo"
SEVERAL_LINES = "no such table:\nback\\slash"


def slurp(name):
    """Returns a file of the directory without the line end, or None if there is none."""
    try:
        with open(os.path.join(DIRECTORY, name), encoding="utf-8") as file:
            return file.read().rstrip("\n")
    except FileNotFoundError:
        return None


def spurt(name, text):
    """Writes a file of the directory in one step."""
    path = os.path.join(DIRECTORY, name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(str(text))
    os.rename(path + ".new", path)


def is_there(name):
    """Returns whether a file is there. No process outlives the directory of a failed test."""
    if os.path.exists(os.path.join(DIRECTORY, name)):
        return True
    if not os.path.isdir(DIRECTORY):
        os._exit(1)
    return False


def wait_for_file(name):
    while not is_there(name):
        time.sleep(0.01)


def meet(name):
    """Tells a test that this point is reached, and waits until the test goes on."""
    spurt(f"begun.{name}", os.getpid())
    wait_for_file(f"go.{name}")


def hang():
    """Sleeps for good, whatever signals come."""
    while True:
        time.sleep(600)


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)
    hang()


def load_badly(how):
    if how == "die":
        # Lines of the source are in the log as well, so the message is not in one.
        raise RuntimeError(f"no such table: {TABLE}")
    if how == "lines":
        raise RuntimeError(SEVERAL_LINES)
    if how == "seed":
        random.seed(42)
    if how == "exit":
        sys.exit(3)
    if how == "hang":
        hang()
    if how == "print":
        print("failed by the application\nready", flush=True)
    if how == "wait":
        meet("loading")


def counted(content):
    return f"{len(content)} {hashlib.md5(content).hexdigest()}"


def pattern(length):
    """Returns this many bytes, all values from 0 to 250 in turn."""
    unit = bytes(range(251))
    return (unit * (1 + length // 251))[:length]


class Unprintable(Exception):
    """An exception that has no text."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def fail(text):
    raise RuntimeError(text)
