"""The recorded first hour: the tutorial on a Debian root on which nothing was installed by hand.

The package is built from the program of the tests, copied into the root, and everything else is what
the page tells its reader to do. What the terminal shows is kept in target/first-hour/. It needs root
(chroot, mounts) and the network of Debian's packages.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "packaging", "tests"))

import support

PAGES = ("tutorial", "ja/tutorial")
RESULTS = os.path.join(ROOT, "target", "first-hour")
RUNNER = os.path.join(ROOT, "tests", "documentation", "run_page.py")
# Seconds for everything that a page does, with the installation.
LIMIT = 20 * support.WAIT
# The smallest Debian that debootstrap makes: only the certificates are added.
INCLUDED = "ca-certificates"
# What the machine's apt needs to reach Debian's packages.
OF_THE_MACHINE = ("etc/resolv.conf", "etc/hosts", "etc/apt/apt.conf.d")
MOUNT = """
set -e
root=$1; shift
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec "$@"
"""


@unittest.skipIf(support.missing_for_namespaces(), support.missing_for_namespaces())
class FirstHourTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = support.build_package("first-hour")
        os.makedirs(RESULTS, exist_ok=True)

    def clean_root(self):
        """Returns a copy of a Debian without Kirin, with the package in root's directory."""
        directory = tempfile.mkdtemp(prefix="kirin-first-hour-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        root = os.path.join(directory, "root")
        subprocess.run(["cp", "-a", support.debian(INCLUDED), root], check=True)
        for path in OF_THE_MACHINE:
            here, there = os.path.join("/", path), os.path.join(root, path)
            copy = shutil.copytree if os.path.isdir(here) else shutil.copy
            copy(here, there, **({"dirs_exist_ok": True} if os.path.isdir(here) else {}))
        os.makedirs(os.path.join(root, "root", "site"))
        shutil.copy(self.package, os.path.join(root, "root", "site"))
        return root

    def test_the_tutorial_works_on_a_clean_machine(self):
        for name in PAGES:
            with self.subTest(name):
                root = self.clean_root()
                transcript = os.path.join(RESULTS, f"{name.replace('/', '-')}.txt")
                follow = [RUNNER, "--root", root, "--transcript", transcript, f"docs/{name}.md"]
                enter = ["unshare", "--mount", "sh", "-c", MOUNT, "first-hour", root]
                done = subprocess.run(
                    [*enter, "/usr/bin/python3", "-B", *follow],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=LIMIT,
                    check=False,
                )
                with open(transcript, encoding="utf-8") as file:
                    shown = file.read()
                self.assertEqual(done.returncode, 0, f"{shown}\n{done.stdout}")
                # It has installed what it needs by itself.
                self.assertIn("Setting up kirin", shown)


if __name__ == "__main__":
    unittest.main()
