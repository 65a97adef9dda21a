//! The place `proxy:NAME`: the servers of an upstream.

use std::borrow::Cow;
use std::rc::Rc;

use kirin_http::Answer;
use kirin_http::request_path::forwarded_target;
use kirin_proxy::BodyBuffering;

use super::Place;
use super::app::meta_variables;
use crate::filters::backend::{Backend, limit_body};
use crate::filters::chain::Filters;
use crate::request::context::Request;

/// The place of one route.
pub struct ProxyPlace {
    backend: Rc<dyn Backend>,
    filters: Rc<Filters>,
}

/// An upstream, behind the filters.
struct UpstreamBackend {
    upstream: Rc<kirin_proxy::ProxyPlace>,
    /// Whether the upstream gets complete bodies only.
    buffering: BodyBuffering,
    body_limit_bytes: Option<u64>,
}

impl ProxyPlace {
    /// The place of an upstream, which gets bodies of at most `body_limit_bytes`.
    pub fn new(
        upstream: Rc<kirin_proxy::ProxyPlace>,
        buffering: BodyBuffering,
        body_limit_bytes: Option<u64>,
        filters: Rc<Filters>,
    ) -> Self {
        let backend = Rc::new(UpstreamBackend { upstream, buffering, body_limit_bytes });
        Self { backend, filters }
    }
}

impl Place for ProxyPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        Some(self.filters.around(request, &self.backend))
    }

    fn answers_all(&self) -> bool {
        true
    }
}

impl Backend for UpstreamBackend {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let resolved = request.sent_path.without_dots();
        let meta = meta_variables(request, resolved.as_deref());
        let (upstream, buffering) = (&self.upstream, self.buffering);
        let answer =
            upstream.answer(request.head, &target(request), request.origin, &meta, buffering);
        limit_body(answer, self.body_limit_bytes)
    }
}

/// Returns the target that servers get: the rewritten path, and the query that the cache has left.
fn target<'a>(request: &Request<'a>) -> Cow<'a, str> {
    let target = forwarded_target(request.rewritten, request.path);
    if request.head.query == request.rewritten.query {
        return target;
    }
    let path = target.split('?').next().unwrap_or(&target);
    match request.head.query {
        Some(query) => Cow::Owned(format!("{path}?{query}")),
        None => Cow::Owned(path.to_owned()),
    }
}
