//! Names that only one section may have.

use crate::source::{ErrorCollector, Source};
use crate::written::Written;

/// Refuses a second section of the same name.
pub fn check_unique<'a>(
    section: &str,
    key: &str,
    names: impl Iterator<Item = &'a Written<String>>,
    source: &Source,
    errors: &mut ErrorCollector,
) {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if seen.contains(&name.as_str()) {
            let message = format!("a second [[{section}]] with the {key} `{}`", name.as_str());
            errors.push(source.error(name.span(), message));
        }
        seen.push(name);
    }
}
