"""Tests of all reference pages. They take minutes, so `unittest discover` does not find them:

    cd tests/documentation && /usr/bin/python3 -B -m unittest reference_pages
"""
import concurrent.futures
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import run_page
from command_lines import Help
from inline import commands, settings
from places_of_settings import check, sections

DOCS = os.path.join(run_page.ROOT, "docs")
# It is a page that a reader follows, and has a test of its own.
TUTORIAL = "tutorial.md"
# Pages mostly wait for servers.
AT_THE_SAME_TIME = 6
# Seconds that a page may take.
LIMIT = 300.0


def run(name):
    """Does what a page says, and returns the process that has ended."""
    return subprocess.run(
        [sys.executable, "-B", run_page.__file__, os.path.join(DOCS, name)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def of_all_pages(find):
    """Yields what `find` finds in each page, behind the name of the page."""
    for name in sorted(glob.glob("**/*.md", root_dir=DOCS, recursive=True)):
        with open(os.path.join(DOCS, name), encoding="utf-8") as file:
            for found in find(file.read()):
                yield name, found


class ReferencePagesTest(unittest.TestCase):
    def test_pages_do_what_they_show(self):
        pages = sorted(set(glob.glob("*.md", root_dir=DOCS)) - {TUTORIAL})
        self.assertIn("routes.md", pages)
        with concurrent.futures.ThreadPoolExecutor(AT_THE_SAME_TIME) as pool:
            for name, done in zip(pages, pool.map(run, pages)):
                with self.subTest(name):
                    self.assertEqual(done.returncode, 0, done.stdout)

    def test_settings_in_sentences_and_tables_are_valid(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        shown = self.enterContext(open(os.devnull, "w", encoding="utf-8"))
        reader = run_page.reader_here(scratch, run_page.LIMIT, shown)
        self.addCleanup(reader.close)
        known, checked = sections(run_page.kirin()), set()
        for name, (key, setting) in of_all_pages(settings):
            if setting not in checked:
                checked.add(setting)
                with self.subTest(f"{name}: {setting}"):
                    check(setting, key, known, reader.checker)
        self.assertGreater(len(checked), 200)

    def test_command_lines_have_known_commands_and_options(self):
        program = Help(run_page.kirin())
        found = list(of_all_pages(commands))
        self.assertGreater(len(found), 400)
        for name, words in found:
            with self.subTest(name):
                program.check(words)


if __name__ == "__main__":
    unittest.main()
