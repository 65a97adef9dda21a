//! Regular expressions of paths as paths of Kirin, as far as Kirin has them.

use crate::steps::path_pattern::PathPattern;

/// What Kirin has for a regular expression of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExpressionPaths {
    /// The same paths, and perhaps names that differ only behind a `/`.
    Same(Vec<PathPattern>),
    /// The paths of whole segments. The expression also matches names that only begin so.
    Segments(PathPattern),
    /// All paths that the expression matches, and others.
    Wider(PathPattern),
    /// Kirin has nothing.
    Unknown,
}

impl ExpressionPaths {
    /// Reads an expression that is compared with a path from its first slash.
    pub(crate) fn read(expression: &str) -> Self {
        if let Some(paths) = complete(expression).or_else(|| endings(expression)) {
            return Self::Same(paths);
        }
        let Some(start) = expression.strip_prefix('^') else { return Self::Unknown };
        if has_alternatives(expression) {
            return Self::Unknown;
        }
        let (mut literal, rest) = literal(start);
        if rest.starts_with('?') {
            literal.pop();
        }
        let is_whole = matches!(rest, "" | ".*" | "(.*)");
        if is_whole && let Some(path) = PathPattern::below(&literal) {
            return Self::Segments(path);
        }
        let directory = literal.rsplit_once('/').map(|(directory, _)| directory);
        match directory.and_then(PathPattern::below) {
            Some(path) if path != PathPattern::everything() => Self::Wider(path),
            _ => Self::Unknown,
        }
    }

    /// Returns the paths that are closed if the expression protects something: all that it
    /// matches, if Kirin has these or wider ones.
    pub(crate) fn closed(&self) -> Vec<PathPattern> {
        match self {
            Self::Same(paths) => paths.clone(),
            Self::Segments(path) | Self::Wider(path) => vec![path.clone()],
            Self::Unknown => vec![PathPattern::everything()],
        }
    }
}

/// Reads an expression of one path, or of a path and all below it.
fn complete(expression: &str) -> Option<Vec<PathPattern>> {
    if matches!(
        expression,
        "" | "."
            | ".*"
            | "(.*)"
            | "^"
            | "^/"
            | "^.*"
            | "^(.*)"
            | "^.*$"
            | "^(.*)$"
            | ".*$"
            | "(.*)$"
            | "^.+$"
            | "^(.+)$"
            | "^/?(.*)$"
            | "^/?(.*)"
    ) {
        return Some(vec![PathPattern::everything()]);
    }
    let (path, rest) = literal(expression.strip_prefix('^')?);
    let directory = path.ends_with('/');
    match rest {
        "$" => Some(vec![PathPattern::exact(&path)?]),
        "?$" if directory => {
            let without = path.trim_end_matches('/');
            Some(vec![PathPattern::exact(without)?, PathPattern::exact(&path)?])
        }
        "" | ".*" | "(.*)" | ".*$" | "(.*)$" | ".+" | "(.+)" | ".+$" | "(.+)$" if directory => {
            Some(vec![PathPattern::below(&path)?])
        }
        "?(.*)$" | "?(.*)" if directory => None,
        "(/|$)" | "($|/)" | "(/.*)?$" | "(?:/|$)" | "(?:/.*)?$" | "(/(.*))?$" => {
            Some(vec![PathPattern::below(&path)?])
        }
        _ => None,
    }
}

/// Reads `\.php$`, `\.(jpg|png)$` and `^/dir/.*\.php$`.
fn endings(expression: &str) -> Option<Vec<PathPattern>> {
    let (directory, end) = match expression.strip_prefix('^') {
        Some(start) => {
            let (path, rest) = literal(start);
            let rest =
                [".*", ".+", "(.*)", "(.+)"].iter().find_map(|any| rest.strip_prefix(any))?;
            (path, rest)
        }
        None => {
            let rest = expression.strip_prefix(".*").or(expression.strip_prefix(".+"));
            ("/".to_owned(), rest.unwrap_or(expression))
        }
    };
    if !directory.ends_with('/') {
        return None;
    }
    let names = end.strip_suffix('$')?.strip_prefix("\\.")?;
    let group = names.strip_prefix("(?:").or(names.strip_prefix('('));
    let names = group.map_or(Some(names), |group| group.strip_suffix(')'))?;
    let names: Vec<_> = names.split('|').collect();
    let plain = |name: &&str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if names.len() > 64 || (names.len() > 1 && group.is_none()) || !names.iter().all(plain) {
        return None;
    }
    names.iter().map(|name| PathPattern::ending(&directory, &format!(".{name}"))).collect()
}

/// Returns whether an expression has a `|` outside of groups.
fn has_alternatives(expression: &str) -> bool {
    let (mut depth, mut escaped) = (0_usize, false);
    for character in expression.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// Returns the text that an expression begins with, and the rest of it. The text has its escapes
/// removed.
fn literal(expression: &str) -> (String, &str) {
    let mut text = String::new();
    let mut characters = expression.char_indices().peekable();
    while let Some((offset, character)) = characters.next() {
        let stop = expression.get(offset..).unwrap_or_default();
        match character {
            '\\' => match characters.next() {
                Some((_, next)) if !next.is_alphanumeric() => text.push(next),
                _ => return (text, stop),
            },
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                // The character before it may be missing. The caller looks at a slash.
                if matches!(character, '*' | '{') || (character == '?' && !text.ends_with('/')) {
                    text.pop();
                }
                return (text, stop);
            }
            _ => text.push(character),
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(expression: &str) -> String {
        let write = |paths: &[PathPattern]| {
            paths.iter().map(PathPattern::to_string).collect::<Vec<_>>().join(" ")
        };
        match ExpressionPaths::read(expression) {
            ExpressionPaths::Same(paths) => write(&paths),
            ExpressionPaths::Segments(path) => format!("{path} segments"),
            ExpressionPaths::Wider(path) => format!("{path} wider"),
            ExpressionPaths::Unknown => "unknown".to_owned(),
        }
    }

    #[test]
    fn usual_expressions_are_paths() {
        for (expression, expected) in [
            ("^(.*)$", "/"),
            ("^/$", "= /"),
            ("^/a$", "= /a"),
            ("^/a/?$", "= /a = /a/"),
            ("^/a/(.*)$", "/a"),
            ("^/a/", "/a"),
            ("^/a(/|$)", "/a"),
            ("^/a", "/a segments"),
            ("^/favicon\\.ico$", "= /favicon.ico"),
            ("\\.php$", "*.php"),
            ("\\.(jpg|png)$", "*.jpg *.png"),
            ("^/a/.*\\.pdf$", "/a/*.pdf"),
            ("^/a/(\\d+)$", "/a wider"),
            ("^/ab?c", "unknown"),
            ("^/x/ab*c", "/x wider"),
            ("\\.git", "unknown"),
            ("\\.a|b$", "unknown"),
            ("^/a|^/b", "unknown"),
            ("^/x/a|^/b", "unknown"),
        ] {
            assert_eq!(read(expression), expected, "{expression}");
        }
    }
}
