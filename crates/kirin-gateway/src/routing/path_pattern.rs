//! The path of a route: which paths of requests it is for.
//!
//! Pure; parsed when the configuration is checked. It is written decoded, and compared with the
//! normalized path of a request, segment by segment.

use std::borrow::Cow;
use std::fmt;

use kirin_http::RequestPath;

/// The path of a route as the configuration writes it, such as `/static`, `/users/{id}/avatar`,
/// `/docs/*.pdf` or `= /favicon.ico`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<Segment>,
    ending: Ending,
}

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// This segment.
    Literal(String),
    /// Any one segment, which has this name.
    Name(String),
}

/// The part of a path that follows the segments of its pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing, or segments below.
    Below,
    /// One or more segments, of which the last ends in this text.
    Suffix(String),
    /// Nothing but, if it is true, one slash.
    Exact {
        /// Whether a slash follows. It is true for the root.
        slash: bool,
    },
}

/// All paths.
impl Default for PathPattern {
    fn default() -> Self {
        Self { segments: Vec::new(), ending: Ending::Below }
    }
}

impl PathPattern {
    /// Parses the value of the key `path`. The error says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("route path `{text}`: {why}"));
        let (path, is_exact) = match text.strip_prefix('=') {
            Some(path) => (path.trim_start_matches(' '), true),
            None => (text, false),
        };
        let with_root;
        let path = match path.starts_with('*') && !is_exact {
            true => {
                with_root = format!("/{path}");
                with_root.as_str()
            }
            false => path,
        };
        let Some(below_root) = path.strip_prefix('/').filter(|_| !path.contains(['?', '#', '%']))
        else {
            return refuse(
                "it must begin with `/` and is written decoded, without `%`, `?` and `#`",
            );
        };
        let slash = below_root.is_empty() || below_root.ends_with('/');
        let mut parts: Vec<&str> = match below_root {
            "" => Vec::new(),
            _ => below_root.strip_suffix('/').unwrap_or(below_root).split('/').collect(),
        };
        if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return refuse("it has `//`, `.` or `..`, which Kirin resolves before it compares");
        }
        let suffix = parts.last().and_then(|last| last.strip_prefix('*')).filter(|_| !slash);
        let ending = match (is_exact, suffix) {
            (true, None) => Ending::Exact { slash },
            (true, Some(_)) => return refuse("an exact path has no `*`"),
            (false, None) => Ending::Below,
            (false, Some("")) => {
                return refuse("leave out `*`: a path means everything below it, too");
            }
            (false, Some(suffix)) => Ending::Suffix(suffix.to_owned()),
        };
        if suffix.is_some() {
            parts.pop();
        }
        if parts.iter().copied().chain(suffix).any(|part| part.contains('*')) {
            return refuse("`*` may only begin its last segment, as in `/docs/*.pdf`");
        }
        if suffix.is_some_and(|suffix| suffix.contains(['{', '}'])) {
            return refuse("a name stands for a complete segment");
        }
        let mut segments = Vec::with_capacity(parts.len());
        for part in parts {
            let segment = match part.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) if is_name(name) => Segment::Name(name.to_owned()),
                None if !part.contains(['{', '}']) => Segment::Literal(part.to_owned()),
                _ => {
                    return refuse(
                        "`{` and `}` may only stand around the name of a complete segment, as in \
                         `/users/{id}`; a name has letters, digits and `_`",
                    );
                }
            };
            if matches!(segment, Segment::Name(_)) && segments.contains(&segment) {
                return refuse("two segments have the same name");
            }
            segments.push(segment);
        }
        Ok(Self { segments, ending })
    }

    /// Returns the segments that a path must begin with.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns what must follow the segments.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Returns the number of the segment with this name, counted from 0.
    pub fn number_of(&self, name: &str) -> Option<usize> {
        let is_named = |segment: &Segment| matches!(segment, Segment::Name(other) if other == name);
        self.segments.iter().position(is_named)
    }

    /// Returns the names of segments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Literal(_) => None,
            Segment::Name(name) => Some(name.as_str()),
        })
    }

    /// Returns what follows the matched segments of `path`, percent-encoded: empty, or with one `/`
    /// at its start. The pattern must match the path.
    pub fn rest<'a>(&self, path: &RequestPath<'a>) -> Cow<'a, str> {
        match self.ending {
            Ending::Exact { .. } => Cow::Borrowed(""),
            Ending::Below | Ending::Suffix(_) => path.rest_after(self.segments.len()),
        }
    }

    /// Returns the matched segments of `path`, decoded. The pattern must match the path.
    pub fn matched<'p>(&self, path: &'p RequestPath<'_>) -> &'p [u8] {
        path.first_segments(self.segments.len())
    }
}

