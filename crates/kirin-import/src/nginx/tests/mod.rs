//! Imports of whole configurations.
//!
//! The rows of each topic have the rows of docs/from-nginx.md: what nginx reads, and what the
//! importer writes.

mod access;
mod caches;
mod certificates;
mod connections;
mod doubling;
mod files;
mod guards;
mod includes;
mod locations;
mod redirects;
mod servers;
mod upstreams;

use std::collections::BTreeMap;

use super::import;
use crate::files::Files;
use crate::report::{Import, Outcome};

/// Files by their paths.
#[derive(Default)]
pub struct FakeFiles(pub BTreeMap<String, String>);

impl FakeFiles {
    /// Returns files with these paths and texts.
    pub fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }
}

impl Files for FakeFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        self.0.get(path).cloned().ok_or_else(|| "there is no such file".to_owned())
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
        let is_pattern = pattern.contains('*');
        let fits = |path: &&String| match is_pattern {
            true => path.starts_with(start) && path.ends_with(end),
            false => *path == pattern,
        };
        self.0.keys().filter(fits).cloned().collect()
    }
}

/// Returns the import of one text.
pub fn import_text(text: &str) -> Import {
    let files = FakeFiles::new(&[("n", text)]);
    import("n", &files).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Returns the lines of a kirin.toml, without comments, the common listener and the site for all
/// hosts.
pub fn written(text: &str) -> String {
    let config = import_text(text).config();
    let read: Result<toml::Table, _> = config.parse();
    assert!(read.is_ok(), "not TOML: {config}");
    let lines = config.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("[[listener]]\naddress = \"*:80\"\n[[", "[[")
        .replace("[[site]]\nhosts = [\"*\"]\n", "")
}

/// Checks rows of what nginx reads and what the importer writes.
fn check_rows(rows: &[(&str, &str)]) {
    for (nginx, expected) in rows {
        assert_eq!(&written(nginx), expected, "\nnginx: {nginx}");
    }
}

/// Returns the texts of what was left out, each with its directive.
pub fn left_out(text: &str) -> Vec<String> {
    let notes = import_text(text).notes.into_iter();
    let texts = notes.filter_map(|note| match note.outcome {
        Outcome::LeftOut(text) => Some(format!("{} {text}", note.directive)),
        _ => None,
    });
    texts.collect()
}
