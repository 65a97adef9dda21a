//! A request on its way to a server, and the client that waits for the response.

use std::rc::Rc;

use http::Method;
use kirin_http::{ClientWatch, Informational, RequestSteps};

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
}

impl UpstreamRequest {
    /// Returns whether the method is HEAD.
    pub(crate) fn is_head(&self) -> bool {
        self.head.method == Method::HEAD
    }
}
