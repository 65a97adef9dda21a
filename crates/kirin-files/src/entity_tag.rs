//! Entity tags of files (RFC 9110 section 8.8.3).

use std::fmt::Write;

use kirin_compress::Coding;
use kirin_http::entity_tag::Tag;

use crate::root::FileState;

/// A strong entity tag of a file, with its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag(Box<str>);

impl EntityTag {
    /// Builds the tag from the time of the last change in nanoseconds and the size. These are the
    /// same on every machine to which a deployment copies the files with their times. The coding
    /// distinguishes a variant from the plain file. `~` marks a file that was changed in the same
    /// clock tick in which it was read, because its next state may have the same time and size.
    pub(crate) fn of(state: &FileState, settled: bool, coding: Option<Coding>) -> Self {
        let (seconds, nanoseconds) = state.modified;
        let mut tag = String::with_capacity(40);
        // Writing to a String cannot fail.
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
