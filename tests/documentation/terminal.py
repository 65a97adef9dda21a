"""A terminal in which the commands of a page are run: one bash, and the servers that go on."""
import contextlib
import os
import re
import secrets
import shlex
import signal
import subprocess
import threading
import time

from expected import appears, plain
from listening import listening

# Commands that go on until somebody ends them. `--print-config` and `--once` print and end; `-d`
# is a daemon.
SERVES = re.compile(
    r"^(?:[A-Z0-9_]+=\S* )*"
    r"(?:kirin serve(?!.*--print-config)|kirin memcached(?!.* -d )|kirin top(?!.*--once)"
    r"|plackup|starman|redis-server|valkey-server|memcached|nginx|php -S|php-fpm\S*|node|uwsgi"
    r"|prometheus|python3 server\.py|start_server|tail -f|\./serve|\./machine|while )\b"
)
# What they print once they serve, if the page shows nothing.
SERVING = {
    re.compile(r"^(?:[A-Z0-9_]+=\S* )*(?:start_server .*-- )?(?:kirin serve|\./serve)"): (
        "…Ctrl-C ends it"
    ),
    re.compile(r"^kirin top"): "…q quit…",
}
# Commands that need a terminal with a size, which script(1) gives them.
FULL_SCREEN = re.compile(r"^kirin top")
SIZE = "stty rows 40 columns 120"
# Seconds until what a process has written is on its screen.
LAST_LINES = 2.0
# Servers that print nothing then.
SILENT = re.compile(r"^(?:[A-Z0-9_]+=\S* )*(?:kirin memcached|plackup)")


class CommandError(Exception):
    """A command did not do what the page shows."""


class Screen:
    """A pseudoterminal, so that a server prints what a person would see."""

    def __init__(self, changed):
        self._changed = changed
        self._shown = bytearray()
        self._master, self._slave = os.openpty()
        self.device = os.ttyname(self._slave)
        threading.Thread(target=self._read, daemon=True).start()

    def text(self):
        """Returns what it has shown so far, without colours."""
        return plain(self._shown.decode(errors="replace"))

    def close(self):
        """Ends the reading, which ends when nobody has the device open."""
        os.close(self._slave)

    def _read(self):
        with contextlib.suppress(OSError):
            while chunk := os.read(self._master, 65536):
                with self._changed:
                    self._shown += chunk
                    self._changed.notify_all()
        os.close(self._master)


