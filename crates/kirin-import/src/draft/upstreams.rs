//! The upstreams of a `kirin.toml` while it is made.

use std::collections::HashMap;

use crate::draft::free_names::FreeNames;
use crate::section::Section;

/// The upstreams. Two that say the same are one.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    sections: Vec<Section>,
    /// The name by all other keys.
    names: HashMap<String, String>,
    free_names: FreeNames,
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
        let name = self.free_names.take(wanted);
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
}
