//! Patterns that the operator gives.

use crate::nodes::Label;
use crate::parameters::{LONGEST_NAME, MOST_PARAMETERS, PatternParameter};
use crate::pattern_part::PatternPart;
use crate::segment::PathSegment;

/// A pattern such as `/memo/{id}`, `/@{user}`, `/image/{id}.jpg` or `/static/*`.
///
/// A variable stands for a part of one segment that is not empty. A segment has at most one. `*` as
/// the last segment stands for any rest of the path.
///
/// A query names the parameters that matter: `/gitweb?a`, `/doku.php?id&do`. A table then finds
/// patterns for their values as for segments, and a request may be without them. A parameter with a
/// value, such as `a=blob` or `a={action}`, must be there, and a variable stands for any value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredPattern {
    text: String,
    segments: Vec<PatternPart>,
    has_rest: bool,
    /// The bytes of `text` in front of the query.
    path_length: usize,
    parameters: Vec<PatternParameter>,
}

/// The reason why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text does not begin with `/`.
    #[error("pattern {0:?} must begin with \"/\", as in \"/memo/{{id}}\"")]
    NoSlash(String),
    /// A segment has braces that do not stand around a name, or has two variables.
    #[error(
        "segment {segment:?} of pattern {pattern:?} may have one variable, as in \"{{id}}.jpg\""
    )]
    Variable {
        /// The pattern.
        pattern: String,
        /// Its segment.
        segment: String,
    },
    /// A `*` is not the last segment.
    #[error("\"*\" in pattern {0:?} must be its last segment, as in \"/static/*\"")]
    Star(String),
    /// The pattern has a fragment, which no server gets.
    #[error("pattern {0:?} must have no fragment (\"#\")")]
    Fragment(String),
    /// The query does not name parameters.
    #[error(
        "parameter {parameter:?} of pattern {pattern:?} must be a name of at most {LONGEST_NAME} \
         bytes, with or without a value, as in \"/doku.php?id&do\", \"?a=blob\" or \"?a={{action}}\""
    )]
    Parameter {
        /// The pattern.
        pattern: String,
        /// Its parameter.
        parameter: String,
    },
    /// A parameter is named twice.
    #[error("pattern {pattern:?} names the parameter {parameter:?} twice")]
    TwoParameters {
        /// The pattern.
        pattern: String,
        /// Its parameter.
        parameter: String,
    },
    /// The query has too many parameters.
    #[error("pattern {0:?} may name at most {MOST_PARAMETERS} parameters")]
    ManyParameters(String),
}

impl ConfiguredPattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let path = text.strip_prefix('/').ok_or_else(|| PatternError::NoSlash(text.into()))?;
        if path.contains('#') {
            return Err(PatternError::Fragment(text.into()));
        }
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let path_length = 1 + path.len();
        let parameters = query.map_or(Ok(Vec::new()), |query| parameters(text, query))?;
        let (path, has_rest) = match path.strip_suffix('*') {
            Some("") => ("", true),
            Some(before) if before.ends_with('/') => (&before[..before.len() - 1], true),
            Some(_) => return Err(PatternError::Star(text.into())),
            None => (path, false),
        };
        if path.contains('*') {
            return Err(PatternError::Star(text.into()));
        }
        let mut segments = Vec::new();
        if !(has_rest && path.is_empty()) {
            for segment in path.split('/') {
                segments.push(PatternPart::parse(segment).ok_or_else(|| {
                    PatternError::Variable { pattern: text.into(), segment: segment.into() }
                })?);
            }
        }
        Ok(Self { text: text.into(), segments, has_rest, path_length, parameters })
    }

    /// Returns the pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a table finds patterns for the values of some parameters.
    pub(crate) fn has_found_values(&self) -> bool {
        self.parameters.iter().any(PatternParameter::is_found)
    }

    /// Returns the values of a query for which a table finds patterns, as its tree takes them.
    pub(crate) fn found_values<'s>(
        &'s self,
        query: &'s [u8],
    ) -> impl Iterator<Item = PathSegment<'s>> {
        let found = self.parameters.iter().filter(|parameter| parameter.is_found());
        found.map(|parameter| parameter.segment(query))
    }

    /// Returns the pattern with values for the parameters of which a table finds them.
    pub(crate) fn with_values<'l>(&self, values: impl IntoIterator<Item = &'l Label>) -> String {
        let mut text = self.text[..self.path_length].to_owned();
        let mut values = values.into_iter();
        let mut separator = '?';
        let query = self.text.get(self.path_length + 1..).unwrap_or_default();
        for (parameter, written) in self.parameters.iter().zip(query.split('&')) {
            let value = if parameter.is_found() { values.next() } else { None };
            if value.is_some_and(Label::is_absent) {
                continue;
            }
            text.push(separator);
            text.push_str(written);
            separator = '&';
            if let Some(value) = value {
                text.push('=');
                value.write(&mut text);
            }
        }
        text
    }

    /// Returns whether a path and its query match.
    pub(crate) fn matches(&self, path: &[u8], query: &[u8]) -> bool {
        self.matches_path(path) && self.parameters.iter().all(|parameter| parameter.matches(query))
    }

    fn matches_path(&self, path: &[u8]) -> bool {
        let Some(mut rest) = path.strip_prefix(b"/") else { return false };
        let mut is_first = true;
        for segment in &self.segments {
            if !is_first {
                let Some((b'/', after)) = rest.split_first() else { return false };
                rest = after;
            }
            is_first = false;
            let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if !segment.matches(part) {
                return false;
            }
            rest = after;
        }
        // `/static/*` matches `/static/` and what is below, and not `/staticfile`.
        rest.is_empty() && !self.has_rest
            || self.has_rest && (self.segments.is_empty() || rest.first() == Some(&b'/'))
    }
}

