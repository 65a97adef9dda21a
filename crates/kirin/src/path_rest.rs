//! Paths of requests as routes see them, and what is left of one below a route: for redirects and rewrites.
//!
//! Pure. What comes out of here stands in `Location` fields and is looked up below another prefix, so that it never begins
//! with `//` (another host), never has a backslash (browsers take it for a slash) and has no `..` that could climb out.

use http::StatusCode;
use kirin_files::request_path::RequestPath;
use std::borrow::Cow;

/// The path as routes see it: decoded, and with `.` and `..` resolved, so that `/x/../admin` and `/%61dmin` come under the
/// route of `/admin`. The places get the request as it was sent.
pub fn meant_path(raw: &str) -> Result<Cow<'_, [u8]>, StatusCode> {
    let bytes = raw.as_bytes();
    if is_plain(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    match RequestPath::parse(raw) {
        Ok(path) => Ok(Cow::Owned([b"/", &path.name[..]].concat())),
        Err(no_file) => no_file.refusal().map_or(Ok(Cow::Borrowed(bytes)), Err),
    }
}

/// Whether the path means what it says.
fn is_plain(path: &[u8]) -> bool {
    memchr::memchr(b'%', path).is_none() && !path.windows(2).any(|pair| pair == b"//" || pair == b"/.")
}

/// What is left of the path `raw` below `prefix`, percent-encoded: empty, or with one `/` at its start. `prefix` is decoded
/// and without a slash at its end; the path is below it by [`meant_path`].
pub fn rest_below<'a>(raw: &'a str, prefix: &str) -> Cow<'a, str> {
    if is_plain(raw.as_bytes()) {
        let rest = raw.strip_prefix(prefix).unwrap_or("");
        if rest.bytes().all(is_path_byte) {
            return Cow::Borrowed(rest);
        }
        return Cow::Owned(encode(rest.as_bytes()));
    }
    match RequestPath::parse(raw) {
        Ok(path) => {
            let mut decoded = [b"/", &path.name[..]].concat();
            if path.directory && !path.name.is_empty() {
                decoded.push(b'/');
            }
            Cow::Owned(encode(decoded.strip_prefix(prefix.as_bytes()).unwrap_or(b"")))
        }
        // An encoded slash or control character: it cannot be decoded without a change of meaning.
        Err(_) => {
            let rest = raw.strip_prefix(prefix).unwrap_or("");
            let start = if rest.starts_with('/') { "/" } else { "" };
            let rest = rest.trim_start_matches('/');
            let keep_encoded = |byte: u8| byte == b'%' || is_path_byte(byte);
            Cow::Owned(start.to_owned() + &encode_unless(rest.as_bytes(), keep_encoded))
        }
    }
}

/// Percent-encodes a decoded path.
pub fn encode(decoded: &[u8]) -> String {
    encode_unless(decoded, is_path_byte)
}

fn encode_unless(bytes: &[u8], kept: impl Fn(u8) -> bool) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(bytes.len() + 8);
    for byte in bytes {
        if kept(*byte) {
            encoded.push(char::from(*byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    encoded
}

/// `pchar` without the percent sign, and `/` (RFC 3986 section 3.3).
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn routes_see_what_a_path_means() {
        for (raw, meant) in [
            ("/", Ok("/")),
            ("/a/b", Ok("/a/b")),
            ("/%61dmin", Ok("/admin")),
            ("/x/../admin/y", Ok("/admin/y")),
            ("//admin", Ok("/admin")),
            ("/./admin", Ok("/admin")),
            ("/a%2Fb", Ok("/a%2Fb")),
            ("/..", Err(400)),
            ("/%", Err(400)),
            ("/%00", Err(400)),
            ("*", Ok("*")),
        ] {
            let got = meant_path(raw).map(|path| String::from_utf8_lossy(&path).into_owned());
            assert_eq!(
                got.as_deref().map_err(StatusCode::as_u16),
                meant.map_err(|status: u16| status),
                "{raw}"
            );
        }
    }

    #[test]
    fn the_rest_of_a_path_is_kept_and_cannot_lead_elsewhere() {
        for (raw, prefix, rest) in [
            ("/old", "/old", ""),
            ("/old/", "/old", "/"),
            ("/old/a/b.html", "/old", "/a/b.html"),
            ("/", "", "/"),
            ("/a", "", "/a"),
            ("/old/a%20b/", "/old", "/a%20b/"),
            ("/old/caf%c3%a9", "/old", "/caf%C3%A9"),
            ("/%6fld/x", "/old", "/x"),
            ("/old//evil.example", "/old", "/evil.example"),
            ("//evil.example", "", "/evil.example"),
            ("///evil.example/..", "", "/"),
            ("/old/\\evil.example", "/old", "/%5Cevil.example"),
            ("/old/%5cevil.example", "/old", "/%5Cevil.example"),
            ("/old/./x", "/old", "/x"),
            ("/old/x/../../old/y", "/old", "/y"),
            ("/x/../old/y", "/old", "/y"),
            ("/old/a%2Fb", "/old", "/a%2Fb"),
            ("/old//a%2Fb", "/old", "/a%2Fb"),
            ("/old/%0d%0aSet-Cookie:x", "/old", "/%0d%0aSet-Cookie:x"),
            ("/old/d\u{e9}", "/old", "/d%C3%A9"),
            ("/old/a?b", "/old", "/a%3Fb"),
        ] {
            assert_eq!(rest_below(raw, prefix), rest, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn no_rest_names_another_host_or_climbs(raw in "/(old)?[/\\\\.%25fao;]{0,12}") {
            let Ok(meant) = meant_path(&raw) else { return Ok(()) };
            for prefix in ["", "/old"] {
                let below = meant.strip_prefix(prefix.as_bytes());
                if !below.is_some_and(|rest| rest.is_empty() || rest[0] == b'/') {
                    continue;
                }
                let rest = rest_below(&raw, prefix);
                prop_assert!(rest.is_empty() || (rest.starts_with('/') && !rest.starts_with("//")), "{} {}", raw, rest);
                prop_assert!(!rest.contains('\\'), "{} {}", raw, rest);
                if RequestPath::parse(&raw).is_ok() {
                    prop_assert!(!format!("{rest}/").contains("/../"), "{} {}", raw, rest);
                }
            }
        }
    }
}
