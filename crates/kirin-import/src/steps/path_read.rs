//! Patterns of paths of other servers as paths of Kirin.

use crate::steps::expression::ExpressionPaths;
use crate::steps::path_pattern::PathPattern;

/// What Kirin has for a pattern of a path.
#[derive(Debug, Default)]
pub(crate) struct PathRead {
    pub(crate) paths: Vec<PathPattern>,
    /// Why the paths are not those of the pattern. They are more then, or there are none.
    pub(crate) problem: Option<String>,
    /// What differs in small things.
    pub(crate) remark: Option<String>,
}

impl PathRead {
    /// Reads a regular expression, which is written as `written`.
    pub(crate) fn of_expression(written: &str, expression: &str) -> Self {
        let problem = format!("`{written}`: Kirin has no regular expressions for paths");
        let closed = match ExpressionPaths::read(expression) {
            ExpressionPaths::Same(paths) => return Self { paths, ..Self::default() },
            ExpressionPaths::Segments(path) => return below_segments(written, path),
            ExpressionPaths::Wider(path) => Some(path),
            ExpressionPaths::Unknown => None,
        };
        wider(closed, problem)
    }

    /// Reads a pattern with `*`.
    pub(crate) fn of_stars(pattern: &str) -> Self {
        stars(pattern)
    }
}

/// Reads a pattern with `*`.
fn stars(pattern: &str) -> PathRead {
    let stars = pattern.matches('*').count();
    let found = match (stars, pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (0, ..) => PathPattern::exact(pattern),
        (1, Some("" | "/"), _) => Some(PathPattern::everything()),
        (1, Some(start), _) => return below(pattern, start),
        (1, _, Some(end)) => PathPattern::ending("/", end),
        (1, ..) => {
            let (start, end) = pattern.split_once('*').unwrap_or_default();
            start.strip_suffix('/').and_then(|start| PathPattern::ending(start, end))
        }
        // `*.php/*` is the path of a script with a rest, which Kirin finds itself.
        (2, Some(start), Some(_)) => {
            let script = start.strip_prefix('*').and_then(|text| text.strip_suffix('/'));
            let path = script.and_then(|end| PathPattern::ending("/", end));
            match path {
                Some(path) => return script_with_rest(pattern, path),
                None => None,
            }
        }
        _ => None,
    };
    match found {
        Some(found) => PathRead { paths: vec![found], ..PathRead::default() },
        None => {
            let start = literal_start(pattern);
            wider(start, format!("`{pattern}`: Kirin has `*` only for the end of a name"))
        }
    }
}

/// Returns a path for a pattern of scripts with a path behind their names.
fn script_with_rest(pattern: &str, path: PathPattern) -> PathRead {
    let remark = format!(
        "`{pattern}`: Kirin finds scripts with a path behind their names by itself. If this \
         refuses clients, PROTECTION NOT CARRIED OVER for such paths"
    );
    PathRead { paths: vec![path], problem: None, remark: Some(remark) }
}

/// Reads `/docs/*` and `/docs*`.
fn below(pattern: &str, start: &str) -> PathRead {
    let Some(found) = PathPattern::below(start) else {
        return wider(None, format!("`{pattern}`: Kirin cannot write this path"));
    };
    if start.ends_with('/') {
        return PathRead { paths: vec![found], ..PathRead::default() };
    }
    below_segments(pattern, found)
}

/// Returns a path for a pattern that also matches names that only begin so.
fn below_segments(pattern: &str, path: PathPattern) -> PathRead {
    let remark = format!(
        "`{pattern}`: in Kirin a path has whole segments, so names that only begin so are not \
         among them. If this refuses clients, PROTECTION NOT CARRIED OVER for such names"
    );
    PathRead { paths: vec![path], problem: None, remark: Some(remark) }
}

/// Returns the directory that all paths of a pattern are in.
fn wider(directory: Option<PathPattern>, problem: String) -> PathRead {
    PathRead { paths: directory.into_iter().collect(), problem: Some(problem), remark: None }
}

/// Returns the directory that a pattern begins with, unless that is the root.
fn literal_start(pattern: &str) -> Option<PathPattern> {
    let (start, _) = pattern.split_once('*')?;
    let (directory, _) = start.rsplit_once('/')?;
    PathPattern::below(directory).filter(|path| *path != PathPattern::everything())
}
