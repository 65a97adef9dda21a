//! The effect of a content coding on the fields of a response: which responses may be coded, and
//! the `Vary`, `ETag` and `Content-Encoding` of the result. Used for pages of the store and for
//! responses of code.

use http::StatusCode;
use kirin_compress::{Coding, is_compressible};
use kirin_http::field_list::members;
use kirin_http::{FieldLines, Response};

/// Fields about the bytes of a body. Coding the body would make them false.
const OF_THE_BYTES: [&[u8]; 5] =
    [b"content-range", b"content-md5", b"content-digest", b"repr-digest", b"digest"];

/// Trailers about the bytes of a body. A response is coded before it is known whether it has these,
/// so it loses them.
pub const TRAILERS_OF_THE_BYTES: [&str; 4] = ["content-digest", "repr-digest", "digest", "etag"];

/// Returns whether a response with these fields may be coded: its type is compressible, it is not
/// coded already, and no field forbids it. A 206 is a part of something that is not coded.
pub fn may_be_coded(status: StatusCode, fields: &FieldLines) -> bool {
    if status == StatusCode::PARTIAL_CONTENT || Response::is_bodiless_status(status) {
        return false;
    }
    let mut compressible = false;
    for (name, value) in fields.iter() {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            12 if is(b"content-type") => compressible = is_compressible(value),
            16 if is(b"content-encoding") => return false,
            // "an intermediary MUST NOT transform the content" (RFC 9111 section 5.2.2.6)
            13 if is(b"cache-control")
                && members(value).any(|m| m.eq_ignore_ascii_case(b"no-transform")) =>
            {
                return false;
            }
            _ if OF_THE_BYTES.iter().any(|known| is(known)) => return false,
            _ => {}
        }
    }
    compressible
}

/// Returns the fields of a response that could have been coded: `Vary` names `Accept-Encoding`.
pub fn varying(fields: &FieldLines) -> FieldLines {
    let mut varying = FieldLines::new();
    let mut is_named = false;
    for (name, value) in fields.iter() {
        let is_vary = name.eq_ignore_ascii_case(b"vary");
        let names_it = |value| {
            members(value).any(|member: &[u8]| {
                member == b"*" || member.eq_ignore_ascii_case(b"accept-encoding")
            })
        };
        // They were field lines before, so they can be again.
        let _ = if !is_vary || is_named {
            varying.try_push(name, value)
        } else if names_it(value) {
            is_named = true;
            varying.try_push(name, value)
        } else if fields
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case(b"vary") && names_it(value))
        {
            // Another line of the list names it.
            varying.try_push(name, value)
        } else {
            is_named = true;
            let separator: &[u8] = if value.is_empty() { b"" } else { b", " };
            varying.try_push(name, &[value, separator, b"Accept-Encoding"].concat())
        };
    }
    if !is_named {
        varying.push("Vary", "Accept-Encoding");
    }
    varying
}

/// Returns the fields of the coded response. It has the tag of this variant and no `Accept-Ranges`,
/// as ranges are of the uncoded response.
pub fn coded(fields: &FieldLines, coding: Coding) -> FieldLines {
    let mut coded = FieldLines::new();
    for (name, value) in varying(fields).iter() {
        let _ = if name.eq_ignore_ascii_case(b"etag") {
            coded.try_push(name, &coded_tag(value, coding))
        } else if name.eq_ignore_ascii_case(b"accept-ranges") {
            Ok(())
        } else {
            coded.try_push(name, value)
        };
    }
    coded.push("Content-Encoding", coding.name());
    coded
}

/// Returns the tag of a variant. Two codings of one page are two representations, and a strong tag
/// must tell them apart (RFC 9110 section 8.8.3.3).
pub fn coded_tag(tag: &[u8], coding: Coding) -> Vec<u8> {
    match tag.strip_suffix(b"\"") {
        Some(open) if open.contains(&b'"') => {
            [open, b"-", coding.name().as_bytes(), b"\""].concat()
        }
        _ => tag.to_vec(),
    }
}

