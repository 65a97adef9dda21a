//! Hosts, perhaps with a port: `Host`, `:authority` and the authority of a request target.

use std::net::Ipv6Addr;

use crate::request::Reject;

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

#[cfg(test)]
mod tests {
    use super::*;

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
