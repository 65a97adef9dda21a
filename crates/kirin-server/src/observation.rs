//! Observation of requests: the access logs, and the observers that count, show or trace requests.
//!
//! [`Observers::begin`] is called when a request has been parsed. If the response is in memory and
//! is sent at once, [`Observers::end_at_once`] follows, while the head is still there. Otherwise
//! [`Observers::record`] keeps the necessary facts about the request, and [`Observers::will_send`]
//! those about the response. [`Observers::end`] is called when the response has been sent or cut.

use std::rc::Rc;
use std::time::{Instant, SystemTime};

use http::Method;
use kirin_http::body::Body;
use kirin_http::handler::Origin;
use kirin_http::peer::Peer;
use kirin_http::request::RequestHead;
use kirin_http::request_notes::RequestNotes;
use kirin_http::response::{Response, ResponseSummary};

pub use crate::ended_request::{EndedRequest, PlaceName};
use crate::logging::access_log::LineRecord;
use crate::logging::access_logs::AccessLogs;
use crate::logging::log_format::LoggedHead;
use crate::logging::request_value::LoggedRequest;

/// The most bytes of the first line of a refused request that a log shows.
const MAX_REFUSED_LINE_BYTES: usize = 512;

/// Learns about each request of the listeners of one event loop, when its response has ended. It
/// runs between two requests, so it must be quick and must not block.
pub trait RequestObserver {
    /// Learns about one request.
    fn request_ended(&self, request: &EndedRequest<'_>);
}

/// The observers of a listener on one event loop.
#[derive(Default)]
pub struct Observers {
    /// The access logs.
    pub logs: AccessLogs,
    /// The other observers. All listeners of the loop share them.
    pub others: Rc<[Rc<dyn RequestObserver>]>,
}

/// The facts about a request that are known when the handler has answered.
pub struct RequestRecord {
    started: Instant,
    notes: RequestNotes,
    method: Method,
    target: String,
    host: String,
    line: Option<LineRecord>,
}

/// The facts about a response that are known when it has been sent or cut.
pub struct ResponseRecord {
    /// The record of the response that was made before it was sent.
    pub summary: ResponseSummary,
    /// The number of bytes of the body.
    pub body_bytes: u64,
    /// The number of bytes of the request's body that were received.
    pub received_bytes: u64,
    /// Whether the client did not get the complete response.
    pub is_cut: bool,
}

impl Observers {
    /// Returns observers that are access logs only.
    pub fn from_logs(logs: AccessLogs) -> Self {
        Self { logs, others: Rc::from([]) }
    }

    /// Returns the time if a log or an observer needs the request that begins now.
    pub(crate) fn begin(&self) -> Option<Instant> {
        (self.logs.is_on() || !self.others.is_empty()).then(Instant::now)
    }

    /// Takes from a request what the observers need at its end. The handler has answered, so the
    /// route is known. `started` is the result of [`Observers::begin`].
    pub(crate) fn record(
        &self,
        started: Option<Instant>,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
    ) -> Option<RequestRecord> {
        let notes = origin.notes;
        let logged =
            LoggedRequest { peer: origin.peer, parsed: Some((request, origin)), refused_line: b"" };
        Some(RequestRecord {
            started: started?,
            notes: notes.clone(),
            method: request.method.clone(),
            target: if self.others.is_empty() { String::new() } else { request.target.into() },
            host: if notes.trace().is_some() { request.host.into() } else { String::new() },
            line: self.logs.begin(notes.route().log, &logged),
        })
    }

    /// Returns the record of bytes that are not a request. Logs may show their first line.
    pub(crate) fn unreadable(&self, peer: &Peer, bytes: &[u8]) -> Option<RequestRecord> {
        let notes = RequestNotes::default();
        let line = first_line(bytes);
        let refused_line = &line[..line.len().min(MAX_REFUSED_LINE_BYTES)];
        let logged = LoggedRequest { peer, parsed: None, refused_line };
        let line = self.logs.begin(notes.route().log, &logged);
        Some(RequestRecord {
            started: self.begin()?,
            notes,
            method: Method::default(),
            target: String::new(),
            host: String::new(),
            line,
        })
    }

