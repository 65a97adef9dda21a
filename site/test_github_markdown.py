"""Tests of github_markdown.py: what GitHub reads on the left, what Python-Markdown needs on the right."""
import unittest

from github_markdown import convert


class Convert(unittest.TestCase):
    def check(self, text, expected):
        self.assertEqual(convert(text), expected)

    def test_nested_lists_get_four_spaces(self):
        self.check("- a\n  more\n  - b\n- c\n", "- a\n    more\n    - b\n- c\n")
        self.check("1. a\n   1. b\n10. c\n    - d\n", "1. a\n    1. b\n10. c\n    - d\n")

    def test_a_list_after_a_paragraph_gets_an_empty_line(self):
        self.check("text\n- a\n", "text\n\n- a\n")
        self.check("- a\n\n  text\n  - b\n", "- a\n\n    text\n\n    - b\n")

    def test_an_item_after_a_block_of_nested_items_starts_a_block(self):
        self.check("- a\n\n  - b\n- c\n", "- a\n\n    - b\n\n- c\n")

    def test_a_number_at_the_start_of_a_line_is_no_item(self):
        self.check("It exits with\n0. Then\n", "It exits with\n0. Then\n")

    def test_code_is_indented_with_its_item_and_otherwise_not_touched(self):
        self.check("1. a\n   ```sh\n   x\n\n     y <!-- z\n   ```\n   b\n",
                   "1. a\n\n    ```sh\n    x\n\n      y <!-- z\n    ```\n\n    b\n")
        self.check("text\n\n    - no item\n", "text\n\n    - no item\n")

    def test_a_fence_ends_with_as_many_marks_as_it_began(self):
        self.check("````\n```\n- a\n````\n- b\n", "````\n```\n- a\n````\n\n- b\n")

    def test_comments_are_left_out(self):
        self.check("a\n<!-- run: true -->\n```console\n$ x\n```\n", "a\n\n```console\n$ x\n```\n")
        self.check("<!--\n- two lines\n-->\nb\n", "b\n")
        self.check("use `<!--# include -->` here\n", "use `<!--# include -->` here\n")

    def test_a_bar_in_the_code_of_a_table_is_not_escaped(self):
        self.check("| `a\\|b` | c\\|d |\n", "| `a|b` | c\\|d |\n")

    def test_lines_of_japanese_are_joined(self):
        self.check("これは\nペンです。\nKirin は\nKirin\n", "これはペンです。Kirin は\nKirin\n")
        self.check("```\nこれは\nペン\n```\n", "```\nこれは\nペン\n```\n")


if __name__ == "__main__":
    unittest.main()
