//! Normalized paths, by which routes are found, and the rest of a path below a route, for redirects
//! and rewrites.
//!
//! Pure. The rest of a path stands in `Location` fields and is looked up below another prefix. So
//! it never begins with `//` (another host), never has a backslash (browsers read it as a slash)
//! and has no `..`.

use std::borrow::Cow;

use http::StatusCode;
use kirin_http::RequestHead;

/// Returns the path by which the route is found: decoded, and without `.`, `..` and `//`. So
/// `/x/../admin` and `/%61dmin` have the route of `/admin`. An encoded slash counts as a slash, as
/// it does in `PATH_INFO`. Places get the request as it was sent.
pub fn normalized_path(raw: &str) -> Result<Cow<'_, [u8]>, StatusCode> {
    if is_plain(raw.as_bytes()) {
        return Ok(Cow::Borrowed(raw.as_bytes()));
    }
    resolve(raw).map(|resolved| Cow::Owned(resolved.path))
}

/// Whether the path is normalized already.
fn is_plain(path: &[u8]) -> bool {
    memchr::memchr(b'%', path).is_none()
        && !path.windows(2).any(|pair| pair == b"//" || pair == b"/.")
}

/// Returns the rest of the path `raw` below `prefix`, percent-encoded: empty, or with one `/` at
/// its start. `prefix` is decoded and without a slash at its end. The path is below it by
/// [`normalized_path`].
pub fn rest_below<'a>(raw: &'a str, prefix: &str) -> Cow<'a, str> {
    if is_plain(raw.as_bytes()) {
        let rest = raw.strip_prefix(prefix).unwrap_or("");
        if rest.bytes().all(is_path_byte) {
            return Cow::Borrowed(rest);
        }
        return Cow::Owned(encode(rest.as_bytes()));
    }
    let path = resolve(raw).map(Resolved::with_slash).unwrap_or_default();
    Cow::Owned(encode(path.strip_prefix(prefix.as_bytes()).unwrap_or(b"")))
}

/// Returns the path `raw` without `.` and `..`, percent-encoded, if it has any. Applications get
/// this one. `/members/../x` came by the route of `/x`: a dispatcher that compares prefixes must
/// not find `/members` in it.
pub fn without_dots(raw: &str) -> Option<String> {
    if is_plain(raw.as_bytes()) {
        return None;
    }
    let resolved = resolve(raw).ok().filter(|resolved| resolved.had_dots)?;
    Some(encode(&resolved.with_slash()))
}

/// Returns path and query for another server: as they were sent, but without `.` and `..`, so that
/// it sees the path by which the route was found.
pub fn target<'a>(request: &RequestHead<'a>) -> Cow<'a, str> {
    let resolved = without_dots(request.path);
    if resolved.is_none() && (request.target.starts_with('/') || request.path == "*") {
        return Cow::Borrowed(request.target);
    }
    let mut target = resolved.unwrap_or_else(|| request.path.to_owned());
    if let Some(query) = request.query {
        target.push('?');
        target.push_str(query);
    }
    Cow::Owned(target)
}

/// A path, decoded and resolved.
struct Resolved {
    /// The path. It begins with `/`, and ends with `/` only if it is nothing else.
    path: Vec<u8>,
    /// Whether it ended in `/`, `/.` or `/..`.
    directory: bool,
    had_dots: bool,
}

impl Resolved {
    /// Returns the path with the slash at its end, if it had one.
    fn with_slash(self) -> Vec<u8> {
        let mut path = self.path;
        if self.directory && path.len() > 1 {
            path.push(b'/');
        }
        path
    }
}

/// Resolves a path. As nginx does, it refuses malformed encodings, NUL, and more `..` than segments
/// before them.
fn resolve(raw: &str) -> Result<Resolved, StatusCode> {
    let decoded = decode(raw.as_bytes()).ok_or(StatusCode::BAD_REQUEST)?;
    let mut resolved =
        Resolved { path: Vec::with_capacity(decoded.len()), directory: false, had_dots: false };
    for segment in decoded.split(|byte| *byte == b'/') {
        resolved.directory = matches!(segment, b"" | b"." | b"..");
        resolved.had_dots |= matches!(segment, b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => {
                let parent = resolved
                    .path
                    .iter()
                    .rposition(|byte| *byte == b'/')
                    .ok_or(StatusCode::BAD_REQUEST)?;
                resolved.path.truncate(parent);
            }
            segment => {
                resolved.path.push(b'/');
                resolved.path.extend_from_slice(segment);
            }
        }
    }
    if resolved.path.is_empty() {
        resolved.path.push(b'/');
    }
    Ok(resolved)
}

