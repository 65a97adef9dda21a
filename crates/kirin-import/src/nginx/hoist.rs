//! Keys that all routes of a site have: they are written once, in the site.

use toml::{Table, Value};

use super::route::Route;
use crate::section::Section;

/// The keys that may stand in a site. For some of them a place must be there, which is given.
const KEYS: [(&str, &[&str]); 18] = [
    ("redirects", &[]),
    ("allow", &[]),
    ("basic_auth", &[]),
    ("basic_auth_realm", &[]),
    ("auth_request", &[]),
    ("rate_limit", &[]),
    ("in_flight_limit", &[]),
    ("body_limit", &["proxy:", "cgi:"]),
    ("request_buffering", &["proxy:"]),
    ("index", &["files:"]),
    ("listing", &["files:"]),
    ("follow_links", &["files:", "cgi:"]),
    ("precompressed", &["files:"]),
    ("mime_types", &["files:"]),
    ("charset", &["files:"]),
    ("intercept_errors", &["proxy:", "cgi:"]),
    ("compress", &["files:", "proxy:", "cgi:", "store"]),
    ("access_log", &[]),
];

/// The keys whose tables are joined with those of the site.
const JOINED: [(&str, &[&str]); 3] =
    [("headers", &[]), ("request_headers", &["proxy:"]), ("error_pages", &[])];

/// Moves the entries of a table that all routes have to the site.
fn hoist_entries(site: &mut Section, routes: &mut [Route], key: &str, places: &[&str]) {
    let is_for =
        |route: &&mut Route| places.is_empty() || places.iter().any(|place| route.has_place(place));
    let mut concerned: Vec<&mut Route> = routes.iter_mut().filter(is_for).collect();
    if concerned.len() < 2 {
        return;
    }
    let table = |route: &Route| route.section.get(key).and_then(Value::as_table).cloned();
    let mut common: Option<Table> = None;
    for route in &concerned {
        let own = table(route).unwrap_or_default();
        common = Some(match common {
            None => own,
            Some(mut common) => {
                common.retain(|name, value| own.get(name) == Some(value));
                common
            }
        });
    }
    let common = common.filter(|common| !common.is_empty()).unwrap_or_default();
    for route in concerned.iter_mut().filter(|_| !common.is_empty()) {
        let mut own = table(route).unwrap_or_default();
        own.retain(|name, _| !common.contains_key(name));
        match own.is_empty() {
            true => route.remove(key),
            false => route.section.set(key, own),
        }
    }
    if !common.is_empty() {
        site.set(key, common);
    }
}

/// Moves the keys that all routes have in the same way to the site.
pub fn hoist(site: &mut Section, routes: &mut [Route]) {
    if routes.len() < 2 {
        return;
    }
    for (key, places) in JOINED {
        hoist_entries(site, routes, key, places);
    }
    for (key, places) in KEYS {
        let is_for = |route: &&mut Route| {
            places.is_empty() || places.iter().any(|place| route.has_place(place))
        };
        let mut concerned = routes.iter_mut().filter(is_for).peekable();
        let Some(first) = concerned.peek() else { continue };
        let Some(value) = first.section.get(key).cloned() else { continue };
        let mut of_routes: Vec<_> = concerned.collect();
        let is_common = of_routes.len() > 1
            && of_routes.iter().all(|route| route.section.get(key) == Some(&value));
        // With `cgi:` and `compress`, a place that is not concerned would get the key, too.
        if !is_common
            || value == Value::Boolean(false)
                && key != "access_log"
                && key != "precompressed"
                && key != "compress"
        {
            continue;
        }
        for route in &mut of_routes {
            route.remove(key);
        }
        site.set(key, value);
    }
}
