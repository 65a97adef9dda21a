//! `if expr="…"`: what nginx takes for an expression.

use crate::scope::Scope;
use crate::text::Text;
use bytes::Bytes;
use regex::bytes::{Regex, RegexBuilder};

/// Memory that one compiled expression may take, in bytes: a page must not fill the store's memory with them.
const REGEX_BYTES: usize = 64 * 1024;

/// A compiled expression: `$name`, `$name = text`, `$name != text`, `$name = /regex/`, `$name != /regex/`.
#[derive(Debug)]
pub(crate) struct Condition {
    left: Text,
    test: Test,
}

#[derive(Debug)]
enum Test {
    /// There is something.
    Present,
    Equals {
        right: Text,
        wanted: bool,
    },
    Matches {
        regex: Box<Regex>,
        wanted: bool,
    },
}

impl Condition {
    /// None if it is malformed.
    pub(crate) fn parse(expression: &Bytes) -> Option<Self> {
        let trimmed = expression.slice_ref(expression.trim_ascii());
        if trimmed.is_empty() {
            return None;
        }
        let Some(equals) = memchr::memchr(b'=', &trimmed) else {
            return Some(Self { left: Text::parse(&trimmed), test: Test::Present });
        };
        let wanted = equals == 0 || trimmed[equals - 1] != b'!';
        let left_end = if wanted { equals } else { equals - 1 };
        let left = trimmed.slice_ref(trimmed[..left_end].trim_ascii());
        let right = trimmed.slice_ref(trimmed[equals + 1..].trim_ascii());
        let test = match &right[..] {
            [b'/', pattern @ .., b'/'] => Test::Matches { regex: Box::new(compile(pattern)?), wanted },
            [b'/', ..] if right.len() == 1 => return None,
            _ => Test::Equals { right: Text::parse(&right), wanted },
        };
        Some(Self { left: Text::parse(&left), test })
    }

    /// Whether it holds. Captures of a regular expression that matches become variables: `$1` to `$9` and their names.
    pub(crate) fn holds(&self, scope: &mut Scope, mut outside: impl FnMut(&str) -> Option<Bytes>) -> bool {
        let left = self.left.evaluate(|name| scope.get(name).or_else(|| outside(name)));
        match &self.test {
            Test::Present => !left.is_empty(),
            Test::Equals { right, wanted } => {
                let right = right.evaluate(|name| scope.get(name).or_else(|| outside(name)));
                (left == right) == *wanted
            }
            Test::Matches { regex, wanted } => {
                let captures = regex.captures(&left);
                let matched = captures.is_some();
                if let Some(captures) = captures {
                    for (index, name) in regex.capture_names().enumerate() {
                        let value = captures.get(index).map(|found| left.slice(found.range()));
                        let value = value.unwrap_or_default();
                        if index < 10 {
                            scope.set(&index.to_string(), value.clone());
                        }
                        if let Some(name) = name {
                            scope.set(&name.to_ascii_lowercase(), value);
                        }
                    }
                }
                matched == *wanted
            }
        }
    }

    /// Memory beside the page, in bytes; of a regular expression what it may take at most is unknown, so it is counted with
    /// a fixed sum.
    pub(crate) fn memory_bytes(&self) -> usize {
        let test = match &self.test {
            Test::Present => 0,
            Test::Equals { right, .. } => right.memory_bytes(),
            Test::Matches { .. } => 8 * 1024,
        };
        size_of::<Self>() + self.left.memory_bytes() + test
    }
}

fn compile(pattern: &[u8]) -> Option<Regex> {
    let pattern = std::str::from_utf8(pattern).ok()?;
    RegexBuilder::new(pattern).unicode(false).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(expression: &str) -> Option<bool> {
        let mut scope = Scope::default();
        scope.set("name", Bytes::from_static(b"miki"));
        scope.set("empty", Bytes::new());
        let condition = Condition::parse(&Bytes::copy_from_slice(expression.as_bytes()))?;
        Some(condition.holds(&mut scope, |name| (name == "outside").then(|| Bytes::from_static(b"o"))))
    }

    #[test]
    fn expressions_are_nginxs() {
        for (expression, result) in [
            ("$name", Some(true)),
            ("$empty", Some(false)),
            ("$none", Some(false)),
            ("$outside", Some(true)),
            ("$name = miki", Some(true)),
            ("$name=miki", Some(true)),
            ("$name = mika", Some(false)),
            ("$name != mika", Some(true)),
            ("$name!=miki", Some(false)),
            ("$name = $name", Some(true)),
            ("$name = m${outside}", Some(false)),
            ("$none =", Some(true)),
            ("$name = /^m.k/", Some(true)),
            ("$name != /^m.k/", Some(false)),
            ("$name = /K/", Some(false)),
            ("$name = /(?i)K/", Some(true)),
            ("$name = /=/", Some(false)),
            ("", None),
            ("$name = /(/", None),
            ("$name = /", None),
            ("$name = /a{1000}{1000}/", None),
        ] {
            assert_eq!(holds(expression), result, "{expression}");
        }
    }

    #[test]
    fn captures_become_variables() {
        let mut scope = Scope::default();
        let condition = Condition::parse(&Bytes::from_static(b"$x = /(?P<Year>\\d+)-(\\d+)/")).unwrap();
        assert!(condition.holds(&mut scope, |_| Some(Bytes::from_static(b"in 2026-11."))));
        for (name, value) in [("0", "2026-11"), ("1", "2026"), ("2", "11"), ("year", "2026")] {
            assert_eq!(scope.get(name).unwrap(), value, "{name}");
        }
    }
}
