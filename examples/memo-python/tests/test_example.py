"""What Kirin and the workers need of the example."""
import os
import re
import tempfile
import unittest

from example import EXAMPLE, arguments
from memo.site import Site

LOAD = re.compile(r'^load = ".*"$', re.MULTILINE)


class TestLoading(unittest.TestCase):
    def test_after_loading_no_database_file_is_open_so_workers_may_be_forked(self):
        with tempfile.TemporaryDirectory() as directory:
            database = os.path.join(directory, "memo.sqlite")
            with self.assertLogs("memo.site", "WARNING"):
                site = Site(**arguments(database))
            self.assertEqual(open_files(directory), [])
            site.memos.public_total()
            self.assertIn(database, open_files(directory))
            site.database.close()

    def test_the_configuration_is_that_of_the_example_in_perl(self):
        here, perl = (
            (directory / "kirin.toml").read_text(encoding="utf-8")
            for directory in (EXAMPLE, EXAMPLE.parent / "memo")
        )
        self.assertEqual(LOAD.findall(here), ['load = "app.py"'])
        self.assertEqual(LOAD.sub("", here), LOAD.sub("", perl))


def open_files(directory):
    """Returns the files below a directory that this process has open."""
    files = []
    for number in os.listdir("/proc/self/fd"):
        try:
            files.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            # The directory that was just listed.
            continue
    return [file for file in files if file.startswith(directory)]


if __name__ == "__main__":
    unittest.main()
