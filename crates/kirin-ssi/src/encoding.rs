//! The encoding of a variable's value in the page or in the target of a request.

use std::borrow::Cow;

use bytes::Bytes;
use kirin_http::html;
use kirin_http::percent::{self, AsciiSet, CONTROLS, RESERVED};

/// The encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The value is unchanged.
    None,
    /// Percent-encoding for a link as in nginx. Characters with a meaning in a reference stay.
    Url,
    /// Character references for HTML. This is the default of `echo`.
    Entity,
    /// Percent-encoding for one segment or one value in a request's target. Existing
    /// percent-encodings stay.
    Component,
    /// The same for an argument as the client sent it, in which a `+` is a space.
    Argument,
    /// The same for text that is not percent-encoded, so each `%` is encoded, too.
    Whole,
    /// The same for a decoded path in a request's target, in which a `/` stays.
    Path,
    /// The encoding for a host with a port.
    Host,
    /// Percent-encoding for a complete path or query in a request's target. It encodes only
    /// characters that may not be there.
    Target,
}

impl Encoding {
    /// Parses the parameter `encoding` of `echo`. An unknown name means the safe encoding, as in
    /// nginx.
    pub(crate) fn parse(name: &[u8]) -> Self {
        match name {
            b"none" => Self::None,
            b"url" => Self::Url,
            _ => Self::Entity,
        }
    }

    /// Encodes `value`. Makes no copy if nothing changes.
    pub(crate) fn encode(self, value: Bytes) -> Bytes {
        match self {
            Self::None => value,
            Self::Url => percent_encode(value, NOT_IN_LINK),
            Self::Entity => with_references(value),
            Self::Component => percent_encode_rest(value, SEPARATORS),
            Self::Argument => percent_encode_rest(value, SEPARATORS_BUT_PLUS),
            Self::Whole => percent_encode(value, SEPARATORS),
            Self::Path => percent_encode(value, SEPARATORS_BUT_SLASH),
            Self::Host => percent_encode(value, SEPARATORS_BUT_BRACKETS),
            Self::Target => percent_encode_rest(value, NOT_IN_TARGET),
        }
    }
}

/// Returns `value` with the bytes of `set` encoded.
fn percent_encode(value: Bytes, set: &'static AsciiSet) -> Bytes {
    let encoded = match percent::encode(&value, set) {
        // The text is borrowed as well when it is one byte, encoded.
        Cow::Borrowed(text) if text.len() == value.len() => None,
        text => Some(text.into_owned()),
    };
    encoded.map_or(value, Bytes::from)
}

/// Returns `value` with the bytes of `set` encoded, but not what is encoded already.
fn percent_encode_rest(value: Bytes, set: &'static AsciiSet) -> Bytes {
    if memchr::memchr(b'%', &value).is_none() {
        return percent_encode(value, set);
    }
    let mut encoded = Vec::with_capacity(value.len() + value.len() / 2 + 16);
    percent::encode_rest_into(&value, set, &mut encoded);
    Bytes::from(encoded)
}

fn with_references(value: Bytes) -> Bytes {
    let escaped = match html::escape(&value) {
        Cow::Borrowed(_) => None,
        Cow::Owned(escaped) => Some(escaped),
    };
    escaped.map_or(value, Bytes::from)
}

/// The bytes that nginx encodes in a link.
const NOT_IN_LINK: &AsciiSet = &NOT_IN_TARGET.add(b'\'').add(b'{').add(b'|').add(b'}');

/// The bytes that cannot be in a target, and `%`.
const NOT_IN_TARGET: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'#')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'%');

/// The bytes that cannot be in a segment or an argument, or that separate two of them. These are
/// all except the unreserved characters and `pchar` without `&`, `+`, `;` and `=` (RFC 3986 section
/// 3.3).
const SEPARATORS: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b':')
    .remove(b'@');

const SEPARATORS_BUT_PLUS: &AsciiSet = &SEPARATORS.remove(b'+');
const SEPARATORS_BUT_SLASH: &AsciiSet = &SEPARATORS.remove(b'/');
const SEPARATORS_BUT_BRACKETS: &AsciiSet = &SEPARATORS.remove(b'[').remove(b']');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_requested() {
        let value = "<a href='/?x=1&y=\"2\"'>é";
        for (encoding, value, written) in [
            (Encoding::None, value, value),
            (Encoding::Entity, value, "&lt;a href=&#39;/?x=1&amp;y=&quot;2&quot;&#39;&gt;é"),
            (Encoding::Url, value, "%3Ca%20href=%27/?x=1&y=%222%22%27%3E%C3%A9"),
            (Encoding::Argument, "a+b&c", "a+b%26c"),
            (Encoding::Whole, "a%20/b", "a%2520%2Fb"),
            (Encoding::Path, "/a%20/b;?", "/a%2520/b%3B%3F"),
            (Encoding::Host, "[::1]:80/", "[::1]:80%2F"),
            (Encoding::Url, "a%20~", "a%2520~"),
            (Encoding::Component, "../a&b%20%2%zz%", "..%2Fa%26b%20%252%25zz%25"),
            (Encoding::Target, "a=1&b=/%20 \r\n%é#\"", "a=1&b=/%20%20%0D%0A%25%C3%A9%23%22"),
        ] {
            assert_eq!(
                encoding.encode(Bytes::copy_from_slice(value.as_bytes())),
                written,
                "{encoding:?}"
            );
        }
    }

    #[test]
    fn each_encoding_keeps_its_bytes() {
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_of_one_place = |byte: u8| is_unreserved(byte) || b"!$'()*,:@".contains(&byte);
        for byte in 0..=255u8 {
            for (encoding, is_kept) in [
                (Encoding::None, true),
                (Encoding::Entity, !b"&<>\"'".contains(&byte)),
                (Encoding::Url, byte.is_ascii_graphic() && !b"\"#%'<>\\^`{|}".contains(&byte)),
                (Encoding::Component, is_of_one_place(byte)),
                (Encoding::Argument, is_of_one_place(byte) || byte == b'+'),
                (Encoding::Whole, is_of_one_place(byte)),
                (Encoding::Path, is_of_one_place(byte) || byte == b'/'),
                (Encoding::Host, is_of_one_place(byte) || b"[]".contains(&byte)),
                (Encoding::Target, byte.is_ascii_graphic() && !b"\"<>#\\^`%".contains(&byte)),
            ] {
                for value in [&[byte][..], &[byte, b'a'], &[b'a', byte, byte]] {
                    let encoded = encoding.encode(Bytes::copy_from_slice(value));
                    assert_eq!(encoded == value, is_kept, "{encoding:?} {value:?}");
                    let is_reference = encoding == Encoding::Entity;
                    let is_escape = encoded.contains(&b'%') && encoded.len() > value.len();
                    assert!(is_kept || is_reference || is_escape, "{encoding:?} {value:?}");
                }
            }
        }
    }
}
