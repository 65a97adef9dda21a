//! The parameters of the query that a configured pattern names.

use crate::pattern_part::PatternPart;
use crate::segment::{PathSegment, VariableSegment};

/// The most parameters that a pattern names. Each costs a look at the query of a request.
pub(crate) const MOST_PARAMETERS: usize = 4;

/// The longest name of a parameter in bytes.
pub(crate) const LONGEST_NAME: usize = 64;

/// A parameter of a configured pattern, such as `a`, `a={action}` or `a=blob`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternParameter {
    name: Box<[u8]>,
    /// The value that a request must have. `None` has Kirin find patterns for the values, and a
    /// request may be without the parameter.
    value: Option<PatternPart>,
}

impl PatternParameter {
    /// Parses a parameter of a pattern.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, value) = match text.split_once('=') {
            // No value has a `;`, and a `*` would not stand for any value.
            Some((_, value)) if value.contains([';', '*']) => return None,
            Some((name, value)) => (name, Some(PatternPart::parse(value)?)),
            None => (text, None),
        };
        let is_of_name = |byte: u8| byte.is_ascii_graphic() && !b"{}*=&;#?".contains(&byte);
        let is_name = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_of_name);
        is_name.then(|| Self { name: name.as_bytes().into(), value })
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns whether Kirin finds patterns for the values.
    pub(crate) fn is_found(&self) -> bool {
        self.value.is_none()
    }

    /// Returns whether a request with this query has the value that it must have.
    pub(crate) fn matches(&self, query: &[u8]) -> bool {
        let Some(part) = &self.value else { return true };
        value_in(query, &self.name).is_some_and(|value| part.matches(value))
    }

    /// Returns the value of a query as the tree takes it.
    pub(crate) fn segment<'q>(&self, query: &'q [u8]) -> PathSegment<'q> {
        match value_in(query, &self.name) {
            None => PathSegment::Variable(VariableSegment::ABSENT),
            Some([]) => PathSegment::Variable(VariableSegment::EMPTY),
            Some(value) => PathSegment::of(value),
        }
    }
}

/// Returns the first value of a parameter of a query, as it was sent. Without a `=` it is empty.
/// Parameters are separated by `&`, or by `;` as gitweb does it. A fragment ends the query.
fn value_in<'q>(query: &'q [u8], name: &[u8]) -> Option<&'q [u8]> {
    let end = memchr::memchr(b'#', query).unwrap_or(query.len());
    query[..end].split(|byte| matches!(byte, b'&' | b';')).find_map(|pair| {
        match pair.strip_prefix(name)? {
            [] => Some(&[][..]),
            [b'=', value @ ..] => Some(value),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_first_with_the_complete_name() {
        for (query, expected) in [
            ("", None),
            ("a=1", Some("1")),
            ("aa=1&a=2&a=3", Some("2")),
            ("p=x.git;a=blob;f=b", Some("blob")),
            ("a", Some("")),
            ("a=", Some("")),
            ("a=b=c", Some("b=c")),
            ("b=a=1", None),
            ("&;&a=1", Some("1")),
            ("a=1#x&a=2", Some("1")),
            ("b#&a=1", None),
        ] {
            let found = value_in(query.as_bytes(), b"a");
            assert_eq!(found, expected.map(str::as_bytes), "{query}");
        }
    }
}
