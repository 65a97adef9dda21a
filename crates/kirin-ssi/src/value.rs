//! Values of variables that record which of their bytes do not come from the page's author.
//!
//! These bytes come from the visitor: arguments, cookies, fields, the path. In the target of an
//! include they may fill one place, a segment of the path or a value of the query. They must never
//! choose another part. So they are percent-encoded there. A target is refused if the encoding
//! cannot contain them, because an encoded slash or dot segment means the same as a plain one.

use std::ops::Range;

use bytes::Bytes;
use kirin_http::percent;

use crate::encoding::Encoding;

/// The longest value, in bytes. Variables that are set to each other twice must not fill memory.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// The most foreign ranges that one value records. More of them are merged into one, with the
/// author's text between them.
const MAX_FOREIGN_PARTS: usize = 64;

/// The kind of text in a variable that the page has not set. It decides which characters stay
/// unencoded in a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOrigin {
    /// Any text. Existing percent-encodings stay, because cookies often have them.
    Text,
    /// An argument as the client sent it. It is as [`TextOrigin::Text`], and a `+` is a space.
    Argument,
    /// Decoded text, in which a `%` is a `%`.
    Decoded,
    /// A decoded path without dot segments.
    Path,
    /// A path and a query as the client sent them.
    PathAndQuery,
    /// A query as the client sent it.
    Query,
    /// A host, perhaps with a port.
    Host,
}

impl TextOrigin {
    /// Returns the origin of the variable `name`, in lower case. Returns `None` if its value is one
    /// of a few values of the server.
    pub(crate) fn of_variable(name: &str) -> Option<Self> {
        match name {
            "is_args" => None,
            "uri" | "document_uri" => Some(Self::Path),
            "request_uri" => Some(Self::PathAndQuery),
            "query_string" | "args" => Some(Self::Query),
            "host" | "http_host" | "server_name" => Some(Self::Host),
            "document_name" | "query_string_unescaped" => Some(Self::Decoded),
            _ if name.starts_with("arg_") => Some(Self::Argument),
            _ => Some(Self::Text),
        }
    }

    /// Returns the encoding of its text in a target, before or behind the `?`.
    fn encoding(self, in_query: bool) -> Encoding {
        match (self, in_query) {
            (Self::Query, true) | (Self::PathAndQuery, false) => Encoding::Target,
            (Self::Path, false) => Encoding::Path,
            (Self::Path | Self::PathAndQuery | Self::Decoded, _) => Encoding::Whole,
            (Self::Host, _) => Encoding::Host,
            (Self::Argument, _) | (Self::Query, false) => Encoding::Argument,
            (Self::Text, _) => Encoding::Component,
        }
    }
}

/// The reason why a target is refused: the visitor's text in it would lead to another part than the
/// one that the page's author has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeadsElsewhere;

/// The value of a variable or parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VariableValue {
    pub(crate) bytes: Bytes,
    foreign: Foreign,
}

/// The bytes that are not the author's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Foreign {
    #[default]
    None,
    All(TextOrigin),
    /// The ranges, in order.
    Parts(Vec<(Range<usize>, TextOrigin)>),
}

impl VariableValue {
    /// Makes a value from text of the author, or from a response of another part of the site.
    pub(crate) fn authors(bytes: Bytes) -> Self {
        Self { bytes, foreign: Foreign::None }
    }

    /// Makes the value of the variable `name`, which the page has not set.
    pub(crate) fn outside(name: &str, bytes: Bytes) -> Self {
        Self { bytes, foreign: TextOrigin::of_variable(name).map_or(Foreign::None, Foreign::All) }
    }

