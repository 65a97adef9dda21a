"""Tests of how a part of a configuration becomes a whole one."""
import tomllib
import unittest

from completion import UnknownSection, complete


class CompletionTest(unittest.TestCase):
    def test_what_a_part_names_is_there(self):
        whole = complete(
            '[[route]]\npath = "/a"\ntry = ["files:dist", "lua:a/b.lua", "cgi:c.cgi", "app:shop"]\n'
        )
        parsed = tomllib.loads(whole.text)
        self.assertEqual([route["path"] for route in parsed["route"]], ["/a", "/"])
        self.assertEqual({app["name"] for app in parsed["app"]}, {"shop", "web"})
        self.assertEqual(len(parsed["listener"]), 1)
        self.assertEqual(whole.directories, {"dist", "public"})
        self.assertEqual(set(whole.files), {"a/b.lua", "app.psgi"})
        self.assertEqual(whole.programs, {"c.cgi"})

    def test_what_a_part_has_is_not_added(self):
        part = (
            '[[listener]]\naddress = "*:80"\n[[upstream]]\nname = "api"\nservers = ["a:1"]\n'
            '[[route]]\npath = "/"\ntry = ["proxy:api"]\n'
        )
        self.assertEqual(complete(part).text, part)

    def test_keys_are_those_of_the_section(self):
        parsed = tomllib.loads(complete('path = "/a"\nssi = true\n', "[[route]]").text)
        self.assertEqual(
            parsed["route"][0],
            {"path": "/a", "ssi": True, "try": ["store", "files:public", "app:web"]},
        )
        with self.assertRaises(UnknownSection):
            complete("ssi = true\n", "[[routes]]")

    def test_certificates_logs_and_secrets_are_made(self):
        whole = complete(
            '[[listener]]\naddress = "*:443"\naccess_log = { path = "/var/log/a/b.log" }\n'
            'tls = { certificates = [{ chain = "a.pem", key = "/etc/a.key" }] }\n'
            '[store]\norigin_password_file = "origin.password"\n'
        )
        self.assertEqual(whole.certificates, [("a.pem", "/etc/a.key")])
        self.assertIn("/var/log/a", whole.directories)
        self.assertIn("origin.password", whole.files)


if __name__ == "__main__":
    unittest.main()
