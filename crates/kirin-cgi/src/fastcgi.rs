//! FastCGI 1.0, the web server's side of a responder: a request into records, and records into what
//! they say.
//!
//! One request at a time on a connection, which may be kept: multiplexing is in the specification
//! and in no server.

use bytes::{Buf, Bytes, BytesMut};

use crate::request_block::RequestBlock;

const VERSION: u8 = 1;
const BEGIN_REQUEST: u8 = 1;
const ABORT_REQUEST: u8 = 2;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const HEADER_BYTES: usize = 8;
/// The id of every request: there is one at a time.
const REQUEST_ID: u16 = 1;

/// Content of a record, at most.
pub const MAX_CONTENT_BYTES: usize = 65_535;

/// What the other side says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A part of the response: head and body as CGI has them. Never empty.
    Stdout(Bytes),
    /// A part of the error output, which is for a log. Never empty.
    Stderr(Bytes),
    /// The response is whole. The connection can be used again.
    End,
}

/// Why a connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// Not FastCGI.
    #[error("this is no FastCGI record: version {0}")]
    Version(u8),
    /// Something that is no part of a response.
    #[error("a FastCGI record of type {0} for request {1} is not expected here")]
    Unexpected(u8, u16),
    /// An end that is malformed.
    #[error("a FastCGI END_REQUEST of {0} bytes instead of 8")]
    End(usize),
    /// The request was not taken.
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

/// The records that begin a request: what it is, and its parameters. `more` are beyond those of the
/// block, such as `SCRIPT_FILENAME`, or take the place of one. With `keep` the connection stays
/// open behind the response.
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

/// The header of a record with `content_bytes` of the request's body behind it, at most
/// [`MAX_CONTENT_BYTES`]; with 0 the body ends.
pub fn stdin_header(content_bytes: usize) -> [u8; HEADER_BYTES] {
    header(STDIN, content_bytes)
}

/// The record that calls a request off.
pub fn abort() -> [u8; HEADER_BYTES] {
    header(ABORT_REQUEST, 0)
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

/// One byte below 128, else four with the highest bit set.
fn push_length(params: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..=127) => params.push(short),
        _ => {
            let long = u32::try_from(length).unwrap_or(u32::MAX >> 1) | 1 << 31;
            params.extend_from_slice(&long.to_be_bytes());
        }
    }
}

/// Reads what the other side says.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Of the record that is being read: what follows of its content, of its padding, and its kind.
    content_left: usize,
    padding_left: usize,
    is_error_output: bool,
}

impl Decoder {
    /// The next event from the start of `input`, which is taken out; `None` when more has to be
    /// read. Content comes as it is there, without waiting for the whole record.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Event>, BadRecord> {
        loop {
            if self.content_left > 0 {
                if input.is_empty() {
                    return Ok(None);
                }
                let content = input.split_to(self.content_left.min(input.len())).freeze();
                self.content_left -= content.len();
                let event = if self.is_error_output { Event::Stderr } else { Event::Stdout };
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
                    // Behind the status that the program exited with, which is its own affair.
                    let protocol_status = input[HEADER_BYTES + 4];
                    input.advance(whole);
                    return match protocol_status {
                        0 => Ok(Some(Event::End)),
                        status => Err(BadRecord::Refused(status)),
                    };
                }
                _ => return Err(BadRecord::Unexpected(kind, id)),
            }
        }
    }

    /// Whether a record has begun whose end is not there: what is at the end of a connection then
    /// was cut.
    pub fn is_inside_record(&self) -> bool {
        self.content_left > 0 || self.padding_left > 0
    }
}

#[cfg(test)]
#[path = "fastcgi_tests.rs"]
mod tests;
