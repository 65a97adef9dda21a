//! The path of a route.

use std::fmt::{self, Display, Formatter};

/// The path of a route, in one of the forms that Kirin has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum PathPattern {
    /// A path and everything below it. Empty for the root, without a slash at the end otherwise.
    Below(String),
    /// A path alone.
    Exact(String),
    /// The paths below a path whose last segment ends in a text.
    Ending(String, String),
}

impl PathPattern {
    /// Returns the pattern of all paths.
    pub(crate) fn everything() -> Self {
        Self::Below(String::new())
    }

    /// Returns the pattern of a path and everything below it, or `None` if Kirin cannot write it.
    pub(crate) fn below(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return Some(Self::everything());
        }
        is_literal(path).then(|| Self::Below(path.to_owned()))
    }

    /// Returns the pattern of a path alone, or `None` if Kirin cannot write it.
    pub(crate) fn exact(path: &str) -> Option<Self> {
        is_literal(path).then(|| Self::Exact(path.to_owned()))
    }

    /// Returns the pattern of the paths below `directory` that end in a text, or `None` if Kirin
    /// cannot write it.
    pub(crate) fn ending(directory: &str, end: &str) -> Option<Self> {
        let Self::Below(directory) = Self::below(directory)? else { return None };
        let plain = !end.is_empty() && !end.contains(['/', '*', '{', '}']) && is_one_line(end);
        plain.then(|| Self::Ending(directory, end.to_owned()))
    }

    /// Returns the path that the pattern begins with: that of the route's own segments.
    pub(crate) fn start(&self) -> &str {
        match self {
            Self::Below(path) | Self::Exact(path) | Self::Ending(path, _) => path,
        }
    }

    /// Returns whether the pattern matches all paths that the other one matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(path), other) => is_at_or_below(other.start(), path),
            (Self::Ending(path, end), Self::Exact(exact)) => {
                is_at_or_below(exact, path) && exact.trim_end_matches('/').ends_with(end)
            }
            (Self::Ending(path, end), Self::Ending(other, longer)) => {
                is_at_or_below(other, path) && longer.ends_with(end)
            }
            (Self::Exact(path), Self::Exact(other)) => path == other,
            _ => false,
        }
    }

    /// Returns the pattern of the paths that both patterns match, or `None` if there are none.
    pub(crate) fn both(&self, other: &Self) -> Option<Self> {
        if self.covers(other) {
            return Some(other.clone());
        }
        if other.covers(self) {
            return Some(self.clone());
        }
        match (self, other) {
            (Self::Below(path), Self::Ending(directory, end))
            | (Self::Ending(directory, end), Self::Below(path))
                if is_at_or_below(path, directory) =>
            {
                Some(Self::Ending(path.clone(), end.clone()))
            }
            _ => None,
        }
    }
}

impl Display for PathPattern {
    /// Writes the pattern as the key `path` of a route.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(path) if path.is_empty() => f.write_str("/"),
            Self::Below(path) => f.write_str(path),
            Self::Exact(path) => write!(f, "= {path}"),
            Self::Ending(directory, end) if directory.is_empty() => write!(f, "*{end}"),
            Self::Ending(directory, end) => write!(f, "{directory}/*{end}"),
        }
    }
}

/// Returns whether a path is another one or below it.
fn is_at_or_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a path stands for itself in the configuration of Kirin.
fn is_literal(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains(['{', '}', '*'])
        && !path.contains("//")
        && is_one_line(path)
        && path.split('/').all(|segment| segment != "." && segment != "..")
}

fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(path: &str) -> PathPattern {
        PathPattern::below(path).expect(path)
    }

    #[test]
    fn a_path_covers_whole_segments_below_it() {
        assert!(below("/a").covers(&below("/a/b")));
        assert!(!below("/a").covers(&below("/ab")));
        assert!(below("/").covers(&below("/a")));
        assert!(below("/a").covers(&PathPattern::Exact("/a/".into())));
    }

    #[test]
    fn an_ending_and_a_directory_have_paths_in_common() {
        let php = PathPattern::ending("/", ".php").expect("pattern");
        assert_eq!(php.both(&below("/docs")).expect("both").to_string(), "/docs/*.php");
        assert_eq!(below("/docs").both(&below("/other")), None);
    }

    #[test]
    fn a_path_that_kirin_reads_otherwise_is_refused() {
        for path in ["/a{b", "/a*", "a", "/../a", "/a\nb", "/a//b"] {
            assert_eq!(PathPattern::below(path), None, "{path}");
        }
    }
}
