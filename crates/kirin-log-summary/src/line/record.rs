//! What a summary needs of a line.

use std::borrow::Cow;

use crate::line::log_time::LogTime;

/// The parts of a line that a summary needs.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord<'a> {
    /// The method, or `-` for bytes that were not a request.
    pub method: Cow<'a, [u8]>,
    /// The request target, with its query.
    pub target: Cow<'a, [u8]>,
    /// The status of the response.
    pub status: u16,
    /// The bytes of the body of the response.
    pub bytes: Option<u64>,
    /// The duration of the request in microseconds.
    pub micros: Option<u64>,
    /// The host that the client named, maybe with its port.
    pub host: Option<Cow<'a, [u8]>>,
    /// The moment of the request.
    pub time: Option<LogTime<'a>>,
    /// The part of Kirin that answered.
    pub place: Option<Cow<'a, [u8]>>,
    /// The cache status.
    pub cache: Option<Cow<'a, [u8]>>,
    /// Whether the client did not get the complete response.
    pub is_cut: bool,
}

/// The unit of durations in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds, as Kirin and nginx write them.
    #[default]
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds, as `%D` of Apache.
    Microseconds,
}
