//! Request targets and hosts (RFC 9112 section 3.2): split into their parts and checked for their
//! characters.
//!
//! Called by the request parser once a head is whole.

use std::net::Ipv6Addr;

use http::Method;

use crate::request::Reject;

/// `uri-host [ ":" port ]`, not empty: so that it can be handed to an application and stand in a
/// redirect (RFC 9112 section 3.2, RFC 3986 section 3.2.2).
pub(crate) fn parse_host(value: &[u8]) -> Result<&str, Reject> {
    let bad = Reject::Bad("Host is not a host");
    let text = std::str::from_utf8(value).map_err(|_| bad)?;
    let name_end = match value.first() {
        Some(b'[') => {
            let end = memchr::memchr(b']', value).ok_or(bad)?;
            text[1..end].parse::<Ipv6Addr>().map_err(|_| bad)?;
            end + 1
        }
        _ => match registered_name_length(value) {
            0 => return Err(bad),
            length => length,
        },
    };
    match &value[name_end..] {
        [] => Ok(text),
        [b':', port @ ..] if is_port(port) => Ok(text),
        _ => Err(bad),
    }
}

/// `*DIGIT` of RFC 3986, as far as TCP has ports.
fn is_port(digits: &[u8]) -> bool {
    let number = digits.iter().try_fold(0u32, |number, byte| match byte {
        b'0'..=b'9' => {
            Some(number * 10 + u32::from(byte - b'0')).filter(|number| *number <= 65_535)
        }
        _ => None,
    });
    digits.len() <= 5 && number.is_some()
}

/// How many bytes at the start are a `reg-name` of RFC 3986.
fn registered_name_length(value: &[u8]) -> usize {
    let mut length = 0;
    while let Some(byte) = value.get(length) {
        length += match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => 1,
            b'%' => match value.get(length + 1..length + 3) {
                Some([high, low]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => 3,
                _ => return length,
            },
            _ if b"_~!$&'()*+,;=".contains(byte) => 1,
            _ => return length,
        };
    }
    length
}

/// Splits a request target of any of the four forms (RFC 9112 section 3.2) into authority, path and
/// query.
pub(crate) fn split_target<'a>(
    target: &'a str,
    method: &Method,
) -> Result<(Option<&'a str>, &'a str, Option<&'a str>), Reject> {
    // Bytes above 127 have been escaped before, where they may be.
    if target.bytes().any(|byte| byte <= b' ' || byte >= 0x7f || byte == b'#') {
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
