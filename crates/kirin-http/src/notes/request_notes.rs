//! Notes about a request, which the parts of the program make on its way: its route, the status of
//! the cache, and the steps that took time. Logs, metrics and traces read them at the end.
//!
//! The connection engine creates the notes on its stack. Only a request that must wait shares them
//! ([`RequestNotes::share`]), so that an answer from memory allocates nothing.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use crate::request_id::RequestId;
use crate::request_steps::RequestSteps;
use crate::trace_context::TraceContext;

/// The access log that gets the line of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseLog {
    /// The log of the listener, if it has one.
    #[default]
    OfListener,
    /// A log of routes, by its number in the configuration.
    OfRoute(u16),
    /// None.
    None,
}

/// The route of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteNote {
    /// Its number, which no other route has while the program runs. `None` if no route has the
    /// path.
    pub number: Option<u32>,
    /// The log for its requests.
    pub log: ResponseLog,
}

/// What the cache of a route had for a request. The words are those of nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CacheResult {
    /// A fresh stored response.
    Hit,
    /// Nothing that can be used.
    Miss,
    /// A stale response, which is served while another is fetched, or because none can be.
    Stale,
    /// A stale response that the origin server has confirmed.
    Revalidated,
    /// The request is not for the cache.
    Bypass,
}

impl CacheResult {
    /// Returns the word in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "HIT",
            Self::Miss => "MISS",
            Self::Stale => "STALE",
            Self::Revalidated => "REVALIDATED",
            Self::Bypass => "BYPASS",
        }
    }
}

/// The notes about one request. A clone has the steps in common if there are any already.
#[derive(Clone, Debug, Default)]
pub struct RequestNotes {
    id: RequestId,
    trace: Option<TraceContext>,
    route: Cell<RouteNote>,
    /// The status before the notes were shared.
    cache: Cell<Option<CacheResult>>,
    steps: OnceCell<Rc<RequestSteps>>,
    tls_version: Cell<Option<&'static str>>,
}

impl RequestNotes {
    /// Returns notes without entries. `trace` is `None` if requests are not traced.
    pub fn new(id: RequestId, trace: Option<TraceContext>) -> Self {
        Self { id, trace, ..Self::default() }
    }

    /// Returns empty notes for a subrequest.
    pub fn of_part(&self) -> Self {
        Self::new(self.id.clone(), self.trace)
    }

    /// Returns the id of the client's request.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the trace, if requests are traced.
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// Notes the version of TLS of the client's connection.
    pub fn set_tls_version(&self, version: Option<&'static str>) {
        self.tls_version.set(version);
    }

    /// Returns the version of TLS, such as `TLSv1.3`. `None` without TLS.
    pub fn tls_version(&self) -> Option<&'static str> {
        self.tls_version.get()
    }

    /// Notes the route.
    pub fn set_route(&self, route: RouteNote) {
        self.route.set(route);
    }

    /// Returns the route.
    pub fn route(&self) -> RouteNote {
        self.route.get()
    }

    /// Notes what the cache had.
    pub fn set_cache_result(&self, status: CacheResult) {
        match self.steps.get() {
            Some(steps) => steps.cache.set(Some(status)),
            None => self.cache.set(Some(status)),
        }
    }

    /// Returns what the cache had. `None` if no cache was asked.
    pub fn cache_result(&self) -> Option<CacheResult> {
        self.steps.get().and_then(|steps| steps.cache.get()).or(self.cache.get())
    }

    /// Returns the steps, to which the parts that make the response add theirs.
    pub fn steps(&self) -> &Rc<RequestSteps> {
        self.steps.get_or_init(Rc::default)
    }

    /// Returns the steps if there are any.
    pub fn steps_so_far(&self) -> Option<&Rc<RequestSteps>> {
        self.steps.get()
    }

    /// Returns notes that outlive these and have their steps and status in common.
    pub fn share(&self) -> Self {
        let steps = self.steps();
        if steps.cache.get().is_none() {
            steps.cache.set(self.cache.get());
        }
        self.clone()
    }
}

/// Returns whether workers and upstreams get Kirin's own value of a field, made from the notes, and
/// not the client's.
pub fn is_written_by_kirin(name: &str, notes: &RequestNotes) -> bool {
    name.eq_ignore_ascii_case("x-request-id")
        || notes.trace.is_some() && name.eq_ignore_ascii_case("traceparent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_notes_tell_what_the_cache_had() {
        let notes = RequestNotes::new(RequestId::Made(7), None);
        notes.set_cache_result(CacheResult::Miss);
        let shared = notes.share();
        assert_eq!(shared.cache_result(), Some(CacheResult::Miss));
        shared.set_cache_result(CacheResult::Stale);
        assert_eq!(notes.cache_result(), Some(CacheResult::Stale));
        assert_eq!(shared.id(), notes.id());
    }
}
