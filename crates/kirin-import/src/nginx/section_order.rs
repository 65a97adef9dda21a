//! The order of the keys of a route.

use crate::section::Section;

/// The keys in the order in which they are written.
const ORDER: [&str; 39] = [
    "hosts",
    "name",
    "servers",
    "root",
    "path",
    "match",
    "try",
    "fallback",
    "redirect",
    "redirect_status",
    "redirects",
    "rewrite",
    "deny",
    "allow",
    "maintenance",
    "basic_auth",
    "basic_auth_realm",
    "auth_request",
    "rate_limit",
    "in_flight_limit",
    "body_limit",
    "request_buffering",
    "index",
    "listing",
    "follow_links",
    "precompressed",
    "immutable",
    "mime_types",
    "charset",
    "headers",
    "request_headers",
    "error_pages",
    "intercept_errors",
    "compress",
    "cache",
    "cgi",
    "ssi",
    "access_log",
    "esi",
];

/// Sorts the keys of a section.
pub fn sort_keys(section: &mut Section) {
    let position = |key: &str| ORDER.iter().position(|other| *other == key).unwrap_or(ORDER.len());
    section.keys.sort_by_key(|(key, _)| position(key));
}
