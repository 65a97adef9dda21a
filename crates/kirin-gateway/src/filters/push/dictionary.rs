//! Structured fields (RFC 9651), as far as the fields of applications need them: a dictionary of
//! integers, strings and booleans.
//!
//! Pure. A value that is well-formed but of another kind is refused with its name, so that the log
//! can say what was meant.

use std::collections::HashSet;
use std::fmt;

/// The value of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `?1`, or only the name of the member (RFC 9651 sections 3.2 and 3.3.6).
    Boolean(bool),
    /// `15` (RFC 9651 section 3.3.1).
    Integer(i64),
    /// `"text"` (section 3.3.3): printable ASCII.
    String(String),
}

/// Why a field value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedDictionary {
    /// The offset of the error in bytes.
    pub at: usize,
    /// The error.
    pub what: &'static str,
}

impl fmt::Display for MalformedDictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

/// The most digits of an integer (section 3.3.1).
const MAX_DIGITS: usize = 15;

/// Parses the members of a dictionary, in order. The last value of a repeated member counts
/// (section 4.2.2).
pub fn parse(value: &[u8]) -> Result<Vec<(String, Item)>, MalformedDictionary> {
    let mut input = Input { bytes: value, at: 0 };
    let mut members: Vec<(String, Item)> = Vec::new();
    input.skip(b" ");
    while input.peek().is_some() {
        let name = input.key()?;
        let item = match input.peek() {
            Some(b'=') => {
                input.at += 1;
                input.item()?
            }
            _ => Item::Boolean(true),
        };
        members.push((name, item));
        input.skip(b" \t");
        match input.next() {
            None => break,
            Some(b',') => input.skip(b" \t"),
            Some(b';') => return Err(input.wrong_before("a parameter")),
            Some(_) => return Err(input.wrong_before("no comma")),
        }
        if input.peek().is_none() {
            return Err(input.wrong("nothing after a comma"));
        }
    }
    Ok(with_last_values(members))
}