class Terminal:
    """Runs commands one after the other in one bash, so that its directory and variables stay."""

    def __init__(self, start, directory, environment, limit):
        """Starts `start`, a bash that reads its commands from stdin. `limit` is in seconds."""
        self._limit = limit
        self._scratch = directory
        self._servers = []
        self._output = bytearray()
        self._changed = threading.Condition()
        self._shell = subprocess.Popen(
            start,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        # With job control each server has a process group, which Ctrl-C can reach.
        self._send("set -m")

    def run(self, text):
        """Runs a command to its end, and returns its exit status and what it has printed."""
        mark = secrets.token_hex(8)
        with open(os.path.join(self._scratch, "command"), "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
        start = len(self._output)
        self._send(f'. "$PAGE_SCRATCH/command" < /dev/null; printf "%s %s\\n" {mark} $?')
        ending = re.compile(mark + r" (\d+)\n")
        found = self._wait_for(lambda: ending.search(self._since(start)))
        if not found:
            raise CommandError(f"it has not ended within {self._limit:.0f} s:\n{self._since(start)}")
        return int(found[1]), self._since(start)[: found.start()]

    def serve(self, text, expected):
        """Starts a server with a screen of its own, and waits until that shows what is expected.
        Returns what it shows.
        """
        wanted = expected or [line for start, line in SERVING.items() if start.match(text)]
        silent = not expected and SILENT.match(text)
        screen = Screen(self._changed)
        before = listening(self._shell.pid)
        if FULL_SCREEN.match(text):
            text = f"script --quiet --flush --command {shlex.quote(f'{SIZE}; {text}')} /dev/null"
        status, output = self.run(
            f'{{ {text}\n}} < /dev/null > {screen.device} 2>&1 & echo $! > "$PAGE_SCRATCH/server"'
        )
        if status:
            raise CommandError(f"it cannot be started:\n{output}")
        with open(os.path.join(self._scratch, "server"), encoding="ascii") as file:
            process = int(file.read())
        self._servers.append((process, screen))

        def serves():
            listens = not silent or listening(self._shell.pid) - before
            return listens and appears(wanted, screen.text())

        self._wait_for(lambda: serves() or not _is_there(process))
        # The last lines of a process that has ended may still be on their way.
        if not self._wait_for(serves, at_most=LAST_LINES):
            raise CommandError(f"it has not printed what the page shows:\n{screen.text()}")
        return screen.text()

    def root(self):
        """Returns where other processes find the terminal's `/`, whose mounts may be its own."""
        self.run("true")
        return f"/proc/{self._shell.pid}/root"

    def directory(self):
        """Returns the directory in which the next command runs."""
        return self.run("pwd")[1].rstrip("\n")

    def interrupt(self):
        """Sends the newest server what Ctrl-C sends, and waits until it has ended."""
        if not self._servers:
            raise CommandError("there is no server to interrupt")
        process, screen = self._servers[-1]
        os.killpg(process, signal.SIGINT)
        if not self._wait_for(lambda: not _is_there(process)):
            raise CommandError(f"it has not ended within {self._limit:.0f} s of Ctrl-C")
        self._servers.pop()
        screen.close()
        # The shell reports the end of a job when it carries out the next command.
        self.run("true")

    def close(self):
        """Ends the servers and the shell."""
        for process, _ in reversed(self._servers):
            _signal_group(process, signal.SIGTERM)
        for process, _ in self._servers:
            self._wait_for(lambda process=process: not _is_there(process), at_most=10.0)
            _signal_group(process, signal.SIGKILL)
        # A loop that a page has left in the background, and daemons. Any of them may just start
        # another process.
        with _own_network(self._shell.pid) as network:
            while left := _in_network(network):
                for process in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
        self._shell.stdin.close()
        self._shell.wait()
        for _, screen in self._servers:
            screen.close()

    def _send(self, line):
        self._shell.stdin.write(f"{line}\n".encode())
        self._shell.stdin.flush()

    def _since(self, start):
        return self._output[start:].decode(errors="replace")

    def _read(self):
        while chunk := os.read(self._shell.stdout.fileno(), 65536):
            with self._changed:
                self._output += chunk
                self._changed.notify_all()
        self._shell.stdout.close()

    def _wait_for(self, condition, at_most=None):
        """Waits until a condition holds, and returns what it gave, which is false at the limit."""
        end = time.monotonic() + (at_most or self._limit)
        with self._changed:
            while not (value := condition()) and time.monotonic() < end:
                # The end of a process notifies nobody.
                self._changed.wait(0.05)
        return value


@contextlib.contextmanager
def _own_network(shell):
    """Yields the network of a shell, or None if it is that of the tests.

    The network is kept until the end of the block. Otherwise the network of another page could get
    its name when its last process has ended.
    """
    try:
        kept = open(f"/proc/{shell}/ns/net", "rb")
    except OSError:
        # The shell has ended.
        yield None
        return
    with kept:
        network = _network(shell)
        yield network if network != _network("self") else None


def _in_network(network):
    """Returns the processes of a network that have not ended, and none if there is no network."""
    if network is None:
        return []
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _network(pid) == network]


def _network(process):
    """Returns the name of a process's network namespace, or None if the process has ended."""
    try:
        return os.readlink(f"/proc/{process}/ns/net")
    except OSError:
        return None


def _is_there(process):
    """Returns whether a process group has a process that has not ended."""
    try:
        os.killpg(process, 0)
    except ProcessLookupError:
        return False
    return True


def _signal_group(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, number)
