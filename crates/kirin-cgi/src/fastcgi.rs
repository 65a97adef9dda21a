//! FastCGI 1.0, the web server's side of a responder: encodes requests as records, and decodes
//! records. No I/O.
//!
//! A connection carries one request at a time and may be kept. The specification also has
//! multiplexing, but no server supports it.

use bytes::{Buf, Bytes, BytesMut};

use crate::request_block::RequestBlock;

const VERSION: u8 = 1;
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const HEADER_BYTES: usize = 8;
/// The id of every request. There is only one at a time.
const REQUEST_ID: u16 = 1;

/// The most bytes of content in one record.
pub const MAX_CONTENT_BYTES: usize = 65_535;

/// An event from the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastCgiEvent {
    /// A part of the response: head and body as in CGI. Never empty.
    Stdout(Bytes),
    /// A part of the error output, for a log. Never empty.
    Stderr(Bytes),
    /// The response is complete. The connection can be used again.
    End,
}

/// Why a connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// The bytes are not FastCGI.
    #[error("this is no FastCGI record: version {0}")]
    Version(u8),
    /// A record that does not belong to a response.
    #[error("a FastCGI record of type {0} for request {1} is not expected here")]
    Unexpected(u8, u16),
    /// A malformed record at the end of a request.
    #[error("a FastCGI END_REQUEST of {0} bytes instead of 8")]
    End(usize),
    /// The server has refused the request.
    #[error("the FastCGI server refuses the request: {}", refusal(*.0))]
    Refused(u8),
}

fn refusal(protocol_status: u8) -> &'static str {
    match protocol_status {
        1 => "it takes one at a time (CANT_MPX_CONN)",
        2 => "it is overloaded (OVERLOADED)",
        3 => "it is no responder (UNKNOWN_ROLE)",
        _ => "for a reason that is not in the specification",
    }
}

/// Encodes the records that begin a request: its role and its parameters. `more` are additional
/// parameters, such as `SCRIPT_FILENAME`; they replace those of the block with the same name. With
/// `keep`, the connection stays open after the response.
pub fn begin(
    block: &RequestBlock,
    content_length: u64,
    more: &[(&str, &str)],
    keep: bool,
) -> Vec<u8> {
    let mut number = itoa::Buffer::new();
    let own: [(&[u8], &[u8]); 2] = [
        (b"CONTENT_LENGTH", number.format(content_length).as_bytes()),
        (b"GATEWAY_INTERFACE", b"CGI/1.1"),
    ];
    let of_block = block
        .variables()
        .filter(|(name, _)| more.iter().all(|(other, _)| other.as_bytes() != *name));
    let more = more.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let mut params = Vec::with_capacity(2048);
    for (name, value) in of_block.chain(own).chain(more) {
        push_length(&mut params, name.len());
        push_length(&mut params, value.len());
        params.extend_from_slice(name);
        params.extend_from_slice(value);
    }
    let mut records = Vec::with_capacity(params.len() + 64);
    push_header(&mut records, BEGIN_REQUEST, 8);
    // The role of a responder, and the flag FCGI_KEEP_CONN.
    records.extend_from_slice(&[0, 1, u8::from(keep), 0, 0, 0, 0, 0]);
    for part in params.chunks(MAX_CONTENT_BYTES) {
        push_header(&mut records, PARAMS, part.len());
        records.extend_from_slice(part);
    }
    push_header(&mut records, PARAMS, 0);
    records
}

/// Encodes the header of a record with `content_bytes` of the request's body, at most
/// [`MAX_CONTENT_BYTES`]. A record without content ends the body.
pub fn stdin_header(content_bytes: usize) -> [u8; HEADER_BYTES] {
    header(STDIN, content_bytes)
}

fn header(kind: u8, content_bytes: usize) -> [u8; HEADER_BYTES] {
    debug_assert!(content_bytes <= MAX_CONTENT_BYTES);
    let [id_high, id_low] = REQUEST_ID.to_be_bytes();
    let [.., high, low] = content_bytes.to_be_bytes();
    [VERSION, kind, id_high, id_low, high, low, 0, 0]
}

fn push_header(records: &mut Vec<u8>, kind: u8, content_bytes: usize) {
    records.extend_from_slice(&header(kind, content_bytes));
}

/// Appends a length. A length below 128 takes one byte. Others take four, with the highest bit set.
fn push_length(params: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..=127) => params.push(short),
        _ => {
            let long = u32::try_from(length).unwrap_or(u32::MAX >> 1) | 1 << 31;
            params.extend_from_slice(&long.to_be_bytes());
        }
    }
}

/// Decodes the records from the other side.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The rest of the present record's content and padding, and its type.
    content_left: usize,
    padding_left: usize,
    is_error_output: bool,
}

impl Decoder {
    /// Takes the next event from the start of `input`; `None` if more bytes are needed. Content is
    /// returned as it arrives, without waiting for the end of the record.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<FastCgiEvent>, BadRecord> {
        loop {
            if self.content_left > 0 {
                if input.is_empty() {
                    return Ok(None);
                }
                let content = input.split_to(self.content_left.min(input.len())).freeze();
                self.content_left -= content.len();
                let event =
                    if self.is_error_output { FastCgiEvent::Stderr } else { FastCgiEvent::Stdout };
                return Ok(Some(event(content)));
            }
            let padding = self.padding_left.min(input.len());
            input.advance(padding);
            self.padding_left -= padding;
            let &[version, kind, id_high, id_low, high, low, padding, _, ..] = &input[..] else {
                return match input.first() {
                    Some(version) if *version != VERSION => Err(BadRecord::Version(*version)),
                    _ => Ok(None),
                };
            };
            if version != VERSION {
                return Err(BadRecord::Version(version));
            }
            let id = u16::from_be_bytes([id_high, id_low]);
            let content_bytes = usize::from(u16::from_be_bytes([high, low]));
            match kind {
                STDOUT | STDERR if id == REQUEST_ID => {
                    input.advance(HEADER_BYTES);
                    self.content_left = content_bytes;
                    self.padding_left = usize::from(padding);
                    self.is_error_output = kind == STDERR;
                }
                END_REQUEST if id == REQUEST_ID => {
                    if content_bytes != 8 {
                        return Err(BadRecord::End(content_bytes));
                    }
                    let whole = HEADER_BYTES + content_bytes + usize::from(padding);
                    if input.len() < whole {
                        return Ok(None);
                    }
                    // The four bytes before are the exit status of the program, which does not
                    // matter here.
                    let protocol_status = input[HEADER_BYTES + 4];
                    input.advance(whole);
                    return match protocol_status {
                        0 => Ok(Some(FastCgiEvent::End)),
                        status => Err(BadRecord::Refused(status)),
                    };
                }
                _ => return Err(BadRecord::Unexpected(kind, id)),
            }
        }
    }

    /// Returns whether a record is incomplete. At the end of a connection this means that it was
    /// cut.
    pub fn is_inside_record(&self) -> bool {
        self.content_left > 0 || self.padding_left > 0
    }
}

#[cfg(test)]
#[path = "fastcgi_tests.rs"]
mod tests;
