//! Error codes (RFC 9114 section 8.1, RFC 9204 section 6).

/// Why a stream or a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// It ended well.
    NoError = 0x100,
    /// A rule was broken that has no code of its own.
    GeneralProtocol = 0x101,
    /// The server has failed.
    Internal = 0x102,
    /// The client has opened a stream that it must not open.
    StreamCreation = 0x103,
    /// A stream has ended that must last as long as the connection.
    ClosedCriticalStream = 0x104,
    /// A frame came where it is not allowed.
    FrameUnexpected = 0x105,
    /// A frame is cut off, or its payload does not have its form.
    Frame = 0x106,
    /// The client causes too much work.
    ExcessiveLoad = 0x107,
    /// An identifier that does not exist, or that must not become smaller.
    Id = 0x108,
    /// The settings have a mistake.
    Settings = 0x109,
    /// The control stream begins with another frame than the settings.
    MissingSettings = 0x10a,
    /// No work was done for the request, which may be sent again.
    RequestRejected = 0x10b,
    /// The request or its response is not needed any more.
    RequestCancelled = 0x10c,
    /// The request was cut off.
    RequestIncomplete = 0x10d,
    /// The request is malformed.
    Message = 0x10e,
    /// A field section cannot be decoded.
    QpackDecompression = 0x200,
    /// The client's encoder breaks a rule.
    QpackEncoderStream = 0x201,
    /// The client's decoder breaks a rule.
    QpackDecoderStream = 0x202,
}

impl Code {
    /// Returns the number on the wire.
    pub fn number(self) -> u32 {
        self as u32
    }
}

/// A rule that the client has broken. The connection ends with the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Failure {
    /// The code that the client gets.
    pub code: Code,
    /// The rule, for the log.
    pub what: &'static str,
}

impl Failure {
    pub(crate) fn new(code: Code, what: &'static str) -> Self {
        Self { code, what }
    }
}
