//! Entity tags (RFC 9110 section 8.8.3): ours, and those that clients send back.

use crate::accept_encoding::Coding;
use crate::root::FileState;
use std::fmt::Write;

/// A strong entity tag of ours, with its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag(Box<str>);

impl EntityTag {
    /// Time of the last change in nanoseconds and size: the same on every machine that a deployment copies the files to
    /// with their times. The coding tells a variant from the plain file; `~` marks a file that was changed in the same
    /// tick of the clock in which it was read, because the next state may have the same time and size.
    pub(crate) fn of(state: &FileState, settled: bool, coding: Option<Coding>) -> Self {
        let (seconds, nanoseconds) = state.modified;
        let mut tag = String::with_capacity(40);
        // Writing to a String does not fail.
        let _ = write!(tag, "\"{seconds:x}.{nanoseconds:x}-{:x}", state.size);
        if let Some(coding) = coding {
            let _ = write!(tag, "-{}", coding.name());
        }
        tag.push_str(if settled { "\"" } else { "~\"" });
        Self(tag.into())
    }

    #[cfg(test)]
    pub(crate) fn quoted(opaque: &str) -> Self {
        Self(format!("\"{opaque}\"").into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// `If-Match`: a tag is the same only if it is strong (RFC 9110 section 8.8.3.2).
    pub(crate) fn strongly_in(&self, list: &[u8]) -> bool {
        tags(list).any(|tag| tag == Tag::Any || tag == Tag::Strong(self.0.as_bytes()))
    }

    /// `If-None-Match`: weak or strong makes no difference.
    pub(crate) fn weakly_in(&self, list: &[u8]) -> bool {
        let same = self.0.as_bytes();
        tags(list).any(|tag| tag == Tag::Any || tag == Tag::Strong(same) || tag == Tag::Weak(same))
    }
}

/// A tag of a client, with its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag<'a> {
    /// `*`
    Any,
    Strong(&'a [u8]),
    Weak(&'a [u8]),
}

/// The tags of a list, up to the first that is malformed.
fn tags(list: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = list.trim_ascii();
    // `*` stands alone or not at all.
    let mut any = rest == b"*";
    std::iter::from_fn(move || {
        if std::mem::take(&mut any) {
            return Some(Tag::Any);
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
        // Behind a tag comes the end or a comma.
        let tail = tail.trim_ascii_start();
        if !tail.is_empty() && !tail.starts_with(b",") {
            return None;
        }
        rest = tail;
        Some(if weak { Tag::Weak(tag) } else { Tag::Strong(tag) })
    })
}

/// Length of the quoted string at the start. `etagc` is everything visible but `"`; a backslash is itself.
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
        let tag = EntityTag::quoted("a1,x");
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
            assert_eq!(tag.strongly_in(list.as_bytes()), strongly, "strongly in {list}");
            assert_eq!(tag.weakly_in(list.as_bytes()), weakly, "weakly in {list}");
        }
    }
}
