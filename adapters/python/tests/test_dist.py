"""The source distribution and the wheel: what is in them, and what an installation of each has.

Debian's packages setuptools and wheel build both. They are for Debian's own Python, which need not
be the first in PATH. Nothing comes from the network.
"""
import email
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
ADAPTER = os.path.join(ROOT, "adapters", "python")
PYTHON = "/usr/bin/python3"
COMPILED = "kirin/_ring.abi3.so"

# Prints where the package is, its version, and whether the ring's extension is loaded. Calls it,
# too: a connection whose other end has gone offers no ring.
PROGRAM = """
import os, socket
import kirin, kirin.ring, kirin.store
from kirin.store import Store
if kirin.ring.is_available():
    ours, theirs = socket.socketpair()
    theirs.close()
    assert kirin.ring.attach(ours.fileno(), os.getppid()) is None
print(os.path.dirname(kirin.__file__), kirin.__version__, kirin.ring.is_available())
"""


def run(*command, **variables):
    """Runs a program, and returns what it prints. One that fails fails the test with its output."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CC", "KIRIN_RING", "PYTHONPATH", "VIRTUAL_ENV")
        and not name.startswith("PIP_")
    }
    done = subprocess.run(
        command,
        cwd="/",
        env={**environment, "PIP_CONFIG_FILE": os.devnull, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class DistTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        built = os.path.join(cls.directory, "dist")
        # Debian's Python is the first one that the script finds.
        path = f"{os.path.dirname(PYTHON)}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        printed = run(os.path.join(ROOT, "scripts", "python-dist"), built, PATH=path).split()
        cls.wheel, = [path for path in printed if path.endswith(".whl")]
        cls.source, = [path for path in printed if path.endswith(".tar.gz")]

    def installed(self, source, **variables):
        """Installs a file or a directory into a new environment, and returns its compiled parts.

        The environment sees Debian's setuptools and wheel.
        """
        place = tempfile.mkdtemp(dir=self.directory)
        run(PYTHON, "-m", "venv", "--system-site-packages", place)
        python = os.path.join(place, "bin", "python")
        options = ["--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
        run(python, "-m", "pip", "install", *options, source, **variables)
        package, version, has_ring = run(python, "-c", PROGRAM).split()
        self.assertTrue(package.startswith(place), f"{package} is not in {place}")
        self.assertIn(f"-{version}", os.path.basename(self.source))
        compiled = [name for name in os.listdir(package) if name.endswith(".so")]
        self.assertEqual(has_ring, str(bool(compiled)), compiled)
        return compiled

    def test_an_installed_wheel_has_the_ring(self):
        self.assertEqual(self.installed(self.wheel), [os.path.basename(COMPILED)])

    def test_an_installed_source_distribution_has_the_ring(self):
        self.assertEqual(self.installed(self.source), [os.path.basename(COMPILED)])

    def test_an_installed_checkout_has_the_ring(self):
        # A copy, because pip writes into it. The compiled part of the checkout is not taken over.
        checkout = tempfile.mkdtemp(dir=self.directory)
        shutil.copy(os.path.join(ROOT, "LICENSE"), checkout)
        leave_out = shutil.ignore_patterns("*.so", "build", "ring", "*.egg-info", "__pycache__")
        copy = os.path.join(checkout, "adapters", "python")
        shutil.copytree(ADAPTER, copy, ignore=leave_out)
        shared = os.path.join(checkout, "adapters", "ring")
        shutil.copytree(os.path.join(ROOT, "adapters", "ring"), shared)
        self.assertEqual(self.installed(copy), [os.path.basename(COMPILED)])

    def test_without_a_compiler_the_installation_has_no_ring(self):
        self.assertEqual(self.installed(self.source, CC="/bin/false"), [])

    def test_the_wheel_has_the_package_and_nothing_else(self):
        package = os.path.join(ADAPTER, "src")
        modules = {
            os.path.relpath(os.path.join(directory, name), package)
            for directory, _, names in os.walk(os.path.join(package, "kirin"))
            for name in names
            if name.endswith(".py")
        }
        with zipfile.ZipFile(self.wheel) as wheel:
            names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        self.assertEqual(names, modules | {COMPILED})

    def test_the_wheel_is_for_each_later_python(self):
        name = os.path.basename(self.wheel)
        self.assertRegex(name, r"^kirin-[0-9.]+-cp39-abi3-linux_\w+\.whl$")

    def test_the_source_distribution_has_what_a_build_needs(self):
        with tarfile.open(self.source) as source:
            names = {name.partition("/")[2] for name in source.getnames()}
        needed = {"LICENSE", "setup.py", "ext/_ring.c", "ring/kirin_ring.c", "ring/kirin_ring.h"}
        self.assertLessEqual(needed, names)
        self.assertEqual([name for name in names if re.search(r"test|pycache|\.so$", name)], [])

    def test_the_metadata_has_the_readme_and_the_license(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            place, = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
            metadata = email.message_from_bytes(wheel.read(place))
            licenses = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
        with open(os.path.join(ADAPTER, "README.md"), encoding="utf-8") as readme:
            description = metadata.get_payload(decode=True).decode()
            self.assertEqual(description.strip(), readme.read().strip())
        self.assertEqual(metadata["Description-Content-Type"], "text/markdown")
        self.assertEqual(metadata["License"], "MIT")
        self.assertEqual(metadata["Requires-Python"], ">=3.9")
        self.assertEqual(len(licenses), 1, licenses)


if __name__ == "__main__":
    unittest.main()
