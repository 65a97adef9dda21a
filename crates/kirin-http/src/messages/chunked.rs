//! The chunked transfer coding (RFC 9112 section 7.1): an incremental decoder, and an encoder of
//! chunk heads.
//!
//! Request bodies use it, and the responses of applications and upstreams.

use crate::field_lines::is_field_value_byte;
use crate::token::is_token_byte;
use crate::trailers::{MAX_TRAILER_FIELDS, Trailers};

/// The longest chunk size line with its extensions, in bytes.
const MAX_SIZE_LINE_BYTES: usize = 256;

/// The most bytes of extensions in all chunks of a body together. They are ignored, but parsing
/// them is work (RFC 9112 section 7.1.1).
const MAX_EXTENSION_BYTES: usize = 16 * 1024;

/// The most bytes of all trailer fields together.
const MAX_TRAILER_BYTES: usize = 8 * 1024;

/// Decodes a chunked body piece by piece. The data is the same however the input is split.
#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: State,
    extension_bytes: usize,
    /// The lines of the trailer section, each ended by LF.
    trailer_lines: Vec<u8>,
    trailer_fields: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// At the start of a chunk size line.
    #[default]
    SizeStart,
    /// Behind digits. Holds the size so far and the bytes of the line so far.
    Size {
        size: u64,
        line: usize,
    },
    /// Behind the digits, in white space or an extension.
    Extension {
        size: u64,
        line: usize,
        part: ExtensionPart,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// In the trailer section. Holds the bytes so far.
    Trailer {
        total: usize,
        part: TrailerPart,
    },
    TrailerLf {
        total: usize,
        /// The byte ends the empty line that ends the body.
        last: bool,
    },
    Done,
}

/// The position in `*( BWS ";" BWS name [ BWS "=" BWS value ] )`. Each byte is checked: if one
/// party takes a byte for the end of the line and another for a part of the extension, requests can
/// be smuggled.
#[derive(Debug, Clone, Copy)]
enum ExtensionPart {
    /// In white space that a semicolon must follow.
    BeforeSemicolon,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    Quoted,
    Escaped,
    QuoteEnd,
}

#[derive(Debug, Clone, Copy)]
enum TrailerPart {
    LineStart,
    Name,
    Value,
}

/// What the decoder found at the start of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes `start..end` of the input are data of the body. The input is consumed up to `end`.
    Data {
        /// The first data byte in the input.
        start: usize,
        /// The byte behind the last data byte.
        end: usize,
    },
    /// The complete input is consumed, and the body goes on.
    NeedMore,
    /// The body has ended. `consumed` bytes of the input belong to it.
    End {
        /// The number of bytes of the input that belong to the body.
        consumed: usize,
    },
}

/// The coding is malformed. The end of the body is unknown, so the connection cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("chunked body is malformed: {0}")]
pub struct ChunkedError(&'static str);

impl ChunkedDecoder {
    /// Returns a decoder at the start of a body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the end of the body has been decoded.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Returns the trailers that may be passed on, once the end has been decoded.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        if !self.is_done() || self.trailer_lines.is_empty() {
            return None;
        }
        Some(Trailers::of_lines(&std::mem::take(&mut self.trailer_lines)))
            .filter(|trailers| !trailers.is_empty())
    }

    /// Decodes from the start of `input` up to the next data, the end of the body, or the end of
    /// the input.
    pub fn decode(&mut self, input: &[u8]) -> Result<Event, ChunkedError> {
        let mut at = 0;
        while at < input.len() {
            if let State::Data { left } = self.state {
                let available = (input.len() - at) as u64;
                let taken = left.min(available);
                self.state =
                    if taken == left { State::DataCr } else { State::Data { left: left - taken } };
                // `taken` is at most the length of a slice.
                return Ok(Event::Data { start: at, end: at + taken as usize });
            }
            if self.is_done() {
                return Ok(Event::End { consumed: at });
            }
            let before = self.state;
            self.state = step(before, input[at])?;
            match (before, self.state) {
                (_, State::Extension { .. }) => {
                    self.extension_bytes = bounded(self.extension_bytes + 1, MAX_EXTENSION_BYTES)?;
                }
                (_, State::Trailer { part: TrailerPart::Name | TrailerPart::Value, .. }) => {
                    self.trailer_lines.push(input[at]);
                }
                (State::TrailerLf { .. }, State::Trailer { .. }) => {
                    self.trailer_lines.push(b'\n');
                    self.trailer_fields = bounded(self.trailer_fields + 1, MAX_TRAILER_FIELDS)?;
                }
                _ => {}
            }
            at += 1;
        }
        if self.is_done() { Ok(Event::End { consumed: at }) } else { Ok(Event::NeedMore) }
    }
}