/// Parses the query of a pattern.
fn parameters(pattern: &str, query: &str) -> Result<Vec<PatternParameter>, PatternError> {
    let mut parameters = Vec::<PatternParameter>::new();
    for written in query.split('&') {
        let (pattern, parameter) = (|| pattern.to_owned(), || written.to_owned());
        let Some(parsed) = PatternParameter::parse(written) else {
            return Err(PatternError::Parameter { pattern: pattern(), parameter: parameter() });
        };
        if parameters.iter().any(|known| known.name() == parsed.name()) {
            return Err(PatternError::TwoParameters { pattern: pattern(), parameter: parameter() });
        }
        if parameters.len() == MOST_PARAMETERS {
            return Err(PatternError::ManyParameters(pattern()));
        }
        parameters.push(parsed);
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_complete_paths_only() {
        for (pattern, matching, others) in [
            (
                "/memo/{id}",
                &["/memo/7", "/memo/new"][..],
                &["/memo/", "/memo", "/memo/7/", "/memo/7/x", "/memo7"][..],
            ),
            ("/", &["/"], &["/x", "//", ""]),
            ("/@{user}", &["/@alice"], &["/@", "/alice", "/@alice/"]),
            ("/image/{id}.jpg", &["/image/7.jpg"], &["/image/.jpg", "/image/7.png"]),
            ("/static/*", &["/static/", "/static/a/b"], &["/static", "/staticfile"]),
            ("/*", &["/", "/x", "/x/y"], &["", "*"]),
            ("/{a}/x/{b}", &["/1/x/2"], &["/1/y/2", "/1/x/"]),
            ("/dir/", &["/dir/"], &["/dir", "/dir/x"]),
        ] {
            let parsed = ConfiguredPattern::parse(pattern).expect(pattern);
            assert_eq!(parsed.text(), pattern);
            for path in matching {
                assert!(parsed.matches(path.as_bytes(), b""), "{pattern} must match {path}");
            }
            for path in others {
                assert!(!parsed.matches(path.as_bytes(), b""), "{pattern} must not match {path}");
            }
        }
    }

    #[test]
    fn parameters_with_a_value_must_be_there_and_others_may() {
        for (pattern, matching, others) in [
            ("/g?a=blob", &["a=blob", "p=x;a=blob;f=y"][..], &["", "a=", "a=blobs", "A=blob"][..]),
            ("/g?a={x}", &["a=blob"], &["", "a", "a=", "b=1"]),
            ("/g?a=blob{x}", &["a=blob_plain"], &["a=blob"]),
            ("/g?a=", &["a=", "a"], &["", "a=1"]),
            ("/g?a", &["", "a", "a=1", "b=1"], &[]),
            ("/g?a&b=1", &["b=1", "b=1&a=2"], &["a=2"]),
        ] {
            let parsed = ConfiguredPattern::parse(pattern).expect(pattern);
            assert_eq!(parsed.text(), pattern);
            assert!(!parsed.matches(b"/h", b"a=blob&b=1"), "{pattern}");
            for query in matching {
                assert!(parsed.matches(b"/g", query.as_bytes()), "{pattern} must match {query}");
            }
            for query in others {
                assert!(!parsed.matches(b"/g", query.as_bytes()), "{pattern} matches {query}");
            }
        }
    }

    #[test]
    fn a_wrong_pattern_is_named() {
        for (text, part) in [
            ("memo/{id}", "must begin"),
            ("", "must begin"),
            ("/memo/{id", "may have one variable"),
            ("/memo/id}", "may have one variable"),
            ("/memo/{}", "may have one variable"),
            ("/{a}{b}", "may have one variable"),
            ("/{a-b}", "may have one variable"),
            ("/*/x", "must be its last segment"),
            ("/*.jpg", "must be its last segment"),
            ("/x*", "must be its last segment"),
            ("/x#y", "no fragment"),
            ("/x?", "parameter \"\" of"),
            ("/x?a&", "parameter \"\" of"),
            ("/x?=b", "must be a name"),
            ("/x?{a}", "must be a name"),
            ("/x?*", "must be a name"),
            ("/x?a={b}{c}", "must be a name"),
            ("/x?a={b", "must be a name"),
            ("/x?a;b", "must be a name"),
            ("/x?a=b;c", "must be a name"),
            ("/x?a=*", "must be a name"),
            ("/x?a?b", "must be a name"),
            ("/x?a&b&a=c", "twice"),
            ("/x?a&b&c&d&e", "at most 4 parameters"),
        ] {
            let error = ConfiguredPattern::parse(text).expect_err(text).to_string();
            assert!(error.contains(part) && error.contains(text), "{text}: {error}");
        }
    }
}
