//! Request targets (RFC 9112 section 3.2): splits them into their parts and checks their
//! characters.
//!
//! The request parser calls it when a head is complete.

use http::Method;

use crate::fields::byte_scan::any_byte;
use crate::host::parse_host;
use crate::request::Reject;

/// Splits a request target of any of the four forms (RFC 9112 section 3.2) into authority, path and
/// query.
pub(crate) fn split_target<'a>(
    target: &'a str,
    method: &Method,
) -> Result<(Option<&'a str>, &'a str, Option<&'a str>), Reject> {
    // Bytes above 127 were encoded before, where that is allowed.
    let is_bad = |byte: u8| (byte <= b' ') | (byte >= 0x7f) | (byte == b'#');
    if any_byte(target.as_bytes(), is_bad) {
        return Err(Reject::Bad("request target has a character that must be percent-encoded"));
    }
    if target.starts_with('/') {
        let (path, query) = split_query(target);
        return Ok((None, path, query));
    }
    if target == "*" && *method == Method::OPTIONS {
        return Ok((None, target, None));
    }
    let scheme_end =
        target.find("://").ok_or(Reject::Bad("request target is neither a path nor a URI"))?;
    let scheme = &target[..scheme_end];
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(Reject::Bad("request target is not an http URI"));
    }
    let rest = &target[scheme_end + 3..];
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(authority_end);
    parse_host(authority.as_bytes())
        .map_err(|_| Reject::Bad("authority of the request target is malformed"))?;
    let (path, query) = split_query(path_and_query);
    Ok((Some(authority), if path.is_empty() { "/" } else { path }, query))
}

fn split_query(target: &str) -> (&str, Option<&str>) {
    match memchr::memchr(b'?', target.as_bytes()) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    }
}
