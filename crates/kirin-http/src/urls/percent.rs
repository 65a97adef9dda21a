//! Percent-encoding (RFC 3986 section 2.1).
//!
//! There is one rule for reading: `%` and two hexadecimal digits are one byte, and a `%` without
//! them stands for itself. Perl's URI::Escape and the URL standard read it in this way. Where a
//! malformed encoding must be refused, [`decode_strict`] does so. There is one way of writing: `%`
//! and two digits in capitals. A set says which bytes are written so.
//!
//! The crate `percent-encoding` writes. Its reader takes more than twice as long as [`decoded`],
//! and every parameter of a request to an application goes through it.

use std::borrow::Cow;

pub use percent_encoding::{AsciiSet, CONTROLS};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

/// Every byte but the unreserved characters of RFC 3986 section 2.3.
pub const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Every byte but the unreserved characters and `/`.
pub const RESERVED_BUT_SLASH: &AsciiSet = &RESERVED.remove(b'/');

/// Every byte that cannot stand in a path: all but `pchar` and `/` (RFC 3986 section 3.3). A `%` is
/// one of them.
pub const NOT_IN_PATH: &AsciiSet = &SUB_DELIMITERS_KEPT.remove(b':').remove(b'@').remove(b'/');

/// Every byte above 127, and nothing else.
pub const NOT_ASCII: &AsciiSet = &AsciiSet::EMPTY;

/// Every byte but the unreserved characters and `sub-delims` (RFC 3986 section 2.2).
const SUB_DELIMITERS_KEPT: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Returns the decoded bytes of `text`.
pub fn decoded(text: &[u8]) -> Decoded<'_> {
    Decoded { rest: text.iter() }
}

/// Decoded bytes. With `PLUS_IS_SPACE` they are those of a form, in which `+` is a space.
pub struct Decoded<'a, const PLUS_IS_SPACE: bool = false> {
    pub(crate) rest: std::slice::Iter<'a, u8>,
}

impl<const PLUS_IS_SPACE: bool> Iterator for Decoded<'_, PLUS_IS_SPACE> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        match *self.rest.next()? {
            b'%' => match self.rest.as_slice() {
                [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    self.rest.nth(1);
                    Some(hexadecimal_value(*high) << 4 | hexadecimal_value(*low))
                }
                _ => Some(b'%'),
            },
            b'+' if PLUS_IS_SPACE => Some(b' '),
            byte => Some(byte),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let length = self.rest.as_slice().len();
        (length.div_ceil(ENCODED_BYTES), Some(length))
    }
}

/// Returns the value of a hexadecimal digit.
fn hexadecimal_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Returns `text` decoded. It is copied only if it has a `%`.
pub fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    match memchr::memchr(b'%', text) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(decoded(text).collect()),
    }
}

/// Appends `text` decoded to `out`.
pub fn decode_into(text: &[u8], out: &mut Vec<u8>) {
    out.extend(decoded(text));
}

/// Returns `text` decoded; `None` if a `%` has no two hexadecimal digits behind it.
pub fn decode_strict(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    is_well_formed(text).then(|| decode(text))
}

/// Returns whether each `%` of `text` has two hexadecimal digits behind it.
pub fn is_well_formed(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        if encoded_byte(&rest[at..]).is_none() {
            return false;
        }
        rest = &rest[at + ENCODED_BYTES..];
    }
    true
}

/// Returns `bytes` as text in which the bytes of `set`, and those above 127, are encoded. They are
/// copied only if there is one.
pub fn encode<'a>(bytes: &'a [u8], set: &'static AsciiSet) -> Cow<'a, str> {
    percent_encode(bytes, set).into()
}

/// Appends `bytes` to `out`, with the bytes of `set` and those above 127 encoded.
pub fn encode_into(bytes: &[u8], set: &'static AsciiSet, out: &mut Vec<u8>) {
    for part in percent_encode(bytes, set) {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends `text` to `out` as [`encode_into`] does, but leaves `%` and two hexadecimal digits as
/// they are: they are encoded already. `set` has to have the `%`.
pub fn encode_rest_into(text: &[u8], set: &'static AsciiSet, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (before, encoded) = rest.split_at(at);
        encode_into(before, set, out);
        rest = match encoded_byte(encoded) {
            Some(_) => {
                out.extend_from_slice(&encoded[..ENCODED_BYTES]);
                &encoded[ENCODED_BYTES..]
            }
            None => {
                encode_into(b"%", set, out);
                &encoded[1..]
            }
        };
    }
    encode_into(rest, set, out);
}

/// Returns `text` with encodings that mean the same written the same (RFC 3986 section 6.2.2):
/// digits in capitals, and unreserved characters decoded.
pub fn normalize(text: &[u8]) -> Vec<u8> {
    let mut normalized = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        normalized.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match encoded_byte(rest) {
            Some(byte) => {
                encode_into(&[byte], RESERVED, &mut normalized);
                rest = &rest[ENCODED_BYTES..];
            }
            None => {
                normalized.push(b'%');
                rest = &rest[1..];
            }
        }
    }
    normalized.extend_from_slice(rest);
    normalized
}

