//! A line of an access log, and the formats that it may have.

mod combined;
mod draft;
mod error;
mod json;
mod ltsv;
mod number;
mod record;
mod template;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::error::{LONGEST_LINE, LineError};
pub use self::record::{LogRecord, TimeUnit};
pub use self::template::{LineTemplate, TemplateError};

/// A format of access logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// The common or combined format, with or without more after it.
    Combined,
    /// Tab-separated values with labels (ltsv.org).
    Ltsv,
    /// A JSON object a line.
    Json,
    /// A format of the configuration.
    Template(Arc<LineTemplate>),
}

impl LineFormat {
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
    pub fn parse<'a>(&self, line: &'a [u8], unit: TimeUnit) -> Result<LogRecord<'a>, LineError> {
        match self {
            Self::Combined => combined::parse(line, unit),
            Self::Ltsv => ltsv::parse(line, unit),
            Self::Json => json::parse(line, unit),
            Self::Template(template) => template.read(line),
        }
    }
}
