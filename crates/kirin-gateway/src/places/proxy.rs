//! The place `proxy:NAME`: the servers of an upstream.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use kirin_http::Answer;
use kirin_http::request_path::forwarded_target;
use kirin_proxy::BodyBuffering;

use super::app::{meta_variables, resolved_path};
use super::kind::{OpenPlace, PlaceKind};
use super::named_files::NamedFiles;
use super::opening::{Opening, PlaceError, PlaceResources};
use super::place::Place;
use crate::filters::advise::sampled_backend::SampledBackend;
use crate::filters::backend::{Backend, limit_body};
use crate::filters::chain::Filters;
use crate::filters::mirror::mirrored_backend::MirroredBackend;
use crate::request::context::Request;

/// The kind `proxy:NAME`.
pub static KIND: PlaceKind = PlaceKind {
    name: "proxy",
    argument: Some("NAME"),
    runs_code: true,
    answers_all: true,
    keys: &["request_buffering", "cache", "mirror"],
    read: |name, named| Ok(Arc::new(UpstreamIndex(named.upstream(name)?))),
};

/// The place in `try`: the index of the upstream in the configuration.
struct UpstreamIndex(usize);

impl OpenPlace for UpstreamIndex {
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let upstream = Rc::clone(&opening.resources.upstreams[self.0]);
        let named_files =
            NamedFiles::open(upstream.named_files(), &opening.resources.shared.app_files)?;
        let backend = UpstreamBackend {
            upstream,
            named_files,
            buffering: opening.route.request_buffering,
            body_limit_bytes: opening.route.body_limit_bytes,
        };
        let filters = Rc::clone(opening.filters);
        let backend = MirroredBackend::new(opening.mirror, backend);
        let sampling = Arc::clone(&filters.sampling);
        let backend = SampledBackend::new(sampling, opening.route, opening.number, backend);
        Ok(Box::new(FilteredProxy { backend: Rc::new(backend), filters }))
    }
}

/// Opens the upstream with this index of the configuration for copies of requests: without filters,
/// and without the files that its servers may name.
pub fn open_mirror(upstream: usize, resources: &PlaceResources<'_>) -> Rc<dyn Backend> {
    Rc::new(UpstreamBackend {
        upstream: Rc::new(resources.upstreams[upstream].for_copies()),
        named_files: None,
        buffering: BodyBuffering::Off,
        body_limit_bytes: None,
    })
}

/// The place of one route.
pub struct FilteredProxy {
    backend: Rc<dyn Backend>,
    filters: Rc<Filters>,
}

/// An upstream, behind the filters.
struct UpstreamBackend {
    upstream: Rc<kirin_proxy::ProxyPlace>,
    /// The files that its servers may name.
    named_files: Option<Rc<NamedFiles>>,
    /// Whether the upstream gets complete bodies only.
    buffering: BodyBuffering,
    body_limit_bytes: Option<u64>,
}

impl Place for FilteredProxy {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        Some(self.filters.around(request, &self.backend))
    }
}

impl Backend for UpstreamBackend {
    fn answer(&self, request: &Request<'_>) -> Answer {
        match &self.named_files {
            None => self.ask(request),
            Some(files) => files.around(self.upstream.name(), request, |request| self.ask(request)),
        }
    }
}

impl UpstreamBackend {
    fn ask(&self, request: &Request<'_>) -> Answer {
        let resolved = resolved_path(request);
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
