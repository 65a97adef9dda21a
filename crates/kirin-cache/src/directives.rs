//! The members of a `Cache-Control` field (RFC 9111 section 5.2): a list of `name`, `name=token` or
//! `name="quoted"`.
//!
//! Malformed lists are read as far as possible, because a directive that is not understood may be
//! the one that forbids storing. White space around `=` and empty members are ignored. A quote
//! without an end is not a quote. A member without a name is skipped.

use std::borrow::Cow;

/// A member of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDirective<'a> {
    /// The name. Its case does not matter.
    pub name: &'a [u8],
    /// The value after `=`, without quotes.
    pub value: Option<Cow<'a, [u8]>>,
}

impl CacheDirective<'_> {
    /// Returns whether it has this name. `name` is in lower case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Lists the members. A comma inside quotes does not end a member.
pub fn directives(list: &[u8]) -> impl Iterator<Item = CacheDirective<'_>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        loop {
            rest = skip(rest, |byte| byte == b',' || is_space(byte));
            if rest.is_empty() {
                return None;
            }
            let name_length = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'=') || is_space(*byte))
                .unwrap_or(rest.len());
            let (name, behind) = rest.split_at(name_length);
            rest = skip(behind, is_space);
            let value = match rest {
                [b'=', tail @ ..] => {
                    let (value, tail) = read_value(skip(tail, is_space));
                    rest = tail;
                    Some(value)
                }
                _ => None,
            };
            // The rest up to the comma has no meaning.
            rest = skip(rest, |byte| byte != b',');
            if !name.is_empty() {
                return Some(CacheDirective { name, value });
            }
        }
    })
}

/// Parses `delta-seconds` (RFC 9111 section 1.2.2). A number that is too large counts as a very
/// long time. A value that is not a number counts as 0, so that the response is stale (section
/// 4.2.1).
pub fn delta_seconds(value: Option<&[u8]>) -> u64 {
    const FOREVER: u64 = 1 << 31;
    let Some(digits) = value.map(<[u8]>::trim_ascii) else { return 0 };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    digits
        .iter()
        .fold(0u64, |seconds, digit| {
            seconds.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        })
        .min(FOREVER)
}

fn read_value(input: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let [b'"', quoted @ ..] = input else {
        return read_token(input);
    };
    let mut unescaped: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(byte) = quoted.get(at) {
        match byte {
            b'"' => break,
            b'\\' => {
                let plain =
                    unescaped.get_or_insert_with(|| quoted.get(..at).unwrap_or_default().to_vec());
                plain.extend(quoted.get(at + 1));
                at += 2;
            }
            byte => {
                if let Some(plain) = &mut unescaped {
                    plain.push(*byte);
                }
                at += 1;
            }
        }
    }
    let (Some(raw), Some(rest)) = (quoted.get(..at), quoted.get(at + 1..)) else {
        // The quote has no end. The text after it may be the directive that forbids storing, and
        // must not become part of the value.
        return read_token(input);
    };
    (unescaped.map_or(Cow::Borrowed(raw), Cow::Owned), rest)
}

fn read_token(input: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let length = input.iter().position(|byte| *byte == b',').unwrap_or(input.len());
    let (token, rest) = input.split_at(length);
    (Cow::Borrowed(token.trim_ascii()), rest)
}

fn skip(input: &[u8], mut what: impl FnMut(u8) -> bool) -> &[u8] {
    let end = input.iter().position(|byte| !what(*byte)).unwrap_or(input.len());
    input.get(end..).unwrap_or_default()
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(list: &str) -> Vec<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        directives(list.as_bytes())
            .map(|d| (text(d.name), d.value.map(|value| text(&value))))
            .collect()
    }

    #[test]
    fn malformed_members_are_read_as_far_as_possible() {
        for (list, expected) in [
            ("", &[][..]),
            (" , ,", &[]),
            ("no-store", &[("no-store", None)]),
            ("no-store,max-age=5", &[("no-store", None), ("max-age", Some("5"))]),
            ("max-age = 5 , public", &[("max-age", Some("5")), ("public", None)]),
            ("max-age=\"5\"", &[("max-age", Some("5"))]),
            (
                "private=\"set-cookie, x-a\", max-age=1",
                &[("private", Some("set-cookie, x-a")), ("max-age", Some("1"))],
            ),
            ("a=\"x\\\"y\"b, c", &[("a", Some("x\"y")), ("c", None)]),
            ("a=\"no end, no-store", &[("a", Some("\"no end")), ("no-store", None)]),
            ("a=\"\\", &[("a", Some("\"\\"))]),
            ("=5, b", &[("b", None)]),
            ("a=, b", &[("a", Some("")), ("b", None)]),
            ("a=b=c", &[("a", Some("b=c"))]),
            ("no-store;max-age=1", &[("no-store;max-age", Some("1"))]),
            ("public no-store, b", &[("public", None), ("b", None)]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)))
                .collect();
            assert_eq!(read(list), expected, "{list}");
        }
    }

    #[test]
    fn delta_seconds_are_digits_only() {
        for (value, expected) in [
            (Some("0"), 0),
            (Some("60"), 60),
            (Some("2147483648"), 1 << 31),
            (Some("99999999999999999999999999"), 1 << 31),
            (Some("-1"), 0),
            (Some("1.5"), 0),
            (Some("1 2"), 0),
            (Some(""), 0),
            (None, 0),
        ] {
            assert_eq!(delta_seconds(value.map(str::as_bytes)), expected, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_and_no_name_has_a_separator(list in prop::collection::vec(any::<u8>(), 0..200)) {
            for directive in directives(&list) {
                prop_assert!(!directive.name.is_empty());
                prop_assert!(!directive.name.iter().any(|byte| b",= \t".contains(byte)));
            }
        }

        #[test]
        fn well_formed_directives_are_parsed_as_they_were_written(
            members in prop::collection::vec(("[a-z-]{1,12}", prop::option::of("[ -~]{0,12}")), 0..8),
        ) {
            let written: Vec<String> = members
                .iter()
                .map(|(name, value)| match value {
                    None => name.clone(),
                    Some(value) => format!("{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
                })
                .collect();
            prop_assert_eq!(read(&written.join(", ")), members);
        }
    }
}
