//! The access logs of a listener: its own, and those that routes have instead.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::SystemTime;

use kirin_http::request_notes::ResponseLog;

use super::access_log::{AccessLog, LineRecord};
use super::conditions::Choice;
use super::log_format::{LoggedHead, TakenValues, ValueSource};
use super::request_value::LoggedRequest;
use crate::ended_request::EndedRequest;

/// The most buffers that are kept for the values of requests that wait.
const KEPT_BUFFERS: usize = 64;

/// The largest buffer that is kept.
const KEPT_BYTES: usize = 4 * 1024;

/// The access logs of a listener on one event loop.
#[derive(Default)]
pub struct AccessLogs {
    /// The log of the listener. It has the responses of all routes without a log of their own, and
    /// the refusals of bytes that are not a request.
    of_listener: Option<AccessLog>,
    /// The logs of routes. All listeners of the loop share them.
    of_routes: Rc<[AccessLog]>,
    /// Buffers for the next requests that wait.
    buffers: RefCell<Vec<TakenValues>>,
}

impl AccessLogs {
    /// Returns the logs of a listener and of the routes.
    pub fn new(of_listener: Option<AccessLog>, of_routes: Rc<[AccessLog]>) -> Self {
        Self { of_listener, of_routes, buffers: RefCell::default() }
    }

    /// Returns whether a response may get a line.
    pub(crate) fn is_on(&self) -> bool {
        self.of_listener.is_some() || !self.of_routes.is_empty()
    }

    /// Takes from a request that must wait what its line needs, if it may get one.
    pub(crate) fn begin(
        &self,
        log: ResponseLog,
        request: &LoggedRequest<'_>,
    ) -> Option<LineRecord> {
        let (log, choice) = self.chosen(log, request)?;
        let mut values = self.buffers.borrow_mut().pop().unwrap_or_default();
        log.format().take_request(request, &mut values);
        Some(log.record(choice, values))
    }

    /// Takes from a response that is about to be sent the fields that its line needs.
    pub(crate) fn take_response(
        &self,
        log: ResponseLog,
        line: &mut LineRecord,
        head: LoggedHead<'_>,
    ) {
        if let Some(log) = self.find(log)
            && log.format().has_response_fields()
        {
            log.format().take_response(head, &mut line.values);
        }
    }

    /// Adds a line to the log that the request is for.
    pub(crate) fn end(&self, line: LineRecord, request: &EndedRequest<'_>) {
        if let Some(log) = self.find(request.route.log) {
            log.end(&line, request);
        }
        let mut buffers = self.buffers.borrow_mut();
        let mut values = line.values;
        if buffers.len() < KEPT_BUFFERS && values.capacity() <= KEPT_BYTES {
            values.clear();
            buffers.push(values);
        }
    }

    /// Adds the line of a request whose head is still there. `now` is the time of the loop.
    pub(crate) fn end_at_once(
        &self,
        request: LoggedRequest<'_>,
        head: LoggedHead<'_>,
        ended: &EndedRequest<'_>,
        now: SystemTime,
    ) {
        if let Some((log, choice)) = self.chosen(ended.route.log, &request) {
            log.end_at_once(choice, ValueSource::Heads(request, head), ended, now);
        }
    }

    /// Returns the log of a request if it may get a line there.
    fn chosen(
        &self,
        log: ResponseLog,
        request: &LoggedRequest<'_>,
    ) -> Option<(&AccessLog, Choice)> {
        let log = self.find(log)?;
        match log.choose(request.parsed.map(|(head, _)| head.path)) {
            Choice::LeftOut => None,
            choice => Some((log, choice)),
        }
    }

    fn find(&self, log: ResponseLog) -> Option<&AccessLog> {
        match log {
            ResponseLog::OfListener => self.of_listener.as_ref(),
            ResponseLog::OfRoute(number) => self.of_routes.get(usize::from(number)),
            ResponseLog::None => None,
        }
    }

    /// Queues the gathered lines of all logs for writing.
    pub(crate) fn flush(&self) {
        self.of_listener.iter().chain(&*self.of_routes).for_each(AccessLog::flush);
    }
}
