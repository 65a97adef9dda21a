//! The upstreams of a `kirin.toml` while it is made.

use std::collections::{HashMap, HashSet};

use crate::section::Section;

/// The upstreams. Two that say the same are one.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    sections: Vec<Section>,
    /// The name by all other keys.
    names: HashMap<String, String>,
    taken: HashSet<String>,
    /// How often a name was wanted.
    wanted: HashMap<String, usize>,
}

impl Upstreams {
    /// Adds an upstream with these keys, unless one with the same keys is there. Returns its name,
    /// which is `wanted` unless another upstream has that.
    pub(crate) fn add(&mut self, wanted: &str, keys: Section) -> String {
        let identity = Section { comments: Vec::new(), ..keys.clone() }.to_string();
        if let Some(name) = self.names.get(&identity) {
            return name.clone();
        }
        let name = self.add_own(wanted, keys);
        self.names.insert(identity, name.clone());
        name
    }

    /// Adds an upstream, also if another one says the same. Returns its name.
    pub(crate) fn add_own(&mut self, wanted: &str, keys: Section) -> String {
        let name = self.free_name(wanted);
        let mut section = Section::new("[[upstream]]");
        section.comments.clone_from(&keys.comments);
        section.set("name", name.as_str());
        for (key, value) in keys.keys {
            section.set(&key, value);
        }
        self.sections.push(section);
        name
    }

    /// Returns the upstreams in the order in which they were added.
    pub(crate) fn into_sections(self) -> Vec<Section> {
        self.sections
    }

    /// Returns a name that no upstream has yet.
    fn free_name(&mut self, wanted: &str) -> String {
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
