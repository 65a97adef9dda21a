//! The access logs of a listener: its own, and those that routes have instead.

use std::rc::Rc;
use std::time::{Instant, SystemTime};

use kirin_http::peer::Peer;
use kirin_http::request::RequestHead;
use kirin_http::response::ResponseLog;

use crate::logging::access_log::{AccessLog, RequestRecord, ResponseRecord};

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
    fn is_on(&self) -> bool {
        self.of_listener.is_some() || !self.of_routes.is_empty()
    }

    /// Takes from a request what its line needs. Which log gets the line is known at the end only.
    pub(crate) fn begin(&self, peer: &Peer, request: &RequestHead<'_>) -> Option<RequestRecord> {
        self.is_on().then(|| RequestRecord::new(peer, request, Instant::now()))
    }

    /// Returns the record of bytes that are not a request.
    pub(crate) fn unreadable(&self, peer: &Peer) -> Option<RequestRecord> {
        self.of_listener.is_some().then(|| RequestRecord::unreadable(peer))
    }

    /// Adds a line to the log that the response is for.
    pub(crate) fn end(&self, request: &RequestRecord, response: &ResponseRecord, now: SystemTime) {
        let log = match response.summary.log {
            ResponseLog::OfListener => self.of_listener.as_ref(),
            ResponseLog::OfRoute(number) => self.of_routes.get(usize::from(number)),
            ResponseLog::None => None,
        };
        if let Some(log) = log {
            log.end(request, response, now);
        }
    }

    /// Queues the gathered lines of all logs for writing.
    pub(crate) fn flush(&self) {
        self.of_listener.iter().chain(&*self.of_routes).for_each(AccessLog::flush);
    }
}
