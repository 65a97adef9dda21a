//! The format of a log: compiled once, used for each line.
//!
//! A request that is answered at once has its line written from its head, which is still in the
//! read buffer. For another request, the values that the format needs are escaped and copied into
//! one buffer ([`TakenValues`]).

use std::fmt;

use kirin_http::field_lines::FieldLines;

use super::directive::{self, FormatError, FormatPiece, LogValue};
use super::escaping::Escaping;
use super::log_time::{RequestMoment, RequestTimes, TimeForm, TimeTexts, TimeValue};
use super::request_value::{LoggedRequest, RequestValue};
use super::response_value::ResponseValue;
use crate::ended_request::EndedRequest;

/// The formats that have names.
pub const NAMES: [&str; 5] = ["combined", "common", "json", "ltsv", "terminal"];

/// The text in place of a value that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// `-`
    Dash,
    /// Nothing, not even the text before the value.
    LeftOut,
}

/// The format of a log.
#[derive(Clone, PartialEq, Eq)]
pub struct LogFormat {
    name: String,
    pieces: Vec<FormatPiece>,
    end: Box<[u8]>,
    escaping: Escaping,
    absent: Absent,
}

/// Values of a request that outlive its head.
#[derive(Debug, Default)]
pub struct TakenValues {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`. Those of the request are before those of the response.
    ends: Vec<usize>,
    request_values: usize,
}

/// The source of the values of a request and its response.
#[derive(Clone, Copy)]
pub enum ValueSource<'a> {
    /// From the heads themselves.
    Heads(LoggedRequest<'a>, LoggedHead<'a>),
    /// From a copy.
    Taken(&'a TakenValues),
}

/// The parts of a response head that a line may show.
#[derive(Clone, Copy)]
pub struct LoggedHead<'a> {
    /// The fields but those of the framing.
    pub fields: &'a FieldLines,
    /// The length of the body.
    pub content_length: Option<u64>,
}

impl LogFormat {
    /// Compiles a format: a name, or directives. `environment` returns the value of an environment
    /// variable. `has_colours` is for `terminal`.
    pub fn compile(
        format: &str,
        has_colours: bool,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, FormatError> {
        let (pieces, end) = match format {
            "combined" => combined()?,
            "common" => directive::parse("%h %l %u %t \"%r\" %>s %B", environment)?,
            "json" => return Ok(json()),
            "ltsv" => ltsv(),
            "terminal" => terminal(has_colours),
            directives => directive::parse(directives, environment)?,
        };
        let (escaping, absent) = (Escaping::Text, Absent::Dash);
        Ok(Self { name: format.into(), pieces, end, escaping, absent })
    }

    /// Returns the format as it is written in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether lines show less than a second of a time.
    pub fn has_precise_time(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(&piece.value, LogValue::Time(time, _) if time.form.is_precise()))
    }

    /// Returns whether lines show fields of responses.
    pub fn has_response_fields(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece.value, LogValue::Field(_)))
    }

    /// Takes from a request the values that a line needs.
    pub fn take_request(&self, request: &LoggedRequest<'_>, taken: &mut TakenValues) {
        for piece in &self.pieces {
            if let LogValue::Request(value) = &piece.value {
                self.take(taken, |out| value.write(request, self.escaping, out));
            }
        }
        taken.request_values = taken.ends.len();
    }

    /// Takes from a response the fields that a line needs. It replaces those of an earlier response
    /// to the same request.
    pub fn take_response(&self, head: LoggedHead<'_>, taken: &mut TakenValues) {
        taken.ends.truncate(taken.request_values);
        taken.bytes.truncate(taken.ends.last().copied().unwrap_or(0));
        for piece in &self.pieces {
            if let LogValue::Field(name) = &piece.value {
                self.take(taken, |out| head.write_field(name, self.escaping, out));
            }
        }
    }

    fn take(&self, taken: &mut TakenValues, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        if !write(&mut taken.bytes) && self.absent == Absent::Dash {
            taken.bytes.push(b'-');
        }
        taken.ends.push(taken.bytes.len());
    }

    /// Appends the line of a request, without a line end.
    pub fn write_line(
        &self,
        source: ValueSource<'_>,
        request: &EndedRequest<'_>,
        times: RequestTimes,
        texts: &mut TimeTexts,
        out: &mut Vec<u8>,
    ) {
        let mut cursor = match source {
            ValueSource::Taken(taken) => taken.cursor(),
            ValueSource::Heads(..) => TakenCursor::default(),
        };
        for piece in &self.pieces {
            let start = out.len();
            out.extend_from_slice(&piece.before);
            let is_there = match (&piece.value, source) {
                (LogValue::Request(value), ValueSource::Heads(request, _)) => {
                    value.write(&request, self.escaping, out)
                }
                (LogValue::Request(_), ValueSource::Taken(_)) => {
                    cursor.request.next().is_some_and(|value| self.copy(value, out))
                }
                (LogValue::Field(name), ValueSource::Heads(_, head)) => {
                    head.write_field(name, self.escaping, out)
                }
                (LogValue::Field(_), ValueSource::Taken(_)) => {
                    cursor.response.next().is_some_and(|value| self.copy(value, out))
                }
                (LogValue::Time(time, slot), _) => {
                    time.write(times, *slot, texts, self.escaping, out);
                    true
                }
                (LogValue::Response(value), _) => value.write(request, self.escaping, out),
                (LogValue::Nothing, _) => true,
            };
            match self.absent {
                _ if is_there => {}
                Absent::Dash => out.push(b'-'),
                Absent::LeftOut => out.truncate(start),
            }
        }
        out.extend_from_slice(&self.end);
    }

    /// Appends a value that was taken. Returns whether there is one: a JSON string has quotes, and
    /// an absent value of another format is a dash, so an empty one stands for an empty query.
    fn copy(&self, value: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(value);
        self.absent == Absent::Dash || !value.is_empty()
    }
}

impl fmt::Debug for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogFormat({:?})", self.name)
    }
}

impl LoggedHead<'_> {
    /// Appends the value of a field. Several lines of it are joined. The engine adds `Date`,
    /// `Connection` and `Transfer-Encoding` later, so that they are unknown here.
    fn write_field(self, name: &str, escaping: Escaping, out: &mut Vec<u8>) -> bool {
        let mut values =
            self.fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
        let Some((_, first)) = values.next() else {
            return match self.content_length {
                Some(length) if name.eq_ignore_ascii_case("content-length") => {
                    super::log_time::write_number(length, out);
                    true
                }
                _ => false,
            };
        };
        let joined =
            values.fold(first.to_vec(), |joined, (_, value)| [&joined, &b", "[..], value].concat());
        if !joined.is_empty() {
            escaping.write(&joined, out);
        }
        !joined.is_empty()
    }
}

impl TakenValues {
    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.request_values = 0;
    }

    /// Returns the memory in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    fn cursor(&self) -> TakenCursor<'_> {
        let (request, response) = self.ends.split_at(self.request_values.min(self.ends.len()));
        let at = request.last().copied().unwrap_or(0);
        TakenCursor {
            request: TakenIter { bytes: &self.bytes, at: 0, ends: request.iter() },
            response: TakenIter { bytes: &self.bytes, at, ends: response.iter() },
        }
    }
}

/// The values that were taken and are not written yet.
#[derive(Default)]
struct TakenCursor<'a> {
    request: TakenIter<'a>,
    response: TakenIter<'a>,
}

#[derive(Default)]
struct TakenIter<'a> {
    bytes: &'a [u8],
    at: usize,
    ends: std::slice::Iter<'a, usize>,
}

impl<'a> Iterator for TakenIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = *self.ends.next()?;
        let value = self.bytes.get(self.at..end);
        self.at = end;
        value
    }
}

type FormatPieces = (Vec<FormatPiece>, Box<[u8]>);

fn piece(before: &str, value: LogValue) -> FormatPiece {
    FormatPiece { before: before.as_bytes().into(), value }
}

/// Returns Apache's combined format, then the part that answered, the seconds, and `cut` if the
/// client did not get the complete response.
fn combined() -> Result<FormatPieces, FormatError> {
    let directives = "%h %l %u %t \"%r\" %>s %B \"%{Referer}i\" \"%{User-Agent}i\" \
                      %{answered_by}k %{reqtime}k";
    let (mut pieces, end) = directive::parse(directives, &|_| None)?;
    pieces.push(piece("", LogValue::Response(ResponseValue::CutSuffix)));
    Ok((pieces, end))
}

/// Returns the keys of the formats `json` and `ltsv`, with their values. `kirin log sum` reads
/// them.
fn keys() -> Vec<(&'static str, LogValue)> {
    let field = |name: &str| LogValue::Request(RequestValue::Field(name.into()));
    let time = TimeValue { moment: RequestMoment::Begin, form: TimeForm::Iso };
    let (request, response) = (LogValue::Request, LogValue::Response);
    vec![
        ("time", LogValue::Time(time, 0)),
        ("host", request(RequestValue::Client)),
        ("user", request(RequestValue::User)),
        ("method", request(RequestValue::Method)),
        ("uri", request(RequestValue::Target)),
        ("protocol", request(RequestValue::Protocol)),
        ("status", response(ResponseValue::Status)),
        ("size", response(ResponseValue::Bytes)),
        ("reqtime", response(ResponseValue::Seconds)),
        ("vhost", request(RequestValue::Host)),
        ("referer", field("referer")),
        ("ua", field("user-agent")),
        ("place", response(ResponseValue::Place)),
        ("cache", response(ResponseValue::Cache)),
        ("queue", response(ResponseValue::Queue)),
        ("worker", response(ResponseValue::Worker)),
        ("upstream", response(ResponseValue::Upstream)),
        ("upstream_time", response(ResponseValue::UpstreamTime)),
        ("tls", request(RequestValue::TlsVersion)),
        ("request_id", response(ResponseValue::RequestId)),
        ("bytes_in", response(ResponseValue::BytesIn)),
        ("end", response(ResponseValue::End)),
    ]
}

fn json() -> LogFormat {
    // The first key is always there, so that each of the others follows a comma.
    let first = |index| if index == 0 { "{\"" } else { ",\"" };
    let pieces = keys()
        .into_iter()
        .enumerate()
        .map(|(index, (key, value))| piece(&format!("{}{key}\":", first(index)), value));
    LogFormat {
        name: "json".into(),
        pieces: pieces.collect(),
        end: b"}"[..].into(),
        escaping: Escaping::Json,
        absent: Absent::LeftOut,
    }
}

fn ltsv() -> FormatPieces {
    let first = |index| if index == 0 { "" } else { "\t" };
    let pieces = keys()
        .into_iter()
        .enumerate()
        .map(|(index, (key, value))| piece(&format!("{}{key}:", first(index)), value));
    (pieces.collect(), Box::default())
}

/// Returns the format for people: `18:40:01 200 GET /memo/7  1.2 KB  3.40 ms  app:web`.
fn terminal(has_colours: bool) -> FormatPieces {
    let colour = |escape: &'static str| if has_colours { escape } else { "" };
    let (dim, bold, plain) = (colour("\x1b[2m"), colour("\x1b[1m"), colour("\x1b[0m"));
    let time = TimeValue { moment: RequestMoment::End, form: TimeForm::Local("%H:%M:%S".into()) };
    let mut pieces = vec![piece(dim, LogValue::Time(time, 0))];
    match has_colours {
        true => pieces
            .push(piece(&format!("{plain} "), LogValue::Response(ResponseValue::StatusColour))),
        false => pieces.push(piece(" ", LogValue::Nothing)),
    }
    let (request, response) = (LogValue::Request, LogValue::Response);
    pieces.extend([
        piece("", response(ResponseValue::Status)),
        piece(&format!("{plain} {bold}"), request(RequestValue::Method)),
        piece(&format!("{plain} "), request(RequestValue::Target)),
        piece(&format!("  {dim}"), response(ResponseValue::ShortBytes)),
        piece("  ", response(ResponseValue::ShortTime)),
        piece(&format!("{plain}  "), response(ResponseValue::Place)),
        piece(colour("\x1b[1;31m"), response(ResponseValue::CutSuffix)),
    ]);
    (pieces, plain.as_bytes().into())
}

#[cfg(test)]
#[path = "log_format_tests.rs"]
mod tests;
