//! Entity tags that clients send back (RFC 9110 section 8.8.3), compared with the current tag.
//!
//! All representations with entity tags use it: pages of the store and files.

/// The current entity tag: made by Kirin, or given by an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag<'a> {
    /// There is none, or it cannot be compared.
    Absent,
    /// A strong tag with its quotes.
    Strong(&'a [u8]),
    /// A weak tag with its quotes and without `W/`.
    Weak(&'a [u8]),
}

/// A tag that no list has, because tags in lists have quotes. Only `*` matches it.
const NO_TAG: &[u8] = b"";

impl<'a> Tag<'a> {
    /// Parses the value of an `ETag` field.
    pub fn parse(value: &'a [u8]) -> Self {
        let (weak, quoted) = match value.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, value),
        };
        match (quoted, weak) {
            ([b'"', .., b'"'], true) => Tag::Weak(quoted),
            ([b'"', .., b'"'], false) => Tag::Strong(quoted),
            _ => Tag::Absent,
        }
    }

    /// Compares with `If-Match`: only strong tags match (RFC 9110 section 8.8.3.2).
    pub fn strongly_in(self, list: &[u8]) -> bool {
        match self {
            Tag::Strong(tag) => strongly_in(tag, list),
            Tag::Weak(_) | Tag::Absent => strongly_in(NO_TAG, list),
        }
    }

    /// Compares with `If-None-Match`: weak and strong tags match alike.
    pub fn weakly_in(self, list: &[u8]) -> bool {
        match self {
            Tag::Strong(tag) | Tag::Weak(tag) => weakly_in(tag, list),
            Tag::Absent => weakly_in(NO_TAG, list),
        }
    }

    /// Returns whether an `If-Range` with `value` names exactly this tag.
    pub fn is(self, value: &[u8]) -> bool {
        matches!(self, Tag::Strong(tag) if tag == value)
    }
}

/// Returns whether `tag`, a strong tag with its quotes, is in the list of an `If-None-Match`. Weak
/// and strong tags match alike.
pub fn weakly_in(tag: &[u8], list: &[u8]) -> bool {
    tags(list).any(|other| {
        other == Listed::Any || other == Listed::Strong(tag) || other == Listed::Weak(tag)
    })
}

/// Returns whether `tag` is in the list of an `If-Match`. Only a strong tag matches (RFC 9110
/// section 8.8.3.2).
pub fn strongly_in(tag: &[u8], list: &[u8]) -> bool {
    tags(list).any(|other| other == Listed::Any || other == Listed::Strong(tag))
}

/// A tag that a client has sent, with its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed<'a> {
    /// `*`, which matches every tag.
    Any,
    Strong(&'a [u8]),
    Weak(&'a [u8]),
}

/// Returns the tags of a list, up to the first malformed one.
fn tags(list: &[u8]) -> impl Iterator<Item = Listed<'_>> {
    let mut rest = list.trim_ascii();
    // `*` must be alone.
    let mut any = rest == b"*";
    std::iter::from_fn(move || {
        if std::mem::take(&mut any) {
            return Some(Listed::Any);
        }
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let (weak, quoted) = match rest.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let end = quoted_length(quoted)?;
        let (tag, tail) = quoted.split_at(end);
        // The end or a comma must follow a tag.
        let tail = tail.trim_ascii_start();
        if !tail.is_empty() && !tail.starts_with(b",") {
            return None;
        }
        rest = tail;
        Some(if weak { Listed::Weak(tag) } else { Listed::Strong(tag) })
    })
}

/// Returns the length of the quoted string at the start. `etagc` is any visible character but `"`;
/// a backslash stands for itself.
fn quoted_length(input: &[u8]) -> Option<usize> {
    let inside = input.strip_prefix(b"\"")?;
    let end = inside.iter().position(|byte| *byte == b'"' || *byte <= b' ' || *byte == 0x7f)?;
    (inside[end] == b'"').then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_compared_weakly_or_strongly() {
        let tag = b"\"a1,x\"";
        for (list, strongly, weakly) in [
            (r#""a1,x""#, true, true),
            (r#"W/"a1,x""#, false, true),
            (r#"w/"a1,x""#, false, false),
            ("*", true, true),
            (" * ", true, true),
            (r#"*, "q""#, false, false),
            (r#""q", *"#, false, false),
            (r#""q", "a1,x""#, true, true),
            (r#""q","a1,x""#, true, true),
            ("\"q\"\t,\t\"a1,x\"", true, true),
            (r#",, "q",, W/"a1,x" ,"#, false, true),
            (r#""q" "a1,x""#, false, false),
            (r#""q""a1,x""#, false, false),
            (r#""a1", "x""#, false, false),
            (r#"a1,x"#, false, false),
            (r#""a1,x"#, false, false),
            (r#""a1,x""q"#, false, false),
            (r#"W/ "a1,x""#, false, false),
            ("\"", false, false),
            ("", false, false),
            (r#""""#, false, false),
            (r#""a 1", "a1,x""#, false, false),
        ] {
            assert_eq!(strongly_in(tag, list.as_bytes()), strongly, "strongly in {list}");
            assert_eq!(weakly_in(tag, list.as_bytes()), weakly, "weakly in {list}");
        }
    }

    #[test]
    fn tags_of_applications_are_strong_weak_or_none() {
        for (value, expected, in_match, in_none_match, in_any) in [
            ("\"a\"", Tag::Strong(b"\"a\""), true, true, true),
            ("W/\"a\"", Tag::Weak(b"\"a\""), false, true, true),
            ("a", Tag::Absent, false, false, true),
            ("\"", Tag::Absent, false, false, true),
            ("", Tag::Absent, false, false, true),
        ] {
            let tag = Tag::parse(value.as_bytes());
            let list = b"\"b\", \"a\"";
            assert_eq!(tag, expected, "{value}");
            assert_eq!(
                (tag.strongly_in(list), tag.weakly_in(list)),
                (in_match, in_none_match),
                "{value}"
            );
            assert_eq!((tag.strongly_in(b"*"), tag.weakly_in(b"*")), (in_any, in_any), "{value}");
            assert_eq!(tag.is(b"\"a\""), in_match, "{value}");
        }
    }
}