    /// Returns the bytes of a range, which must be inside the value.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        let foreign = match &self.foreign {
            Foreign::None => Foreign::None,
            Foreign::All(origin) => Foreign::All(*origin),
            Foreign::Parts(parts) => Foreign::Parts(
                parts
                    .iter()
                    .map(|(part, origin)| {
                        let (start, end) = (part.start.max(range.start), part.end.min(range.end));
                        (
                            start.saturating_sub(range.start)..end.saturating_sub(range.start),
                            *origin,
                        )
                    })
                    .filter(|(part, _)| !part.is_empty())
                    .collect(),
            ),
        };
        Self { bytes: self.bytes.slice(range), foreign }
    }

    /// Joins the values. The result ends at a megabyte.
    pub(crate) fn concat(values: impl Iterator<Item = VariableValue>) -> Self {
        let (mut whole, mut parts) = (Vec::new(), Vec::<(Range<usize>, TextOrigin)>::new());
        for value in values {
            let start = whole.len();
            let end = start + value.bytes.len().min(MAX_BYTES - start);
            whole.extend_from_slice(&value.bytes[..end - start]);
            let mut push = |part: Range<usize>, origin| {
                let is_full = parts.len() == MAX_FOREIGN_PARTS;
                match parts.last_mut() {
                    _ if part.is_empty() => {}
                    Some((last, same)) if last.end == part.start && *same == origin => {
                        last.end = part.end
                    }
                    Some((last, other)) if is_full => {
                        (last.end, *other) = (part.end, TextOrigin::Text)
                    }
                    _ => parts.push((part, origin)),
                }
            };
            match value.foreign {
                Foreign::None => {}
                Foreign::All(origin) => push(start..end, origin),
                Foreign::Parts(parts) => {
                    for (part, origin) in parts {
                        push((start + part.start).min(end)..(start + part.end).min(end), origin);
                    }
                }
            }
            if end == MAX_BYTES {
                break;
            }
        }
        let foreign = if parts.is_empty() { Foreign::None } else { Foreign::Parts(parts) };
        Self { bytes: Bytes::from(whole), foreign }
    }

    /// Returns the value as the target of a request.
    pub(crate) fn target(&self) -> Result<Bytes, LeadsElsewhere> {
        let all;
        let parts = match &self.foreign {
            Foreign::None => return Ok(self.bytes.clone()),
            Foreign::All(origin) => {
                all = [(0..self.bytes.len(), *origin)];
                &all[..]
            }
            Foreign::Parts(parts) => parts,
        };
        let mut target = Vec::with_capacity(self.bytes.len() + 16);
        let mut in_query = false;
        // The positions in the path of text that is not the author's.
        let mut in_path = Vec::new();
        let mut at = 0;
        for (part, origin) in parts {
            let authors = &self.bytes[at..part.start];
            target.extend_from_slice(authors);
            in_query |= memchr::memchr(b'?', authors).is_some();
            let encoded = origin.encoding(in_query).encode(self.bytes.slice(part.clone()));
            if !in_query {
                let mark = memchr::memchr(b'?', &encoded);
                in_path.push(target.len()..target.len() + mark.unwrap_or(encoded.len()));
                in_query = mark.is_some();
            }
            target.extend_from_slice(&encoded);
            at = part.end;
        }
        target.extend_from_slice(&self.bytes[at..]);
        let path = &target[..memchr::memchr(b'?', &target).unwrap_or(target.len())];
        if leads_elsewhere(path, &in_path) { Err(LeadsElsewhere) } else { Ok(Bytes::from(target)) }
    }
}

/// Returns whether a segment of `path` with foreign text decodes to more or less than one segment.
/// `foreign` has the positions of such text, in order.
fn leads_elsewhere(path: &[u8], foreign: &[Range<usize>]) -> bool {
    let mut foreign = foreign.iter().peekable();
    let mut start = 0;
    path.split(|byte| *byte == b'/').any(|segment| {
        let end = start + segment.len();
        while foreign.next_if(|part| part.end <= start).is_some() {}
        let is_touched = foreign.peek().is_some_and(|part| part.start < end);
        start = end + 1;
        is_touched && !is_one_segment(segment)
    })
}

