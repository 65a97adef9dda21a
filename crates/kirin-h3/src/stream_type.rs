//! The types of streams in one direction (RFC 9114 section 6.2, RFC 9204 section 4.2).

/// What a client's stream in one direction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamType {
    /// Settings and other frames for the connection.
    Control,
    /// A push, which only servers have.
    Push,
    /// Instructions for the dynamic table of the server's decoder.
    QpackEncoder,
    /// Answers to the instructions of the server's encoder.
    QpackDecoder,
    /// Something that this server does not know. It is not read.
    Unknown,
}

impl StreamType {
    /// Returns the type with this number.
    pub fn of(number: u64) -> Self {
        match number {
            0 => Self::Control,
            1 => Self::Push,
            2 => Self::QpackEncoder,
            3 => Self::QpackDecoder,
            _ => Self::Unknown,
        }
    }
}