    /// Takes from a response what the observers need at its end, before it is sent.
    pub(crate) fn will_send(&self, record: &mut Option<RequestRecord>, response: &Response) {
        if let Some(record) = record
            && let Some(line) = &mut record.line
        {
            self.logs.take_response(record.notes.route().log, line, response_head(response));
        }
    }

    /// Tells all observers about a response.
    pub(crate) fn end(&self, record: RequestRecord, response: &ResponseRecord) {
        let RequestRecord { started, notes, method, target, host, line } = record;
        let request = ended(&notes, (&method, &target, &host), response, started);
        if let Some(line) = line {
            self.logs.end(line, &request);
        }
        for observer in &*self.others {
            observer.request_ended(&request);
        }
    }

    /// Tells all observers about a response that was complete at once, with a body of this many
    /// bytes. `started` is the result of [`Observers::begin`], `now` the time of the loop.
    pub(crate) fn end_at_once(
        &self,
        started: Option<Instant>,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        response: &Response,
        body_bytes: u64,
        now: SystemTime,
    ) {
        let Some(started) = started else { return };
        let record = ResponseRecord::complete(response.summary(), body_bytes);
        let parts = (&request.method, request.target, request.host);
        let ended = ended(origin.notes, parts, &record, started);
        if self.logs.is_on() {
            let parsed = Some((request, origin));
            let logged = LoggedRequest { peer: origin.peer, parsed, refused_line: b"" };
            self.logs.end_at_once(logged, response_head(response), &ended, now);
        }
        for observer in &*self.others {
            observer.request_ended(&ended);
        }
    }
}

/// Returns the facts for all observers. A request is named by method, target and host.
fn ended<'a>(
    notes: &'a RequestNotes,
    (method, target, host): (&'a Method, &'a str, &'a str),
    response: &ResponseRecord,
    started: Instant,
) -> EndedRequest<'a> {
    EndedRequest {
        id: notes.id(),
        trace: notes.trace(),
        host,
        method,
        target,
        route: notes.route(),
        cache_result: notes.cache_result(),
        steps: notes.steps_so_far().map(|steps| &**steps),
        status: response.summary.status,
        answered_by: response.summary.answered_by,
        body_bytes: response.body_bytes,
        received_bytes: response.received_bytes,
        is_cut: response.is_cut,
        started,
        took: started.elapsed(),
    }
}

fn response_head(response: &Response) -> LoggedHead<'_> {
    LoggedHead { fields: &response.fields, content_length: content_length(response) }
}

/// Returns the length that the head of a response says, if it says one.
fn content_length(response: &Response) -> Option<u64> {
    match response.body {
        _ if Response::is_bodiless_status(response.status) => None,
        Body::Tunnel(_) => None,
        _ => response.body.length(),
    }
}

impl ResponseRecord {
    /// Returns the record of a response that was cut after this number of bytes of its body. If not
    /// even the head was begun, the status is 499, as in the log of nginx.
    pub(crate) fn cut(mut summary: ResponseSummary, body_bytes: u64, is_begun: bool) -> Self {
        if !is_begun {
            summary.status = Response::client_gone_status();
        }
        Self { summary, body_bytes, received_bytes: 0, is_cut: true }
    }

    /// Returns the record of a response that was sent completely.
    pub(crate) fn complete(summary: ResponseSummary, body_bytes: u64) -> Self {
        Self { summary, body_bytes, received_bytes: 0, is_cut: false }
    }
}

/// Returns the first line of bytes that are not a request.
fn first_line(input: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = input.iter().position(|byte| !is_end(byte)).unwrap_or(input.len());
    let line = &input[start..];
    &line[..line.iter().position(is_end).unwrap_or(line.len())]
}
