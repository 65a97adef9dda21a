//! Queries and bodies of the type `application/x-www-form-urlencoded`: pairs of a name and a value.
//!
//! The URL standard separates pairs by `&`. Perl's parsers also accept `;`. The name of a function
//! says which rule it follows. The first `=` of a pair always ends the name.

use crate::percent::{self, Decoded};

/// Returns the pairs of `text`, separated by `&` as in the URL standard. It skips empty pairs.
pub fn pairs(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty())
}

/// Returns the pairs of `text`, separated by `&` or `;`, with the empty ones.
pub fn pairs_with_semicolons(text: &[u8]) -> Pairs<'_> {
    Pairs { rest: Some(text), ignores_space: false }
}

/// Returns the pairs of `text` by the rule of WWW::Form::UrlEncoded, which Plack::Request uses. `&`
/// or `;` separates pairs, and a space behind it is skipped. Empty pairs count, but an empty text
/// has no pair.
pub fn pairs_like_plack(text: &[u8]) -> Pairs<'_> {
    Pairs { rest: Some(text).filter(|text| !text.is_empty()), ignores_space: true }
}

/// The pairs of a form, in order.
pub struct Pairs<'a> {
    rest: Option<&'a [u8]>,
    /// Whether a space behind a separator belongs to it.
    ignores_space: bool,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest?;
        let Some(end) = memchr::memchr2(b'&', b';', text) else {
            self.rest = None;
            return Some(text);
        };
        let after = &text[end + 1..];
        let after_space = after.strip_prefix(b" ").filter(|_| self.ignores_space);
        self.rest = Some(after_space.unwrap_or(after));
        Some(&text[..end])
    }
}

/// Returns the name and the value of a pair, both encoded. Without `=`, the value is empty.
pub fn name_and_value(pair: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'=', pair) {
        Some(equals) => (&pair[..equals], &pair[equals + 1..]),
        None => (pair, b""),
    }
}

/// Returns the values of all arguments of a query that have this name, encoded. `name` is decoded.
pub fn arguments<'a>(query: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    let named = pairs(query).map(name_and_value);
    let named = named.filter(move |(other, _)| decoded(other).eq(name.bytes()));
    named.map(|(_, value)| value)
}

/// Returns the value of the argument `name` of a query, encoded, as nginx finds it for `$arg_NAME`:
/// the first of this name that has a `=`. Upper and lower case are the same.
pub fn argument_like_nginx<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut arguments = query.split('&').filter_map(|argument| argument.split_once('='));
    arguments.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns the decoded bytes of a name or value: `+` is a space, and a malformed encoding stays.
pub fn decoded(text: &[u8]) -> Decoded<'_, true> {
    Decoded { rest: text.iter() }
}

/// Appends a name or value to `out`, decoded.
pub fn decode_into(text: &[u8], out: &mut Vec<u8>) {
    out.extend(decoded(text));
}

/// Returns a name or value decoded; `None` if an encoding is malformed.
pub fn decode_strict(text: &[u8]) -> Option<Vec<u8>> {
    percent::is_well_formed(text).then(|| decoded(text).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined<'a>(pairs: impl Iterator<Item = &'a [u8]>) -> String {
        let pairs = pairs.map(name_and_value).map(|(name, value)| {
            format!("<{}|{}>", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
        });
        pairs.collect()
    }

    #[test]
    fn each_rule_separates_pairs_in_its_way() {
        for (text, standard, semicolons, plack) in [
            ("", "", "<|>", ""),
            ("a", "<a|>", "<a|>", "<a|>"),
            ("a=1&b=2", "<a|1><b|2>", "<a|1><b|2>", "<a|1><b|2>"),
            ("a=1;b=2", "<a|1;b=2>", "<a|1><b|2>", "<a|1><b|2>"),
            ("a=1; b=2", "<a|1; b=2>", "<a|1>< b|2>", "<a|1><b|2>"),
            ("a==1&=2&=", "<a|=1><|2><|>", "<a|=1><|2><|>", "<a|=1><|2><|>"),
            ("&a&&", "<a|>", "<|><a|><|><|>", "<|><a|><|><|>"),
            ("a& ", "<a|>< |>", "<a|>< |>", "<a|><|>"),
            (" a&  b", "< a|><  b|>", "< a|><  b|>", "< a|>< b|>"),
        ] {
            let bytes = text.as_bytes();
            assert_eq!(joined(pairs(bytes)), standard, "{text}");
            assert_eq!(joined(pairs_with_semicolons(bytes)), semicolons, "{text}");
            assert_eq!(joined(pairs_like_plack(bytes)), plack, "{text}");
        }
    }

    #[test]
    fn an_argument_has_an_equals_sign() {
        for (query, value) in [
            ("", None),
            ("x", None),
            ("x=1", Some("1")),
            ("X=1&x=2", Some("1")),
            ("x&a=x=1&x=", Some("")),
            ("xy=1;x=2&x=%20+", Some("%20+")),
        ] {
            assert_eq!(argument_like_nginx(query, "x"), value, "{query}");
        }
    }

    #[test]
    fn a_plus_is_a_space_before_encodings_are_read() {
        for (text, decoded, is_strict) in [
            ("a+b", "a b", true),
            ("%2B+%2b", "+ +", true),
            ("%+41", "% 41", false),
            ("+%4", " %4", false),
        ] {
            let mut appended = Vec::new();
            decode_into(text.as_bytes(), &mut appended);
            assert_eq!(appended, decoded.as_bytes(), "{text}");
            let strict = decode_strict(text.as_bytes());
            assert_eq!(strict.as_deref(), is_strict.then_some(decoded.as_bytes()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn both_ways_of_decoding_agree(text in "[%+4aé]{0,16}") {
            let mut appended = Vec::new();
            decode_into(text.as_bytes(), &mut appended);
            if let Some(strict) = decode_strict(text.as_bytes()) {
                prop_assert_eq!(strict, appended);
            }
        }
    }
}
