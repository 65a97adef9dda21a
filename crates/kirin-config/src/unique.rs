//! Names that only one section may have.

use crate::source::{ConfigSource, ErrorCollector};
use crate::written::Written;

/// Refuses a second section of the same name.
pub fn check_unique<'a>(
    section: &str,
    key: &str,
    names: impl Iterator<Item = &'a Written<String>>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    let mut seen: Vec<&Written<String>> = Vec::new();
    for name in names {
        if let Some(first) = seen.iter().find(|other| other.as_str() == name.as_str()) {
            let (name_text, line) = (name.as_str(), source.line_of(first.span().start));
            let message = format!(
                "a second [[{section}]] with the {key} `{name_text}`; the first is on line {line}"
            );
            errors.push(source.error(name.span(), message));
        }
        seen.push(name);
    }
}
