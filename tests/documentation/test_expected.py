"""Tests of how output is compared."""
import unittest

from expected import appears, matches, missing_words


class ExpectedTest(unittest.TestCase):
    def test_all_of_the_output_must_match(self):
        self.assertTrue(matches(["a", "b"], "a\nb\n"))
        self.assertTrue(matches(["a"], "a  "))
        self.assertFalse(matches(["a"], "a\nb\n"))
        self.assertFalse(matches(["a", "b"], "a\n"))

    def test_an_ellipsis_is_any_text_of_a_line(self):
        self.assertTrue(matches(["pid …, port …"], "pid 12, port 80\n"))
        self.assertFalse(matches(["pid …"], "pid\n1\n"))
        self.assertFalse(matches(["a.c…"], "abc\n"))

    def test_a_line_of_an_ellipsis_is_any_number_of_lines(self):
        for output in ("a\nb\n", "a\n1\n2\nb\n"):
            self.assertTrue(matches(["a", "…", "b"], output))
        self.assertFalse(matches(["a", "…", "b"], "a\n1\n"))

    def test_colours_are_not_compared(self):
        self.assertTrue(matches(["error"], "\x1b[31merror\x1b[0m\n"))

    def test_a_sample_has_no_words_that_are_never_printed(self):
        output = "kirin 0.1.0\n\nserver   requests\na:80  7\nThe end.\n"
        sample = ["kirin 0.2.0", "server requests", "…", "b:80 12,000", "The end."]
        self.assertIsNone(missing_words(sample, output))
        self.assertEqual(missing_words(["server  failures"], output), "server failures")

    def test_a_server_may_print_more_before_and_after(self):
        self.assertTrue(appears(["ready"], "loading\nready\nrequest\n"))
        self.assertFalse(appears(["ready"], "not ready\n"))
        self.assertFalse(appears(["ready", "steady"], "ready\n\nsteady\n"))


if __name__ == "__main__":
    unittest.main()
