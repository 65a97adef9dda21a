//! The form of frames (RFC 9113 section 4.1).

use crate::output::Output;
use crate::reason::Reason;

/// Length of a frame's header in bytes.
pub(crate) const HEADER_BYTES: usize = 9;

/// The largest payload that we take: the default of SETTINGS_MAX_FRAME_SIZE.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 16_384;

/// The largest number of a stream.
pub(crate) const MAX_STREAM: u32 = 0x7fff_ffff;

/// Types of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
    /// RFC 9218 section 7.1.
    pub(crate) const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 32;
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Length of the payload in bytes.
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl FrameHeader {
    /// Parses the header at the start of `bytes`; `None` if it is not complete.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = *bytes.first_chunk::<HEADER_BYTES>()?;
        Some(Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & MAX_STREAM,
        })
    }

    /// Returns whether a flag is set.
    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a header.
#[inline]
pub(crate) fn write_header(out: &mut Output, length: usize, kind: u8, flags: u8, stream: u32) {
    debug_assert!(length < 1 << 24, "a frame of {length} bytes");
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags, d, e, f, g]);
}

/// Appends RST_STREAM.
pub(crate) fn write_reset(out: &mut Output, stream: u32, reason: Reason) {
    write_header(out, 4, kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&reason.code().to_be_bytes());
}

/// Appends WINDOW_UPDATE; stream 0 is the connection.
pub(crate) fn write_window_update(out: &mut Output, stream: u32, bytes: u32) {
    debug_assert!((1..=MAX_STREAM).contains(&bytes), "a window grows by {bytes}");
    write_header(out, 4, kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&bytes.to_be_bytes());
}

/// Appends GOAWAY.
pub(crate) fn write_goaway(out: &mut Output, last_stream: u32, reason: Reason) {
    write_header(out, 8, kind::GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&reason.code().to_be_bytes());
}

/// Returns the four bytes of `payload` at `at` as a number.
pub(crate) fn number_at(payload: &[u8], at: usize) -> Option<u32> {
    payload.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_header_is_read_as_it_was() {
        for (length, stream) in [(0, 0), (5, 1), (16_384, 7), (0x12_3456, MAX_STREAM)] {
            let mut out = Output::default();
            write_header(&mut out, length, kind::DATA, flag::END_STREAM, stream);
            let header = FrameHeader { length, kind: 0, flags: 1, stream };
            assert_eq!(FrameHeader::parse(out.as_slice()), Some(header));
            assert_eq!(FrameHeader::parse(&out.as_slice()[..8]), None);
        }
    }

    #[test]
    fn the_reserved_bit_of_a_stream_is_ignored() {
        let header = FrameHeader::parse(&[0, 0, 0, 0, 0, 0x80, 0, 0, 3]);
        assert_eq!(header.map(|header| header.stream), Some(3));
    }
}
