//! `ignore` of a mirror: the parts of text bodies that are not compared, such as tokens and times.

use std::borrow::Cow;

use regex::bytes::{NoExpand, Regex, RegexBuilder};

/// The largest compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// The patterns of the parts that are cut out of each line.
#[derive(Debug, Default)]
pub struct IgnoredParts(Vec<Regex>);

impl IgnoredParts {
    /// Compiles `patterns`. The error has the index of a bad one, and says what is wrong.
    pub fn compile<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, (usize, String)> {
        let compile = |(index, pattern): (usize, &str)| {
            let built = RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build();
            built.map_err(|error| (index, last_line(&error.to_string())))
        };
        patterns.into_iter().enumerate().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the patterns.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Regex::as_str)
    }

    /// Returns a line, which has no line feed, without the ignored parts.
    pub fn cut<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        let mut rest = Cow::Borrowed(line);
        for pattern in &self.0 {
            if let Cow::Owned(cut) = pattern.replace_all(&rest, NoExpand(b"")) {
                rest = Cow::Owned(cut);
            }
        }
        rest
    }
}

/// Returns the line of an error of the pattern that says what is wrong. Those before show where.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or(error);
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_of_all_patterns_are_cut_out_of_a_line() {
        for (patterns, line, expected) in [
            (&[][..], "a1b2", "a1b2"),
            (&["[0-9]"], "a1b2", "ab"),
            (&["[0-9]", "ab"], "a1b2c", "c"),
            (&["^at .*$"], "at noon", ""),
            (&["x*"], "ab", "ab"),
            (&["(?i)TOKEN=\\w+"], "<a token=aB3>", "<a >"),
            (&["."], "\u{e4}", ""),
        ] {
            let parts = IgnoredParts::compile(patterns.iter().copied()).unwrap();
            let cut = parts.cut(line.as_bytes());
            assert_eq!(String::from_utf8_lossy(&cut), expected, "{patterns:?} {line}");
        }
    }

    #[test]
    fn a_bad_pattern_is_named() {
        for (patterns, index, message) in [
            (&["a", "("][..], 1, "unclosed group"),
            (&["a{1000}{1000}"], 0, "size limit"),
            (&["\\"], 0, "incomplete escape sequence"),
        ] {
            let (at, error) = IgnoredParts::compile(patterns.iter().copied()).unwrap_err();
            assert!(at == index && error.contains(message), "{patterns:?}: {at} {error}");
        }
    }
}
