//! What a `pass` leads to: applications and upstreams.

use std::collections::HashMap;

use crate::draft::Upstreams;
use crate::section::Section;

/// The places of applications and upstreams by their names in `pass`.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    places: HashMap<String, String>,
    pub(crate) upstreams: Upstreams,
}

impl Targets {
    /// Adds the place of a name such as `applications/blog`.
    pub(crate) fn add(&mut self, pass: String, place: String) {
        self.places.insert(pass, place);
    }

    /// Returns the place of a `pass`.
    pub(crate) fn place(&self, pass: &str) -> Option<String> {
        self.places.get(pass).cloned()
    }

    /// Returns the place of a server of HTTP.
    pub(crate) fn server(&mut self, address: &str) -> String {
        let mut keys = Section::default();
        keys.set("servers", vec![address.to_owned()]);
        let name = address.trim_start_matches("unix:").trim_start_matches('/');
        format!("proxy:{}", self.upstreams.add(name, keys))
    }
}
