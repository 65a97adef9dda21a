//! Keys that all routes of a site have: they are written once, in the site.

use toml::Value;

use crate::section::Section;

use super::route::Route;

/// The keys that may stand in a site. For some of them a place must be there, which is given.
const KEYS: [(&str, &[&str]); 20] = [
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
    ("headers", &[]),
    ("request_headers", &["proxy:"]),
    ("error_pages", &[]),
    ("intercept_errors", &["proxy:", "cgi:"]),
    ("compress", &["files:", "proxy:", "cgi:", "store"]),
    ("access_log", &[]),
];

/// Moves the keys that all routes have in the same way to the site.
pub fn hoist(site: &mut Section, routes: &mut [Route]) {
    if routes.len() < 2 {
        return;
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
