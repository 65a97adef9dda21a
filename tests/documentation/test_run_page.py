"""Tests of the runner itself: a page that does not do what it shows must fail."""
import os
import subprocess
import sys
import tempfile
import unittest

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_page.py")


def run(text):
    """Returns the exit status and what the runner prints for a page."""
    with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(
            [sys.executable, "-B", RUNNER, file.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
    return done.returncode, done.stdout


class RunPageTest(unittest.TestCase):
    def test_a_page_that_does_what_it_shows_passes(self):
        status, said = run(
            '```text title="a/b"\nhello\n```\n'
            "```console\n$ cd a\n$ X=1\n```\n"
            "```console\n$ cat b\nhello\n$ echo $X\n1\n```\n"
        )
        self.assertEqual((status, "5 steps" in said), (0, True), said)

    def test_other_output_fails(self):
        status, said = run("```console\n$ echo a\nb\n```\n")
        self.assertEqual(status, 1)
        self.assertIn("line 2: echo a", said)

    def test_an_exit_status_fails(self):
        for text in ("```console\n$ false\n```\n", "<!-- fails -->\n```console\n$ true\n```\n"):
            self.assertEqual(run(text)[0], 1)

    def test_an_invalid_fragment_fails(self):
        status, said = run('```toml\n[[route]]\npaht = "/"\n```\n')
        self.assertEqual(status, 1)
        self.assertIn("paht", said)

    def test_a_server_goes_on_until_it_is_interrupted(self):
        status, said = run(
            '```text title="index.html"\nhello\n```\n'
            "```console\n$ kirin serve .\n```\n"
            "```console\n$ curl -s http://127.0.0.1:8080/\nhello\n^C\n```\n"
            "<!-- fails -->\n```console\n$ curl -s http://127.0.0.1:8080/\n```\n"
        )
        self.assertEqual(status, 0, said)

    def test_nothing_of_a_page_goes_on_after_its_end(self):
        with tempfile.TemporaryDirectory() as directory:
            fifo = os.path.join(directory, "fifo")
            os.mkfifo(fifo)
            reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
            status, said = run(f"```console\n$ setsid sleep 1000 > {fifo} &\n$ false\n```\n")
            self.assertEqual(status, 1, said)
            self.assertEqual(os.read(reader, 1), b"", "a writer is left")
            os.close(reader)

    def test_the_page_has_no_network(self):
        status, said = run("```console\n$ tail -n +3 /proc/net/dev\n…lo:…\n```\n")
        self.assertEqual(status, 0, said)


if __name__ == "__main__":
    unittest.main()
