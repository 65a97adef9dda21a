//! Applies the keys of a site to its routes, unless a route has the key itself.
//!
//! The keys move from the site to its routes before the document is read. So each key is declared
//! once, in the section of a route, and errors point at the line of the site.

use std::sync::LazyLock;

use kirin_gateway::places::registry::PLACE_KINDS;
use serde_spanned::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::document::Document;
use crate::place::forms;
use crate::route::RouteSection;
use crate::source::{ConfigError, ConfigSource};

/// The keys of a route that say which requests it answers, and with what. A site cannot have them.
const OF_ROUTES_ONLY: [&str; 7] =
    ["path", "match", "try", "redirect", "redirect_status", "rewrite", "fallback"];

/// The keys whose tables are joined. A route has the entries of its site besides its own.
const JOINED: [&str; 3] = ["headers", "request_headers", "error_pages"];

/// A key and its value, with their places in the file.
type TableEntry<'a> = (Spanned<DeString<'a>>, Spanned<DeValue<'a>>);

/// The keys that a site can have for its routes.
pub static INHERITED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = schemars::schema_for!(RouteSection).to_value();
    let keys = schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
    keys.filter(|key| !OF_ROUTES_ONLY.contains(&key.as_str())).cloned().collect()
});

/// Returns `document` with the keys of its sites moved to their routes.
pub fn inherit<'a>(document: &Document<'a>) -> Document<'a> {
    let mut document = document.clone();
    let sites = document.root_mut().get_mut("site").map(Spanned::get_mut);
    if let Some(DeValue::Array(sites)) = sites {
        for site in sites.iter_mut() {
            if let DeValue::Table(site) = site.get_mut() {
                inherit_in(site);
            }
        }
    }
    document
}

/// Returns an error for each key of a site that would be ignored, because it is for a kind of place
/// that no route of the site has.
pub fn unusable_keys(document: &Document<'_>, source: &ConfigSource) -> Vec<ConfigError> {
    let Some(DeValue::Array(sites)) = document.root().get("site").map(Spanned::get_ref) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for site in sites.iter().filter_map(|site| site.get_ref().as_table()) {
        let Some(DeValue::Array(routes)) = site.get("route").map(Spanned::get_ref) else {
            continue;
        };
        let is_used = |key: &str| {
            routes
                .iter()
                .filter_map(|route| route.get_ref().as_table())
                .any(|route| is_for(route, key))
        };
        for (key, value) in site {
            let name: &str = key.get_ref();
            // As in a route, `false` may stand anywhere.
            if !INHERITED.iter().any(|inherited| inherited == name)
                || matches!(value.get_ref(), DeValue::Boolean(false))
                || is_used(name)
            {
                continue;
            }
            let needed = forms("or", |kind| kind.keys.contains(&name));
            let message = format!(
                "`{name}` has no effect: no route of the site has {needed} in `try`, which it is for"
            );
            errors.push(source.error(key.span(), message));
        }
    }
    errors
}

fn inherit_in<'a>(site: &mut DeTable<'a>) {
    let is_inherited = |key: &str| INHERITED.iter().any(|inherited| inherited == key);
    let all: Vec<TableEntry<'a>> = std::mem::take(site).into_iter().collect();
    let (inherited, own): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(key, _)| is_inherited(key.get_ref()));
    site.extend(own);
    let Some(DeValue::Array(routes)) = site.get_mut("route").map(Spanned::get_mut) else { return };
    for route in routes.iter_mut() {
        if let DeValue::Table(route) = route.get_mut() {
            for entry in &inherited {
                add(route, entry);
            }
        }
    }
}

/// Adds a key of the site to a route, unless the route has it, or has no place that it is for.
fn add<'a>(route: &mut DeTable<'a>, (key, value): &TableEntry<'a>) {
    let name: &str = key.get_ref();
    if !is_for(route, name) {
        return;
    }
    match route.get_mut(name).map(Spanned::get_mut) {
        None => {
            route.insert(key.clone(), value.clone());
        }
        Some(DeValue::Table(own)) if JOINED.contains(&name) => {
            let DeValue::Table(inherited) = value.get_ref() else { return };
            for (key, value) in inherited {
                // Names of fields are the same in upper and lower case.
                if !own.keys().any(|own| own.get_ref().eq_ignore_ascii_case(key.get_ref())) {
                    own.insert(key.clone(), value.clone());
                }
            }
        }
        Some(_) => {}
    }
}

/// Returns whether a key means something for the places of a route.
fn is_for(route: &DeTable<'_>, key: &str) -> bool {
    let mut needed = PLACE_KINDS.iter().filter(|kind| kind.keys.contains(&key)).peekable();
    if needed.peek().is_none() {
        return true;
    }
    let Some(DeValue::Array(places)) = route.get("try").map(Spanned::get_ref) else { return false };
    let is_place = |name: &str| {
        places.iter().any(|place| {
            let place = place.get_ref().as_str().unwrap_or_default();
            place.split(':').next() == Some(name)
        })
    };
    needed.any(|kind| is_place(kind.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_only_routes_have_are_keys_of_routes() {
        let schema = schemars::schema_for!(RouteSection).to_value();
        for key in OF_ROUTES_ONLY.iter().chain(&JOINED) {
            assert!(schema["properties"][key].is_object(), "{key}");
        }
        assert!(INHERITED.iter().any(|key| key == "cache"));
        assert!(!INHERITED.iter().any(|key| key == "try"));
    }
}
