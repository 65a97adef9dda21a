//! Field lines of a response head in their wire form, `Name: value CRLF`. Writing a head copies
//! them.
//!
//! A head that is made once and sent many times (a store page, a cached file) has shared bytes.
//! Lines that a filter adds to one response are kept beside them.

use bytes::Bytes;

use crate::fields::byte_scan::any_byte;
use crate::token::is_token;

/// A sequence of complete field lines. No value has a CR, LF or NUL, so that nothing in an
/// application's response or a stored item can split the response (RFC 9112 section 11.1).
///
/// The framing fields (`Content-Length`, `Transfer-Encoding`, `Connection`, `Keep-Alive`) are never
/// in it. The engine writes them from the body and the connection.
#[derive(Clone, Debug, Default)]
pub struct FieldLines {
    prepared: Bytes,
    added: Vec<u8>,
    has_date: bool,
}

/// Why a field cannot be in a response head.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidField {
    /// The name is empty or not a token (RFC 9110 section 5.1).
    #[error("field name {0:?} is not a token")]
    Name(String),
    /// The value has a CR, LF, NUL or another control character (RFC 9110 section 5.5).
    #[error("value of field {0} has a control character")]
    Value(String),
}

impl FieldLines {
    /// Returns no field lines.
    pub const fn new() -> Self {
        Self { prepared: Bytes::new(), added: Vec::new(), has_date: false }
    }

    /// Returns no field lines, with room for `bytes` of them.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { added: Vec::with_capacity(bytes), ..Self::new() }
    }

    /// Appends one field line. Refuses a name that is not a token, and a value with control
    /// characters.
    pub fn try_push(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidField> {
        self.try_push_parts(name, &[value])
    }

    /// Does the same with a value that consists of several parts.
    pub fn try_push_parts(&mut self, name: &[u8], value: &[&[u8]]) -> Result<(), InvalidField> {
        if !is_token(name) {
            return Err(InvalidField::Name(String::from_utf8_lossy(name).into_owned()));
        }
        if value.iter().any(|part| any_byte(part, |byte| !is_field_value_byte(byte))) {
            return Err(InvalidField::Value(String::from_utf8_lossy(name).into_owned()));
        }
        self.has_date |= name.eq_ignore_ascii_case(b"date");
        let value_bytes: usize = value.iter().map(|part| part.len()).sum();
        self.added.reserve(name.len() + value_bytes + 4);
        self.added.extend_from_slice(name);
        self.added.extend_from_slice(b": ");
        value.iter().for_each(|part| self.added.extend_from_slice(part));
        self.added.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Appends one field line that Kirin has made. An invalid value is left out rather than sent.
    pub fn push(&mut self, name: &'static str, value: impl AsRef<[u8]>) {
        let pushed = self.try_push(name.as_bytes(), value.as_ref());
        debug_assert!(pushed.is_ok(), "{pushed:?}");
    }

    /// Appends all field lines of `other`.
    pub fn append(&mut self, other: &FieldLines) {
        self.added.extend_from_slice(&other.prepared);
        self.added.extend_from_slice(&other.added);
        self.has_date |= other.has_date;
    }

    /// Returns the lines without those of the field `name`.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut kept = Self::new();
        for (other, value) in
            self.iter().filter(|(other, _)| !other.eq_ignore_ascii_case(name.as_bytes()))
        {
            // It was a valid field line before.
            let _ = kept.try_push(other, value);
        }
        kept
    }

    /// Removes every line of the field `name`.
    pub fn remove(&mut self, name: &str) {
        if self.get(name).is_some() {
            *self = self.without(name);
        }
    }

    /// Turns the lines into shared bytes. A clone of them then costs a reference count only.
    #[must_use]
    pub fn prepare(self) -> Self {
        if self.added.is_empty() {
            return self;
        }
        let mut all = Vec::with_capacity(self.len_bytes());
        self.write_to(&mut all);
        Self { prepared: Bytes::from(all), added: Vec::new(), has_date: self.has_date }
    }

    /// Copies the lines to the end of `out`.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prepared);
        out.extend_from_slice(&self.added);
    }

    /// Returns the length of the wire form in bytes.
    pub fn len_bytes(&self) -> usize {
        self.prepared.len() + self.added.len()
    }

    /// Returns whether one of the lines is a `Date`. The `Date` of an upstream is kept (RFC 9110
    /// section 6.6.1).
    pub fn has_date(&self) -> bool {
        self.has_date
    }

    /// Returns names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter_prepared().chain(self.iter_added())
    }

    /// Returns the lines that are shared with other responses.
    pub fn prepared(&self) -> &Bytes {
        &self.prepared
    }

    /// Returns names and values of the shared lines, in order.
    pub fn iter_prepared(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        lines(&self.prepared)
    }

    /// Returns names and values of the other lines, which follow the shared ones.
    pub fn iter_added(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        lines(&self.added)
    }

    /// Returns the first value of the field `name`.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.lines(name).next()
    }

    /// Returns the values of all lines of the field `name`.
    pub fn lines(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let is_named = move |(other, _): &(&[u8], _)| other.eq_ignore_ascii_case(name.as_bytes());
        self.iter().filter(is_named).map(|(_, value)| value)
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        // No value has a CR.
        let end = memchr::memchr(b'\r', rest)?;
        let (line, tail) = rest.split_at(end);
        rest = tail.get(2..)?;
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Returns whether `byte` may be in a value (RFC 9110 section 5.5): HTAB, SP, VCHAR or obs-text.
pub(crate) fn is_field_value_byte(byte: u8) -> bool {
    (byte == b'\t') | ((byte >= 0x20) & (byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_split_the_response() {
        for value in [&b"a\r\nSet-Cookie: x"[..], b"a\nb", b"a\rb", b"a\0b"] {
            let mut fields = FieldLines::new();
            assert!(
                matches!(fields.try_push(b"X", value), Err(InvalidField::Value(_))),
                "{value:?}"
            );
            assert_eq!(fields.len_bytes(), 0);
        }
    }

    #[test]
    fn a_name_must_be_a_token() {
        for name in [&b""[..], b"a b", b"a:", b"\xc3\xa9"] {
            assert!(
                matches!(FieldLines::new().try_push(name, b"v"), Err(InvalidField::Name(_))),
                "{name:?}"
            );
        }
    }

    #[test]
    fn prepared_and_added_lines_read_as_one_run() {
        let mut fields = FieldLines::new();
        fields.push("Content-Type", "text/html");
        let mut fields = fields.prepare();
        fields.push("ETag", "\"x\"");
        assert_eq!(fields.get("etag"), Some(&b"\"x\""[..]));
        assert_eq!(fields.get("content-type"), Some(&b"text/html"[..]));
        let mut out = Vec::new();
        fields.write_to(&mut out);
        assert_eq!(out, b"Content-Type: text/html\r\nETag: \"x\"\r\n");
    }

    #[test]
    fn every_line_of_a_name_can_be_taken_out() {
        let mut fields = FieldLines::new();
        fields.push("A", "1");
        fields.push("Date", "then");
        let mut fields = fields.prepare();
        fields.push("b", "2");
        fields.push("a", "3");
        fields.remove("A");
        assert_eq!(fields.iter().collect::<Vec<_>>(), [(&b"Date"[..], &b"then"[..]), (b"b", b"2")]);
        fields.remove("c");
        assert!(fields.has_date());
        fields.remove("date");
        assert!(!fields.has_date());
    }
}
