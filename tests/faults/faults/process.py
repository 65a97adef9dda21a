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


class Program:
    """A running Kirin with a plan of faults, which happen while a file is there."""

    def __init__(self, binary, directory, seed):
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
        self.address, self.tls_address = wait_for("the program to serve", 60, self._addresses)

    def _addresses(self):
        self.check_runs()
        ports = [re.search(rf"serving on {scheme}://127\.0\.0\.1:(\d+)", self.log()) for scheme in ("http", "https")]
        return all(ports) and [("127.0.0.1", int(port[1])) for port in ports]

    def log(self):
        """Returns the log so far."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def check_runs(self):
        """Raises an exception if the program has ended."""
        if self.child.poll() is not None:
            raise Ended(f"the program has ended with {self.child.returncode}")

    def begin_faults(self):
        """Lets faults happen."""
        open(self.switch, "w", encoding="ascii").close()

    def end_faults(self):
        """Ends the faults. Returns the points that were passed, with calls and faults."""
        os.unlink(self.switch)
        wait_for("the end of the faults", 20, lambda: "faults: over\n" in self.log())
        found = re.findall(r"^faults: point (\S+) (\d+) (\d+)$", self.log(), re.M)
        return {name: (int(calls), int(faults)) for name, calls, faults in found}

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
        place = f"/proc/{self.child.pid}/fd"
        found = {}
        for number in os.listdir(place):
            try:
                found[number] = os.readlink(os.path.join(place, number))
            except OSError:
                pass
        return found

    def workers(self):
        """Returns the process ids of the workers."""
        listed = subprocess.run(
            ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        processes = [line.split(None, 2) for line in listed.splitlines()]
        parents = {pid for pid, parent, _ in processes if parent == str(self.child.pid)}
        return [int(pid) for pid, parent, words in processes if parent in parents and "worker" in words]

    def stop(self):
        """Ends the program as an operator would. Returns its status."""
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(30)
        except subprocess.TimeoutExpired:
            raise Ended("the program does not end in 30 s after SIGTERM") from None

    def kill(self):
        """Ends the program, whatever it does."""
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(5)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
