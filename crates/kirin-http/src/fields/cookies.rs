//! Cookies of a request (RFC 6265 section 4.2.1).
//!
//! All readers parse a `Cookie` field by one rule: [`pairs`]. They differ in how they compare
//! names. A function that does not compare them as the RFC does says whose rule it follows.

use crate::request::RequestHead;

/// Returns the values of all `Cookie` fields of a request.
pub fn cookie_fields<'a>(request: &RequestHead<'a>) -> impl Iterator<Item = &'a [u8]> {
    let fields = request.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("cookie"));
    fields.map(|field| field.value)
}

/// Returns the names and values in the value of a `Cookie` field, without the white space around
/// pairs. It skips a part without `=`.
pub fn pairs(field: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    field.split(|byte| *byte == b';').filter_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = memchr::memchr(b'=', pair)?;
        Some((&pair[..equals], &pair[equals + 1..]))
    })
}

/// Returns the value of the first cookie of this name. White space around the `=` is left out.
/// Rate limits and balancing, which tell visitors apart, use this one.
pub fn cookie<'a>(request: &RequestHead<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let mut pairs = cookie_fields(request).flat_map(pairs);
    pairs.find(|(other, _)| other.trim_ascii() == name).map(|(_, value)| value.trim_ascii())
}

/// Returns the value of the first cookie of this name as Cookie::Baker finds it, which
/// Plack::Request uses: white space before the `=` belongs to the name, and quotes around the value
/// are left out. Where the front and an application read the same cookie, both must find the same
/// value. Unlike Cookie::Baker, this function decodes neither names nor values.
pub fn cookie_like_plack<'a>(
    fields: impl Iterator<Item = &'a [u8]>,
    name: &[u8],
) -> Option<&'a [u8]> {
    fields.flat_map(pairs).find(|(other, _)| *other == name).map(|(_, value)| unquoted(value))
}

/// Returns the value of the first cookie of this name, as it was sent. Upper and lower case are the
/// same, because variables such as nginx's `$cookie_NAME` have none.
pub fn cookie_like_nginx<'a>(request: &RequestHead<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let mut pairs = cookie_fields(request).flat_map(pairs);
    pairs.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns whether there is a cookie of this name. One without `=` counts, too.
pub fn has_cookie(request: &RequestHead<'_>, name: &[u8]) -> bool {
    cookie_fields(request).flat_map(|field| field.split(|byte| *byte == b';')).any(|pair| {
        let end = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        pair[..end].trim_ascii() == name
    })
}

/// Returns the value of a cookie without one pair of double quotes around it.
pub fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{BodyLength, Version};

    fn with_fields<R>(values: &[&str], work: impl FnOnce(&RequestHead<'_>) -> R) -> R {
        let fields: Vec<_> = values
            .iter()
            .map(|value| httparse::Header { name: "cOOkie", value: value.as_bytes() })
            .collect();
        work(&RequestHead {
            method: http::Method::GET,
            target: "/",
            path: "/",
            query: None,
            version: Version::Http11,
            host: "",
            fields: &fields,
            body: BodyLength::None,
            persistent: true,
            expects_continue: false,
        })
    }

    #[test]
    fn a_field_is_taken_apart_at_semicolons() {
        let found: Vec<_> = pairs(b" a=1;b = \"2\" ;; c;=d;e=f=g\t").collect();
        let expected: [(&[u8], &[u8]); 4] =
            [(b"a", b"1"), (b"b ", b" \"2\""), (b"", b"d"), (b"e", b"f=g")];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_rule_finds_a_cookie_in_its_way() {
        for (fields, rfc, plack, nginx, has) in [
            (&["a=1; b=2"][..], Some("1"), Some("1"), Some("1"), true),
            (&["b=2", "x=1;a=3"], Some("3"), Some("3"), Some("3"), true),
            (&["a=1; a=2"], Some("1"), Some("1"), Some("1"), true),
            (&["a=\"1\""], Some("\"1\""), Some("1"), Some("\"1\""), true),
            (&["a = 1 ;a=2"], Some("1"), Some("2"), Some("2"), true),
            (&["A=1"], None, None, Some("1"), false),
            (&["a"], None, None, None, true),
            (&["a="], Some(""), Some(""), Some(""), true),
            (&["a=\""], Some("\""), Some("\""), Some("\""), true),
            (&["ab=1; b=a=1"], None, None, None, false),
            (&[], None, None, None, false),
        ] {
            let text = |value: Option<&[u8]>| {
                value.map(|value| String::from_utf8_lossy(value).into_owned())
            };
            with_fields(fields, |request| {
                assert_eq!(text(cookie(request, b"a")).as_deref(), rfc, "{fields:?}");
                let found = cookie_like_plack(cookie_fields(request), b"a");
                assert_eq!(text(found).as_deref(), plack, "{fields:?}");
                assert_eq!(text(cookie_like_nginx(request, b"a")).as_deref(), nginx, "{fields:?}");
                assert_eq!(has_cookie(request, b"a"), has, "{fields:?}");
            });
        }
    }
}
