//! Error codes (RFC 9113 section 7).

/// Why a stream or a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// It ended well.
    NoError = 0,
    /// A rule was broken that has no code of its own.
    ProtocolError = 1,
    /// The server has failed.
    InternalError = 2,
    /// More bytes came, or were allowed, than flow control permits.
    FlowControlError = 3,
    /// A frame came for a stream that its sender has ended.
    StreamClosed = 5,
    /// A frame has a length that its type does not allow.
    FrameSizeError = 6,
    /// No work was done for the request, which may be sent again.
    RefusedStream = 7,
    /// A header block could not be decoded.
    CompressionError = 9,
    /// The client causes too much work.
    EnhanceYourCalm = 11,
}

impl Reason {
    /// Returns the number on the wire.
    pub fn code(self) -> u32 {
        self as u32
    }
}
