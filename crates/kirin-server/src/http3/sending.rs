//! The bytes of responses: their frames and field sections.

use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use http::StatusCode;
use kirin_h3::frame::{write_data_header, write_headers};
use kirin_h3::qpack::FieldWriter;
use kirin_http::body::FileRange;
use kirin_http::field_lines::FieldLines;
use kirin_http::response::Response;
use kirin_http::trailers::Trailers;

use crate::clock::Clock;
use crate::streams::response_fields::{WriteFields, write_fields, write_response_fields};

/// The usual size of a head.
const HEAD_BYTES: usize = 256;

impl WriteFields for FieldWriter<'_> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        FieldWriter::field(self, name, value);
    }

    #[inline]
    fn content_length(&mut self, length: u64) {
        FieldWriter::content_length(self, length);
    }
}

/// Returns the HEADERS frame of a response. With `data`, the header of one DATA frame of that
/// length follows.
pub(super) fn head(response: &Response, is_head: bool, data: Option<u64>, clock: &Clock) -> Bytes {
    let mut section = Vec::with_capacity(HEAD_BYTES);
    let mut writer = FieldWriter::response(response.status.as_u16(), &mut section);
    write_response_fields(response, is_head, clock, &mut writer);
    frames(&section, data)
}

fn frames(section: &[u8], data: Option<u64>) -> Bytes {
    let mut bytes = Vec::with_capacity(section.len() + 16);
    write_headers(section, &mut bytes);
    if let Some(length) = data {
        write_data_header(length, &mut bytes);
    }
    bytes.into()
}

/// Returns an informational response.
pub(super) fn informational(status: StatusCode, fields: &FieldLines) -> Bytes {
    let mut section = Vec::new();
    let mut writer = FieldWriter::response(status.as_u16(), &mut section);
    write_fields(fields, &mut writer);
    frames(&section, None)
}

/// Returns trailers, which end a response.
pub(super) fn trailers(trailers: Trailers) -> Bytes {
    let mut section = Vec::new();
    let mut writer = FieldWriter::trailers(&mut section);
    for (name, value) in &trailers.into_fields() {
        writer.field(name.as_str().as_bytes(), value.as_bytes());
    }
    frames(&section, None)
}

/// Returns the header of a DATA frame.
pub(super) fn data_header(length: u64) -> Bytes {
    let mut bytes = Vec::with_capacity(9);
    write_data_header(length, &mut bytes);
    bytes.into()
}

/// Reads up to `most` bytes from the front of a file, and takes them off the range. The page cache
/// usually has them.
pub(super) fn read_file(range: &mut FileRange, most: usize) -> io::Result<Bytes> {
    let count = usize::try_from(range.length).unwrap_or(usize::MAX).min(most);
    let mut bytes = vec![0; count];
    range.file.read_exact_at(&mut bytes, range.offset)?;
    range.offset += count as u64;
    range.length -= count as u64;
    Ok(bytes.into())
}
