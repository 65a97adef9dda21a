//! Hosts, perhaps with a port: `Host`, `:authority` and the authority of a request target.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use crate::percent;
use crate::request::Reject;

/// The longest name that is converted to Punycode, in bytes. No name of the DNS is longer (RFC 1035
/// section 2.3.4).
const MAX_NAME_BYTES: usize = 253;

/// Checks that `value` is `uri-host [ ":" port ]` and not empty (RFC 9112 section 3.2, RFC 3986
/// section 3.2.2). Then it can be handed to an application and stand in a redirect.
pub fn parse_host(value: &[u8]) -> Result<&str, Reject> {
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

/// Returns whether `digits` are a port of TCP. RFC 3986 also allows none.
fn is_port(digits: &[u8]) -> bool {
    let number = digits.iter().try_fold(0u32, |number, byte| match byte {
        b'0'..=b'9' => {
            Some(number * 10 + u32::from(byte - b'0')).filter(|number| *number <= 65_535)
        }
        _ => None,
    });
    digits.len() <= 5 && number.is_some()
}

/// Returns how many bytes at the start of `value` are a `reg-name` of RFC 3986.
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
    let name = match name.strip_suffix('.') {
        Some(rest) if !rest.is_empty() => rest,
        _ => name,
    };
    let is_usual = |byte: u8| byte.is_ascii() && byte != b'%' && !byte.is_ascii_uppercase();
    if name.bytes().all(is_usual) {
        return Cow::Borrowed(name);
    }
    let decoded = percent::decode(name.as_bytes());
    let decoded = String::from_utf8_lossy(&decoded);
    let punycode = (decoded.len() <= MAX_NAME_BYTES).then(|| idna::domain_to_ascii(&decoded));
    match punycode {
        Some(Ok(ascii)) => Cow::Owned(ascii.trim_end_matches('.').to_owned()),
        _ => Cow::Owned(decoded.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
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
}
