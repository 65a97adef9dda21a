//! Asking the place whether a stored response is still good (RFC 9111 section 4.3).

use kirin_http::FieldLines;

/// Fields with which a client makes its request conditional. The cache asks for itself, and
/// evaluates the client's own conditions when it has the answer.
pub const CONDITIONS: [&str; 6] =
    ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range"];

/// Fields of a 304 that say nothing of what is stored: about its body, which is ours (section 3.2),
/// or for one visitor.
const NOT_MERGED: [&str; 5] =
    ["content-encoding", "content-type", "content-range", "content-length", "set-cookie"];

/// Names and values of the conditions that ask if `stored` is still good. None if it has no
/// validator.
pub fn conditions(stored: &FieldLines) -> Vec<(&'static str, Vec<u8>)> {
    let condition = |validator, name| stored.get(validator).map(|value| (name, value.to_vec()));
    [condition("etag", "If-None-Match"), condition("last-modified", "If-Modified-Since")]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether a 304 is about what is stored (section 4.3.4): a validator in it must be the one that is
/// stored. A 304 without one is about what was asked for.
pub fn is_about(stored: &FieldLines, not_modified: &FieldLines) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let both = |name| stored.get(name).zip(not_modified.get(name));
    match (both("etag"), both("last-modified")) {
        (Some((stored, said)), _) => opaque(stored) == opaque(said),
        // With another tag, or none: the date is all there is.
        (None, Some((stored, said))) => not_modified.get("etag").is_some() || stored == said,
        (None, None) => true,
    }
}

/// The stored fields brought up to date with those of a 304 (section 3.2): each of its names takes
/// the place of what was stored by that name. The age is that of the 304, if it has one: the answer
/// may come from another cache.
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
        // They were field lines before.
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
    fn a_question_has_all_validators_that_are_stored() {
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
    fn a_304_is_about_what_has_its_validators() {
        for (stored, said, expected) in [
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
            assert_eq!(is_about(&lines(stored), &lines(said)), expected, "{stored:?} {said:?}");
        }
    }

    #[test]
    fn a_304_renews_what_it_names_and_nothing_of_the_body() {
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
