"""The program under test as a process."""
import http.client
import os
import re
import signal
import socket
import subprocess
import time


class Ended(Exception):
    """The program has ended, or did not do what it was told."""


def wait_for(what, limit, look):
    """Returns what `look` returns as soon as that is true."""
    end = time.monotonic() + limit
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise Ended(f"waited {limit} s for {what}")
        time.sleep(0.005)


def started_at(pid):
    """Returns when a process was started, in ticks since the boot: field 22 of proc_pid_stat(5)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19])


class Program:
    """A running Kirin with a plan of faults, which happen while a file is there."""

    def __init__(self, binary, directory, seed):
        self.binary = binary
        self.directory = directory
        self.switch = os.path.join(directory, "faults")
        self.log_path = os.path.join(directory, "log")
        environment = {
            **os.environ,
            "KIRIN_FAULTS": str(seed),
            "KIRIN_FAULTS_WHILE": self.switch,
            "XDG_RUNTIME_DIR": directory,
        }
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                [binary, "serve", "--config", "kirin.toml"],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        port = wait_for("the program to serve", 60, self._port)
        # Without TLS, and with it.
        self.addresses = (("127.0.0.1", int(port)), os.path.join(directory, "tls.sock"))

    def _port(self):
        if self.child.poll() is not None:
            raise Ended(f"the program cannot start: {self.log()}")
        match = re.search(r"serving on http://127\.0\.0\.1:(\d+)", self.log())
        return match and match[1]

    def log(self):
        """Returns the log so far."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def processes(self):
        """Returns the processes that serve or are about to, the oldest first. During an upgrade they
        are two. The log cannot tell: it may be what fails."""
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if b"serve" in words and os.path.samefile(f"/proc/{name}/exe", self.binary):
                    if os.readlink(f"/proc/{name}/cwd") == self.directory:
                        found.append((started_at(name), int(name)))
            except OSError:
                pass
        return [pid for _, pid in sorted(found)]

    def pid(self):
        """Returns the process that serves."""
        found = self.processes()
        if not found:
            raise Ended(f"the program has ended with {self.child.poll()}")
        return found[-1]

    def has_ended(self, pid):
        """Returns whether a process has ended. Only the first one is a child of this one."""
        if pid == self.child.pid:
            return self.child.poll() is not None
        return not os.path.exists(f"/proc/{pid}")

    def wait_for_upgrades(self):
        """Waits until one process serves alone."""
        wait_for("the end of an upgrade", 30, lambda: len(self.processes()) == 1)

    def signal(self, number):
        """Sends a signal to the process that serves."""
        try:
            os.kill(self.pid(), number)
        except ProcessLookupError:
            # Another one has taken over at this moment.
            pass

    def begin_faults(self):
        """Lets faults happen."""
        open(self.switch, "w", encoding="ascii").close()

    def end_faults(self):
        """Ends the faults. Returns the points that were passed, with calls and faults."""
        os.unlink(self.switch)
        wait_for("the end of the faults", 20, lambda: "faults: over\n" in self.log())
        found = re.findall(r"^faults: point (\S+) (\d+) (\d+)$", self.log(), re.M)
        points = {}
        for name, calls, faults in found:
            before = points.get(name, (0, 0))
            points[name] = (before[0] + int(calls), before[1] + int(faults))
        return points

    def metrics(self):
        """Returns the metrics, by their lines without the values."""
        connection = http.client.HTTPConnection("admin")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(20)
        connection.sock.connect(os.path.join(self.directory, "admin.sock"))
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines if name}

    def descriptors(self):
        """Returns what the descriptors of the process are."""
        place = f"/proc/{self.pid()}/fd"
        found = {}
        for number in os.listdir(place):
            try:
                found[number] = os.readlink(os.path.join(place, number))
            except OSError:
                pass
        return found

    def parents_and_workers(self):
        """Returns the process ids of the parents of applications, and those of their workers."""
        listed = subprocess.run(
            ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        processes = [line.split(None, 2) for line in listed.splitlines()]
        front = str(self.pid())
        children = {pid for pid, parent, _ in processes if parent == front}
        workers = [
            (int(pid), int(parent))
            for pid, parent, words in processes
            if parent in children and "worker" in words
        ]
        return sorted({parent for _, parent in workers}), [pid for pid, _ in workers]

    def stop(self):
        """Ends the program as an operator would. Returns its status, or None if that is unknown."""
        pid = self.pid()
        self.signal(signal.SIGTERM)
        wait_for("the end of the program after SIGTERM", 30, lambda: self.has_ended(pid))
        # The first program has ended before another one serves.
        return self.child.poll()

    def kill(self):
        """Ends all processes of the program, whatever they do."""
        for number, limit in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
            for pid in self.processes():
                os.kill(pid, number)
            try:
                wait_for("the end", limit, lambda: self.child.poll() is not None and not self.processes())
                return
            except Ended:
                pass
