//! A line of an access log, and the formats that it may have.

mod apache_directive;
mod combined;
mod draft;
mod error;
mod format_text;
mod json;
mod log_time;
mod ltsv;
mod nginx_variable;
mod number;
mod record;
mod template;
mod template_value;
mod terminal;
mod unescaped;
mod value_shape;

#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::error::{LONGEST_LINE, LineError};
pub use self::format_text::FormatTextError;
pub use self::log_time::{LogTime, TimeForm, parse_moment};
pub use self::record::{LogRecord, TimeUnit};
pub use self::template::{LineTemplate, TemplateError, TemplateLanguage};

/// A format of access logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// The common or combined format, with or without more after it.
    Combined,
    /// Tab-separated values with labels (ltsv.org).
    Ltsv,
    /// A JSON object a line.
    Json,
    /// The lines that Kirin writes for people.
    Terminal,
    /// A format of directives or variables.
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
        if memchr::memchr(b'"', line).is_some() {
            return Some(Self::Combined);
        }
        terminal::is_terminal(line).then_some(Self::Terminal)
    }

    /// Parses a line without its line end. `unit` is that of durations, unless the format says it.
    pub fn parse<'a>(&self, line: &'a [u8], unit: TimeUnit) -> Result<LogRecord<'a>, LineError> {
        match self {
            Self::Combined => combined::parse(line, unit),
            Self::Ltsv => ltsv::parse(line, unit),
            Self::Json => json::parse(line, unit),
            Self::Terminal => terminal::parse(line),
            Self::Template(template) => template.read(line),
        }
    }
}
