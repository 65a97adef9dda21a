//! Media types: the values of `Content-Type` (RFC 9110 section 8.3.1).

/// Returns the type and subtype: what stands before the parameters, without white space.
pub fn essence(media_type: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', media_type).unwrap_or(media_type.len());
    media_type[..end].trim_ascii()
}

/// Returns whether `media_type` is `name`, with parameters or without. Upper and lower case are the
/// same.
pub fn is(media_type: &[u8], name: &str) -> bool {
    essence(media_type).eq_ignore_ascii_case(name.as_bytes())
}

/// Returns whether `media_type` is `text/html`, with parameters or without.
pub fn is_html(media_type: &[u8]) -> bool {
    is(media_type, "text/html")
}

/// Returns whether `text` is a type and a subtype, perhaps with parameters. The names have the
/// characters of RFC 6838 section 4.2.
pub fn is_well_formed(text: &[u8]) -> bool {
    let is_name = |name: &[u8]| {
        !name.is_empty()
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(byte))
    };
    let essence = essence(text);
    let is_printable = text.iter().all(|byte| (0x20..0x7f).contains(byte));
    memchr::memchr(b'/', essence).is_some_and(|slash| {
        is_printable
            && text.starts_with(essence)
            && is_name(&essence[..slash])
            && is_name(&essence[slash + 1..])
    })
}

/// Returns whether Plack::Request takes a body of this type for a form: the field begins with the
/// name, in lower case. [`is`] would let in other spellings.
pub fn is_form_like_plack(media_type: &[u8]) -> bool {
    media_type.starts_with(b"application/x-www-form-urlencoded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_essence_has_no_parameters_and_no_space() {
        for (media_type, expected) in [
            ("", ""),
            ("text/html", "text/html"),
            ("text/html;charset=utf-8", "text/html"),
            (" Text/HTML\t; a=\"b;c\"", "Text/HTML"),
            (";a", ""),
        ] {
            assert_eq!(essence(media_type.as_bytes()), expected.as_bytes(), "{media_type}");
        }
        assert!(is(b"Text/HTML ; charset=utf-8", "text/html"));
        assert!(!is(b"text/html2", "text/html") && !is(b"text/htm", "text/html"));
    }

    #[test]
    fn a_media_type_has_two_names() {
        for (text, expected) in [
            ("text/html", true),
            ("text/html; charset=utf-8", true),
            ("application/vnd.api+json ;a", true),
            ("", false),
            ("text", false),
            ("text/", false),
            ("/html", false),
            ("a/b/c", false),
            (" text/html", false),
            ("text/html\t", false),
            ("a b/c", false),
            ("text/html; a=\u{e9}", false),
        ] {
            assert_eq!(is_well_formed(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn plack_compares_the_beginning_of_the_field() {
        assert!(is_form_like_plack(b"application/x-www-form-urlencoded; charset=utf-8"));
        assert!(is_form_like_plack(b"application/x-www-form-urlencoded2"));
        assert!(!is_form_like_plack(b"Application/x-www-form-urlencoded"));
    }
}