/// Removes the members that come again later.
fn with_last_values(mut members: Vec<(String, Item)>) -> Vec<(String, Item)> {
    let mut later = HashSet::with_capacity(members.len());
    let mut is_last: Vec<bool> =
        members.iter().rev().map(|(name, _)| later.insert(name.clone())).collect();
    members.retain(|_| is_last.pop().unwrap_or(true));
    members
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    fn skip(&mut self, any: &[u8]) {
        while self.peek().is_some_and(|byte| any.contains(&byte)) {
            self.at += 1;
        }
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&is_part) {
            self.at += 1;
        }
        self.bytes[start..self.at].iter().copied().map(char::from).collect()
    }

    fn wrong(&self, what: &'static str) -> MalformedDictionary {
        MalformedDictionary { at: self.at, what }
    }

    /// Returns the error at the byte that was taken last.
    fn wrong_before(&self, what: &'static str) -> MalformedDictionary {
        MalformedDictionary { at: self.at.saturating_sub(1), what }
    }

    /// Reads a key: `lcalpha` or `*`, then letters, digits and `_-.*` (section 3.1.2).
    fn key(&mut self) -> Result<String, MalformedDictionary> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'*') {
            return Err(self.wrong("no name in small letters"));
        }
        let is_part = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        };
        Ok(self.take_while(is_part))
    }

    fn item(&mut self) -> Result<Item, MalformedDictionary> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'?') => self.boolean(),
            Some(b'-' | b'0'..=b'9') => self.integer(),
            _ => Err(self.wrong("neither a number, `?0` or `?1` nor a string in double quotes")),
        }
    }

    fn boolean(&mut self) -> Result<Item, MalformedDictionary> {
        self.at += 1;
        match self.next() {
            Some(digit @ (b'0' | b'1')) => Ok(Item::Boolean(digit == b'1')),
            _ => Err(self.wrong_before("neither `?0` nor `?1`")),
        }
    }

    fn integer(&mut self) -> Result<Item, MalformedDictionary> {
        let start = self.at;
        let is_negative = self.peek() == Some(b'-');
        self.at += usize::from(is_negative);
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let number = digits.parse::<i64>().ok().filter(|_| digits.len() <= MAX_DIGITS);
        match (number, self.peek()) {
            (Some(_), Some(b'.')) => {
                Err(MalformedDictionary { at: start, what: "a number that is not whole" })
            }
            (Some(number), _) => Ok(Item::Integer(if is_negative { -number } else { number })),
            (None, _) => {
                Err(MalformedDictionary { at: start, what: "no number of 1 to 15 digits" })
            }
        }
    }

    fn string(&mut self) -> Result<Item, MalformedDictionary> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let byte = match self.next() {
                Some(b'"') => return Ok(Item::String(text)),
                Some(b'\\') => match self.next() {
                    Some(escaped @ (b'"' | b'\\')) => escaped,
                    _ => return Err(self.wrong_before("neither `\"` nor `\\` after a backslash")),
                },
                Some(byte @ 0x20..=0x7e) => byte,
                Some(_) => return Err(self.wrong_before("what is no printable ASCII in a string")),
                None => return Err(self.wrong_before("no end of the string")),
            };
            text.push(char::from(byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_are_integers_strings_and_booleans() {
        let text = |text: &str| Item::String(text.into());
        for (value, expected) in [
            ("", vec![]),
            ("ttl=300", vec![("ttl", Item::Integer(300))]),
            (
                "  a=-1,b=\"x y\" ,\t c_1.*-=\"\"",
                vec![("a", Item::Integer(-1)), ("b", text("x y")), ("c_1.*-", text(""))],
            ),
            (
                "a, b=?0 , c=?1",
                vec![
                    ("a", Item::Boolean(true)),
                    ("b", Item::Boolean(false)),
                    ("c", Item::Boolean(true)),
                ],
            ),
            (r#"q="\"\\""#, vec![("q", text(r#""\"#))]),
            ("a=1, b=2, a=3", vec![("b", Item::Integer(2)), ("a", Item::Integer(3))]),
            ("n=999999999999999", vec![("n", Item::Integer(999_999_999_999_999))]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(name, item)| (name.to_owned(), item)).collect();
            assert_eq!(parse(value.as_bytes()).as_ref(), Ok(&expected), "{value}");
        }
    }

    #[test]
    fn a_malformed_dictionary_is_refused_with_the_offset() {
        for (value, at, what) in [
            ("soft=?", 6, "`?0`"),
            ("soft=?2", 6, "`?0`"),
            ("soft;a", 4, "a parameter"),
            ("ttl=", 4, "neither a number"),
            ("ttl=x", 4, "neither a number"),
            ("ttl =1", 4, "no comma"),
            ("ttl= 1", 4, "neither a number"),
            ("ttl=1.5", 4, "not whole"),
            ("ttl=1234567890123456", 4, "15 digits"),
            ("ttl=-", 4, "15 digits"),
            ("Ttl=1", 0, "small letters"),
            ("a=1;b=2", 3, "a parameter"),
            ("a=1 b=2", 4, "no comma"),
            ("a=1,", 4, "nothing after"),
            ("a=1, ", 5, "nothing after"),
            ("a=\"x", 4, "no end"),
            ("a=\"\\x\"", 4, "backslash"),
            ("a=\"\u{e9}\"", 3, "printable"),
            ("a=(\"x\")", 2, "neither a number"),
        ] {
            let error = parse(value.as_bytes()).unwrap_err();
            assert!(error.at == at && error.what.contains(what), "{value}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_and_a_written_dictionary_is_read_back(
            garbage in prop::collection::vec(any::<u8>(), 0..60),
            members in prop::collection::btree_map("[a-z*][a-z0-9_.*-]{0,8}", "[ -~]{0,20}", 0..5),
        ) {
            let _ = parse(&garbage);
            let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let written: Vec<_> = members.iter().map(|(name, text)| format!("{name}=\"{}\"", quote(text))).collect();
            let read = parse(written.join(", ").as_bytes()).unwrap();
            let expected: Vec<_> =
                members.into_iter().map(|(name, text)| (name, Item::String(text))).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