/// Returns whether a decoded segment is still one segment. Other servers read a backslash as a
/// slash.
fn is_one_segment(segment: &[u8]) -> bool {
    let decoded = percent::decode(segment);
    !matches!(&decoded[..], b"." | b"..")
        && !decoded.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn authors(text: &'static str) -> VariableValue {
        VariableValue::authors(Bytes::from_static(text.as_bytes()))
    }

    fn visitors(name: &str, text: &str) -> VariableValue {
        VariableValue::outside(name, Bytes::copy_from_slice(text.as_bytes()))
    }

    fn target(values: &[VariableValue]) -> Option<String> {
        let target = VariableValue::concat(values.iter().cloned()).target().ok()?;
        Some(String::from_utf8(target.to_vec()).unwrap())
    }

    #[test]
    fn visitor_text_fills_one_segment_of_a_path() {
        for (name, sent, filled) in [
            ("arg_a", "b", Some("/p/b.html")),
            ("arg_a", "b c?d#e&f=g;h", Some("/p/b%20c%3Fd%23e%26f%3Dg%3Bh.html")),
            ("arg_a", "b%20c", Some("/p/b%20c.html")),
            ("arg_a", "100%", Some("/p/100%25.html")),
            ("arg_a", "%252e%252e%252f", Some("/p/%252e%252e%252f.html")),
            ("arg_a", "../app/zzz", None),
            ("arg_a", "b/c", None),
            ("arg_a", "b%2Fc", None),
            ("arg_a", "b%2fc", None),
            ("arg_a", "..%2f..%2fapp", None),
            ("arg_a", "b\\c", None),
            ("arg_a", "b%5cc", None),
            ("arg_a", "b%00c", None),
            ("cookie_a", "../app", None),
            ("http_x", "../app", None),
            ("remote_user", "a/b", None),
            ("session.name", "a/../b", None),
            ("session.name", "Mary & Jo", Some("/p/Mary%20%26%20Jo.html")),
            ("query_string", "a=b&c", Some("/p/a%3Db%26c.html")),
            ("query_string", "/../x", None),
            ("query_string_unescaped", "/../x", None),
            ("http_host", "a.example:80", Some("/p/a.example:80.html")),
            ("http_host", "a/../../b", None),
            ("document_name", "a b%2F", Some("/p/a%20b%252F.html")),
            ("uri", "a/b%2F..?c", Some("/p/a/b%252F..%3Fc.html")),
            ("request_uri", "/a/b?c", Some("/p//a/b?c.html")),
            ("request_uri", "/a/../b", None),
            ("request_uri", "/a/%2e%2e/b", None),
            ("request_uri", "/a/%2E./b?c", None),
            ("request_uri", "/a/b?c/../d", Some("/p//a/b?c/../d.html")),
        ] {
            let got = target(&[authors("/p/"), visitors(name, sent), authors(".html")]);
            assert_eq!(got.as_deref(), filled, "{name} {sent}");
        }
    }

    #[test]
    fn dot_segments_made_of_several_values_are_found() {
        let dot = || visitors("arg_a", ".");
        for values in [
            vec![authors("/p/"), dot(), dot(), authors("/x")],
            vec![authors("/p/."), dot(), authors("/x")],
            vec![authors("/p/%2e"), dot()],
            vec![authors("/p/"), visitors("arg_a", "%2E"), dot(), authors("?x")],
            vec![dot(), dot(), authors("/x")],
            vec![authors("/p/"), dot()],
        ] {
            assert_eq!(target(&values), None, "{values:?}");
        }
        assert_eq!(target(&[authors("/p/../"), dot(), authors("a")]).as_deref(), Some("/p/../.a"));
    }

    #[test]
    fn visitor_text_fills_one_value_of_a_query() {
        for (name, sent, filled) in [
            ("arg_a", "b+c", "/p?x=b+c&y"),
            ("arg_a", "../b&c=d#e", "/p?x=..%2Fb%26c%3Dd%23e&y"),
            ("cookie_a", "b+c?%41%zz", "/p?x=b%2Bc%3F%41%25zz&y"),
            ("args", "b=1&c=2 /../#", "/p?x=b=1&c=2%20/../%23&y"),
            ("request_uri", "/a?b&c=%20", "/p?x=%2Fa%3Fb%26c%3D%2520&y"),
            ("uri", "/a/b c", "/p?x=%2Fa%2Fb%20c&y"),
            ("host", "a.example:80", "/p?x=a.example:80&y"),
        ] {
            let got = target(&[authors("/p?x="), visitors(name, sent), authors("&y")]);
            assert_eq!(got.as_deref(), Some(filled), "{name} {sent}");
        }
        let with_mark = [authors("/p"), visitors("is_args", "?"), visitors("args", "a=b")];
        assert_eq!(target(&with_mark).as_deref(), Some("/p?a=b"));
        let whole = [visitors("request_uri", "/a?b"), visitors("arg_a", "/c")];
        assert_eq!(target(&whole).as_deref(), Some("/a?b%2Fc"));
    }

    #[test]
    fn parts_of_a_value_keep_their_origin() {
        let value = VariableValue::concat(
            [authors("/p/"), visitors("arg_a", "a/b"), authors("/c")].into_iter(),
        );
        assert_eq!(value.slice(0..4).target().unwrap(), "/p/a");
        assert!(value.slice(2..6).target().is_err());
        assert_eq!(value.slice(5..8).target().unwrap(), "b/c");
        assert_eq!(
            value.slice(6..8),
            VariableValue { foreign: Foreign::Parts(vec![]), ..authors("/c") }
        );
        let pair = [authors("a"), visitors("arg_a", "/")];
        let many = VariableValue::concat((0..1000).flat_map(|_| pair.clone()));
        let Foreign::Parts(parts) = &many.foreign else { panic!("{many:?}") };
        assert!(parts.len() <= MAX_FOREIGN_PARTS && many.target().is_err());
        let long = VariableValue::concat(
            (0..3).map(|_| VariableValue::outside("arg_a", vec![b'/'; MAX_BYTES / 2 + 1].into())),
        );
        assert!(long.bytes.len() == MAX_BYTES && long.target().is_err());
    }

    proptest! {
        #[test]
        fn no_visitor_text_leaves_its_segment(
            name in "arg_a|cookie_a|http_x|session.a|query_string|document_name|http_host|remote_user",
            sent in "(\\.|/|%|2|5|e|E|f|F|c|\\\\|\\?|#|a|:|\u{e9}|\u{0}){0,12}",
        ) {
            if let Some(target) = target(&[authors("/p/"), visitors(&name, &sent), authors("/end")]) {
                let rest = target.strip_prefix("/p/").and_then(|rest| rest.strip_suffix("/end")).unwrap();
                prop_assert!(is_one_segment(rest.as_bytes()), "{}", target);
                prop_assert!(!rest.contains(['/', '?', '#', '\\']), "{}", target);
            }
        }
    }
}
