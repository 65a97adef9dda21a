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
        for section, fragment, message in (
            (None, '[[route]]\npaht = "/"\n', "unknown key `paht`"),
            (None, '[[route]]\npath = "/"\ntry = ["flies:public"]\n', "flies"),
            (None, '[store]\nmemory = "1 potato"\n', "potato"),
            (None, 'cache = true\n', "unknown key `cache`"),
            ("[[route]]", "cache = 3\n", "cache"),
            ("[[rout]]", "cache = true\n", "known are"),
            (None, '[[route]\n', "line 1"),
        ):
            with self.subTest(fragment):
                comment = f"<!-- in: {section} -->\n" if section else ""
                status, said = run(f"{comment}```toml\n{fragment}```\n")
                self.assertEqual(status, 1, said)
                self.assertIn(message, said)

    def test_code_that_cannot_be_compiled_fails(self):
        for language, good, bad in (
            ("perl", "my $page = '/';\n", "my $page = ;\n"),
            ("python", "page = '/'\n", "page = \n"),
            ("ruby", "page = '/'\n", "page = (\n"),
            ("json", '"a": {"b": 1}\n', '"a": {"b": }\n'),
        ):
            with self.subTest(language):
                for code, wanted in ((good, 0), (bad, 1)):
                    status, said = run(f"```{language}\n{code}```\n")
                    self.assertEqual(status, wanted, said)

    def test_a_script_in_lua_must_load(self):
        text = "```lua\nreturn function(request) return kirin.pass() end\n```\n"
        status, said = run(text)
        self.assertEqual(status, 0, said)
        # What is written before the script's function runs when it is loaded.
        status, said = run(text.replace("return function", "kirin.forget()\nreturn function"))
        self.assertEqual(status, 1, said)
        self.assertIn("forget", said)

    def test_a_page_sees_its_own_directories_only(self):
        path = "/etc/kirin-documentation-test"
        status, said = run(f'```text title="{path}"\na\n```\n```console\n$ cat {path}\na\n```\n')
        self.assertEqual(status, 0, said)
        self.assertFalse(os.path.exists(path))

    def test_words_of_a_sample_must_be_printed(self):
        sample = "<!-- sample output -->\n```console\n$ printf 'a b\\nc 1\\n'\na   b\n{}\n```\n"
        self.assertEqual(run(sample.format("c 2"))[0], 0)
        status, said = run(sample.format("d"))
        self.assertEqual(status, 1, said)

    def test_a_store_without_output_must_listen(self):
        text = "<!-- one at a time -->\n```console\n$ kirin memcached -p 11211 -o {}\n```\n"
        status, said = run(text.format("stampede_guard=10"))
        self.assertEqual(status, 0, said)
        status, said = run(text.format("stampede_gard=10"))
        self.assertEqual(status, 1, said)
        self.assertIn("stampede_gard", said)

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
