//! Finds the elements of a page between the text: directives, tags and variables.

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use crate::directive::{self, Directive};
use crate::encoding::Encoding;
use crate::esi::{self, EsiTag};
use crate::syntax::Syntax;
use crate::template::Instruction;
use crate::text::Text;

/// The start of a comment for ESI. The start and the end are removed, and the text between them is
/// part of the page.
const COMMENT: &[u8] = b"<!--esi";
const COMMENT_END: &[u8] = b"-->";

/// The end of the text for programs that do not know ESI.
const REMOVE_END: &[u8] = b"</esi:remove>";

/// An element of a page.
pub(crate) enum PageElement {
    Directive(Directive),
    Instruction(Instruction),
    /// Text that is removed, with nothing in its place.
    Nothing,
}

/// All elements of a page, in order, each with its range of bytes. An element without an end is
/// text, and is not read twice.
pub(crate) struct Elements<'a> {
    page: &'a Bytes,
    at: usize,
    /// Whether the rest of the page may have directives of SSI.
    ssi: bool,
    esi: bool,
    /// Whether the rest of the page may have tags of ESI.
    tags: bool,
    /// Whether the rest of the page may have an `</esi:remove>`.
    removes: bool,
    /// Whether the rest of the page may have comments for ESI.
    comments: bool,
    in_comment: bool,
    in_vars: bool,
}

impl<'a> Elements<'a> {
    pub(crate) fn new(page: &'a Bytes, syntax: Syntax) -> Self {
        let Syntax { ssi, esi } = syntax;
        Self {
            page,
            at: 0,
            ssi,
            esi,
            tags: esi,
            removes: esi,
            comments: esi,
            in_comment: false,
            in_vars: false,
        }
    }

    /// Returns where the next element may start.
    fn candidate(&self) -> Option<usize> {
        let rest = self.page.get(self.at..)?;
        let found = match (self.esi, self.in_comment || self.in_vars) {
            (true, true) => memchr::memchr3(b'<', b'-', b'$', rest),
            (true, false) => memchr::memchr(b'<', rest),
            (false, _) if self.ssi => memmem::find(rest, directive::OPENING),
            (false, _) => None,
        }?;
        Some(self.at + found)
    }

    /// Returns the element at `start` and the position behind it. Returns `None` if it is text.
    fn read(&mut self, start: usize) -> Option<(PageElement, usize)> {
        let rest = &self.page[start..];
        if self.ssi && rest.starts_with(directive::OPENING) {
            return self.directive(start);
        }
        if self.comments && !self.in_comment && rest.starts_with(COMMENT) {
            self.comments = memmem::find(rest, COMMENT_END).is_some();
            self.in_comment = self.comments;
            return self.in_comment.then_some((PageElement::Nothing, start + COMMENT.len()));
        }
        if self.in_comment && rest.starts_with(COMMENT_END) {
            self.in_comment = false;
            return Some((PageElement::Nothing, start + COMMENT_END.len()));
        }
        if self.in_vars && rest.starts_with(b"$(") {
            let (variable, length) = esi::variable(rest, Encoding::Entity)?;
            let mut text = Text::default();
            text.variable(variable);
            return Some((PageElement::Instruction(Instruction::Write(text)), start + length));
        }
        if self.tags && (rest.starts_with(b"<esi:") || rest.starts_with(b"</esi:")) {
            return self.tag(start);
        }
        None
    }

    fn directive(&mut self, start: usize) -> Option<(PageElement, usize)> {
        match directive::read(self.page, start) {
            directive::FoundDirective::Directive(directive, end) => {
                Some((PageElement::Directive(directive), end))
            }
            directive::FoundDirective::Malformed(end) => {
                Some((PageElement::Instruction(Instruction::Malformed), end))
            }
            directive::FoundDirective::Unended => {
                self.ssi = false;
                None
            }
        }
    }

    fn tag(&mut self, start: usize) -> Option<(PageElement, usize)> {
        let malformed = PageElement::Instruction(Instruction::Malformed);
        let nothing = |end| (PageElement::Nothing, end);
        let Some((tag, end)) = EsiTag::read(self.page, start) else {
            let Some(length) = memchr::memchr(b'>', &self.page[start..]) else {
                self.tags = false;
                return None;
            };
            return Some((malformed, start + length + 1));
        };
        let element = match (&tag.name[..], tag.closes) {
            (b"include", false) => esi::include(&tag).map_or(malformed, PageElement::Instruction),
            (b"comment", false) => PageElement::Nothing,
            (b"remove", false) if tag.is_empty => PageElement::Nothing,
            (b"remove", false) => return Some(self.removed(end).map_or((malformed, end), nothing)),
            (b"vars", closes) if !tag.is_empty && closes == self.in_vars => {
                self.in_vars = !closes;
                PageElement::Nothing
            }
            (b"remove" | b"vars", true) | (_, false) => malformed,
            // The start tag of an unknown element has shown the error message already. Once is
            // enough.
            (_, true) => PageElement::Nothing,
        };
        Some((element, end))
    }

    /// Returns the position behind the text that the tag ending at `start` removes. If the tag has
    /// no end, the text is shown.
    fn removed(&mut self, start: usize) -> Option<usize> {
        let length = self.removes.then(|| memmem::find(&self.page[start..], REMOVE_END)).flatten();
        self.removes = length.is_some();
        Some(start + length? + REMOVE_END.len())
    }
}

impl Iterator for Elements<'_> {
    type Item = (Range<usize>, PageElement);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(start) = self.candidate() {
            match self.read(start) {
                Some((element, end)) => {
                    self.at = end;
                    return Some((start..end, element));
                }
                None => self.at = start + 1,
            }
        }
        None
    }
}
