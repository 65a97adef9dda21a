//! The facts about a request whose response has ended, for logs and other observers.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use kirin_http::request_id::RequestId;
use kirin_http::request_notes::{CacheResult, RouteNote};
use kirin_http::request_steps::{RequestSteps, Step, StepKind};
use kirin_http::response::AnsweredBy;
use kirin_http::trace_context::TraceContext;

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
    /// The target as sent, query included. Empty if there are access logs only.
    pub target: &'a str,
    /// The route.
    pub route: RouteNote,
    /// The cache status.
    pub cache_result: Option<CacheResult>,
    /// The steps that took time. `None` if the answer came from memory.
    pub steps: Option<&'a RequestSteps>,
    /// The status code.
    pub status: StatusCode,
    /// The part of the server that answered.
    pub answered_by: AnsweredBy,
    /// The number of bytes of the response's body.
    pub body_bytes: u64,
    /// The number of bytes of the request's body that were received.
    pub received_bytes: u64,
    /// Whether the client did not get the complete response.
    pub is_cut: bool,
    /// The time at which the request was parsed.
    pub started: Instant,
    /// The time from then to the end of the response.
    pub took: Duration,
}

/// The part of the server that answered, with the name of the application or upstream. The access
/// log and metrics write it as `store` or `app:web`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlaceName {
    /// The part.
    pub part: AnsweredBy,
    /// The application, upstream or CGI program. `None` for other parts, and if the request did not
    /// get so far.
    pub name: Option<Arc<str>>,
}

impl fmt::Display for PlaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.part.name())?;
        match &self.name {
            Some(name) => write!(f, ":{name}"),
            None => Ok(()),
        }
    }
}

impl EndedRequest<'_> {
    /// Returns the part of the server that answered.
    pub fn place(&self) -> PlaceName {
        let part = self.answered_by;
        let kind = match part.name() {
            "app" | "cgi" => StepKind::Worker,
            "proxy" => StepKind::Upstream,
            _ => return PlaceName { part, name: None },
        };
        let named = |step: &&Step| step.kind == kind || step.kind == StepKind::Queue;
        let last = |steps: &[Step]| steps.iter().rfind(named).map(|step| Arc::clone(&step.name));
        PlaceName { part, name: self.steps.and_then(|steps| steps.with(last)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn place(part: &'static str, steps: &[(StepKind, &str)]) -> String {
        let all = Rc::new(RequestSteps::default());
        for (kind, name) in steps {
            drop(all.begin(*kind, &Arc::from(*name)));
        }
        let request = EndedRequest {
            id: &RequestId::default(),
            trace: None,
            host: "",
            method: &Method::GET,
            target: "",
            route: RouteNote::default(),
            cache_result: None,
            steps: Some(&all),
            status: StatusCode::OK,
            answered_by: AnsweredBy::new(part),
            body_bytes: 0,
            received_bytes: 0,
            is_cut: false,
            started: Instant::now(),
            took: Duration::ZERO,
        };
        request.place().to_string()
    }

    #[test]
    fn a_place_has_the_name_of_the_last_application_or_upstream() {
        use StepKind::{Fetch, Include, Queue, Upstream, Worker};
        for (part, steps, expected) in [
            ("store", &[][..], "store"),
            ("store", &[(Include, "/part"), (Worker, "web")], "store"),
            ("app", &[(Queue, "web"), (Worker, "web")], "app:web"),
            ("app", &[(Queue, "web")], "app:web"),
            ("app", &[(Fetch, "x"), (Worker, "web"), (Include, "/part")], "app:web"),
            ("proxy", &[(Worker, "web"), (Upstream, "old"), (Upstream, "new")], "proxy:new"),
            ("app", &[], "app"),
            ("cgi", &[(Queue, "gitweb.cgi"), (Worker, "gitweb.cgi")], "cgi:gitweb.cgi"),
        ] {
            assert_eq!(place(part, steps), expected, "{part} {steps:?}");
        }
    }
}
