//! Frames (RFC 9114 section 7.1): a type, a length and a payload.

use crate::varint;

/// The types of frames that a server knows (RFC 9114 section 7.2, RFC 9218 section 7.2).
pub(crate) mod kind {
    pub(crate) const DATA: u64 = 0x0;
    pub(crate) const HEADERS: u64 = 0x1;
    pub(crate) const CANCEL_PUSH: u64 = 0x3;
    pub(crate) const SETTINGS: u64 = 0x4;
    pub(crate) const PUSH_PROMISE: u64 = 0x5;
    pub(crate) const GOAWAY: u64 = 0x7;
    pub(crate) const MAX_PUSH_ID: u64 = 0xd;
    pub(crate) const PRIORITY_UPDATE_REQUEST: u64 = 0xf_0700;
    pub(crate) const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

    /// Returns whether HTTP/2 has this frame, and HTTP/3 must not (RFC 9114 section 7.2.8).
    pub(crate) fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// The type and the length of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: u64,
    pub(crate) length: u64,
}

/// The most octets of a [`FrameHeader`].
const HEADER_BYTES: usize = 16;

/// Gathers the header of a frame that comes in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderReader {
    octets: [u8; HEADER_BYTES],
    count: usize,
}

impl HeaderReader {
    /// Takes octets from the front of `input` until the header is complete.
    pub(crate) fn take(&mut self, input: &mut &[u8]) -> Option<FrameHeader> {
        loop {
            if let Some(header) = self.header() {
                self.count = 0;
                return Some(header);
            }
            let (octet, rest) = input.split_first()?;
            *input = rest;
            // Two integers have no more octets, so there is a place.
            *self.octets.get_mut(self.count)? = *octet;
            self.count += 1;
        }
    }

    /// Returns whether a part of a header has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.count > 0
    }

    fn header(&self) -> Option<FrameHeader> {
        let octets = self.octets.get(..self.count)?;
        let (kind, used) = varint::read(octets)?;
        let (length, _) = varint::read(octets.get(used..)?)?;
        Some(FrameHeader { kind, length })
    }
}

/// Writes the header of a DATA frame with `length` octets.
pub fn write_data_header(length: u64, out: &mut Vec<u8>) {
    varint::write(kind::DATA, out);
    varint::write(length, out);
}

/// Writes a HEADERS frame with this field section.
pub fn write_headers(section: &[u8], out: &mut Vec<u8>) {
    varint::write(kind::HEADERS, out);
    varint::write(section.len() as u64, out);
    out.extend_from_slice(section);
}

/// Writes a GOAWAY frame: requests on the stream `id` and above are not answered.
pub fn write_goaway(id: u64, out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(8);
    varint::write(id, &mut payload);
    varint::write(kind::GOAWAY, out);
    varint::write(payload.len() as u64, out);
    out.extend_from_slice(&payload);
}
