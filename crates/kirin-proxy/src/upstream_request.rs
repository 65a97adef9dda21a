//! A request on its way to a server, the client that waits for the response, and the warnings.

use std::rc::Rc;

use http::Method;
use kirin_http::{ClientWatch, Informational, RequestSteps, SeldomWarnings};

use crate::cgi::CgiRequest;
use crate::request_head::OutgoingHead;

/// A request without its body, as the servers of an upstream get it.
pub(crate) struct UpstreamRequest {
    pub(crate) head: OutgoingHead,
    /// The CGI meta-variables, if the servers speak FastCGI, SCGI or uwsgi.
    pub(crate) cgi: Option<CgiRequest>,
    /// Takes the informational responses for the client.
    pub(crate) informational: Option<Informational>,
    /// The client that waits for the response.
    pub(crate) client: Option<ClientWatch>,
    /// The steps of the request, for logs and traces.
    pub(crate) steps: Rc<RequestSteps>,
    /// Logs what has failed.
    pub(crate) warnings: RequestWarnings,
}

/// Logs what has failed about a request: each time if a client waits for it, and now and then if it
/// is a copy.
#[derive(Clone, Default)]
pub(crate) struct RequestWarnings(Option<Rc<SeldomWarnings>>);

impl RequestWarnings {
    /// Returns the warnings of copies.
    pub(crate) fn of_copies() -> Self {
        Self(Some(Rc::default()))
    }

    /// Logs a warning by `say`, unless the request is a copy and one of this kind was logged just
    /// before.
    pub(crate) fn warn(&self, kind: &'static str, say: impl FnOnce()) {
        match &self.0 {
            None => say(),
            Some(seldom) => seldom.warn(kind, say),
        }
    }
}

impl UpstreamRequest {
    /// Returns whether the method is HEAD.
    pub(crate) fn is_head(&self) -> bool {
        self.head.method == Method::HEAD
    }
}
