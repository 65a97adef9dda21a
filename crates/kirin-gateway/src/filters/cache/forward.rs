//! Forwards a request to the place when the cache does not answer it.

use std::rc::Rc;
use std::sync::Arc;

use http::Method;
use kirin_cache::invalidation::{self, RequestTarget};
use kirin_cache::{CacheStatus, Forwarded, key};
use kirin_http::{Answer, CacheResult, Response};
use kirin_origin::Purge;
use kirin_store::{Invalidation, Namespace, Now};

use super::cache_request::{Miss, shortened_query};
use super::fetch::{CacheFetch, with_cache_status};
use super::memory::Cache;
use super::settings::CacheSettings;
use crate::filters::backend::Backend;
use crate::request::context::Request;

/// A request on its way to the place.
pub struct Forward {
    cache: Rc<Cache>,
    settings: Arc<CacheSettings>,
    how: ForwardMode,
}

/// The way in which it is forwarded.
pub enum ForwardMode {
    /// Its method is not GET or HEAD. It may change what is stored.
    Method,
    /// The cache does not serve it, for this reason.
    Bypass(&'static str),
    /// It is forwarded unchanged, without waiting for another request. The response may be stored.
    Pass {
        /// The request.
        miss: Miss,
        /// Whether the cache knows already that other requests cannot use the response.
        is_noted: bool,
    },
    /// Of all requests for the same response, one is forwarded.
    Fetch(Miss),
}

/// The target of a request, for the time after its response.
struct ForwardedTarget {
    namespace: Namespace,
    method: Method,
    path: String,
    query: Option<String>,
    secure: bool,
    host: String,
}

impl Forward {
    pub(super) fn new(cache: &Rc<Cache>, settings: &Arc<CacheSettings>, how: ForwardMode) -> Self {
        Self { cache: Rc::clone(cache), settings: Arc::clone(settings), how }
    }

    /// Asks the place.
    pub fn answer(self, request: &Request<'_>, backend: &Rc<dyn Backend>) -> Answer {
        let Self { cache, settings, how } = self;
        match how {
            ForwardMode::Bypass(reason) => {
                cache.counters.bypassed.add();
                request.origin.notes.set_cache_result(CacheResult::Bypass);
                let detail = Some(reason);
                let status = CacheStatus { detail, ..CacheStatus::forwarded(Forwarded::Bypass) };
                backend.answer(request).map(move |response| with_cache_status(response, status))
            }
            ForwardMode::Method => {
                let head = request.head;
                let target = ForwardedTarget {
                    namespace: request.namespace.clone(),
                    method: head.method.clone(),
                    path: head.path.to_owned(),
                    // The key is without the arguments that the route ignores.
                    query: match shortened_query(head, &settings) {
                        None => head.query.map(str::to_owned),
                        Some(kept) => kept,
                    },
                    secure: request.origin.secure,
                    host: head.host.to_owned(),
                };
                let status = CacheStatus::forwarded(Forwarded::Method);
                let answer = backend.answer(request);
                Answer::later(move |body| async move {
                    let response = answer.response(body).await;
                    cache.invalidate(&target.invalidated_tags(&response)).await;
                    with_cache_status(response, status)
                })
            }
            ForwardMode::Pass { miss, is_noted } => {
                let fetch =
                    CacheFetch::new(&cache, &settings, miss, request.keep(), Rc::clone(backend));
                Answer::later(move |body| fetch.pass(is_noted, body))
            }
            ForwardMode::Fetch(miss) => {
                let fetch =
                    CacheFetch::new(&cache, &settings, miss, request.keep(), Rc::clone(backend));
                Answer::later(move |body| fetch.run(body))
            }
        }
    }
}

impl ForwardedTarget {
    /// Returns the tags of the stored responses that the request has changed, by its response.
    fn invalidated_tags(&self, response: &Response) -> Vec<Vec<u8>> {
        if !invalidation::invalidates(&self.method, response.status) {
            return Vec::new();
        }
        let Self { namespace, path, query, secure, host, .. } = self;
        let requested = RequestTarget { path, query: query.as_deref(), secure: *secure, host };
        let tags_of = |target: invalidation::Target| {
            let text = match &target.query {
                Some(query) => format!("{}?{query}", target.path),
                None => target.path,
            };
            // The key has the host, but the responses are invalidated for all hosts of the site.
            key::target_tags([namespace.prefix(), &text].concat().as_bytes())
        };
        invalidation::targets(&requested, &response.fields).into_iter().flat_map(tags_of).collect()
    }
}

impl Cache {
    /// Invalidates stored responses, on all machines.
    async fn invalidate(&self, tags: &[Vec<u8>]) {
        if tags.is_empty() {
            return;
        }
        let Some(origin) = self.near.origin() else {
            for tag in tags {
                self.store.invalidate_tag(tag, Invalidation::Hard);
            }
            return;
        };
        let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
        let purge = Purge { tags: &tags, ..Purge::default() };
        if let Err(error) = origin.purge(&purge, Invalidation::Hard, Now::on_steady_clock()).await {
            self.warnings.warn("unlearned", || {
                tracing::warn!(%error, "a request has changed what other machines may have cached, and they do not learn it");
            });
        }
    }
}
