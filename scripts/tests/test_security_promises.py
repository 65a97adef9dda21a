"""Tests of scripts/security-promises."""
import importlib.machinery
import importlib.util
import os
import unittest

PATH = os.path.join(os.path.dirname(__file__), "..", "security-promises")
LOADER = importlib.machinery.SourceFileLoader("security_promises", PATH)
promises = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("security_promises", LOADER)
)
LOADER.exec_module(promises)

FILES = {
    "crates/a.rs": """
        #[test]
        fn a_plain_test_counts() {}
        #[tokio::test(flavor = "current_thread")]
        // A comment.
        #[cfg(target_os = "linux")]
        async fn an_asynchronous_test_counts() {}
        proptest! {
            #![proptest_config(ProptestConfig { cases: 9, ..ProptestConfig::default() })]
            /// A comment.
            #[test]
            fn a_property_counts(input in any::<u8>()) {}
        }
        #[test]
        #[ignore = "it is slow"]
        fn an_ignored_test_does_not() {}
        fn a_function_does_not() {}
    """,
    "fuzz/fuzz_targets/a.rs": "",
}
DIRECTORIES = ("crates", "fuzz")
TABLE = "| promise | tests |\n|---|---|\n"


def found(text):
    """Returns the findings in a text as `LINE: MESSAGE`."""
    exists = [*FILES, *DIRECTORIES].__contains__
    lines = text.splitlines()
    return [f"{n}: {message}" for n, message in promises.check(lines, FILES.get, exists)]


class SecurityPromises(unittest.TestCase):
    def test_tests_and_fuzz_targets_that_exist_are_no_findings(self):
        names = "`a_plain_test_counts`, `an_asynchronous_test_counts`, `a_property_counts`"
        rows = f"| It `holds_for_all`. | `crates/a.rs`: {names} |\n| So. | `fuzz/fuzz_targets/a.rs` |\n"
        self.assertEqual(found(TABLE + rows), [])

    def test_what_is_no_test_of_its_file_is_named(self):
        for name in ("an_ignored_test_does_not", "a_function_does_not", "a_plain_test"):
            self.assertEqual(
                found(f"{TABLE}| It holds. | `crates/a.rs`: `{name}` |\n"),
                [f"3: crates/a.rs has no test {name}"],
            )

    def test_a_file_that_does_not_exist_is_named_once(self):
        row = "| It holds. | `crates/b.rs`: `a_test`, `another_test` |\n"
        self.assertEqual(found(TABLE + row), ["3: there is no file crates/b.rs"])
        self.assertEqual(found("See [b](docs/b.md#c)."), ["1: there is no file docs/b.md"])
        self.assertEqual(found("See `/etc/b` or `no/b` or <https://b.org/c>."), [])

    def test_a_promise_without_a_test_is_a_finding(self):
        for cell in ("", "`crates/a.rs`", "a test"):
            message = "3: the promise names no test"
            self.assertEqual(found(f"{TABLE}| It holds. | {cell} |\n"), [message], cell)
        self.assertEqual(
            found(f"{TABLE}| It holds. | `a_plain_test_counts` |\n")[0],
            "3: no file is named before the test a_plain_test_counts",
        )

    def test_other_tables_have_no_promises(self):
        self.assertEqual(found("| a | b |\n|---|---|\n| `c` | `d_e` |\n"), [])
        self.assertEqual(found(f"{TABLE}\n| a | b |\n|---|---|\n| `c` | `d_e` |\n"), [])


if __name__ == "__main__":
    unittest.main()
