//! Request targets and hosts (RFC 9112 section 3.2): split into their parts and checked for their characters.
//!
//! Called by the request parser once a head is whole.

use crate::request::Reject;
use http::Method;
use std::net::Ipv6Addr;

/// `uri-host [ ":" port ]`, not empty: so that it can be handed to an application and stand in a redirect (RFC 9112 section
/// 3.2, RFC 3986 section 3.2.2).
pub(crate) fn parse_host(value: &[u8]) -> Result<&str, Reject> {
    let bad = Reject::Bad("Host is not a host");
    let text = std::str::from_utf8(value).map_err(|_| bad)?;
    let name_end = match value.first() {
        Some(b'[') => {
            let end = memchr::memchr(b']', value).ok_or(bad)?;
            text[1..end].parse::<Ipv6Addr>().map_err(|_| bad)?;
            end + 1
        }
        _ => {
            let end = memchr::memchr(b':', value).unwrap_or(value.len());
            if !is_registered_name(&value[..end]) {
                return Err(bad);
            }
            end
        }
    };
    match &value[name_end..] {
        [] | [b':'] => Ok(text),
        [b':', port @ ..]
            if port.len() <= 5
                && port.iter().all(u8::is_ascii_digit)
                && text[name_end + 1..].parse::<u16>().is_ok() =>
        {
            Ok(text)
        }
        _ => Err(bad),
    }
}

/// `reg-name` of RFC 3986, of at least one byte.
fn is_registered_name(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        let allowed = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => true,
            b'%' => {
                bytes.next().is_some_and(u8::is_ascii_hexdigit)
                    && bytes.next().is_some_and(u8::is_ascii_hexdigit)
            }
            _ => b"_~!$&'()*+,;=".contains(byte),
        };
        if !allowed {
            return false;
        }
    }
    !name.is_empty()
}

/// Splits a request target of any of the four forms (RFC 9112 section 3.2) into authority, path and query.
pub(crate) fn split_target<'a>(
    target: &'a str,
    method: &Method,
) -> Result<(Option<&'a str>, &'a str, Option<&'a str>), Reject> {
    if target.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'#') {
        return Err(Reject::Bad("request target has a character that must be percent-encoded"));
    }
    if target.starts_with('/') {
        let (path, query) = split_query(target);
        return Ok((None, path, query));
    }
    if target == "*" && *method == Method::OPTIONS {
        return Ok((None, target, None));
    }
    let scheme_end = target.find("://").ok_or(Reject::Bad("request target is neither a path nor a URI"))?;
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
