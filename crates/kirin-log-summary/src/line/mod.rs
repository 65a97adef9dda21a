//! A line of an access log, and the formats that it may have.

mod combined;
mod draft;
mod json;
mod ltsv;
mod number;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::draft::Draft;

/// The parts of a line that a summary needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'a> {
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
    /// The moment of the request as the log has it.
    pub time: Option<Cow<'a, [u8]>>,
    /// The part of Kirin that answered.
    pub place: Option<Cow<'a, [u8]>>,
    /// The cache status.
    pub cache: Option<Cow<'a, [u8]>>,
    /// Whether the client did not get the complete response.
    pub is_cut: bool,
}

/// A format of access logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The common or combined format, with or without more after it.
    Combined,
    /// Tab-separated values with labels (ltsv.org).
    Ltsv,
    /// A JSON object a line.
    Json,
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

/// The reason why a line is not counted.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line has no request in quotation marks.
    #[error("no request in quotation marks")]
    NoRequest,
    /// A part of the line is missing.
    #[error("no {0}")]
    Missing(&'static str),
    /// A part of the line is not a number.
    #[error("{0} is not a number")]
    NotANumber(&'static str),
    /// The line is not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// The line is too long.
    #[error("longer than {} bytes", crate::input::LONGEST_LINE)]
    TooLong,
    /// The line has none of the known formats.
    #[error("neither combined nor LTSV nor JSON")]
    UnknownFormat,
    /// The moment of the request cannot be compared.
    #[error("no time that --since and --until can be compared with")]
    NoTime,
}

impl Format {
    /// Returns the format that a line seems to have.
    pub fn guess(line: &[u8]) -> Option<Self> {
        if line.iter().find(|byte| **byte != b' ') == Some(&b'{') {
            return Some(Self::Json);
        }
        let first = memchr::memchr(b'\t', line).and_then(|end| line.get(..end));
        if first.is_some_and(|field| ltsv::split_label(field).is_some()) {
            return Some(Self::Ltsv);
        }
        memchr::memchr(b'"', line).map(|_| Self::Combined)
    }

    /// Parses a line without its line end.
    pub fn parse(self, line: &[u8], unit: TimeUnit) -> Result<Record<'_>, LineError> {
        match self {
            Self::Combined => combined::parse(line, unit),
            Self::Ltsv => ltsv::parse(line, unit),
            Self::Json => json::parse(line, unit),
        }
    }
}
