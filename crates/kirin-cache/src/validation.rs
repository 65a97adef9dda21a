//! Validation of stored responses with the origin server (RFC 9111 section 4.3).

use kirin_http::FieldLines;

/// The fields with which a client makes its request conditional. The cache sends conditions of its
/// own, and evaluates those of the client when it has the response.
pub const CONDITIONS: [&str; 6] =
    ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range"];

/// The fields of a 304 that do not update the stored response. They describe the body (section 3.2)
/// or are for one visitor.
const NOT_MERGED: [&str; 5] =
    ["content-encoding", "content-type", "content-range", "content-length", "set-cookie"];

/// Returns names and values of the conditions that validate `stored`. The list is empty if the
/// response has no validator.
pub fn conditions(stored: &FieldLines) -> Vec<(&'static str, Vec<u8>)> {
    let condition = |validator, name| stored.get(validator).map(|value| (name, value.to_vec()));
    [condition("etag", "If-None-Match"), condition("last-modified", "If-Modified-Since")]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns whether a 304 validates the stored response (section 4.3.4). A validator in it must
/// match the stored one. A 304 without validators refers to the conditions that were sent.
pub fn applies_to(stored: &FieldLines, not_modified: &FieldLines) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let both = |name| stored.get(name).zip(not_modified.get(name));
    match (both("etag"), both("last-modified")) {
        (Some((stored, received)), _) => opaque(stored) == opaque(received),
        // Without a common entity tag, the date decides.
        (None, Some((stored, received))) => {
            not_modified.get("etag").is_some() || stored == received
        }
        (None, None) => true,
    }
}

/// Updates the stored fields with those of a 304 (section 3.2). Each of its fields replaces the
/// stored fields of the same name. The age is that of the 304, if it has one, because it may come
/// from another cache.
pub fn merge(stored: &FieldLines, not_modified: &FieldLines) -> FieldLines {
    let is_merged =
        |name: &[u8]| !NOT_MERGED.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()));
    let is_replaced = |name: &[u8]| {
        is_merged(name) && not_modified.iter().any(|(new, _)| new.eq_ignore_ascii_case(name))
    };
    let mut merged = FieldLines::new();
    let kept =
        stored.iter().filter(|(name, _)| !is_replaced(name) && !name.eq_ignore_ascii_case(b"age"));
    let new = not_modified.iter().filter(|(name, _)| is_merged(name));
    for (name, value) in kept.chain(new) {
        // They were valid field lines before, so this cannot fail.
        let _ = merged.try_push(name, value);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[(&'static str, &'static str)]) -> FieldLines {
        let mut fields = FieldLines::new();
        text.iter().for_each(|(name, value)| fields.push(name, value));
        fields
    }

    #[test]
    fn a_conditional_request_has_all_stored_validators() {
        assert_eq!(conditions(&lines(&[("X", "y")])), []);
        let stored =
            lines(&[("ETag", "W/\"a\""), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        let expected = [
            ("If-None-Match", b"W/\"a\"".to_vec()),
            ("If-Modified-Since", b"Sun, 06 Nov 1994 08:49:37 GMT".to_vec()),
        ];
        assert_eq!(conditions(&stored), expected);
    }

    #[test]
    fn a_304_validates_the_response_with_the_same_validators() {
        for (stored, received, expected) in [
            (&[("ETag", "\"a\"")][..], &[][..], true),
            (&[("ETag", "\"a\"")], &[("ETag", "\"a\"")], true),
            (&[("ETag", "W/\"a\"")], &[("ETag", "\"a\"")], true),
            (&[("ETag", "\"a\"")], &[("ETag", "\"b\"")], false),
            (
                &[("ETag", "\"a\""), ("Last-Modified", "x")],
                &[("ETag", "\"a\""), ("Last-Modified", "y")],
                true,
            ),
            (&[("Last-Modified", "x")], &[("Last-Modified", "x")], true),
            (&[("Last-Modified", "x")], &[("Last-Modified", "y")], false),
            (&[("Last-Modified", "x")], &[("ETag", "\"a\"")], true),
            (&[("Last-Modified", "x")], &[], true),
        ] {
            assert_eq!(
                applies_to(&lines(stored), &lines(received)),
                expected,
                "{stored:?} {received:?}"
            );
        }
    }

    #[test]
    fn a_304_updates_all_fields_except_those_of_the_body() {
        let stored = lines(&[
            ("Content-Type", "text/html"),
            ("Cache-Control", "max-age=1"),
            ("Link", "<a>"),
            ("Link", "<b>"),
            ("X-Old", "kept"),
            ("Age", "7"),
        ]);
        let fresh = lines(&[
            ("cache-control", "max-age=9"),
            ("Content-Type", "text/plain"),
            ("Content-Encoding", "br"),
            ("Set-Cookie", "a=b"),
            ("link", "<c>"),
            ("Date", "now"),
            ("Age", "3"),
        ]);
        let merged = merge(&stored, &fresh);
        let expected: [(&[u8], &[u8]); 6] = [
            (b"Content-Type", b"text/html"),
            (b"X-Old", b"kept"),
            (b"cache-control", b"max-age=9"),
            (b"link", b"<c>"),
            (b"Date", b"now"),
            (b"Age", b"3"),
        ];
        assert_eq!(merged.iter().collect::<Vec<_>>(), expected);
    }
}
