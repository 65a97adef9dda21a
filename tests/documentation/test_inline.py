"""Tests of what is found between backquotes, and of how it is checked."""
import tempfile
import unittest

import run_page
from command_lines import Help, UnknownCommandLine
from inline import commands, settings
from places_of_settings import check, sections
from terminal import CommandError


class InlineTest(unittest.TestCase):
    def test_settings_are_found_in_sentences_and_tables(self):
        text = (
            "With `ssi = true` and\n`cache = {\nttl = \"1s\" }`, not `A = 1` or `tls = { … }`.\n"
            '| `rate = "10/s", burst = 20` | `nginx;` |\n<!-- `x = 3` -->\n```toml\n`y = 3`\n```\n'
        )
        self.assertEqual(
            list(settings(text)),
            [
                ("ssi", "ssi = true"),
                ("cache", 'cache = { ttl = "1s" }'),
                ("rate", 'rate = "10/s"\nburst = 20'),
            ],
        )

    def test_command_lines_are_found_everywhere(self):
        text = (
            "Run `kirin status --json`.\n```console\n$ A=1 kirin top --once | cat -n  # a table\n"
            "$ kirin purge --key '/a b' \\\n>     --soft > purged.txt\nkirin 0.1.0\n```\n"
        )
        self.assertEqual(
            list(commands(text)),
            [
                ["status", "--json"],
                ["top", "--once"],
                ["purge", "--key", "/a b", "--soft"],
            ],
        )

    def test_commands_and_options_must_be_in_the_help(self):
        program = Help(run_page.kirin())
        for good in ("serve app.psgi --workers 4", "log sum a.log --limit 8", "memcached -m 64 -d"):
            program.check(good.split())
        for bad in ("server a.psgi", "serve --worker 4", "log som a", "log sum --json", "memcached -Q"):
            with self.subTest(bad), self.assertRaises(UnknownCommandLine):
                program.check(bad.split())

    def test_a_setting_must_be_valid_where_it_may_stand(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        shown = self.enterContext(open("/dev/null", "w", encoding="utf-8"))
        reader = run_page.reader_here(scratch, run_page.LIMIT, shown)
        self.addCleanup(reader.close)
        known = sections(run_page.kirin())
        for setting in ('balance = "latency"', "weight = 3", 'hsts = "365d"', "threads = 4"):
            check(setting, setting.split(" ")[0], known, reader.checker)
        for setting in ('balance = "fastest"', "wait = 3", 'hsts = "365 moons"', "thread = 4"):
            with self.subTest(setting), self.assertRaises(CommandError):
                check(setting, setting.split(" ")[0], known, reader.checker)


if __name__ == "__main__":
    unittest.main()