/// The pattern as it is written, in the shortest form.
impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self.ending, Ending::Exact { .. }) {
            f.write_str("= ")?;
        }
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => write!(f, "/{text}")?,
                Segment::Name(name) => write!(f, "/{{{name}}}")?,
            }
        }
        match &self.ending {
            Ending::Below if self.segments.is_empty() => f.write_str("/"),
            Ending::Below | Ending::Exact { slash: false } => Ok(()),
            Ending::Suffix(suffix) => write!(f, "/*{suffix}"),
            Ending::Exact { slash: true } => f.write_str("/"),
        }
    }
}

/// Returns whether `text` may be the name of a segment.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_written_as_it_was_read() {
        for (text, written) in [
            ("/", "/"),
            ("/static", "/static"),
            ("/static/", "/static"),
            ("/caf\u{e9} x/a=b", "/caf\u{e9} x/a=b"),
            ("/users/{id}/avatar", "/users/{id}/avatar"),
            ("/{a}/{_b2}", "/{a}/{_b2}"),
            ("*.pdf", "/*.pdf"),
            ("/*.tar.gz", "/*.tar.gz"),
            ("/docs/{id}/*-small.jpg", "/docs/{id}/*-small.jpg"),
            ("=/favicon.ico", "= /favicon.ico"),
            ("=   /a/", "= /a/"),
            ("= /", "= /"),
            ("= /users/{id}", "= /users/{id}"),
        ] {
            let pattern = PathPattern::parse(text).unwrap();
            assert_eq!(pattern.to_string(), written, "{text}");
            assert_eq!(PathPattern::parse(written).unwrap(), pattern, "{text}");
        }
    }

    #[test]
    fn a_pattern_that_matches_nothing_or_is_ambiguous_is_refused() {
        for (text, expected) in [
            ("", "begin with `/`"),
            ("x", "begin with `/`"),
            ("=", "begin with `/`"),
            ("= x", "begin with `/`"),
            ("= *.pdf", "begin with `/`"),
            (" /a", "begin with `/`"),
            ("/a%20b", "written decoded"),
            ("/a?b", "without `%`"),
            ("/a#b", "without `%`"),
            ("//", "it has `//`"),
            ("/a//b", "it has `//`"),
            ("/a/../b", "it has `//`"),
            ("/a/.", "it has `//`"),
            ("/a/*", "leave out `*`"),
            ("*", "leave out `*`"),
            ("= /a/*.pdf", "exact path has no `*`"),
            ("/*/a", "only begin its last segment"),
            ("/*.pdf/", "only begin its last segment"),
            ("/a*.pdf", "only begin its last segment"),
            ("/*.p*", "only begin its last segment"),
            ("**.pdf", "only begin its last segment"),
            ("= /a*", "only begin its last segment"),
            ("/{}", "name of a complete segment"),
            ("/{id}.json", "name of a complete segment"),
            ("/a{id}", "name of a complete segment"),
            ("/{1}", "name of a complete segment"),
            ("/{a b}", "name of a complete segment"),
            ("/{a", "name of a complete segment"),
            ("/a}", "name of a complete segment"),
            ("/*.{id}", "stands for a complete segment"),
            ("/{id}/x/{id}", "same name"),
        ] {
            let error = PathPattern::parse(text).unwrap_err();
            assert!(error.contains(expected) && error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn the_rest_of_a_path_follows_the_matched_segments() {
        for (pattern, path, matched, rest) in [
            ("/", "/a/b", "", "/a/b"),
            ("/", "/", "", "/"),
            ("/shop", "/shop/cart/", "/shop", "/cart/"),
            ("/users/{id}", "/users/a%20b%2Fc", "/users/a b", "/c"),
            ("/docs/*.pdf", "/docs/x/a%c3%a9.pdf", "/docs", "/x/a%C3%A9.pdf"),
            ("*.pdf", "/a.pdf", "", "/a.pdf"),
            ("= /a/b", "/a/./b", "/a/b", ""),
            ("= /a/", "/a/", "/a", ""),
            ("= /", "/", "", ""),
        ] {
            let (pattern, path) =
                (PathPattern::parse(pattern).unwrap(), RequestPath::parse(path).unwrap());
            assert_eq!(pattern.rest(&path), rest, "{pattern}");
            assert_eq!(pattern.matched(&path), matched.as_bytes(), "{pattern}");
        }
    }
}
