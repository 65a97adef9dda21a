"""The Debian package on a machine with systemd: it is installed, serves, and is purged.

The machine is a directory with a Debian, in namespaces of its own, whose process 1 is systemd.
"""
import os
import signal
import subprocess
import unittest

import support

# Mounts a layer above the Debian, so that this stays as it is, and becomes systemd. The unit of a
# test starts nothing but what the test asks for.
BOOT = """
set -e
base=$1; layer=$2; package=$3
mount --make-rprivate /
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
root=$layer/root
cp "$package" "$root/kirin.deb"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
ip link set lo up
printf '[Unit]\\nDefaultDependencies=no\\n' > "$root/etc/systemd/system/only.target"
mkdir "$root/etc/systemd/system/kirin.service.d"
printf '[Service]\\nStandardError=append:/run/kirin.log\\n' \\
    > "$root/etc/systemd/system/kirin.service.d/log.conf"
cd "$root"
pivot_root . .
umount -l .
exec env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin container=kirin-test \
    /lib/systemd/systemd --system --unit=only.target --log-target=console --show-status=no
"""


class Machine:
    """A running systemd."""

    def __init__(self, package):
        place = support.temporary_directory()
        layer = os.path.join(place, "layer")
        os.makedirs(layer)
        self.log = os.path.join(place, "systemd.log")
        command = ["unshare", "--pid", "--fork", "--mount", "--net", "--cgroup", "--ipc"]
        command += ["sh", "-c", BOOT, "boot", support.debian(), layer, package]
        with open(self.log, "wb") as log:
            self.unshare = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = support.wait_for("systemd", self.find_systemd)
        support.wait_for("its answers", self.is_running)

    def is_running(self):
        return self.run("systemctl", "is-system-running").returncode == 0

    def text_of_log(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def find_systemd(self):
        if self.unshare.poll() is not None:
            raise AssertionError(self.text_of_log())
        children = f"/proc/{self.unshare.pid}/task/{self.unshare.pid}/children"
        with open(children, encoding="ascii") as file:
            pid = file.read().strip()
        if not pid:
            return None
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return pid if file.read().strip() == "systemd" else None

    def run(self, *command, user="root"):
        """Runs a command as a user with all its groups."""
        enter = ["nsenter", f"--target={self.pid}", "--all", "--root", "--wd=/"]
        # runuser(1) knows the user's groups.
        enter += ["runuser", "-u", user, "--", *command] if user != "root" else command
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(enter, capture_output=True, text=True, env=environment, timeout=120)

    def end(self):
        os.kill(int(self.pid), signal.SIGKILL)
        self.unshare.wait()


@unittest.skipIf(reason := support.missing_for_namespaces(), reason)
class TestInstalled(unittest.TestCase):
    def setUp(self):
        self.machine = Machine(support.build_package("installed"))
        self.addCleanup(self.machine.end)

    def run_well(self, *command, user="root"):
        ended = self.machine.run(*command, user=user)
        said = ended.stdout + ended.stderr
        if ended.returncode != 0:
            state = self.machine.run("cat", "/run/kirin.log").stdout
            self.fail(f"{command} as {user} ended with {ended.returncode}: {said}\n{state}")
        return said

    def get(self):
        code = "import urllib.request as r; print(r.urlopen('http://127.0.0.1/').read().decode())"
        return self.run_well("python3", "-c", code)

    def test_it_is_installed_used_and_purged(self):
        run = self.run_well
        run("dpkg", "--install", "/kirin.deb")
        run("systemctl", "start", "kirin.socket", "kirin.service")
        self.assertIn("Kirin is running", self.get())
        run("adduser", "--disabled-password", "--gecos", "", "alice")
        run("adduser", "alice", "kirin")
        run("adduser", "--disabled-password", "--gecos", "", "bob")

        # Without [admin] only root and the user of the service reach it.
        self.assertIn("/etc/kirin/kirin.toml", run("kirin", "status"))
        run("kirin", "status", "--config", "/etc/kirin/kirin.toml", user="kirin")
        self.assertNotEqual(self.machine.run("kirin", "status", user="alice").returncode, 0)

        # The steps of docs/deploy.md.
        run("sed", "-i", "-e", r"s/^# \(\[admin\]\|address = .unix:.*\)$/\1/", "/etc/kirin/kirin.toml")
        run("systemctl", "stop", "kirin.service")
        run("systemctl", "start", "kirin-admin.socket", "kirin.service")
        for user in ("root", "alice"):
            said = run("kirin", "status", "--config", "/etc/kirin/kirin.toml", user=user)
            self.assertIn("serves        /etc/kirin/kirin.toml", said)
        refused = self.machine.run("kirin", "status", "--config", "/etc/kirin/kirin.toml", user="bob")
        self.assertNotEqual(refused.returncode, 0)

        self.rotate_logs()
        run("systemctl", "reload", "kirin.service")
        run("dpkg", "--install", "/kirin.deb")
        self.assertIn("Kirin is running", self.get())
        run("dpkg", "--purge", "kirin")
        self.assertNotEqual(self.machine.run("systemctl", "is-active", "kirin.service").returncode, 0)
        for path in ("/var/lib/kirin", "/var/log/kirin", "/etc/kirin", "/usr/bin/kirin"):
            self.assertNotEqual(self.machine.run("test", "-e", path).returncode, 0, path)

    def rotate_logs(self):
        """Rotates the log, and waits until a request is in the new one."""
        access_log = "/var/log/kirin/access.log"
        support.wait_for("a line", lambda: "GET / " in self.run_well("cat", access_log))
        self.run_well("logrotate", "--force", "/etc/logrotate.d/kirin")
        self.assertIn("GET / ", self.run_well("cat", f"{access_log}.1"))

        def is_reopened():
            self.get()
            return self.machine.run("test", "-s", access_log).returncode == 0

        support.wait_for("a line in the new log", is_reopened)
        self.assertEqual(self.run_well("stat", "-c", "%U:%G %a", access_log).strip(), "kirin:kirin 640")


if __name__ == "__main__":
    unittest.main()
