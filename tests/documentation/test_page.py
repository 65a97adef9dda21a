"""Tests of how a page is read."""
import unittest

import page


class PageTest(unittest.TestCase):
    def test_a_titled_block_is_a_file(self):
        steps = page.read('```perl title="lib/A.pm"\n1;\n```\n')
        self.assertEqual(steps, [page.File(1, "lib/A.pm", "1;\n")])

    def test_a_console_block_has_commands_and_their_output(self):
        steps = page.read("```console\n$ ls \\\n> -a\na\n\nb\n\n$ true\n^C\n```\n")
        self.assertEqual(
            steps,
            [
                page.Command(2, "ls \\\n-a", ["a", "", "b"]),
                page.Command(8, "true"),
                page.Interrupt(9),
            ],
        )

    def test_an_output_line_may_look_like_a_continued_command(self):
        steps = page.read("```console\n$ diff a b\n1c1\n> x\n```\n")
        self.assertEqual(steps, [page.Command(2, "diff a b", ["1c1", "> x"])])

    def test_only_the_last_command_of_a_block_fails(self):
        first, last = page.read("<!-- fails -->\n```console\n$ true\n$ false\n```\n")
        self.assertEqual((first.fails, last.fails), (False, True))

    def test_an_indented_block_loses_its_indent(self):
        steps = page.read("1. Do:\n\n   ```console\n   $ cat a\n     b\n   ```\n")
        self.assertEqual(steps, [page.Command(4, "cat a", ["  b"])])

    def test_a_block_is_added_to_a_file(self):
        steps = page.read("<!-- add to: kirin.toml -->\n```toml\na = 1\n```\n")
        self.assertEqual(steps, [page.File(2, "kirin.toml", "a = 1\n", added=True)])

    def test_blocks_for_a_clean_machine_are_steps_only_there(self):
        text = "<!-- clean machine -->\n```console\n$ apt-get install curl\n```\n"
        self.assertEqual(page.read(text), [])
        self.assertEqual(page.read(text, True), [page.Command(3, "apt-get install curl", clean=True)])

    def test_commands_that_nobody_sees_have_one_line_or_several(self):
        steps = page.read("<!-- run: ls -->\n<!-- run:\nfor a in b; do\n  ls\ndone\n-->\n")
        self.assertEqual(
            steps, [page.Command(1, "ls"), page.Command(2, "for a in b; do\n  ls\ndone")]
        )

    def test_code_and_fragments_without_a_title_are_checked(self):
        steps = page.read("<!-- in: [[route]] -->\n```toml\nssi = true\n```\n```perl\n1;\n```\n")
        self.assertEqual(
            steps, [page.Fragment(2, "ssi = true\n", "[[route]]"), page.Code(5, "perl", "1;\n")]
        )

    def test_text_may_have_the_output_of_commands(self):
        text = "```text\nkirin: kirin.toml says: …\nkirin 0.1.0  pid 29105\n```\n"
        self.assertEqual(page.read(text), [])

    def test_servers_of_a_block_may_run_one_at_a_time(self):
        steps = page.read("<!-- one at a time -->\n```console\n$ a\n$ b\n```\n<!-- run: ^C -->\n")
        self.assertEqual(
            steps,
            [
                *(page.Command(3, "a"), page.Interrupt(3)),
                *(page.Command(4, "b"), page.Interrupt(4)),
                page.Interrupt(6),
            ],
        )

    def test_what_cannot_be_run_is_refused(self):
        for text, message in (
            ("```sh\nls\n```\n", 'a block of "sh" needs title="FILE"'),
            ("```\na\n```\n", 'a block of "" needs'),
            ("```text\n$ ls\n```\n", "line 2: commands are in a console block"),
            ("```text\nkirin top --all\n```\n", "commands are in a console block"),
            ("A sentence:\n\n    ls\n", "a block stands between"),
            ("```console\nls\n```\n", "begins with a command"),
            ("```console\n$ ls\n", "has no end"),
            ("<!-- skip -->\n```console\n$ ls\n```\n", "say why"),
            ("<!-- fails -->\n\nA sentence.\n", "a block must follow fails"),
        ):
            with self.subTest(text), self.assertRaisesRegex(page.PageError, message):
                page.read(text)


if __name__ == "__main__":
    unittest.main()
