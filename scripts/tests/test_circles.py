"""Tests of scripts/circles.py."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import circles


def crate(**files):
    """Returns the crate of these files. A name is the path with `__` for `/` and without `.rs`."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in files.items():
            path = os.path.join(directory, "src", name.replace("__", "/") + ".rs")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return circles.Crate(os.path.join(directory, "src"))


def arrows(found):
    """Returns the imports of a crate as `from -> to` lines."""
    return sorted(
        f"{found.files[a]} -> {found.files[b]}" for a in found.files for b in found.arrows[a]
    )


class Circles(unittest.TestCase):
    def test_use_trees_and_paths_in_the_code_are_imports(self):
        found = crate(
            lib="mod a; mod b; mod c; mod d;",
            a="use crate::{b::{self, One}, c as see};\nfn f() { crate::d::two() }",
            b="",
            c="use super::b::One;",
            d="",
        )
        self.assertEqual(
            arrows(found), ["a.rs -> b.rs", "a.rs -> c.rs", "a.rs -> d.rs", "c.rs -> b.rs"]
        )

    def test_a_mod_line_is_no_import_but_a_re_export_is(self):
        found = crate(lib="mod a;", a="mod b;\npub use b::One;\nmod c;", a__b="", a__c="")
        self.assertEqual(arrows(found), ["a.rs -> a/b.rs"])

    def test_a_name_that_the_root_re_exports_comes_from_its_file(self):
        found = crate(
            lib="mod a; mod b;\npub use a::{One, Two as Three};",
            a="use crate::b::Four;",
            b="use crate::Three;",
        )
        self.assertEqual(arrows(found), ["a.rs -> b.rs", "b.rs -> a.rs"])
        self.assertEqual(found.circles(), [[("a",), ("b",)]])

    def test_tests_comments_and_strings_are_not_read(self):
        found = crate(
            lib="mod a; mod b;",
            a="""
            //! See `crate::b`. use crate::b;
            const A: &str = "crate::b::c"; const B: &str = r#"use crate::b;"#; const C: char = '"';
            #[cfg(test)]
            #[path = "a_tests.rs"]
            mod tests;
            #[cfg(test)]
            mod more { use crate::b; }
            """,
            a_tests="use crate::b;",
            b="",
        )
        self.assertEqual(arrows(found), [])
        self.assertEqual(sorted(found.files.values()), ["a.rs", "b.rs", "lib.rs"])

    def test_super_in_a_module_within_a_file_is_that_file(self):
        inner = "mod inner { use super::One; use super::super::b; }"
        found = crate(lib="mod a; mod b;", a=inner, b="")
        self.assertEqual(arrows(found), ["a.rs -> b.rs"])

    def test_the_largest_circle_comes_first(self):
        graph = {"a": "b", "b": "c", "c": "a", "d": "e", "e": "d", "f": "a"}
        self.assertEqual(circles.circles_of(graph), [["a", "b", "c"], ["d", "e"]])


if __name__ == "__main__":
    unittest.main()
