"""Tests of scripts/comment-lint."""
import importlib.machinery
import importlib.util
import os
import unittest

PATH = os.path.join(os.path.dirname(__file__), "..", "comment-lint")
LOADER = importlib.machinery.SourceFileLoader("comment_lint", PATH)
lint = importlib.util.module_from_spec(importlib.util.spec_from_loader("comment_lint", LOADER))
LOADER.exec_module(lint)

WORDS = ({"Wish": "Command"}, {"anew": "again", "comes of": "is caused by"})
WIDE = "word " * 20 + "word"


def found(path, text):
    """Returns the findings in a file of this content as `LINE: MESSAGE`."""
    lines = text.splitlines(keepends=True)
    return [f"{n}: {message}" for n, message in lint.check(path, lines, WORDS)]


class CommentLint(unittest.TestCase):
    def test_a_clean_file_has_no_findings(self):
        text = (
            "//! A file.\n\nuse std::io;\n\nuse bytes::Bytes;\nuse http::Uri;\n\nuse crate::a;\n"
            "/// Returns it.\n#[inline]\npub fn it() {}\n"
        )
        self.assertEqual(found("a.rs", text), [])

    def test_comments_are_not_wide(self):
        self.assertEqual(found("a.rs", f"//! {WIDE}\n"), ["1: 108 columns, at most 100"])
        self.assertEqual(found("a.pm", f"# {WIDE}\n"), ["1: 106 columns, at most 100"])
        self.assertEqual(found("a.pm", f"my $s = '{WIDE}';\n"), [])

    def test_tables_code_and_addresses_in_markdown_may_be_wide(self):
        self.assertEqual(found("a.md", f"{WIDE}\n"), ["1: 104 columns, at most 100"])
        self.assertEqual(found("a.md", f"| {WIDE} |\n```\n{WIDE}\n```\n"), [])
        self.assertEqual(found("a.md", f"{WIDE} https://example.org/{'a' * 30}\n"), [])

    def test_a_file_says_what_it_is_for(self):
        self.assertIn("no `//!` comment", found("a.rs", "use std::io;\n")[0])

    def test_imports_stand_in_three_blocks(self):
        for text in (
            "use bytes::Bytes;\n\nuse std::io;\n",
            "use std::io;\nuse bytes::Bytes;\n",
            "use std::io;\n\nuse std::fs;\n",
        ):
            self.assertEqual(len(found("a.rs", "//! A file.\n\n" + text)), 1, text)

    def test_a_doc_comment_is_a_sentence(self):
        self.assertIn("full stop", found("a.rs", "//! A.\n/// Returns it\nfn a() {}\n")[0])
        self.assertIn("capital", found("a.rs", "//! A.\n/// returns it.\nfn a() {}\n")[0])

    def test_the_doc_comment_of_a_function_starts_with_a_verb(self):
        for text in ("The thing.", "Bytes of it.", "`it` is a thing."):
            self.assertIn("verb", found("a.rs", f"//! A.\n/// {text}\nfn a() {{}}\n")[0], text)
        self.assertEqual(found("a.rs", "//! A.\n/// Writes bytes.\nfn a() {}\n"), [])
        self.assertEqual(found("a.rs", "//! A.\n/// The thing.\nstruct A;\n"), [])

    def test_names_are_banned_in_code_and_words_in_text(self):
        self.assertIn("write Command", found("a.rs", "//! A.\nstruct Wish;\n")[0])
        self.assertEqual(found("a.rs", "//! Wish.\nstruct WishList;\n"), [])
        for path, text in (
            ("a.md", "It is built anew.\n"),
            ("a.pm", "# It is built anew.\n"),
            ("a.rs", "//! It is built anew.\n"),
            ("a.rs", '//! A.\nconst A: &str = "is built anew";\n'),
        ):
            self.assertIn("write again", found(path, text)[0], text)
        self.assertIn("is caused by", found("a.md", "A request that comes of it.\n")[0])
        self.assertEqual(found("a.md", "It becomes offline, a new one.\n"), [])


if __name__ == "__main__":
    unittest.main()