/// Decodes the percent-encoding. Returns `None` if it is malformed or has a NUL.
fn decode(raw: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            byte => byte,
        };
        if byte == 0 {
            return None;
        }
        decoded.push(byte);
    }
    Some(decoded)
}

/// Percent-encodes a decoded path.
pub fn encode(decoded: &[u8]) -> String {
    let mut encoded = String::with_capacity(decoded.len() + 8);
    for byte in decoded {
        if is_path_byte(*byte) {
            encoded.push(char::from(*byte));
        } else {
            push_encoded(&mut encoded, *byte);
        }
    }
    encoded
}

/// Appends `byte` percent-encoded.
pub fn push_encoded(text: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(HEX[usize::from(byte >> 4)]));
    text.push(char::from(HEX[usize::from(byte & 15)]));
}

/// Returns the path `raw` decoded, without `.`, `..` and `//`. Returns `None` if it is refused.
pub fn decoded(raw: &str) -> Option<Vec<u8>> {
    resolve(raw).ok().map(Resolved::with_slash)
}

/// Whether a byte is of `pchar` without the percent sign, or `/` (RFC 3986 section 3.3).
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
            ("/a%2Fb", Ok("/a/b")),
            ("/%61dmin%2F%0a", Ok("/admin/\n")),
            ("/x%2f..%2fadmin", Ok("/admin")),
            ("/a/", Ok("/a/")),
            ("/a%20/", Ok("/a ")),
            ("/a%2F..%2F..", Err(400)),
            ("/..", Err(400)),
            ("/%", Err(400)),
            ("/%00", Err(400)),
            ("*", Ok("*")),
        ] {
            let got = normalized_path(raw).map(|path| String::from_utf8_lossy(&path).into_owned());
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
            ("/old/a%2fb", "/old", "/a/b"),
            ("/old%2fb", "/old", "/b"),
            ("/old//a%2F%2Fb", "/old", "/a/b"),
            ("/old/%0d%0aSet-Cookie:x", "/old", "/%0D%0ASet-Cookie:x"),
            ("/old/d\u{e9}", "/old", "/d%C3%A9"),
            ("/old/a?b", "/old", "/a%3Fb"),
        ] {
            assert_eq!(rest_below(raw, prefix), rest, "{raw}");
        }
    }

    #[test]
    fn applications_see_no_dots() {
        for (raw, resolved) in [
            ("/a/b", None),
            ("/a%20b//c%2Fd", None),
            ("/a.b/...", None),
            ("/members/../x", Some("/x")),
            ("/members%2F%2e%2E%2fx%20y/", Some("/x%20y/")),
            ("/a/./b/..", Some("/a/")),
            ("/.", Some("/")),
        ] {
            assert_eq!(without_dots(raw).as_deref(), resolved, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn what_an_application_sees_lies_below_the_route_that_it_came_by(raw in "/[a./%25fF2eE]{0,16}") {
            let Ok(meant) = normalized_path(&raw) else { return Ok(()) };
            let path_info = without_dots(&raw).unwrap_or_else(|| raw.clone());
            let mut path_info = decode(path_info.as_bytes()).unwrap();
            // Slashes may be doubled.
            path_info.dedup_by(|a, b| *a == b'/' && *b == b'/');
            let trimmed = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
            prop_assert_eq!(trimmed(&path_info), trimmed(&meant));
        }

        #[test]
        fn no_rest_names_another_host_or_climbs(raw in "/(old)?[/\\\\.%25fao;]{0,12}") {
            let Ok(meant) = normalized_path(&raw) else { return Ok(()) };
            for prefix in ["", "/old"] {
                let below = meant.strip_prefix(prefix.as_bytes());
                if !below.is_some_and(|rest| rest.is_empty() || rest[0] == b'/') {
                    continue;
                }
                let rest = rest_below(&raw, prefix);
                prop_assert!(rest.is_empty() || (rest.starts_with('/') && !rest.starts_with("//")), "{} {}", raw, rest);
                prop_assert!(!rest.contains('\\'), "{} {}", raw, rest);
                prop_assert!(!format!("{rest}/").contains("/../"), "{} {}", raw, rest);
            }
        }
    }
}
