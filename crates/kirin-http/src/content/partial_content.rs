//! Responses with a part of a representation: 206 with one or several ranges
//! (`multipart/byteranges`, RFC 9110 section 14.6), 416, or 200 for the complete representation.
//!
//! It is for all representations that are in memory or in a file.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;

use crate::body::{Body, BodyStream, FileRange, StreamError};
use crate::byte_range::{ByteRange, Part};
use crate::field_lines::FieldLines;
use crate::response::{AnsweredBy, Response};

/// Bytes of a file that are read at a time for a response with several parts.
const READ_BYTES: u64 = 64 * 1024;

/// Returns the response with `part` of a representation of `size` bytes, whose 200 has `fields`.
/// `piece` returns the bytes of a range. For HEAD the caller passes [`Part::Whole`].
pub fn respond(
    answered_by: AnsweredBy,
    fields: FieldLines,
    size: u64,
    part: &Part,
    is_head: bool,
    piece: impl Fn(ByteRange) -> Body,
) -> Response {
    let mut response = Response::new(answered_by, StatusCode::PARTIAL_CONTENT, Body::Empty);
    response.fields = fields;
    match part {
        Part::Whole => {
            response.status = StatusCode::OK;
            let whole = ByteRange { start: 0, length: size };
            response.body = if is_head { Body::Withheld(size) } else { piece(whole) };
        }
        Part::Range(range) => {
            response.fields.push("Content-Range", range.content_range(size));
            response.body = piece(*range);
        }
        Part::Several(ranges) => {
            let boundary = boundary();
            let content_type = response.fields.get("content-type").map(<[u8]>::to_vec);
            response.fields = response.fields.without("content-type");
            response
                .fields
                .push("Content-Type", format!("multipart/byteranges; boundary={boundary}"));
            response.body = multipart(ranges, size, content_type.as_deref(), &boundary, piece);
        }
        Part::Unsatisfiable => {
            response = Response::error(StatusCode::RANGE_NOT_SATISFIABLE);
            response.answered_by = answered_by;
            response.fields.push("Content-Range", format!("bytes */{size}"));
        }
    }
    response
}

/// Returns a boundary that no author of the content can know: 128 random bits, new each time.
fn boundary() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}

/// Returns the body of several parts. It is in memory if all of them are.
fn multipart(
    ranges: &[ByteRange],
    size: u64,
    content_type: Option<&[u8]>,
    boundary: &str,
    piece: impl Fn(ByteRange) -> Body,
) -> Body {
    let mut pieces = VecDeque::with_capacity(2 * ranges.len() + 1);
    for range in ranges {
        let mut head = format!("\r\n--{boundary}\r\n").into_bytes();
        if let Some(content_type) = content_type {
            head.extend_from_slice(b"Content-Type: ");
            head.extend_from_slice(content_type);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(
            format!("Content-Range: {}\r\n\r\n", range.content_range(size)).as_bytes(),
        );
        // The line end before the first boundary would belong to a preamble, which does not exist.
        let head = Bytes::from(head);
        pieces.push_back(Piece::Bytes(if pieces.is_empty() { head.slice(2..) } else { head }));
        match piece(*range) {
            Body::Bytes(bytes) => pieces.push_back(Piece::Bytes(bytes)),
            Body::Segments(segments) => pieces.extend(segments.into_iter().map(Piece::Bytes)),
            Body::File(range) => pieces.push_back(Piece::File(range)),
            // `piece` gives no other kind of body. A body that is shorter than announced cuts the
            // connection.
            other => pieces.push_back(Piece::Missing(other.length().unwrap_or(0))),
        }
    }
    pieces.push_back(Piece::Bytes(Bytes::from(format!("\r\n--{boundary}--\r\n"))));
    let in_memory: Option<Vec<Bytes>> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes.clone()),
            Piece::File(_) | Piece::Missing(_) => None,
        })
        .collect();
    match in_memory {
        Some(segments) => Body::Segments(segments),
        None => {
            let length = pieces.iter().map(Piece::length).sum();
            Body::Stream(Box::new(Multipart { pieces, length }))
        }
    }
}

/// Sends the heads of parts from memory and their bytes from a file. With a kind of body of its
/// own, the kernel could send the bytes. But every sender would have to support it, for a rare
/// request.
struct Multipart {
    pieces: VecDeque<Piece>,
    length: u64,
}

enum Piece {
    Bytes(Bytes),
    File(FileRange),
    Missing(u64),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::File(range) => range.length,
            Piece::Missing(length) => *length,
        }
    }
}

impl BodyStream for Multipart {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        Poll::Ready(match self.pieces.pop_front() {
            None => None,
            Some(Piece::Bytes(bytes)) => Some(Ok(bytes)),
            Some(Piece::Missing(_)) => Some(Err(StreamError("a part is not there".into()))),
            Some(Piece::File(mut range)) => {
                let count = range.length.min(READ_BYTES);
                let mut bytes = vec![0; count as usize];
                if let Err(error) = range.file.read_exact_at(&mut bytes, range.offset) {
                    return Poll::Ready(Some(Err(StreamError(error.to_string()))));
                }
                range.offset += count;
                range.length -= count;
                if range.length > 0 {
                    self.pieces.push_front(Piece::File(range));
                }
                Some(Ok(Bytes::from(bytes)))
            }
        })
    }

    fn length(&self) -> Option<u64> {
        Some(self.length)
    }
}

#[cfg(test)]
#[path = "partial_content_tests.rs"]
mod tests;
