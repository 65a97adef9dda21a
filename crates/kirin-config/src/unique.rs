//! Names that only one section may have.

use crate::source::{ErrorCollector, Source};
use crate::written::Written;

/// Refuses a second section of the same name. A slash at the end of a path makes no difference.
pub fn check_unique<'a>(
    section: &str,
    key: &str,
    names: impl Iterator<Item = &'a Written<String>>,
    source: &Source,
    errors: &mut ErrorCollector,
) {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        let same = name.trim_end_matches('/');
        if seen.contains(&same) {
            let message = format!("a second [[{section}]] with the {key} `{}`", name.as_str());
            errors.push(source.error(name.span(), message));
        }
        seen.push(same);
    }
}