/// Decodes one byte of framing.
fn step(state: State, byte: u8) -> Result<State, ChunkedError> {
    Ok(match (state, byte) {
        (State::SizeStart, _) => State::Size { size: hex_digit(byte)?, line: 1 },
        (State::Size { size, .. }, b'\r') => State::SizeLf { size },
        (State::Size { size, line }, b';') => {
            State::Extension { size, line, part: ExtensionPart::BeforeName }
        }
        (State::Size { size, line }, b' ' | b'\t') => {
            State::Extension { size, line, part: ExtensionPart::BeforeSemicolon }
        }
        (State::Size { size, line }, _) => {
            if size > u64::MAX >> 8 {
                return Err(ChunkedError("chunk size is too large"));
            }
            State::Size {
                size: size * 16 + hex_digit(byte)?,
                line: bounded(line + 1, MAX_SIZE_LINE_BYTES)?,
            }
        }
        (
            State::Extension {
                size,
                part: ExtensionPart::Name | ExtensionPart::Value | ExtensionPart::QuoteEnd,
                ..
            },
            b'\r',
        ) => State::SizeLf { size },
        (State::Extension { size, line, part }, _) => State::Extension {
            size,
            line: bounded(line + 1, MAX_SIZE_LINE_BYTES)?,
            part: part.step(byte).ok_or(ChunkedError("chunk extension"))?,
        },
        (State::SizeLf { size: 0 }, b'\n') => {
            State::Trailer { total: 0, part: TrailerPart::LineStart }
        }
        (State::SizeLf { size }, b'\n') => State::Data { left: size },
        (State::DataCr, b'\r') => State::DataLf,
        (State::DataLf, b'\n') => State::SizeStart,
        (State::Trailer { total, part: TrailerPart::LineStart }, b'\r') => {
            State::TrailerLf { total, last: true }
        }
        (State::Trailer { total, part: TrailerPart::Value }, b'\r') => {
            State::TrailerLf { total, last: false }
        }
        (State::Trailer { total, part }, _) => State::Trailer {
            total: bounded(total + 1, MAX_TRAILER_BYTES)?,
            part: part.step(byte).ok_or(ChunkedError("trailer field"))?,
        },
        (State::TrailerLf { last: true, .. }, b'\n') => State::Done,
        (State::TrailerLf { total, .. }, b'\n') => {
            State::Trailer { total, part: TrailerPart::LineStart }
        }
        (State::SizeLf { .. } | State::DataCr | State::DataLf | State::TrailerLf { .. }, _) => {
            return Err(ChunkedError("line does not end in CR LF"));
        }
        (State::Data { .. } | State::Done, _) => state,
    })
}

impl ExtensionPart {
    /// Returns the position behind `byte`, which is not a CR, or `None` if the byte is not allowed
    /// there.
    fn step(self, byte: u8) -> Option<Self> {
        let is_space = byte == b' ' || byte == b'\t';
        Some(match (self, byte) {
            (Self::BeforeSemicolon | Self::BeforeName | Self::AfterName | Self::BeforeValue, _)
                if is_space =>
            {
                self
            }
            (
                Self::BeforeSemicolon | Self::Name | Self::AfterName | Self::Value | Self::QuoteEnd,
                b';',
            ) => Self::BeforeName,
            (Self::Name | Self::AfterName, b'=') => Self::BeforeValue,
            (Self::BeforeName | Self::Name, _) if is_token_byte(byte) => Self::Name,
            (Self::Name, _) if is_space => Self::AfterName,
            (Self::BeforeValue, b'"') => Self::Quoted,
            (Self::BeforeValue | Self::Value, _) if is_token_byte(byte) => Self::Value,
            (Self::Value | Self::QuoteEnd, _) if is_space => Self::BeforeSemicolon,
            (Self::Quoted, b'"') => Self::QuoteEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, _) if is_field_value_byte(byte) => Self::Quoted,
            _ => return None,
        })
    }
}

impl TrailerPart {
    /// Returns the position behind `byte`, which does not end a line, or `None` if it is not
    /// allowed there.
    fn step(self, byte: u8) -> Option<Self> {
        match self {
            Self::LineStart | Self::Name if is_token_byte(byte) => Some(Self::Name),
            Self::Name if byte == b':' => Some(Self::Value),
            Self::Value if is_field_value_byte(byte) => Some(Self::Value),
            _ => None,
        }
    }
}

fn hex_digit(byte: u8) -> Result<u64, ChunkedError> {
    (byte as char).to_digit(16).map(u64::from).ok_or(ChunkedError("chunk size is not hexadecimal"))
}

fn bounded(length: usize, limit: usize) -> Result<usize, ChunkedError> {
    if length > limit { Err(ChunkedError("framing is too long")) } else { Ok(length) }
}

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the end of a chunked body with trailers.
pub fn write_end(trailers: &Trailers, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    trailers.write_to(out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the size line of a chunk of `length` bytes, which must be more than 0. The caller
/// appends CR LF behind the data.
pub fn write_chunk_head(length: usize, out: &mut Vec<u8>) {
    debug_assert!(length > 0, "a chunk of no bytes would end the body");
    out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
}

#[cfg(test)]
#[path = "chunked_tests.rs"]
mod tests;
