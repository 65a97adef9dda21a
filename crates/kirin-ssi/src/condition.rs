//! `if expr="…"`: expressions as nginx defines them.

use bytes::Bytes;
use regex::bytes::{Regex, RegexBuilder};

use crate::scope::Scope;
use crate::text::{self, Text};
use crate::value::VariableValue;

/// The most memory of one compiled regular expression, in bytes. A page must not fill the store's
/// memory with them.
const REGEX_BYTES: usize = 64 * 1024;

/// Names of the variables for captures. `$0` is the complete match.
const NUMBERS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// A compiled expression: `$name`, `$name = text`, `$name != text`, `$name = /regex/`,
/// `$name != /regex/`.
#[derive(Debug)]
pub(crate) struct IfCondition {
    left: Text,
    test: Test,
}

#[derive(Debug)]
enum Test {
    /// The left side is not empty.
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

impl IfCondition {
    /// Compiles an expression. Returns `None` if it is malformed, or if it has a regular expression
    /// and the page has room for no more of them. An empty expression is always false.
    pub(crate) fn parse(expression: &Bytes, room_for_regex: bool) -> Option<Self> {
        let expression = expression.slice_ref(expression.trim_ascii());
        let operator =
            expression.iter().position(|byte| !is_operand(*byte)).unwrap_or(expression.len());
        let left = Text::parse(&expression.slice(..operator));
        let rest = expression[operator..].trim_ascii_start();
        let (right, wanted) = match rest {
            [] => return Some(Self { left, test: Test::Present }),
            [b'=', right @ ..] => (right, true),
            [b'!', b'=', right @ ..] => (right, false),
            _ => return None,
        };
        let right = expression.slice_ref(right.trim_ascii_start());
        let test = match &right[..] {
            [b'/', .., b'/'] if !room_for_regex => return None,
            [b'/', pattern @ .., b'/'] => {
                Test::Matches { regex: Box::new(compile(pattern)?), wanted }
            }
            [b'/', _, ..] => return None,
            // Text that starts like a regular expression but is not one.
            [b'\\', b'/', ..] => Test::Equals { right: Text::parse(&right.slice(1..)), wanted },
            _ => Test::Equals { right: Text::parse(&right), wanted },
        };
        Some(Self { left, test })
    }

    /// Returns whether the expression has a compiled regular expression.
    pub(crate) fn has_regex(&self) -> bool {
        matches!(self.test, Test::Matches { .. })
    }

    /// Returns whether the expression is true. Captures of a regular expression that matches become
    /// variables: `$1` to `$9` and their names.
    pub(crate) fn holds(
        &self,
        scope: &mut Scope,
        mut outside: impl FnMut(&str) -> Option<VariableValue>,
    ) -> bool {
        let left = self.left.evaluate(|name| scope.get(name).or_else(|| outside(name)));
        match &self.test {
            Test::Present => !left.bytes.is_empty(),
            Test::Equals { right, wanted } => {
                let right = right.evaluate(|name| scope.get(name).or_else(|| outside(name)));
                (left.bytes == right.bytes) == *wanted
            }
            Test::Matches { regex, wanted } => {
                let captures = regex.captures(&left.bytes);
                let matched = captures.is_some();
                if let Some(captures) = captures {
                    for (index, number) in NUMBERS.iter().enumerate() {
                        match captures.get(index) {
                            Some(found) => scope.set(number, left.slice(found.range())),
                            None => scope.unset(number),
                        }
                    }
                    for name in regex.capture_names().flatten() {
                        let value = captures.name(name).map(|found| left.slice(found.range()));
                        scope.set(&name.to_ascii_lowercase(), value.unwrap_or_default());
                    }
                }
                matched == *wanted
            }
        }
    }

    /// Returns the names of the variables that it compares.
    pub(crate) fn variables(&self) -> Vec<&str> {
        let right = match &self.test {
            Test::Equals { right, .. } => Some(right),
            Test::Present | Test::Matches { .. } => None,
        };
        self.left.variables().chain(right.into_iter().flat_map(Text::variables)).collect()
    }

