//! A regular expression for hosts, as `~^www\\d+\\.example\\.org$` in `hosts` of a site.

use std::fmt;
use std::hash::{Hash, Hasher};

use regex::{Regex, RegexBuilder};

/// The memory that a compiled expression may take, in bytes.
const MEMORY_LIMIT_BYTES: usize = 1 << 20;

/// A regular expression. Two are the same if they are written the same.
#[derive(Clone, Debug)]
pub struct HostExpression(Regex);

impl HostExpression {
    /// Compiles an expression without its `~`. It ignores case, because hosts do. An error is a
    /// message for the user.
    pub fn compile(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        builder.case_insensitive(true).size_limit(MEMORY_LIMIT_BYTES);
        builder.build().map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            // The last line has the reason. The lines before it show the place.
            error => {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default();
                reason.trim().trim_start_matches("error: ").to_owned()
            }
        })
    }

    /// Returns whether a canonical host matches anywhere: `^` and `$` stand for its ends.
    pub fn matches(&self, host: &str) -> bool {
        self.0.is_match(host)
    }
}

impl fmt::Display for HostExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl PartialEq for HostExpression {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for HostExpression {}

impl Hash for HostExpression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_matches_anywhere_and_in_any_case() {
        let matches = |text: &str, host| HostExpression::compile(text).unwrap().matches(host);
        assert!(matches(r"^www\d+\.Example\.org$", "www12.example.org"));
        assert!(!matches(r"^www\d+\.example\.org$", "www.example.org"));
        assert!(!matches(r"^www\d+\.example\.org$", "www1.example.org.evil.test"));
        assert!(matches("b", "abc"));
        assert!(matches("^(?<name>[^.]+)[.]example[.]org$", "a.example.org"));
    }

    #[test]
    fn an_expression_that_cannot_be_compiled_has_a_reason() {
        for (text, reason) in [
            ("(", "unclosed group"),
            ("[a", "unclosed character class"),
            ("(?=a)", "look-around"),
            ("(a)\\1", "backreferences are not supported"),
            ("(a{1000}){1000}", "too large"),
        ] {
            let error = HostExpression::compile(text).unwrap_err();
            assert!(error.contains(reason) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
