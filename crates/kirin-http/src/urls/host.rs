//! Hosts, perhaps with a port: `Host`, `:authority` and the authority of a request target.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use crate::fields::byte_scan::alphanumeric_or;
use crate::percent;
use crate::request::Reject;

/// The longest name that is converted to Punycode, in bytes. No name of the DNS is longer (RFC 1035
/// section 2.3.4).
const MAX_NAME_BYTES: usize = 253;

/// Checks that `value` is `uri-host [ ":" port ]` and not empty (RFC 9112 section 3.2, RFC 3986
/// section 3.2.2). Then it can be handed to an application and stand in a redirect. A name must
/// have no empty label (RFC 1034 section 3.1), though the grammar of RFC 3986 allows it.
pub fn parse_host(value: &[u8]) -> Result<&str, Reject> {
    let bad = Reject::Bad("Host is not a host");
    let text = std::str::from_utf8(value).map_err(|_| bad)?;
    let name_end = match value.first() {
        Some(b'[') => {
            let end = memchr::memchr(b']', value).ok_or(bad)?;
            if text[1..end].parse::<Ipv6Addr>().is_err() && !is_future_address(&value[1..end]) {
                return Err(bad);
            }
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

/// Returns whether `digits` are a port of TCP. RFC 3986 also allows none.
fn is_port(digits: &[u8]) -> bool {
    if digits.len() > 5 {
        return false;
    }
    let mut number = 0;
    for digit in digits {
        let digit = u32::from(digit.wrapping_sub(b'0'));
        if digit > 9 {
            return false;
        }
        number = number * 10 + digit;
    }
    number <= 65_535
}

/// Returns whether `text` is an `IPvFuture` of RFC 3986.
fn is_future_address(text: &[u8]) -> bool {
    let [b'v' | b'V', rest @ ..] = text else { return false };
    let Some(dot) = memchr::memchr(b'.', rest) else { return false };
    let (version, address) = (&rest[..dot], &rest[dot + 1..]);
    let is_in_address = |byte: &u8| IS_IN_NAME[usize::from(*byte)] || matches!(byte, b'.' | b':');
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && !address.is_empty()
        && address.iter().all(is_in_address)
}

/// Returns how many bytes at the start of `value` are a `reg-name` of RFC 3986 without empty
/// labels. An empty label at its end is the root of the DNS.
fn registered_name_length(value: &[u8]) -> usize {
    let is_hex = |at: usize| value.get(at).is_some_and(u8::is_ascii_hexdigit);
    let mut length = 0;
    loop {
        length += match value.get(length) {
            Some(byte) if IS_IN_NAME[usize::from(*byte)] => 1,
            Some(b'.') if length > 0 && value[length - 1] != b'.' => 1,
            Some(b'%') if is_hex(length + 1) && is_hex(length + 2) => 3,
            _ => return length,
        };
    }
}

/// Whether a byte may be in a label of a `reg-name` as it is: `unreserved` and `sub-delims`,
/// without the dot between labels.
static IS_IN_NAME: [bool; 256] = alphanumeric_or(b"_-~!$&'()*+,;=");

/// Returns a host without its port. `host` has passed [`parse_host`], or is empty.
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns a host in the form in which names are compared (RFC 3986 section 6.2.2): without port
/// and the dot of the root, in lower case, percent-decoded, and in Punycode (RFC 5891). `host` has
/// passed [`parse_host`], is written in a configuration, or is empty. A name that cannot be
/// Punycode is left as it is written.
pub fn canonical_host(host: &str) -> Cow<'_, str> {
    let name = without_port(host);
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        // An address of IPv6 has many spellings.
        return match address.parse::<Ipv6Addr>() {
            Ok(address) => Cow::Owned(format!("[{address}]")),
            Err(_) => Cow::Owned(name.to_ascii_lowercase()),
        };
    }
    let is_usual = |byte: u8| byte.is_ascii() && byte != b'%' && !byte.is_ascii_uppercase();
    if name.bytes().all(is_usual) {
        return Cow::Borrowed(without_root_dot(name));
    }
    let decoded = percent::decode(name.as_bytes());
    let decoded = String::from_utf8_lossy(&decoded);
    let punycode = (decoded.len() <= MAX_NAME_BYTES).then(|| idna::domain_to_ascii(&decoded));
    let ascii = match punycode {
        Some(Ok(ascii)) => ascii,
        _ => decoded.to_ascii_lowercase(),
    };
    Cow::Owned(without_root_dot(&ascii).to_owned())
}

/// Returns `name` without the dot of the root at its end. The root itself is a dot.
fn without_root_dot(name: &str) -> &str {
    name.strip_suffix('.').filter(|rest| !rest.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_spellings_of_a_host_are_one() {
        for (host, canonical) in [
            ("", ""),
            ("a.test", "a.test"),
            ("A.Test:8080", "a.test"),
            ("a.test.", "a.test"),
            ("a.test.:80", "a.test"),
            ("a_b.test", "a_b.test"),
            ("%61.test", "a.test"),
            ("m\u{fc}nchen.de", "xn--mnchen-3ya.de"),
            ("M%C3%9CNCHEN.de", "xn--mnchen-3ya.de"),
            ("XN--MNCHEN-3YA.de", "xn--mnchen-3ya.de"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]:80", "[::1]"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            (".", "."),
            ("a..test", "a..test"),
            ("A_%2F.test", "a_/.test"),
            ("a.test..", "a.test."),
            ("A.test..", "a.test."),
            ("a.test%2E", "a.test"),
            ("a\u{3002}test\u{3002}", "a.test"),
            ("%61:80", "a"),
            ("a%3A80", "a:80"),
            ("%2541.test", "%41.test"),
            ("%C2%AD.test", ".test"),
            ("\u{ff53}hop.test", "shop.test"),
            ("[0:0:0:0:0:ffff:7f00:1]", "[::ffff:127.0.0.1]"),
            ("[v1.A]", "[v1.a]"),
            ("XN--ZZZZZZZZZ.test", "xn--zzzzzzzzz.test"),
        ] {
            assert_eq!(canonical_host(host), canonical, "{host}");
        }
    }

    #[test]
    fn a_port_is_taken_off_a_host() {
        for (host, name) in [
            ("", ""),
            ("a.test", "a.test"),
            ("a.test:8080", "a.test"),
            ("a.test:", "a.test"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("[::1]:", "[::1]"),
        ] {
            assert!(host.is_empty() || parse_host(host.as_bytes()).is_ok(), "{host}");
            assert_eq!(without_port(host), name);
        }
    }

    #[test]
    fn a_host_has_no_empty_label_and_may_be_an_address_of_the_future() {
        for host in [
            "a",
            "a.",
            "a.b",
            "a.b.:80",
            "a.b:",
            "%41.b",
            "[::1]",
            "[v1.a]",
            "[V1f.a:b.c]:80",
            "[v1..]",
            "127.0.0.1",
        ] {
            assert_eq!(parse_host(host.as_bytes()).ok(), Some(host), "{host}");
        }
        for host in [
            "", ".", "..", "..x", ".x", "a..b", "a..", "a..:80", ".:80", ":80", "[]", "[v1]",
            "[v1.]", "[v.a]", "[vg.a]", "[v1.a/]", "[v1.a", "[v1.%41]", "[1.a]", "[v1.a]b",
        ] {
            assert!(parse_host(host.as_bytes()).is_err(), "{host}");
        }
    }

    /// Returns the canonical form of a name of ASCII letters, digits, dots and percent-encodings of
    /// these, by the rules one behind the other.
    fn canonical_by_rules(name: &str) -> String {
        let mut decoded = String::new();
        let mut rest = name;
        while let Some(character) = rest.chars().next() {
            let code = rest.strip_prefix('%').and_then(|code| code.get(..2));
            let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
            decoded.push(byte.map_or(character, char::from));
            rest = &rest[if byte.is_some() { 3 } else { 1 }..];
        }
        let lower = decoded.to_ascii_lowercase();
        match lower.len() > 1 && lower.ends_with('.') {
            true => lower[..lower.len() - 1].to_owned(),
            false => lower,
        }
    }

    proptest! {
        #[test]
        fn a_name_has_the_canonical_form_of_the_rules(
            parts in prop::collection::vec("[a-zA-Z0-9_.]|-|%[46][1-9a-fA-F]|%2[eEdD]|%3[0-9]", 1..40),
            port in prop::option::of(0u16..),
        ) {
            let name = parts.concat();
            let is_punycode = name.to_ascii_lowercase().contains("xn--");
            prop_assume!(!is_punycode && !canonical_by_rules(&name).contains("xn--"));
            let host = port.map_or(name.clone(), |port| format!("{name}:{port}"));
            prop_assert_eq!(canonical_host(&host), canonical_by_rules(&name), "{}", host);
        }

        #[test]
        fn the_canonical_form_is_that_of_itself_and_of_each_case(
            host in "([a-zA-Z0-9_-]{0,4}|xn--[a-zA-Z0-9-]{1,9}|[\u{e0}-\u{17f}\u{ff21}-\u{ff5a}]{1,4}|[.]{1,2}){1,6}",
        ) {
            let canonical = canonical_host(&host).into_owned();
            // A second dot at the end would be taken off, too.
            if !canonical.ends_with('.') {
                prop_assert_eq!(canonical_host(&canonical), canonical.as_str(), "{}", host);
            }
            for spelled in [host.to_ascii_uppercase(), host.to_ascii_lowercase()] {
                prop_assert_eq!(canonical_host(&spelled), canonical.as_str(), "{}", spelled);
            }
        }

        #[test]
        fn no_host_of_a_request_panics(host in "(\\PC|%[0-9a-fA-F]{2}|[\\[\\]:.%]){0,40}") {
            let _ = canonical_host(&host);
            if let Ok(host) = parse_host(host.as_bytes()) {
                let canonical = canonical_host(host);
                prop_assert!(!canonical.bytes().any(|byte| byte.is_ascii_uppercase()), "{}", host);
            }
        }
    }
}
