"""A translated page must show the same files and commands as the page that it translates."""
import dataclasses
import os
import unittest

import page

DOCS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs"
)


def steps(path):
    """Returns the steps of a page, wherever they are in it."""
    with open(os.path.join(DOCS, path), encoding="utf-8") as file:
        return [dataclasses.replace(step, line=0) for step in page.read(file.read(), True)]


class TranslationTest(unittest.TestCase):
    def test_the_japanese_tutorial_has_the_steps_of_the_english_one(self):
        self.assertEqual(steps("ja/tutorial.md"), steps("tutorial.md"))


if __name__ == "__main__":
    unittest.main()
