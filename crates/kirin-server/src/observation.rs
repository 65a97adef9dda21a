//! Observation of requests: the access logs, and the observers that count, show or trace requests.
//!
//! [`Observers::begin`] is called when a request has been parsed, [`Observers::record`] when the
//! handler has answered, and [`Observers::end`] when the response has been sent or cut.

use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use http::{Method, StatusCode};
use kirin_http::handler::Origin;
use kirin_http::peer::Peer;
use kirin_http::request::RequestHead;
use kirin_http::request_id::RequestId;
use kirin_http::request_notes::{CacheResult, RouteNote};
use kirin_http::request_steps::RequestSteps;
use kirin_http::response::{AnsweredBy, Response, ResponseSummary};
use kirin_http::trace_context::TraceContext;

use crate::logging::access_log::LineRecord;
use crate::logging::access_logs::AccessLogs;

/// Learns about each request of the listeners of one event loop, when its response has ended. It
/// runs between two requests, so it must be quick and must not block.
pub trait RequestObserver {
    /// Learns about one request.
    fn request_ended(&self, request: &EndedRequest<'_>);
}

/// A request whose response has ended.
#[derive(Clone, Copy)]
pub struct EndedRequest<'a> {
    /// The id.
    pub id: &'a RequestId,
    /// The trace, if requests are traced.
    pub trace: Option<TraceContext>,
    /// The host that the client named.
    pub host: &'a str,
    /// The method.
    pub method: &'a Method,
    /// The target as sent, query included.
    pub target: &'a str,
    /// The route.
    pub route: RouteNote,
    /// What the cache had.
    pub cache_result: Option<CacheResult>,
    /// The steps that took time. `None` if the answer came from memory.
    pub steps: Option<&'a RequestSteps>,
    /// The status code.
    pub status: StatusCode,
    /// The part of the server that answered.
    pub answered_by: AnsweredBy,
    /// The number of bytes of the response's body.
    pub body_bytes: u64,
    /// Whether the client did not get the complete response.
    pub is_cut: bool,
    /// When the request was parsed.
    pub started: Instant,
    /// The time from then to the end of the response.
    pub took: Duration,
}

/// The observers of a listener on one event loop.
#[derive(Default)]
pub struct Observers {
    /// The access logs.
    pub logs: AccessLogs,
    /// The others. All listeners of the loop share them.
    pub others: Rc<[Rc<dyn RequestObserver>]>,
}

/// The facts about a request that are known when the handler has answered.
pub struct RequestRecord {
    started: Instant,
    id: RequestId,
    trace: Option<TraceContext>,
    method: Method,
    target: String,
    host: String,
    route: RouteNote,
    cache_result: Option<CacheResult>,
    steps: Option<Rc<RequestSteps>>,
    line: Option<LineRecord>,
}

/// The facts about a response that are known when it has been sent or cut.
pub struct ResponseRecord {
    /// What was known of the response before it was sent.
    pub summary: ResponseSummary,
    /// The number of bytes of the body.
    pub body_bytes: u64,
    /// Whether the client did not get the complete response.
    pub is_cut: bool,
}

impl Observers {
    /// Returns observers that are access logs only.
    pub fn from_logs(logs: AccessLogs) -> Self {
        Self { logs, others: Rc::from([]) }
    }

    /// Returns the time if anybody observes the request that begins now.
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
        Some(RequestRecord {
            started: started?,
            id: notes.id().clone(),
            trace: notes.trace(),
            method: request.method.clone(),
            target: if self.others.is_empty() { String::new() } else { request.target.into() },
            host: if notes.trace().is_some() { request.host.into() } else { String::new() },
            route: notes.route(),
            cache_result: notes.cache_result(),
            steps: notes.steps_so_far().cloned(),
            line: self.logs.begin(notes.route().log, origin.peer, request),
        })
    }

    /// Returns the record of bytes that are not a request.
    pub(crate) fn unreadable(&self, peer: &Peer) -> Option<RequestRecord> {
        Some(RequestRecord {
            started: self.begin()?,
            id: RequestId::default(),
            trace: None,
            method: Method::default(),
            target: String::new(),
            host: String::new(),
            route: RouteNote::default(),
            cache_result: None,
            steps: None,
            line: self.logs.unreadable(peer),
        })
    }

    /// Tells all observers about a response. `now` is the time in the log.
    pub(crate) fn end(&self, record: &RequestRecord, response: &ResponseRecord, now: SystemTime) {
        let steps = record.steps.as_deref();
        let request = EndedRequest {
            id: &record.id,
            trace: record.trace,
            host: &record.host,
            method: &record.method,
            target: &record.target,
            route: record.route,
            cache_result: steps.and_then(RequestSteps::cache_result).or(record.cache_result),
            steps,
            status: response.summary.status,
            answered_by: response.summary.answered_by,
            body_bytes: response.body_bytes,
            is_cut: response.is_cut,
            started: record.started,
            took: record.started.elapsed(),
        };
        if let Some(line) = &record.line {
            self.logs.end(line, &request, now);
        }
        for observer in &*self.others {
            observer.request_ended(&request);
        }
    }
}

impl ResponseRecord {
    /// Returns the record of a response that was cut after so many bytes of its body. If not even
    /// the head was begun, the status is 499, as in the log of nginx.
    pub(crate) fn cut(mut summary: ResponseSummary, body_bytes: u64, is_begun: bool) -> Self {
        if !is_begun {
            summary.status = Response::client_gone_status();
        }
        Self { summary, body_bytes, is_cut: true }
    }

    /// Returns the record of a response that was sent completely.
    pub(crate) fn complete(summary: ResponseSummary, body_bytes: u64) -> Self {
        Self { summary, body_bytes, is_cut: false }
    }
}
