//! A record of labelled values, while they are read: LTSV and JSON.

use std::borrow::Cow;

use crate::line::error::LineError;
use crate::line::record::{Record, TimeUnit};
use crate::line::{combined, number};

/// The meaning of a label. Logs have several labels for the same, and one log may have two of them.
/// The lower number is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Method,
    Target(u8),
    /// The complete request line, or in JSON an object with parts of the request.
    Request,
    Status,
    Size(u8),
    Duration(u8),
    Micros,
    Time,
    Place,
    Cache,
    End,
}

/// The worst number of a label.
const WORST: u8 = u8::MAX;

impl Key {
    /// Returns the meaning of a label: Kirin's, those of ltsv.org, nginx's variables, and those
    /// that alp, kataribe and Caddy know.
    pub(super) fn of(label: &[u8]) -> Option<Self> {
        Some(match label {
            b"method" | b"request_method" | b"req_method" => Self::Method,
            b"uri" | b"request_uri" => Self::Target(0),
            b"target" | b"url" => Self::Target(1),
            b"path" | b"request_path" => Self::Target(2),
            b"req" | b"request" | b"request_line" => Self::Request,
            b"status" | b"status_code" => Self::Status,
            b"size" | b"body_bytes" | b"body_bytes_sent" => Self::Size(0),
            b"bodysize" | b"bytes_sent" | b"bytes" => Self::Size(1),
            b"reqtime" | b"request_time" => Self::Duration(0),
            b"response_time" | b"duration" | b"taken" => Self::Duration(1),
            b"apptime" | b"latency" | b"runtime" => Self::Duration(2),
            b"upstream_response_time" => Self::Duration(3),
            b"reqtime_microsec" => Self::Micros,
            b"time" | b"time_local" | b"time_iso8601" | b"@timestamp" | b"timestamp" | b"ts" => {
                Self::Time
            }
            b"place" => Self::Place,
            b"cache" | b"cache_status" | b"upstream_cache_status" => Self::Cache,
            b"end" => Self::End,
            _ => return None,
        })
    }
}

/// A value with a label.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Text(Cow<'a, [u8]>),
    Integer(u64),
    Float(f64),
}

impl Value<'_> {
    /// Returns a count. `-` is none.
    fn count(&self, what: &'static str) -> Result<Option<u64>, LineError> {
        match self {
            Self::Text(text) if matches!(&**text, b"-" | b"") => Ok(None),
            Self::Text(text) => number::unsigned(text).map(Some).ok_or(LineError::NotANumber(what)),
            Self::Integer(number) => Ok(Some(*number)),
            Self::Float(_) => Err(LineError::NotANumber(what)),
        }
    }

    /// Returns a duration in microseconds. `-` is none.
    fn micros(&self, unit: TimeUnit) -> Result<Option<u64>, LineError> {
        const WHAT: &str = "the duration of the request";
        let micros = match self {
            Self::Text(text) if matches!(&**text, b"-" | b"") => return Ok(None),
            Self::Text(text) => number::micros(text, unit),
            #[allow(clippy::cast_precision_loss)]
            Self::Integer(number) => number::float_micros(*number as f64, unit),
            Self::Float(number) => number::float_micros(*number, unit),
        };
        micros.map(Some).ok_or(LineError::NotANumber(WHAT))
    }
}

/// The values of a line so far.
pub(super) struct Draft<'a> {
    unit: TimeUnit,
    method: Option<Cow<'a, [u8]>>,
    target: Option<Cow<'a, [u8]>>,
    request: Option<Cow<'a, [u8]>>,
    status: Option<u64>,
    bytes: Option<u64>,
    micros: Option<u64>,
    time: Option<Cow<'a, [u8]>>,
    place: Option<Cow<'a, [u8]>>,
    cache: Option<Cow<'a, [u8]>>,
    is_cut: bool,
    target_rank: u8,
    size_rank: u8,
    duration_rank: u8,
}

impl<'a> Draft<'a> {
    pub(super) fn new(unit: TimeUnit) -> Self {
        Self {
            unit,
            method: None,
            target: None,
            request: None,
            status: None,
            bytes: None,
            micros: None,
            time: None,
            place: None,
            cache: None,
            is_cut: false,
            target_rank: WORST,
            size_rank: WORST,
            duration_rank: WORST,
        }
    }

    /// Takes a value. A later value of the same label replaces an earlier one.
    pub(super) fn set(&mut self, key: Key, value: Value<'a>) -> Result<(), LineError> {
        match key {
            Key::Status => self.status = value.count("the status")?,
            Key::Size(rank) if rank <= self.size_rank => {
                if let Some(bytes) = value.count("the size")? {
                    (self.bytes, self.size_rank) = (Some(bytes), rank);
                }
            }
            Key::Duration(rank) if rank <= self.duration_rank => {
                if let Some(micros) = value.micros(self.unit)? {
                    (self.micros, self.duration_rank) = (Some(micros), rank);
                }
            }
            Key::Micros if self.duration_rank > 0 => {
                if let Some(micros) = value.micros(TimeUnit::Microseconds)? {
                    (self.micros, self.duration_rank) = (Some(micros), 0);
                }
            }
            Key::Size(_) | Key::Duration(_) | Key::Micros => {}
            _ => self.set_text(key, value),
        }
        Ok(())
    }

    fn set_text(&mut self, key: Key, value: Value<'a>) {
        let text = match value {
            Value::Text(text) => text,
            // Seconds since 1970.
            Value::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            Value::Float(number) => Cow::Owned(number.to_string().into_bytes()),
        };
        match key {
            Key::Method => self.method = Some(text),
            Key::Target(rank) if rank <= self.target_rank => {
                (self.target, self.target_rank) = (Some(text), rank);
            }
            Key::Request => self.request = Some(text),
            Key::Time => self.time = Some(text),
            Key::Place if *text != *b"-" => self.place = Some(text),
            Key::Cache if *text != *b"-" => self.cache = Some(text),
            Key::End => self.is_cut = *text == *b"cut",
            _ => {}
        }
    }

    /// Returns the record, if nothing is missing.
    pub(super) fn finish(self) -> Result<Record<'a>, LineError> {
        let (mut method, mut target) = (self.method, self.target);
        if let Some(request) = self.request.filter(|_| method.is_none() || target.is_none()) {
            let (line_method, line_target) = match request {
                Cow::Borrowed(line) => {
                    let (method, target) = combined::split_request_line(line);
                    (Cow::Borrowed(method), Cow::Borrowed(target))
                }
                Cow::Owned(line) => {
                    let (method, target) = combined::split_request_line(&line);
                    (Cow::Owned(method.to_vec()), Cow::Owned(target.to_vec()))
                }
            };
            method.get_or_insert(line_method);
            target.get_or_insert(line_target);
        }
        let status = self.status.ok_or(LineError::Missing("status"))?;
        Ok(Record {
            method: method.unwrap_or(Cow::Borrowed(b"-")),
            target: target.ok_or(LineError::Missing("uri"))?,
            status: combined::status(status)?,
            bytes: self.bytes,
            micros: self.micros,
            time: self.time,
            place: self.place,
            cache: self.cache,
            is_cut: self.is_cut,
        })
    }
}
