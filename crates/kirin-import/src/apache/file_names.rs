//! The names of `<Files>` and `<FilesMatch>` as paths of Kirin.

use crate::apache::tree::Directive;
use crate::steps::PathPattern;

/// What a section of files is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileNames {
    /// Names that begin with a dot, which Kirin never serves.
    Hidden,
    /// Names with these ends. They may be more than those of Apache.
    Ends(Vec<String>),
    /// Kirin has nothing.
    Unknown,
}

impl FileNames {
    /// Reads the names of a section.
    pub(crate) fn read(section: &Directive) -> Self {
        let first = section.argument(0);
        if section.name == "filesmatch" {
            return expression(first);
        }
        if first == "~" {
            return expression(section.argument(1));
        }
        let name = first.trim_start_matches('*');
        if first.starts_with('.') {
            return Self::Hidden;
        }
        if name.is_empty() || name.contains(['*', '?', '[', '/']) {
            return Self::Unknown;
        }
        Self::Ends(vec![name.to_owned()])
    }

    /// Returns the paths below a directory.
    pub(crate) fn paths(&self, directory: &str) -> Option<Vec<PathPattern>> {
        let Self::Ends(ends) = self else { return None };
        let directory = if directory.is_empty() { "/" } else { directory };
        let mut paths = ends
            .iter()
            .map(|end| PathPattern::ending(directory, end))
            .collect::<Option<Vec<_>>>()?;
        // A script also runs with a path behind its name.
        let scripts = ends.iter().filter(|end| end.contains(".p") && !end.starts_with('.'));
        let directory = directory.trim_end_matches('/');
        paths.extend(scripts.filter_map(|name| PathPattern::below(&format!("{directory}/{name}"))));
        Some(paths)
    }

    /// Returns whether all scripts in PHP are among them.
    pub(crate) fn has_scripts(&self) -> bool {
        matches!(self, Self::Ends(ends) if ends.iter().any(|end| end == ".php"))
    }
}

/// Reads an expression such as `\.(bak|old)$` and `^(a|b)\.php$`.
fn expression(text: &str) -> FileNames {
    let text = text.strip_prefix("(?i)").unwrap_or(text);
    if text.starts_with("^\\.") {
        return FileNames::Hidden;
    }
    let Some(text) = text.strip_suffix('$') else { return FileNames::Unknown };
    let text = text.trim_start_matches('^');
    let text = text.strip_prefix(".+").or(text.strip_prefix(".*")).unwrap_or(text);
    let mut ends = vec![String::new()];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let group = ["(?:", "(?i:", "("].iter().find_map(|open| rest.strip_prefix(open));
        let (choices, after) = match group {
            Some(group) => match group.split_once(')') {
                Some((choices, after)) => (choices.split('|').collect(), after),
                None => return FileNames::Unknown,
            },
            None if first == '\\' => match rest
                .char_indices()
                .nth(1)
                .zip(rest.char_indices().nth(2).or(Some((rest.len(), ' '))))
            {
                Some(((start, next), (end, _))) if !next.is_alphanumeric() => (
                    vec![rest.get(start..end).unwrap_or_default()],
                    rest.get(end..).unwrap_or_default(),
                ),
                _ => return FileNames::Unknown,
            },
            None if first.is_alphanumeric() || first == '-' || first == '_' => rest
                .split_at_checked(first.len_utf8())
                .map_or((Vec::new(), ""), |(one, after)| (vec![one], after)),
            None => return FileNames::Unknown,
        };
        if choices.len().saturating_mul(ends.len()) > 64 {
            return FileNames::Unknown;
        }
        let mut longer = Vec::new();
        for end in &ends {
            for choice in &choices {
                let Some(choice) = plain(choice) else { return FileNames::Unknown };
                longer.push(format!("{end}{choice}"));
            }
        }
        if longer.iter().any(|end| end.len() > 100) {
            return FileNames::Unknown;
        }
        ends = longer;
        rest = after;
    }
    if ends.iter().any(String::is_empty) { FileNames::Unknown } else { FileNames::Ends(ends) }
}

/// Returns a text of letters with escaped dots without the escapes.
fn plain(text: &str) -> Option<String> {
    let text = text.replace("\\.", ".").replace("\\-", "-");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    text.chars().all(is_plain).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_names_are_ends() {
        let ends =
            |ends: &[&str]| FileNames::Ends(ends.iter().map(|end| (*end).to_owned()).collect());
        for (text, expected) in [
            ("^\\.ht", FileNames::Hidden),
            ("\\.php$", ends(&[".php"])),
            (".+\\.ph(ar|p|tml)$", ends(&[".phar", ".php", ".phtml"])),
            ("\\.(?i:php|phtml)$", ends(&[".php", ".phtml"])),
            ("\\.(bak|sql)$", ends(&[".bak", ".sql"])),
            ("^(wp-config\\.php|xmlrpc\\.php)$", ends(&["wp-config.php", "xmlrpc.php"])),
            ("\\d+$", FileNames::Unknown),
            ("a", FileNames::Unknown),
            (".*$", FileNames::Unknown),
        ] {
            assert_eq!(expression(text), expected, "{text}");
        }
    }
}
