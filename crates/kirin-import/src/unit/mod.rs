//! `unit.json`: the configuration of NGINX Unit.
//!
//! Unit tries the steps of its routes in their order. The routes of Kirin answer the same
//! (`steps`).

mod access_log;
mod action;
mod applications;
mod conditions;
mod json;
mod listeners;
mod patterns;
mod python;
mod routes;
mod settings;
mod sites;
mod targets;
#[cfg(test)]
mod tests;
mod upstreams;
mod variables;

pub(crate) use patterns::host as host_pattern;

use crate::draft::Draft;
use crate::error::ImportError;
use crate::files::Files;
use crate::report::{Import, Place};
use crate::unit::json::{Entry, Node};
use crate::unit::sites::{add_sites, served};
use crate::unit::targets::Targets;

/// Imports a configuration of Unit, as `GET /config` of its control socket answers.
///
/// # Errors
/// Returns an error if the file cannot be read, or if it is not JSON.
pub fn import(file: &str, files: &dyn Files) -> Result<Import, ImportError> {
    let at = |line| Place { file: file.to_owned(), line };
    let text = files.read(file).map_err(|message| ImportError { place: at(1), message })?;
    let root =
        json::parse(&text).map_err(|(line, message)| ImportError { place: at(line), message })?;
    // The answer of `GET /` has the certificates beside the configuration.
    let config = root.get("config").filter(|_| root.get("listeners").is_none()).unwrap_or(&root);
    let mut draft = Draft::default();
    let mut targets = Targets::default();
    let section = |key| config.get(key).map(Node::entries).unwrap_or_default();
    let served = served(section("listeners"), config.get("routes"));
    for entry in section("listeners").iter().filter(|entry| served.keeps(entry)) {
        listeners::listener(entry, &at(entry.line), &mut draft);
    }
    for entry in section("applications") {
        applications::application(entry, &at(entry.line), &mut draft, &mut targets);
    }
    for entry in section("upstreams") {
        upstreams::upstream(entry, &at(entry.line), &mut draft, &mut targets);
    }
    let settings = config.get("settings").map(|node| settings::settings(node, file, &mut draft));
    if let Some(entry) = entry(config, "access_log") {
        access_log::access_log(&entry.node, &at(entry.line), &mut draft);
    }
    for entry in config.entries() {
        let known = ["listeners", "applications", "upstreams", "settings", "access_log", "routes"];
        if !known.contains(&entry.key.as_str()) {
            draft.notes.unknown(&at(entry.line), &format!("\"{}\"", entry.key));
        }
    }
    let settings = settings.unwrap_or_default();
    add_sites(config, &served, file, &mut draft, &mut targets, &settings)?;
    draft.upstreams = targets.upstreams;
    let mut import = draft.finish(&at(1))?;
    import.notes.sort_by_key(|note| note.place.line);
    Ok(import)
}

fn entry<'a>(node: &'a Node, key: &str) -> Option<&'a Entry> {
    node.entries().iter().find(|entry| entry.key == key)
}
