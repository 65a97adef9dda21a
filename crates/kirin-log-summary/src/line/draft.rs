//! A record of labelled values, while they are read: LTSV, JSON, and the values of a template.

use std::borrow::Cow;

use crate::line::error::LineError;
use crate::line::log_time::{LogTime, TimeForm};
use crate::line::record::{LogRecord, TimeUnit};
use crate::line::unescaped::unescaped;
use crate::line::{combined, number};

/// The meaning of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelMeaning {
    /// The value that has this label.
    pub(super) field: LineField,
    /// The place of the label among those of the same value. A line may have several of them, and
    /// the lowest rank counts. `docs/log-sum.md` has the labels in this order.
    pub(super) rank: u8,
}

/// A value of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineField {
    Method,
    Target,
    /// The target without its query.
    Path,
    /// The query, with or without its question mark.
    Query,
    /// The complete request line, or in JSON an object with parts of the request.
    Request,
    Status,
    Size,
    /// A duration, and its unit if that is the same in all logs.
    Duration(Option<TimeUnit>),
    Host,
    Time,
    Place,
    Cache,
    End,
}

impl LabelMeaning {
    /// Returns the meaning of a label: Kirin's, those of ltsv.org, nginx's variables, and those
    /// that alp, kataribe and Caddy know.
    pub(super) fn of(label: &[u8]) -> Option<Self> {
        let (field, rank) = match label {
            b"method" => (LineField::Method, 0),
            b"request_method" => (LineField::Method, 1),
            b"req_method" => (LineField::Method, 2),
            b"uri" => (LineField::Target, 0),
            b"request_uri" => (LineField::Target, 1),
            b"target" => (LineField::Target, 2),
            b"url" => (LineField::Target, 3),
            b"path" => (LineField::Target, 4),
            b"request_path" => (LineField::Target, 5),
            b"req" => (LineField::Request, 0),
            b"request" => (LineField::Request, 1),
            b"request_line" => (LineField::Request, 2),
            b"status" => (LineField::Status, 0),
            b"status_code" => (LineField::Status, 1),
            b"size" => (LineField::Size, 0),
            b"body_bytes" => (LineField::Size, 1),
            b"body_bytes_sent" => (LineField::Size, 2),
            b"bodysize" => (LineField::Size, 3),
            b"bytes_sent" => (LineField::Size, 4),
            b"bytes" => (LineField::Size, 5),
            b"reqtime" => (LineField::Duration(None), 0),
            b"request_time" => (LineField::Duration(None), 1),
            b"reqtime_microsec" => (LineField::Duration(Some(TimeUnit::Microseconds)), 2),
            b"response_time" => (LineField::Duration(None), 3),
            b"duration" => (LineField::Duration(None), 4),
            b"taken" => (LineField::Duration(None), 5),
            b"apptime" => (LineField::Duration(None), 6),
            b"latency" => (LineField::Duration(None), 7),
            b"runtime" => (LineField::Duration(None), 8),
            b"upstream_response_time" => (LineField::Duration(None), 9),
            b"vhost" => (LineField::Host, 0),
            b"http_host" => (LineField::Host, 1),
            b"server_name" => (LineField::Host, 2),
            b"time" => (LineField::Time, 0),
            b"time_local" => (LineField::Time, 1),
            b"time_iso8601" => (LineField::Time, 2),
            b"@timestamp" => (LineField::Time, 3),
            b"timestamp" => (LineField::Time, 4),
            b"ts" => (LineField::Time, 5),
            b"place" => (LineField::Place, 0),
            b"cache" => (LineField::Cache, 0),
            b"cache_status" => (LineField::Cache, 1),
            b"upstream_cache_status" => (LineField::Cache, 2),
            b"end" => (LineField::End, 0),
            _ => return None,
        };
        Some(Self { field, rank })
    }
}

/// A value with a label.
#[derive(Debug)]
pub(super) enum LabelledValue<'a> {
    Text(Cow<'a, [u8]>),
    Integer(u64),
    Float(f64),
}

impl LabelledValue<'_> {
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
            Self::Text(text) => match number::total_micros(text, unit) {
                Some(total) => return Ok(total),
                None => None,
            },
            #[allow(clippy::cast_precision_loss)]
            Self::Integer(number) => number::float_micros(*number as f64, unit),
            Self::Float(number) => number::float_micros(*number, unit),
        };
        micros.map(Some).ok_or(LineError::NotANumber(WHAT))
    }
}

/// A value of the best label so far.
struct Best<T> {
    value: Option<T>,
    rank: u8,
}

impl<T> Best<T> {
    const MISSING: Self = Self { value: None, rank: u8::MAX };

    /// Returns whether a value of a label with this rank is wanted.
    fn wants(&self, rank: u8) -> bool {
        rank < self.rank
    }

    /// Takes a value, if there is one, unless one of a better label is there already.
    fn set(&mut self, value: Option<T>, rank: u8) {
        if value.is_some() && self.wants(rank) {
            *self = Self { value, rank };
        }
    }
}

