"""Tests of scripts/fuzz with a target that has a bug."""
import base64
import os
import re
import shlex
import shutil
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANTED = os.path.join(ROOT, "fuzz", "planted")
# Below fuzz, so that rust-toolchain.toml holds for it.
COPY = os.path.join(ROOT, "fuzz", "target", "planted-test")
BUG = "this is the planted bug"


def fuzz(*arguments):
    """Runs scripts/fuzz, and returns its exit status and what it has printed."""
    return run(["scripts/fuzz", "--in", COPY, *arguments])


def run(command):
    """Runs a command in the directory of the project."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600
    )
    return done.returncode, done.stdout


def file(name, content):
    """Writes a file into the copy, and returns its path."""
    path = os.path.join(COPY, name)
    with open(path, "wb") as opened:
        opened.write(content)
    return path


class Fuzz(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(COPY, ignore_errors=True)
        wanted = shutil.ignore_patterns("kept", "corpus", "artifacts", "target")
        shutil.copytree(PLANTED, COPY, ignore=wanted)

    def test_a_crash_is_found_and_shown_and_can_be_run_again(self):
        status, output = fuzz("--runs", "2000000", "planted")
        self.assertNotEqual(status, 0, output)
        self.assertIn(BUG, output)
        self.assertIn("planted has failed", output)
        # The bytes of the input.
        self.assertRegex(output, r"0000000 4b 49 52 49 4e .*>KIRIN")
        again = re.search(r"run it again: +(.*)", output)[1]
        status, output = run(shlex.split(again))
        self.assertNotEqual(status, 0, output)
        self.assertIn(BUG, output)

    def test_an_input_without_the_bug_passes(self):
        status, output = fuzz("--input", file("good", b"KIRI"), "planted")
        self.assertEqual(status, 0, output)
        self.assertNotIn(BUG, output)

    def test_a_run_begins_with_the_kept_inputs(self):
        status, output = fuzz("--runs", "1", "planted")
        self.assertEqual(status, 0, output)
        status, output = fuzz("--keep", file("good", b"other"), "planted")
        self.assertEqual(status, 0, output)
        status, output = fuzz("--keep", file("bad", b"KIRIN!"), "planted")
        self.assertEqual(status, 0, output)
        status, output = fuzz("--runs", "1", "planted")
        self.assertNotEqual(status, 0, output)
        self.assertIn(BUG, output)

    def test_shrinking_keeps_the_inputs_that_reach_other_code(self):
        for name, content in (("one", b"other"), ("two", b"another"), ("first", b"K"), ("third", b"KIR")):
            status, output = fuzz("--keep", file(name, content), "planted")
            self.assertEqual(status, 0, output)
        status, output = fuzz("--shrink", "planted")
        self.assertEqual(status, 0, output)
        with open(os.path.join(COPY, "kept", "planted"), encoding="ascii") as kept:
            inputs = sorted(base64.b64decode(line) for line in kept)
        # These also reach what the others reach.
        self.assertEqual(inputs, [b"K", b"KIR"])

    def test_a_wrong_use_says_what_is_missing(self):
        status, output = fuzz("--input", file("good", b"KIRI"))
        self.assertEqual(status, 2, output)
        self.assertIn("name the one target", output)


if __name__ == "__main__":
    unittest.main()
