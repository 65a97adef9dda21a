//! The fields of a request for conditions, ranges and content codings, found in one pass. They are
//! for all responses with validators or variants.

use std::borrow::Cow;

use crate::request::RequestHead;

/// The value of a field. Several lines of one name are one list (RFC 9110 section 5.3). A field
/// that is not a list becomes malformed by that, and is ignored.
type Value<'a> = Option<Cow<'a, [u8]>>;

/// The values of these fields.
#[derive(Debug, Default)]
pub struct RequestFields<'a> {
    /// `Accept-Encoding`
    pub accept_encoding: Value<'a>,
    /// `If-Match`
    pub if_match: Value<'a>,
    /// `If-Unmodified-Since`
    pub if_unmodified_since: Value<'a>,
    /// `If-None-Match`
    pub if_none_match: Value<'a>,
    /// `If-Modified-Since`
    pub if_modified_since: Value<'a>,
    /// `Range`
    pub range: Value<'a>,
    /// `If-Range`
    pub if_range: Value<'a>,
}

impl<'a> RequestFields<'a> {
    /// Returns the fields of `request`.
    pub fn from_head(request: &RequestHead<'a>) -> Self {
        let mut fields = Self::default();
        for field in request.fields {
            fields.add(field.name, field.value);
        }
        fields
    }

    /// Returns the fields from names and values in the form of CGI, in which several lines of one
    /// name are joined already.
    pub fn from_cgi(variables: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut fields = Self::default();
        for (name, value) in variables {
            let Some(name) = name.strip_prefix(b"HTTP_") else { continue };
            let slot = match name {
                b"IF_MATCH" => &mut fields.if_match,
                b"IF_UNMODIFIED_SINCE" => &mut fields.if_unmodified_since,
                b"IF_NONE_MATCH" => &mut fields.if_none_match,
                b"IF_MODIFIED_SINCE" => &mut fields.if_modified_since,
                b"RANGE" => &mut fields.range,
                b"IF_RANGE" => &mut fields.if_range,
                _ => continue,
            };
            *slot = Some(Cow::Borrowed(value));
        }
        fields
    }

    fn add(&mut self, name: &str, value: &'a [u8]) {
        // The length is compared first: most fields of a request have other lengths.
        let (slot, known) = match name.len() {
            5 => (&mut self.range, "range"),
            8 if name.ends_with(['h', 'H']) => (&mut self.if_match, "if-match"),
            8 => (&mut self.if_range, "if-range"),
            13 => (&mut self.if_none_match, "if-none-match"),
            15 => (&mut self.accept_encoding, "accept-encoding"),
            17 => (&mut self.if_modified_since, "if-modified-since"),
            19 => (&mut self.if_unmodified_since, "if-unmodified-since"),
            _ => return,
        };
        if !name.eq_ignore_ascii_case(known) {
            return;
        }
        match slot {
            None => *slot = Some(Cow::Borrowed(value)),
            Some(first) => {
                let joined = first.to_mut();
                joined.extend_from_slice(b", ");
                joined.extend_from_slice(value);
            }
        }
    }

    /// Returns whether there is neither a condition nor a range.
    pub fn is_unconditional(&self) -> bool {
        let conditions = [&self.if_unmodified_since, &self.if_modified_since, &self.range];
        conditions.iter().all(|field| field.is_none()) && !self.compare_tags()
    }

    /// Returns whether there is a condition on entity tags.
    pub fn compare_tags(&self) -> bool {
        self.if_match.is_some() || self.if_none_match.is_some()
    }

    #[cfg(test)]
    pub(crate) fn from_lines(lines: &[(&str, &'a str)]) -> Self {
        let mut fields = Self::default();
        lines.iter().for_each(|(name, value)| fields.add(name, value.as_bytes()));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_without_case_and_several_lines_become_a_list() {
        let fields = RequestFields::from_lines(&[
            ("Host", "x"),
            ("RANGE", "bytes=0-1"),
            ("If-Match", "\"a\""),
            ("If-Range", "\"b\""),
            ("if-none-match", "\"c\""),
            ("If-None-Match", "\"d\""),
            ("Accept-Encoding", "br"),
            ("Accept-Language", "en"),
            ("If-Modified-Since", "e"),
            ("If-Unmodified-Since", "f"),
        ]);
        let text =
            |value: &Value<'_>| String::from_utf8(value.as_deref().unwrap().to_vec()).unwrap();
        assert_eq!(text(&fields.range), "bytes=0-1");
        assert_eq!(text(&fields.if_match), "\"a\"");
        assert_eq!(text(&fields.if_range), "\"b\"");
        assert_eq!(text(&fields.if_none_match), "\"c\", \"d\"");
        assert_eq!(text(&fields.accept_encoding), "br");
        assert_eq!(text(&fields.if_modified_since), "e");
        assert_eq!(text(&fields.if_unmodified_since), "f");
    }
}