/// The values of a line so far.
pub(super) struct Draft<'a> {
    unit: TimeUnit,
    /// Whether texts have escapes.
    is_escaped: bool,
    method: Best<Cow<'a, [u8]>>,
    target: Best<Cow<'a, [u8]>>,
    path: Best<Cow<'a, [u8]>>,
    query: Best<Cow<'a, [u8]>>,
    request: Best<Cow<'a, [u8]>>,
    status: Best<u64>,
    bytes: Best<u64>,
    micros: Best<u64>,
    host: Best<Cow<'a, [u8]>>,
    time: Best<LogTime<'a>>,
    place: Best<Cow<'a, [u8]>>,
    cache: Best<Cow<'a, [u8]>>,
    is_cut: bool,
}

impl<'a> Draft<'a> {
    /// Makes a record without values. `unit` is that of durations whose label does not say it.
    pub(super) fn new(unit: TimeUnit, is_escaped: bool) -> Self {
        Self {
            unit,
            is_escaped,
            method: Best::MISSING,
            target: Best::MISSING,
            path: Best::MISSING,
            query: Best::MISSING,
            request: Best::MISSING,
            status: Best::MISSING,
            bytes: Best::MISSING,
            micros: Best::MISSING,
            host: Best::MISSING,
            time: Best::MISSING,
            place: Best::MISSING,
            cache: Best::MISSING,
            is_cut: false,
        }
    }

    /// Takes a value, unless one of a better label, or an earlier one of the same, is there.
    pub(super) fn set(
        &mut self,
        key: LabelMeaning,
        value: LabelledValue<'a>,
    ) -> Result<(), LineError> {
        let LabelMeaning { field, rank } = key;
        match field {
            LineField::Status if self.status.wants(rank) => {
                self.status.set(value.count("the status")?, rank);
            }
            LineField::Size if self.bytes.wants(rank) => {
                self.bytes.set(value.count("the size")?, rank);
            }
            LineField::Duration(unit) if self.micros.wants(rank) => {
                self.micros.set(value.micros(unit.unwrap_or(self.unit))?, rank);
            }
            LineField::Status | LineField::Size | LineField::Duration(_) => {}
            _ => self.set_text(key, value),
        }
        Ok(())
    }

    fn set_text(&mut self, key: LabelMeaning, value: LabelledValue<'a>) {
        let text = match value {
            LabelledValue::Text(text) => text,
            // Seconds since 1970.
            LabelledValue::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            LabelledValue::Float(number) => Cow::Owned(number.to_string().into_bytes()),
        };
        let best = match key.field {
            LineField::Method => &mut self.method,
            LineField::Target => &mut self.target,
            LineField::Request => &mut self.request,
            LineField::Host if !matches!(&*text, b"-" | b"") => &mut self.host,
            LineField::Path => &mut self.path,
            LineField::Query if !matches!(&*text, b"-" | b"" | b"?") => &mut self.query,
            LineField::Time => return self.set_time(text, TimeForm::Usual, key.rank),
            LineField::Place if *text != *b"-" => &mut self.place,
            LineField::Cache if *text != *b"-" => &mut self.cache,
            LineField::End => {
                // Apache's `%X` has an X.
                self.is_cut = matches!(&*text, b"cut" | b"X");
                return;
            }
            _ => return,
        };
        best.set(Some(text), key.rank);
    }

    /// Takes the time of the request.
    pub(super) fn set_time(&mut self, text: Cow<'a, [u8]>, form: TimeForm, rank: u8) {
        self.time.set(Some(LogTime { text, form }), rank);
    }

    /// Returns the record, if nothing is missing.
    pub(super) fn finish(mut self) -> Result<LogRecord<'a>, LineError> {
        let path = self.path.value.take();
        let query = self.query.value.take();
        let (mut method, mut target) = (self.method.value, self.target.value);
        // A condition such as Apache's `%!200r` leaves the request line out, but not the path.
        let is_wanted = |request: &Cow<'_, [u8]>| {
            (method.is_none() || target.is_none()) && (path.is_none() || **request != *b"-")
        };
        if let Some(request) = self.request.value.filter(is_wanted) {
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
        let status = self.status.value.ok_or(LineError::Missing("status"))?;
        let target = target.or_else(|| path.map(|path| with_query(path, query)));
        let target = match target.ok_or(LineError::Missing("uri"))? {
            target if self.is_escaped => unescaped(target),
            target => target,
        };
        Ok(LogRecord {
            method: method.unwrap_or(Cow::Borrowed(b"-")),
            target,
            status: combined::status(status)?,
            bytes: self.bytes.value,
            micros: self.micros.value,
            host: self.host.value,
            time: self.time.value,
            place: self.place.value,
            cache: self.cache.value,
            is_cut: self.is_cut,
        })
    }
}

/// Appends a query to the path of a target.
fn with_query<'a>(path: Cow<'a, [u8]>, query: Option<Cow<'a, [u8]>>) -> Cow<'a, [u8]> {
    let Some(query) = query else { return path };
    let question_mark: &[u8] = if query.starts_with(b"?") { b"" } else { b"?" };
    Cow::Owned([&path, question_mark, &query].concat())
}
