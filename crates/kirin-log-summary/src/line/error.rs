//! The reasons why a line is not counted.

/// The longest line in bytes.
pub const LONGEST_LINE: usize = 1 << 20;

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
    #[error("longer than {} bytes", LONGEST_LINE)]
    TooLong,
    /// The line has none of the known formats.
    #[error("neither combined nor LTSV nor JSON nor what `kirin serve` shows on a terminal")]
    UnknownFormat,
    /// The line does not have the format that was given.
    #[error("not a line of this format")]
    OtherFormat,
    /// The moment of the request cannot be compared.
    #[error("no time that --since and --until can be compared with")]
    NoTime,
}
