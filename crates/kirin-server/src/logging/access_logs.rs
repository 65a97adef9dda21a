//! The access logs of a listener: its own, and those that routes have instead.

use std::rc::Rc;
use std::time::SystemTime;

use kirin_http::peer::Peer;
use kirin_http::request::RequestHead;
use kirin_http::request_notes::ResponseLog;

use crate::logging::access_log::{AccessLog, LineRecord};
use crate::observation::EndedRequest;

/// The access logs of a listener on one event loop.
#[derive(Default)]
pub struct AccessLogs {
    /// The log of the listener. It has the responses of all routes without a log of their own, and
    /// the refusals of bytes that are not a request.
    pub of_listener: Option<AccessLog>,
    /// The logs of routes. All listeners of the loop share them.
    pub of_routes: Rc<[AccessLog]>,
}

impl AccessLogs {
    /// Returns whether a response may get a line.
    pub(crate) fn is_on(&self) -> bool {
        self.of_listener.is_some() || !self.of_routes.is_empty()
    }

    /// Takes from a request what its line needs, if its log is on.
    pub(crate) fn begin(
        &self,
        log: ResponseLog,
        peer: &Peer,
        request: &RequestHead<'_>,
    ) -> Option<LineRecord> {
        self.find(log).map(|_| LineRecord::new(peer, request))
    }

    /// Returns the record of bytes that are not a request.
    pub(crate) fn unreadable(&self, peer: &Peer) -> Option<LineRecord> {
        self.of_listener.as_ref().map(|_| LineRecord::unreadable(peer))
    }

    /// Adds a line to the log that the request is for.
    pub(crate) fn end(&self, line: &LineRecord, request: &EndedRequest<'_>, now: SystemTime) {
        if let Some(log) = self.find(request.route.log) {
            log.end(line, request, now);
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
