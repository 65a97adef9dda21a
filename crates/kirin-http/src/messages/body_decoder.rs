//! Removes the framing from response bodies that come in pieces, from an application worker or an
//! upstream. No I/O.

use bytes::BytesMut;
use http::header::HeaderName;

use crate::chunked::{ChunkedDecoder, ChunkedError, Event};
use crate::response_head::Framing;
use crate::trailers::Trailers;

/// The position of a body in its framing.
#[derive(Debug)]
pub enum BodyDecoder {
    /// A body of known length.
    Length {
        /// The number of bytes that are still to come.
        left: u64,
    },
    /// In chunks.
    Chunked(ChunkedDecoder),
    /// A body that ends with the connection. A cut looks the same as the end.
    UntilClose,
}

impl BodyDecoder {
    /// Returns a decoder for a body with this framing.
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(left) => BodyDecoder::Length { left },
            Framing::Chunked => BodyDecoder::Chunked(ChunkedDecoder::new()),
            Framing::UntilClose => BodyDecoder::UntilClose,
        }
    }

    /// Returns whether the body is complete. A body that the end of the connection ends never is.
    pub fn is_done(&self) -> bool {
        match self {
            BodyDecoder::Length { left } => *left == 0,
            BodyDecoder::Chunked(decoder) => decoder.is_done(),
            BodyDecoder::UntilClose => false,
        }
    }

    /// Returns the trailers that may be passed on, once the body is complete.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        match self {
            BodyDecoder::Chunked(decoder) => decoder.take_trailers(),
            BodyDecoder::Length { .. } | BodyDecoder::UntilClose => None,
        }
    }

    /// Returns the trailers that are passed on to the client, once the body is complete: those that
    /// may be, without the fields of these names.
    pub fn take_trailers_without(&mut self, names: &[HeaderName]) -> Option<Trailers> {
        let mut trailers = self.take_trailers()?;
        trailers.remove(names);
        Some(trailers).filter(|trailers| !trailers.is_empty())
    }

    /// Appends the data in `input` to `data`. Returns how many bytes of the input belong to the
    /// body: all of them, unless the body ends.
    pub fn decode(&mut self, input: &[u8], data: &mut BytesMut) -> Result<usize, ChunkedError> {
        match self {
            BodyDecoder::Length { left } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                data.extend_from_slice(&input[..count]);
                *left -= count as u64;
                Ok(count)
            }
            BodyDecoder::UntilClose => {
                data.extend_from_slice(input);
                Ok(input.len())
            }
            BodyDecoder::Chunked(decoder) => {
                let mut at = 0;
                loop {
                    match decoder.decode(&input[at..])? {
                        Event::Data { start, end } => {
                            data.extend_from_slice(&input[at + start..at + end]);
                            at += end;
                        }
                        Event::NeedMore => return Ok(input.len()),
                        Event::End { consumed } => return Ok(at + consumed),
                    }
                }
            }
        }
    }
}
