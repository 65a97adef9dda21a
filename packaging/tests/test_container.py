"""The image of packaging/Containerfile: its user, its end, its health, and orphans.

buildah builds it. No program that runs containers works everywhere where tests run, so the test
makes the namespaces itself, and takes command, user and health check from the image.
"""
import json
import os
import signal
import subprocess
import unittest

import support

# Leaves a process whose parent has ended. Process 1 has adopted it when it ends.
APP = """
import os
import time
def application(environ, start_response):
    if environ['PATH_INFO'] == '/orphan':
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                while os.getppid() != 1:
                    time.sleep(0.01)
            os._exit(0)
        os.waitpid(child, 0)
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [f'worker {os.getpid()} of user {os.getuid()}'.encode()]
"""
CONFIG = """
[[listener]]
address = "127.0.0.1:8080"
[[app]]
name = "web"
load = "/srv/app/app.py"
workers = 2
[[route]]
path = "/"
try = ["app:web"]
"""
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
# Mounts what a container has, and becomes the command as the user: ROOT USER COMMAND...
ENTER = """
set -e
root=$1; user=$2; shift 2
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
ip link set lo up
cd "$root"
exec chroot --userspec="$user" . sh -c 'cd /srv/app && exec "$@"' sh "$@"
"""


class Container:
    """A running container. It is killed when the test ends."""

    def __init__(self, root, image, log):
        config = image["Docker"]["config"]
        self.root, self.user, self.health = root, config["User"], config["Healthcheck"]["Test"][1:]
        command = ["unshare", "--pid", "--fork", "--mount", "--net"]
        command += ["sh", "-c", ENTER, "enter", root, self.user]
        command += [*config["Entrypoint"], *config["Cmd"]]
        self.log = log
        with open(log, "wb") as output:
            options = {"stdout": output, "stderr": output, "env": ENVIRONMENT}
            self.unshare = subprocess.Popen(command, **options)
        children = f"/proc/{self.unshare.pid}/task/{self.unshare.pid}/children"
        self.pid = int(support.wait_for("process 1", lambda: read(children).strip()))

    def run(self, *command):
        """Runs a command in the container as its user."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net"]
        enter += ["chroot", f"--userspec={self.user}", self.root, *command]
        options = {"env": ENVIRONMENT, "capture_output": True, "text": True}
        return subprocess.run(enter, timeout=60, **options)

    def get(self, path):
        """Returns the body of a response, which the container's own Python asks for."""
        code = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
        ended = self.run("python3", "-c", code, f"http://127.0.0.1:8080{path}")
        return ended.stdout.strip() or ended.stderr

    def processes(self):
        """Returns the processes of the container, each with its state."""
        found, parents = [], {self.pid}
        for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
            fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            if fields and (pid in parents or int(fields[1]) in parents):
                parents.add(pid)
                found.append((pid, fields[0]))
        return found

    def end(self):
        """Kills process 1, and with it all others of the container."""
        if self.unshare.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.unshare.wait()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


@unittest.skipIf(reason := support.missing_for_namespaces("buildah"), reason)
class TestContainer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = support.temporary_directory()
        storage = ["buildah", f"--root={place}/storage", f"--runroot={place}/run"]
        storage += ["--storage-driver=vfs"]
        context = os.path.join(place, "context")
        os.makedirs(f"{context}/target")
        support.build_package("context/target/debian")
        support.run("cp", "-r", "packaging", context)
        base = support.run(*storage, "from", "scratch").strip()
        support.run(*storage, "add", "--quiet", base, support.debian(), "/")
        support.run(*storage, "commit", "--quiet", "--rm", base, "localhost/debian:bookworm-slim")
        build = [*storage, "build", "--isolation=chroot", "--format=docker", "--quiet"]
        build += ["--pull=never", "--build-arg=BASE=localhost/debian:bookworm-slim"]
        build += ["--file=packaging/Containerfile"]
        support.run(*build, "--tag=kirin", ".", cwd=context)
        container = support.run(*storage, "from", "--pull=never", "localhost/kirin").strip()
        cls.image = json.loads(support.run(*storage, "inspect", container))
        # The programs of the image, as a directory.
        cls.root = support.run(*storage, "mount", container).strip()
        cls.addClassCleanup(support.run, *storage, "umount", container)

    def start(self, files=()):
        """Starts the container with changed files, and waits until it is healthy."""
        for name, text in dict(files).items():
            self.replace(os.path.join(self.root, name), text)
        log = os.path.join(support.temporary_directory(), f"{self.id()}.log")
        self.container = Container(self.root, self.image, log)
        self.addCleanup(self.container.end)
        support.wait_for("the health check", self.is_healthy)

    def replace(self, path, text):
        """Replaces a file, or makes it, until the end of the test."""
        if os.path.exists(path):
            self.addCleanup(write, path, read(path))
        else:
            self.addCleanup(os.remove, path)
        write(path, text)

    def is_healthy(self):
        if self.container.unshare.poll() is not None:
            self.fail(f"the container has ended:\n{read(self.container.log)}")
        return self.container.run(*self.container.health).returncode == 0

    def test_serves_a_page_and_ends_after_term(self):
        self.start()
        self.assertIn("Kirin is running", self.container.get("/"))
        os.kill(self.container.pid, signal.SIGTERM)
        status = self.container.unshare.wait(timeout=support.WAIT)
        self.assertEqual(status, 0, read(self.container.log))

    def test_serves_without_root_and_reaps_orphans(self):
        self.start({"srv/app/app.py": APP, "etc/kirin/kirin.toml": CONFIG})
        uid = support.run("chroot", self.root, "id", "-u", "kirin").strip()
        self.assertNotEqual(uid, "0")
        for _ in range(5):
            self.assertRegex(self.container.get("/orphan"), rf"\Aworker \d+ of user {uid}\Z")
        processes = self.container.processes()
        # tini, Kirin, the app parent and two workers.
        self.assertGreaterEqual(len(processes), 5, processes)
        for pid, _ in processes:
            self.assertRegex(read(f"/proc/{pid}/status"), rf"(?m)^Uid:\t{uid}\t{uid}\t{uid}\t")

        def all_are_reaped():
            return all(state != "Z" for _, state in self.container.processes())

        support.wait_for("the end of orphans", all_are_reaped)


if __name__ == "__main__":
    unittest.main()
