"""The Debian packages: what lintian says, the same bytes twice, links, and debug information."""
import filecmp
import glob
import os
import unittest

import support
from check_links import dead_links


class TestDebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = support.build_package("first")
        cls.symbols = glob.glob(os.path.join(os.path.dirname(cls.package), "kirin-dbgsym_*.deb"))[0]
        cls.root = os.path.join(support.temporary_directory(), "unpacked")
        for package in (cls.package, cls.symbols):
            support.run("dpkg-deb", "-x", package, cls.root)

    def test_lintian_is_content(self):
        command = ["lintian", "--allow-root", "--pedantic", "--display-info"]
        command += ["--fail-on=error,warning,info,pedantic"]
        # The program of tests is built without.
        command += ["--suppress-tags=debug-file-with-no-debug-symbols"]
        self.assertEqual(support.run(*command, self.package, self.symbols), "")

    def test_the_same_inputs_give_the_same_bytes(self):
        again = support.build_package("second")
        for first in (self.package, self.symbols):
            second = os.path.join(os.path.dirname(again), os.path.basename(first))
            self.assertTrue(filecmp.cmp(first, second, shallow=False), first)

    def test_links_of_the_documentation_lead_somewhere(self):
        self.assertEqual(dead_links(f"{self.root}/usr/share/doc/kirin"), [])

    def test_the_files_have_their_checksums(self):
        control = os.path.join(support.temporary_directory(), "control")
        support.run("dpkg-deb", "-e", self.package, control)
        support.run("md5sum", "--quiet", "-c", f"{control}/md5sums", cwd=self.root)

    def test_gdb_finds_the_debug_information(self):
        def symbol(directory):
            command = ["gdb", "--batch", "--nx", "-ex", f"set debug-file-directory {directory}"]
            command += ["-ex", f"file {self.root}/usr/bin/kirin", "-ex", "info symbol main"]
            return support.run(*command)

        self.assertIn("main in section .text", symbol(f"{self.root}/usr/lib/debug"))
        with self.assertRaisesRegex(AssertionError, "No symbol table is loaded"):
            symbol("/nowhere")

    def test_the_copyright_is_one_that_programs_read(self):
        with open(f"{self.root}/usr/share/doc/kirin/copyright", encoding="utf-8") as file:
            paragraphs = file.read().split("\n\n")
        self.assertRegex(paragraphs[0], r"\AFormat: https://www\.debian\.org/doc/packaging-manuals/")
        for paragraph in paragraphs:
            self.assertRegex(paragraph, r"\A[A-Z][A-Za-z-]*: ")
        self.assertIn("THE SOFTWARE IS PROVIDED", paragraphs[-1])


if __name__ == "__main__":
    unittest.main()
