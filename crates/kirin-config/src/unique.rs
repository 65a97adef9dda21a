//! Names that only one section may have.

use std::collections::HashMap;

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
    let mut seen: HashMap<&str, &Written<String>> = HashMap::new();
    for name in names {
        let text = name.as_str();
        let first = *seen.entry(text).or_insert(name);
        if first.span() != name.span() {
            let line = source.line_seen_from(first.span().start, name.span().start);
            let message =
                format!("a second [[{section}]] with the {key} `{text}`; the first is on {line}");
            errors.push(source.error(name.span(), message));
        }
    }
}
