"""The bill of materials and the licences name every library in the program."""
import json
import os
import re
import unittest

import support


class TestRelease(unittest.TestCase):
    def test_the_bill_of_materials_is_complete(self):
        path = os.path.join(support.temporary_directory(), "sbom.cdx.json")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        support.run("packaging/write-sbom", path, env=environment)
        with open(path, encoding="utf-8") as file:
            bill = json.load(file)
        self.assertEqual(bill["bomFormat"], "CycloneDX")
        self.assertEqual(bill["metadata"]["component"]["name"], "kirin")
        self.assertEqual(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z")
        parts = {part["bom-ref"]: part for part in bill["components"]}
        self.assertEqual(len(parts), len(bill["components"]))
        for part in parts.values():
            self.assertTrue(part["licenses"][0]["expression"], part["name"])
            if not part["name"].startswith("kirin-"):
                self.assertRegex(part["hashes"][0]["content"], r"\A[0-9a-f]{64}\Z", part["name"])
        names = {part["name"] for part in parts.values()}
        # Of Rust, with C inside, a source of C, and of our own.
        self.assertLessEqual({"tokio", "zstd-sys", "luajit-src", "kirin-http"}, names)
        # A macro, and what only tests use.
        self.assertFalse({"serde_derive", "proptest"} & names)
        known = {*parts, bill["metadata"]["component"]["bom-ref"]}
        for dependency in bill["dependencies"]:
            self.assertLessEqual({dependency["ref"], *dependency["dependsOn"]}, known)

    def test_the_licences_have_their_texts(self):
        path = os.path.join(support.temporary_directory(), "licences.txt")
        support.run("packaging/write-licences", path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"(?m)^tokio [\d.]+\n    MIT\n    https://crates\.io/")
        # The licences that want their text with every copy, also those of libraries in C.
        names = ("Mike Pall", "Meta Platforms", "COMMON DEVELOPMENT AND DISTRIBUTION", "Apache License")
        for part in names:
            self.assertTrue(re.search(part, text, re.I), part)


if __name__ == "__main__":
    unittest.main()
