"""Tests of scripts/proof: what is read from the output of a test, and what is left of a job."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from proof import suites  # noqa: E402
from proof.job import Job, judge, run  # noqa: E402
from proof.report import Report  # noqa: E402

LIBTEST = "test a::works ... ok\ntest a::breaks ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored;\n"


def job(form, command=("true",), **rest):
    """Returns a job of this form."""
    return Job("suite", "program", list(command), "/", form, **rest)


def judged(form, status, output):
    """Returns the numbers of passed tests and the names of failed ones."""
    result = judge(job(form), status, output, 0.0, [])
    return result.passed, result.failed


class Judging(unittest.TestCase):
    def test_a_program_names_its_failed_tests(self):
        self.assertEqual(judged("program", 101, LIBTEST), (1, ["program a::breaks"]))

    def test_a_program_that_crashes_has_failed(self):
        self.assertEqual(judged("program", -11, "test a::works ... ok\n"), (0, ["program"]))

    def test_a_name_that_matches_no_test_has_failed(self):
        output = "test result: ok. 0 passed; 0 failed; 0 ignored;\n"
        self.assertEqual(judged("one", 0, output), (0, ["program"]))
        output = "test result: ok. 1 passed; 0 failed; 0 ignored;\n"
        self.assertEqual(judged("one", 0, output), (1, []))

    def test_a_job_that_was_killed_has_failed(self):
        for form in ("one", "program", "perl", "command"):
            self.assertEqual(judged(form, None, "")[1], ["program"], form)

    def test_perl_passes_with_tests_or_with_a_reason_to_skip(self):
        self.assertEqual(judged("perl", 0, "Files=1, Tests=12, 1 wallclock secs\n"), (1, []))
        skipped = judge(job("perl"), 0, "t/a.t .. skipped: no ring\nFiles=1, Tests=0\n", 0.0, [])
        self.assertEqual((skipped.passed, skipped.failed, skipped.skipped), (0, [], "no ring"))
        self.assertEqual(judged("perl", 0, "Files=1, Tests=0,\n"), (0, ["program"]))


class Running(unittest.TestCase):
    def test_what_a_job_leaves_is_ended_and_named(self):
        # A daemon leaves the session, and has the job's directory in its environment.
        command = ("sh", "-c", "setsid sleep 977 & sleep 978 & exit 0")
        result = run(job("command", command), {"PATH": os.environ["PATH"]}, 1.0)
        self.assertTrue(result.ok)
        self.assertEqual(result.left, ["sleep 977", "sleep 978"])

    def test_a_job_has_its_own_directories_and_they_are_removed(self):
        command = ("sh", "-c", 'echo "$TMPDIR $HOME $KIRIN_ADMIN_DIRECTORY"; touch "$TMPDIR/a"')
        result = run(job("command", command), {"PATH": os.environ["PATH"]}, 1.0)
        temporary, home, admin = result.output.split()
        self.assertEqual((home, admin), (f"{temporary}/home", f"{temporary}/admin"))
        self.assertFalse(os.path.exists(temporary))

    def test_a_job_that_hangs_is_ended_after_its_limit(self):
        result = run(job("command", ("sleep", "979"), limit=0.1), {"PATH": os.environ["PATH"]}, 2.0)
        self.assertEqual(result.failed, ["program"])
        self.assertIn("ended after its limit", result.output)


class Reporting(unittest.TestCase):
    def test_a_test_that_passes_alone_is_flaky_and_the_run_passes(self):
        with tempfile.TemporaryDirectory() as directory:
            report = Report(directory)
            first = judge(job("command"), 1, "", 0.0, [])
            report.results.append(first)
            report.replace(first, judge(job("command"), 0, "", 0.0, []))
            self.assertEqual(report.failed(), [])
            with open(os.path.join(directory, "flaky.txt"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "suite program\n")


class Lists(unittest.TestCase):
    def test_a_line_of_a_list_must_name_a_test(self):
        jobs = [Job("suite", name, [], "/") for name in ("kirin/wire a::x", "kirin/wire b::y")]
        self.assertEqual([j.name for j in suites.only(jobs, ("kirin/wire a::",))], ["kirin/wire a::x"])
        self.assertEqual([j.name for j in suites.without(jobs, ("kirin/wire a::",))], ["kirin/wire b::y"])
        with self.assertRaises(ValueError):
            suites.only(jobs, ("kirin/wire c::",))


if __name__ == "__main__":
    unittest.main()
