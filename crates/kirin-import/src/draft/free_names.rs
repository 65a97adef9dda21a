//! Names of applications and upstreams, each given once.

use std::collections::{HashMap, HashSet};

/// The names that were given.
#[derive(Debug, Default)]
pub(crate) struct FreeNames {
    taken: HashSet<String>,
    /// How often a name was wanted. With it, many wishes for one name cost no search each.
    wanted: HashMap<String, usize>,
}

impl FreeNames {
    /// Returns a name that was not given yet: `wanted`, if possible, or with a number behind it.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let base = name_of(wanted);
        let mut name = base.clone();
        let count = self.wanted.entry(base.clone()).or_insert(1);
        while !self.taken.insert(name.clone()) {
            *count += 1;
            name = format!("{base}-{count}");
        }
        name
    }
}

/// Returns a text as a name that Kirin allows: letters, digits, `-` and `_`.
pub(crate) fn name_of(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = text.chars().take(50).map(|c| if keep(c) { c } else { '-' }).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}