/// The length of a percent-encoded byte, in bytes.
const ENCODED_BYTES: usize = 3;

/// Returns the byte that is percent-encoded at the start of `text`.
fn encoded_byte(text: &[u8]) -> Option<u8> {
    match text {
        [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            decoded(text).next()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates bytes of which many are parts of an encoding.
    fn encoded_text() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"%".to_vec()),
            "[0-9a-fA-F]".prop_map(String::into_bytes),
            "%[0-9a-fA-F]{2}".prop_map(String::into_bytes),
            any::<u8>().prop_map(|byte| vec![byte]),
        ];
        prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    #[test]
    fn a_malformed_encoding_stays_or_is_refused() {
        for (text, decoded, is_strict) in [
            ("", "", true),
            ("abc", "abc", true),
            ("a%20b", "a b", true),
            ("%41%6a%6A", "Ajj", true),
            ("%C3%A9", "é", true),
            ("a+b%2B", "a+b+", true),
            ("%2541", "%41", true),
            ("%", "%", false),
            ("%4", "%4", false),
            ("%4g%41", "%4gA", false),
            ("%+1%-1% 1", "%+1%-1% 1", false),
            ("%%41", "%A", false),
            ("%4%31", "%41", false),
        ] {
            assert_eq!(decode(text.as_bytes()), decoded.as_bytes(), "{text}");
            let strict = decode_strict(text.as_bytes());
            assert_eq!(strict.as_deref(), is_strict.then_some(decoded.as_bytes()), "{text}");
        }
    }

    #[test]
    fn each_set_has_its_bytes() {
        let is_reserved = |byte: u8| !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte);
        for byte in 0..=255 {
            let encoded = |set| encode(&[byte], set).len() == ENCODED_BYTES;
            assert_eq!(encoded(RESERVED), is_reserved(byte), "{byte}");
            assert_eq!(encoded(RESERVED_BUT_SLASH), byte != b'/' && is_reserved(byte), "{byte}");
            let is_in_path = !is_reserved(byte) || b"!$&'()*+,;=:@/".contains(&byte);
            assert_eq!(encoded(NOT_IN_PATH), !is_in_path, "{byte}");
            assert_eq!(encoded(NOT_ASCII), !byte.is_ascii(), "{byte}");
            assert_eq!(decode(encode(&[byte], RESERVED).as_bytes()), &[byte][..]);
        }
        assert_eq!(encode(b"\xe9/\x0f", RESERVED), "%E9%2F%0F");
    }

    #[test]
    fn encoded_bytes_can_stay_encoded() {
        let mut encoded = Vec::new();
        encode_rest_into(b"../a%20%2%zz%", RESERVED, &mut encoded);
        assert_eq!(encoded, b"..%2Fa%20%252%25zz%25");
    }

    #[test]
    fn encodings_that_mean_the_same_are_written_the_same() {
        let normalized = normalize(b"/%61%2f%2F%7e%e9%zz%4%");
        assert_eq!(normalized, b"/a%2F%2F~%E9%zz%4%");
    }

    proptest! {
        #[test]
        fn all_ways_of_decoding_agree(text in encoded_text()) {
            let mut appended = b"before".to_vec();
            decode_into(&text, &mut appended);
            prop_assert_eq!(&appended[6..], &decode(&text)[..]);
            if let Some(strict) = decode_strict(&text) {
                prop_assert_eq!(strict, decode(&text));
                let normalized = normalize(&text);
                prop_assert_eq!(decode(&normalized), decode(&text));
                prop_assert_eq!(normalize(&normalized), normalized);
            }
        }

        #[test]
        fn encoding_and_decoding_returns_the_same_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            for set in [RESERVED, RESERVED_BUT_SLASH, NOT_IN_PATH] {
                let encoded = encode(&bytes, set);
                let decoded = decode_strict(encoded.as_bytes());
                prop_assert_eq!(decoded.as_deref(), Some(&bytes[..]));
                let mut again = Vec::new();
                encode_rest_into(encoded.as_bytes(), set, &mut again);
                prop_assert_eq!(&again[..], encoded.as_bytes());
            }
        }
    }
}