    /// Returns the memory besides the page, in bytes. The memory of a regular expression is
    /// unknown, so it counts as a fixed sum.
    pub(crate) fn memory_bytes(&self) -> usize {
        let test = match &self.test {
            Test::Present => 0,
            Test::Equals { right, .. } => right.memory_bytes(),
            Test::Matches { .. } => 8 * 1024,
        };
        size_of::<Self>() + self.left.memory_bytes() + test
    }
}

/// Returns whether the text may be the left side.
fn is_operand(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'$' | b'{' | b'}' | b'_' | b'.' | b'"' | b'\'')
}

/// Compiles a pattern. It first removes backslashes before quotes, dollar signs and backslashes, as
/// everywhere. It refuses variables in a pattern. With them a visitor could write patterns, and
/// they could not be compiled in advance.
fn compile(pattern: &[u8]) -> Option<Regex> {
    let pattern = unescape_pattern(pattern)?;
    let pattern = std::str::from_utf8(&pattern).ok()?;
    RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .build()
        .ok()
}

fn unescape_pattern(pattern: &[u8]) -> Option<Vec<u8>> {
    let mut unescaped = Vec::with_capacity(pattern.len());
    let mut rest = pattern;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'\\', [escaped @ (b'\\' | b'$' | b'"' | b'\''), after @ ..]) => {
                unescaped.push(*escaped);
                rest = after;
            }
            // `\d` and similar stay.
            (b'\\', [escaped, after @ ..]) => {
                unescaped.extend_from_slice(&[b'\\', *escaped]);
                rest = after;
            }
            (b'$', _) if text::variable(after).is_some() => return None,
            _ => unescaped.push(*byte),
        }
    }
    Some(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(expression: &str) -> Option<bool> {
        let mut scope = Scope::default();
        scope.set("name", VariableValue::authors(Bytes::from_static(b"miki")));
        scope.set("empty", VariableValue::default());
        let condition = IfCondition::parse(&Bytes::copy_from_slice(expression.as_bytes()), true)?;
        Some(condition.holds(&mut scope, |name| {
            (name == "outside").then(|| VariableValue::authors(Bytes::from_static(b"o")))
        }))
    }

    #[test]
    fn expressions_are_those_of_nginx() {
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
            ("", Some(false)),
            (" $name ", Some(true)),
            ("text", Some(true)),
            ("$name = /^miki$/", Some(true)),
            ("$name = /^miki\\$/", Some(true)),
            ("$name = /^mi\\w+\\\\w$/", Some(true)),
            ("$name = /$outside/", None),
            ("$name = \\/miki/", Some(false)),
            ("\\/x = \\/x", None),
            ("$none != \\/x", Some(true)),
            ("$name miki", None),
            ("$name ! miki", None),
            ("$name == miki", Some(false)),
            ("$name < miki", None),
            ("$name = /miki", None),
            ("$name = /(/", None),
            ("$name = /", Some(false)),
            ("$name = /a{1000}{1000}/", None),
        ] {
            assert_eq!(holds(expression), result, "{expression}");
        }
    }

    #[test]
    fn captures_become_variables() {
        let mut scope = Scope::default();
        let condition =
            IfCondition::parse(&Bytes::from_static(b"$x = /(?P<Year>\\d+)-(\\d+)/"), true).unwrap();
        assert!(condition.holds(&mut scope, |_| Some(VariableValue::authors(Bytes::from_static(
            b"in 2026-11."
        )))));
        let no_year = IfCondition::parse(&Bytes::from_static(b"$x = /no/"), true).unwrap();
        assert!(!no_year.holds(&mut scope, |_| None));
        for (name, value) in [("0", "2026-11"), ("1", "2026"), ("2", "11"), ("year", "2026")] {
            assert_eq!(scope.get(name).unwrap().bytes, value, "{name}");
        }
        let fewer = IfCondition::parse(&Bytes::from_static(b"$x = /(n)|(x)/"), true).unwrap();
        assert!(
            fewer.holds(&mut scope, |_| Some(VariableValue::authors(Bytes::from_static(b"in"))))
        );
        assert_eq!(
            (scope.get("1"), scope.get("2")),
            (Some(VariableValue::authors(Bytes::from_static(b"n"))), None)
        );
        assert_eq!(scope.get("year").unwrap().bytes, "2026");
    }
}