/// Returns a list of tags as the application knows them: without what [`coded_tag`] has added.
/// Returns `None` if that changes nothing.
pub fn plain_tags(list: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(list.len());
    let mut rest = list;
    while let Some(at) = rest.iter().position(|byte| *byte == b'"') {
        let (before, quote) = rest.split_at(at);
        let suffix = Coding::ALL
            .into_iter()
            .map(|coding| coding.name().as_bytes())
            .find_map(|name| before.strip_suffix(name)?.strip_suffix(b"-"));
        plain.extend_from_slice(suffix.unwrap_or(before));
        plain.push(b'"');
        rest = quote.get(1..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    (plain.len() < list.len()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::test_fields::{lines, text};

    #[test]
    fn uncoded_text_may_be_coded_unless_a_field_forbids_it() {
        for (status, fields, expected) in [
            (200, "Content-Type: text/html; charset=utf-8", true),
            (404, "Content-Type: text/html", true),
            (200, "Content-Type: image/png", false),
            (200, "X: y", false),
            (206, "Content-Type: text/html", false),
            (304, "Content-Type: text/html", false),
            (204, "Content-Type: text/html", false),
            (200, "Content-Type: text/html\nContent-Encoding: br", false),
            (200, "Content-Type: text/html\nContent-Encoding: identity", false),
            (200, "Content-Type: text/html\ncache-control: max-age=5, No-Transform", false),
            (200, "Content-Type: text/html\nCache-Control: max-age=5", true),
            (200, "Content-Type: text/html\nContent-Range: bytes 0-1/2", false),
            (200, "Content-Type: text/html\nRepr-Digest: sha-256=:x:", false),
            (200, "Content-Type: text/html\nETag: \"x\"\nSet-Cookie: a=b", true),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(may_be_coded(status, &lines(fields)), expected, "{status} {fields}");
        }
    }

    #[test]
    fn vary_names_accept_encoding_once() {
        for (before, after) in [
            ("A: b", "A: b\nVary: Accept-Encoding"),
            ("Vary: Cookie\nA: b", "Vary: Cookie, Accept-Encoding\nA: b"),
            ("Vary: cookie, accept-encoding", "Vary: cookie, accept-encoding"),
            ("Vary: *", "Vary: *"),
            ("vary: Cookie\nVary: Origin", "vary: Cookie, Accept-Encoding\nVary: Origin"),
            ("Vary: Cookie\nVary: Accept-Encoding", "Vary: Cookie\nVary: Accept-Encoding"),
        ] {
            assert_eq!(text(&varying(&lines(before))), after, "{before}");
        }
    }

    #[test]
    fn a_coded_response_has_its_own_tag_and_content_encoding() {
        let before = lines("Content-Type: text/html\nETag: W/\"a\"\nAccept-Ranges: bytes");
        assert_eq!(
            text(&coded(&before, Coding::Brotli)),
            "Content-Type: text/html\nETag: W/\"a-br\"\nVary: Accept-Encoding\nContent-Encoding: br"
        );
    }

    #[test]
    fn the_coding_is_added_to_tags_for_clients_and_removed_from_theirs() {
        for (tag, coded) in
            [("\"a\"", "\"a-gzip\""), ("W/\"a\"", "W/\"a-gzip\""), ("a", "a"), ("\"", "\"")]
        {
            assert_eq!(coded_tag(tag.as_bytes(), Coding::Gzip), coded.as_bytes(), "{tag}");
        }
        for (list, plain) in [
            ("\"a-gzip\"", Some("\"a\"")),
            ("W/\"a-br\", \"b\", \"c-zstd\"", Some("W/\"a\", \"b\", \"c\"")),
            ("\"a\"", None),
            ("*", None),
            ("\"-gzip\"", Some("\"\"")),
            ("\"gzip\"", None),
            ("a-gzip", None),
            ("", None),
        ] {
            let plain = plain.map(|plain| plain.as_bytes().to_vec());
            assert_eq!(plain_tags(list.as_bytes()), plain, "{list}");
        }
    }
}
