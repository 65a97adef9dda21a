"""The distributions of the adapters: CPAN's tests pass, and a missing program is explained."""
import filecmp
import os
import shutil
import subprocess
import unittest

import support

# No program kirin is here.
PATH = "/usr/bin:/bin"
LIMIT = 900


def build(script, name):
    """Builds distributions, and returns their paths."""
    output = os.path.join(support.temporary_directory(), name)
    return support.run(f"scripts/{script}", output).split()


class TestPerlDistribution(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (cls.archive,) = build("perl-dist", "perl")
        cls.environment = {"PATH": PATH, "HOME": support.temporary_directory()}

    def unpack(self, name):
        place = os.path.join(support.temporary_directory(), name)
        os.makedirs(place)
        support.run("tar", "-xf", self.archive, "-C", place)
        return os.path.join(place, os.path.basename(self.archive).removesuffix(".tar.gz"))

    def run_in(self, directory, *command):
        return support.run(*command, cwd=directory, env=self.environment, timeout=LIMIT)

    def test_cpan_can_build_test_and_pack_it(self):
        directory = self.unpack("clean")
        self.run_in(directory, "perl", "Makefile.PL")
        self.run_in(directory, "make")
        self.assertTrue(os.path.exists(f"{directory}/blib/arch/auto/Kirin/Ring/Ring.so"))
        # It unpacks the distribution again, and runs the tests there.
        self.assertIn("Result: PASS", self.run_in(directory, "make", "disttest"))

    def test_it_needs_no_compiler(self):
        directory = self.unpack("without-compiler")
        programs = os.path.join(support.temporary_directory(), "programs")
        os.makedirs(programs)
        for name in "perl make sh echo chmod cp mkdir rm touch cat true".split():
            os.symlink(shutil.which(name, path=PATH), os.path.join(programs, name))
        environment = {"PATH": programs}
        options = {"cwd": directory, "env": environment, "capture_output": True, "text": True}
        made = subprocess.run(["perl", "Makefile.PL"], timeout=60, **options)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("workers get their requests over sockets", made.stderr)
        support.run("make", cwd=directory, env=environment)
        code = "use Kirin::Ring; print Kirin::Ring::is_available() ? 'compiled' : 'sockets'"
        said = support.run("perl", "-Mblib", "-e", code, cwd=directory, env=environment)
        self.assertEqual(said, "sockets")

    def test_plackup_says_where_it_has_looked_for_the_program(self):
        app = os.path.join(support.temporary_directory(), "app.psgi")
        with open(app, "w", encoding="utf-8") as file:
            file.write("sub { [200, [], []] }")
        directory = self.unpack("without-program")
        command = ["plackup", "-s", "Kirin", "-I", f"{directory}/lib", app]
        options = {"env": self.environment, "capture_output": True, "text": True}
        ended = subprocess.run(command, timeout=60, **options)
        self.assertNotEqual(ended.returncode, 0)
        for part in ("program kirin", "  /usr/bin/kirin\n", "Debian package", "KIRIN_BINARY"):
            self.assertIn(part, ended.stderr)

    def test_the_same_sources_give_the_same_bytes(self):
        (again,) = build("perl-dist", "perl-again")
        self.assertTrue(filecmp.cmp(self.archive, again, shallow=False))


class TestPythonWheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = build("python-dist", "python")
        (wheel,) = (path for path in cls.files if path.endswith(".whl"))
        cls.modules = os.path.join(support.temporary_directory(), "modules")
        support.run("python3", "-m", "zipfile", "-e", wheel, cls.modules)

    def start(self, *arguments, **environment):
        environment = {"PATH": PATH, "PYTHONPATH": self.modules, **environment}
        command = ["python3", "-m", "kirin", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def test_m_kirin_says_where_it_has_looked_for_the_program(self):
        ended = self.start("serve", "app.py")
        self.assertEqual(ended.returncode, 1)
        for part in ("not in PATH", "  /usr/bin\n", "Debian package", "KIRIN_BINARY"):
            self.assertIn(part, ended.stderr)
        ended = self.start(KIRIN_BINARY="/nowhere/kirin")
        self.assertIn("KIRIN_BINARY is /nowhere/kirin, which is not a program", ended.stderr)

    def test_m_kirin_runs_the_program(self):
        ended = self.start("--version", KIRIN_BINARY=support.PROGRAM)
        self.assertRegex(ended.stdout, r"\Akirin \d")

    def test_the_same_sources_give_the_same_bytes(self):
        for first, again in zip(self.files, build("python-dist", "python-again")):
            self.assertTrue(filecmp.cmp(first, again, shallow=False), first)


if __name__ == "__main__":
    unittest.main()
