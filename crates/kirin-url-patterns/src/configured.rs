//! Patterns that the operator gives.

/// A pattern such as `/memo/{id}`, `/@{user}`, `/image/{id}.jpg` or `/static/*`.
///
/// A variable stands for a part of one segment that is not empty. A segment has at most one. `*` as
/// the last segment stands for any rest of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredPattern {
    text: String,
    segments: Vec<Segment>,
    has_rest: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<[u8]>),
    /// The bytes before and after the variable.
    Variable(Box<[u8]>, Box<[u8]>),
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
    /// The pattern has a query or a fragment.
    #[error("pattern {0:?} must be a path without a query")]
    Query(String),
}

impl ConfiguredPattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let path = text.strip_prefix('/').ok_or_else(|| PatternError::NoSlash(text.into()))?;
        if path.contains(['?', '#']) {
            return Err(PatternError::Query(text.into()));
        }
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
                segments.push(Segment::parse(segment).ok_or_else(|| PatternError::Variable {
                    pattern: text.into(),
                    segment: segment.into(),
                })?);
            }
        }
        Ok(Self { text: text.into(), segments, has_rest })
    }

    /// Returns the pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a path without its query matches.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
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

impl Segment {
    fn parse(text: &str) -> Option<Self> {
        let Some((before, after)) = text.split_once('{') else {
            return (!text.contains('}')).then(|| Self::Literal(text.as_bytes().into()));
        };
        let (name, after) = after.split_once('}')?;
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_plain = |part: &str| !part.contains(['{', '}']);
        (is_name && is_plain(before) && is_plain(after))
            .then(|| Self::Variable(before.as_bytes().into(), after.as_bytes().into()))
    }

    fn matches(&self, part: &[u8]) -> bool {
        match self {
            Self::Literal(text) => **text == *part,
            Self::Variable(before, after) => {
                part.len() > before.len() + after.len()
                    && part.starts_with(before)
                    && part.ends_with(after)
            }
        }
    }
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
                assert!(parsed.matches(path.as_bytes()), "{pattern} must match {path}");
            }
            for path in others {
                assert!(!parsed.matches(path.as_bytes()), "{pattern} must not match {path}");
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
            ("/x?y", "without a query"),
        ] {
            let error = ConfiguredPattern::parse(text).expect_err(text).to_string();
            assert!(error.contains(part) && error.contains(text), "{text}: {error}");
        }
    }
}
