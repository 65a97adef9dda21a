//! A file as Kirin sends it: its contents, its validators, and the prepared response heads.

use std::io;

use bytes::Bytes;
use kirin_compress::Coding;
use kirin_http::FieldLines;
use kirin_http::preconditions::Validators;

use crate::entity_tag::EntityTag;
use crate::read_file::{ReadFile, http_date};
use crate::root::OpenFile;

/// Room in bytes for the fields of nearly all files, so that their memory need not grow.
const FIELDS_BYTES: usize = 256;

/// One file of the file system: the original or a coded variant.
pub(crate) struct Representation {
    pub(crate) file: ReadFile,
    entity_tag: EntityTag,
    /// The head of a 200 or 206.
    pub(crate) fields: FieldLines,
    /// The head of a 304.
    pub(crate) not_modified: FieldLines,
}

impl Representation {
    /// Reads a small file. Keeps a large one open. `varies` states that the file has more than one
    /// representation.
    pub(crate) fn of(
        open: OpenFile,
        content_type: &str,
        coding: Option<Coding>,
        varies: bool,
        small_file_bytes: usize,
    ) -> io::Result<Self> {
        let file = ReadFile::of(open, small_file_bytes)?;
        let entity_tag = EntityTag::of(file.state(), file.is_settled(), coding);
        Ok(Self::new(file, entity_tag, content_type, coding, varies, true))
    }

    /// Makes a variant from this representation. A variant has no ranges, because a range is one of
    /// the original.
    pub(crate) fn coded(&self, content_type: &str, coding: Coding, bytes: Bytes) -> Self {
        let entity_tag = EntityTag::of(self.file.state(), self.file.is_settled(), Some(coding));
        Self::new(self.file.coded(bytes), entity_tag, content_type, Some(coding), true, false)
    }

    fn new(
        file: ReadFile,
        entity_tag: EntityTag,
        content_type: &str,
        coding: Option<Coding>,
        varies: bool,
        has_ranges: bool,
    ) -> Self {
        let not_modified = not_modified(&entity_tag, &file, varies);
        let mut fields = FieldLines::with_capacity(FIELDS_BYTES);
        fields.push("Content-Type", content_type);
        if let Some(coding) = coding {
            fields.push("Content-Encoding", coding.name());
        }
        fields.append(&not_modified);
        if has_ranges {
            fields.push("Accept-Ranges", "bytes");
        }
        Self { file, entity_tag, fields: fields.prepare(), not_modified }
    }

    /// Returns the validators that clients compare their copies with.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            entity_tag: self.entity_tag.as_tag(),
            last_modified: self.file.last_modified(),
        }
    }

    /// Returns the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.file.contents_bytes()
            + self.fields.len_bytes()
            + self.not_modified.len_bytes()
    }
}

/// Writes the fields of a 304 that RFC 9110 section 15.4.5 requires.
pub(crate) fn not_modified(entity_tag: &EntityTag, file: &ReadFile, varies: bool) -> FieldLines {
    let mut fields = FieldLines::with_capacity(FIELDS_BYTES);
    fields.push("ETag", entity_tag.as_str());
    if let Some(seconds) = file.last_modified() {
        fields.push("Last-Modified", http_date(seconds));
    }
    if varies {
        fields.push("Vary", "Accept-Encoding");
    }
    fields.prepare()
}
