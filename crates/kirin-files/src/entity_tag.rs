//! Entity tags of files (RFC 9110 section 8.8.3).

use crate::accept_encoding::Coding;
use crate::root::FileState;
use kirin_http::entity_tag;
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

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn as_tag(&self) -> Tag<'_> {
        Tag::Strong(self.0.as_bytes())
    }
}

/// The tag of what would be sent: one of ours, or one that an application has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag<'a> {
    /// None, or nothing that could be compared.
    Absent,
    /// With its quotes.
    Strong(&'a [u8]),
    /// With its quotes and without `W/`.
    Weak(&'a [u8]),
}

/// Is in no list, in which tags have quotes; only `*` stands for it.
const NO_TAG: &[u8] = b"";

impl<'a> Tag<'a> {
    /// The value of an `ETag` field.
    pub(crate) fn of(value: &'a [u8]) -> Self {
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

    /// `If-Match`: a tag is the same only if it is strong (RFC 9110 section 8.8.3.2).
    pub(crate) fn strongly_in(self, list: &[u8]) -> bool {
        match self {
            Tag::Strong(tag) => entity_tag::strongly_in(tag, list),
            Tag::Weak(_) | Tag::Absent => entity_tag::strongly_in(NO_TAG, list),
        }
    }

    /// `If-None-Match`: weak or strong makes no difference.
    pub(crate) fn weakly_in(self, list: &[u8]) -> bool {
        match self {
            Tag::Strong(tag) | Tag::Weak(tag) => entity_tag::weakly_in(tag, list),
            Tag::Absent => entity_tag::weakly_in(NO_TAG, list),
        }
    }

    /// Whether an `If-Range` with `value` means exactly this.
    pub(crate) fn is(self, value: &[u8]) -> bool {
        matches!(self, Tag::Strong(tag) if tag == value)
    }
}

#[cfg(test)]
mod tests {
    use super::Tag;

    #[test]
    fn tags_of_applications_are_strong_weak_or_none() {
        for (value, expected, in_match, in_none_match, in_any) in [
            ("\"a\"", Tag::Strong(b"\"a\""), true, true, true),
            ("W/\"a\"", Tag::Weak(b"\"a\""), false, true, true),
            ("a", Tag::Absent, false, false, true),
            ("\"", Tag::Absent, false, false, true),
            ("", Tag::Absent, false, false, true),
        ] {
            let tag = Tag::of(value.as_bytes());
            let list = b"\"b\", \"a\"";
            assert_eq!(tag, expected, "{value}");
            assert_eq!((tag.strongly_in(list), tag.weakly_in(list)), (in_match, in_none_match), "{value}");
            assert_eq!((tag.strongly_in(b"*"), tag.weakly_in(b"*")), (in_any, in_any), "{value}");
            assert_eq!(tag.is(b"\"a\""), in_match, "{value}");
        }
    }
}
