//! The cases that are not in the core of the suite: the small adapters of `examples` lack them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::adapters::Adapter;
use super::cases;

/// The list of the cases that are not in the core.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    #[serde(rename = "left_out")]
    entries: Vec<Entry>,
}

/// Cases that are left out for the same reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub reason: String,
    /// The names of small adapters. The default is all of them.
    #[serde(default = "all_small_adapters")]
    pub adapters: Vec<String>,
    /// The names of files, all of whose cases are left out.
    #[serde(default)]
    pub files: Vec<String>,
    /// The names of cases.
    #[serde(default)]
    pub cases: Vec<String>,
}

fn all_small_adapters() -> Vec<String> {
    Adapter::SMALL.map(|adapter| adapter.name().to_owned()).to_vec()
}

impl LeftOut {
    /// Reads the list.
    ///
    /// # Panics
    /// Panics if it is malformed.
    pub fn read() -> Self {
        let path = cases::directory().with_file_name("core.toml");
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns all entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns why a case of a file is not for small adapters, by the name of the adapter.
    pub fn reasons(&self, file: &str, case: &str) -> BTreeMap<String, String> {
        let is_meant = |entry: &&Entry| {
            entry.files.iter().any(|name| name == file)
                || entry.cases.iter().any(|name| name == case)
        };
        let reasons = self.entries.iter().filter(is_meant).flat_map(|entry| {
            entry.adapters.iter().map(|adapter| (adapter.clone(), entry.reason.clone()))
        });
        reasons.collect()
    }
}
