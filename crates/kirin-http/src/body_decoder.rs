//! Taking the framing off response bodies that come in pieces, from an application worker or an
//! upstream. No I/O.

use bytes::BytesMut;

use crate::chunked::{ChunkedDecoder, ChunkedError, Event};
use crate::response_head::Framing;
use crate::trailers::Trailers;

/// Where a body is in its framing.
#[derive(Debug)]
pub enum BodyDecoder {
    /// So many bytes are still to come.
    Length {
        /// How many.
        left: u64,
    },
    /// In chunks.
    Chunked(ChunkedDecoder),
    /// Everything up to the end of the connection, which nothing tells from a cut.
    UntilClose,
}

impl BodyDecoder {
    /// A decoder of a body that is framed like this.
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(left) => BodyDecoder::Length { left },
            Framing::Chunked => BodyDecoder::Chunked(ChunkedDecoder::new()),
            Framing::UntilClose => BodyDecoder::UntilClose,
        }
    }

    /// Whether the body is complete. One that the end of the connection ends never is.
    pub fn is_done(&self) -> bool {
        match self {
            BodyDecoder::Length { left } => *left == 0,
            BodyDecoder::Chunked(decoder) => decoder.is_done(),
            BodyDecoder::UntilClose => false,
        }
    }

    /// The trailers that may be passed on, when the body is complete.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        match self {
            BodyDecoder::Chunked(decoder) => decoder.take_trailers(),
            BodyDecoder::Length { .. } | BodyDecoder::UntilClose => None,
        }
    }

    /// Appends the data in `input` to `data`; returns how many bytes of the input belong to the
    /// body. That is all of it unless the body ends.
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
