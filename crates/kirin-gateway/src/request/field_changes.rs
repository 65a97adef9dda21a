//! Changes that filters make to the fields of a request. They are kept as data: a request that must
//! wait keeps them beside the one copy of its head, and not a second copy.

use std::borrow::Cow;
use std::sync::Arc;

use httparse::Header;

/// A change of one field. Names are compared without case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldChange {
    /// Removes all lines of a field.
    Remove(&'static str),
    /// Gives the first line of a field another value and removes its other lines. Does nothing if
    /// there is none.
    Replace(&'static str, Vec<u8>),
    /// Adds a line at the end.
    Add(&'static str, Cow<'static, [u8]>),
    /// Replaces all lines of a field by lines with these values.
    Set(Arc<str>, Vec<Vec<u8>>),
}

/// Applies `changes` to `fields`, one after the other.
pub fn apply<'a>(changes: &'a [FieldChange], fields: &mut Vec<Header<'a>>) {
    for change in changes {
        match change {
            FieldChange::Remove(name) => {
                fields.retain(|field| !field.name.eq_ignore_ascii_case(name));
            }
            FieldChange::Replace(name, value) => replace(fields, name, value),
            FieldChange::Add(name, value) => fields.push(Header { name, value }),
            FieldChange::Set(name, values) => {
                fields.retain(|field| !field.name.eq_ignore_ascii_case(name));
                fields.extend(values.iter().map(|value| Header { name, value }));
            }
        }
    }
}

fn replace<'a>(fields: &mut Vec<Header<'a>>, name: &str, value: &'a [u8]) {
    let mut is_first = true;
    fields.retain_mut(|field| {
        let is_it = field.name.eq_ignore_ascii_case(name);
        if is_it {
            field.value = value;
        }
        !is_it || std::mem::take(&mut is_first)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_remove_replace_and_add_lines() {
        let lines = |fields: &[Header<'_>]| {
            fields
                .iter()
                .map(|field| format!("{}: {}", field.name, String::from_utf8_lossy(field.value)))
                .collect::<Vec<_>>()
        };
        let header = |name, value: &'static str| Header { name, value: value.as_bytes() };
        let changes = [
            FieldChange::Remove("range"),
            FieldChange::Replace("if-match", b"\"new\"".to_vec()),
            FieldChange::Replace("absent", b"x".to_vec()),
            FieldChange::Add("Accept-Encoding", Cow::Borrowed(b"identity")),
            FieldChange::Set("X-User".into(), vec![b"mari".to_vec(), b"2".to_vec()]),
            FieldChange::Set("X-Group".into(), Vec::new()),
        ];
        let mut fields = vec![
            header("Range", "bytes=0-"),
            header("If-Match", "\"a\""),
            header("Host", "h"),
            header("if-match", "\"b\""),
            header("RANGE", "x"),
            header("x-user", "root"),
            header("X-GROUP", "wheel"),
        ];
        apply(&changes, &mut fields);
        assert_eq!(
            lines(&fields),
            [
                "If-Match: \"new\"",
                "Host: h",
                "Accept-Encoding: identity",
                "X-User: mari",
                "X-User: 2"
            ]
        );
    }
}
