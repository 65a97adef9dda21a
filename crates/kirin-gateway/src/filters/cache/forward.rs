//! How a request goes to the place when the cache does not answer it.

use std::rc::Rc;
use std::sync::Arc;

use http::{Method, StatusCode};
use kirin_cache::invalidation::{self, RequestTarget};
use kirin_cache::{CacheStatus, Forwarded, key, surrogate};
use kirin_http::{Answer, FieldLines, Origin, RequestHead, Response};
use kirin_store::Invalidation;

use super::asked::{Asked, shortened_query};
use super::fetch::Fetch;
use super::settings::CacheSettings;
use super::{Ask, Cache};
use crate::request::kept_request::KeptRequest;

/// A request on its way to the place.
pub struct Forward {
    cache: Rc<Cache>,
    settings: Arc<CacheSettings>,
    how: How,
}

/// In which way it goes.
pub enum How {
    /// Its method is none that is cached; it may change what is stored.
    Method,
    /// The cache has nothing to do with it, for this reason.
    Bypass(&'static str),
    /// As it is, waiting for nobody. What comes may be stored; under this key, if nothing was
    /// there.
    Pass(Asked, Vec<u8>, Forwarded),
    /// For all who want the same: what is or would be stored under this key.
    Fetch(Asked, Vec<u8>, Forwarded),
}

/// The target of a request, for later.
struct Target {
    method: Method,
    path: String,
    query: Option<String>,
    secure: bool,
    host: String,
}

impl Forward {
    pub(super) fn new(cache: &Rc<Cache>, settings: &Arc<CacheSettings>, how: How) -> Self {
        Self { cache: Rc::clone(cache), settings: Arc::clone(settings), how }
    }

    /// Asks the place.
    pub fn answer(self, request: &RequestHead<'_>, origin: Origin<'_>, ask: Ask) -> Answer {
        let Self { cache, settings, how } = self;
        match how {
            How::Bypass(reason) => {
                cache.counters.bypassed.add();
                let status = CacheStatus {
                    detail: Some(reason),
                    ..CacheStatus::forwarded(Forwarded::Bypass)
                };
                around(ask(request, origin), move |response| said(response, status))
            }
            How::Method => {
                let target = Target {
                    method: request.method.clone(),
                    path: request.path.to_owned(),
                    // Stored without the arguments that make no difference.
                    query: match shortened_query(request, &settings) {
                        None => request.query.map(str::to_owned),
                        Some(kept) => kept,
                    },
                    secure: origin.secure,
                    host: request.host.to_owned(),
                };
                around(ask(request, origin), move |response| {
                    cache.invalidate(&target, response.status, &response.fields);
                    said(response, CacheStatus::forwarded(Forwarded::Method))
                })
            }
            How::Pass(asked, key, why) => {
                let fetch = Fetch::new(
                    &cache,
                    &settings,
                    (asked, key, why),
                    KeptRequest::of(request, origin),
                    ask,
                );
                Answer::later(move |body| fetch.pass(body))
            }
            How::Fetch(asked, key, why) => {
                let fetch = Fetch::new(
                    &cache,
                    &settings,
                    (asked, key, why),
                    KeptRequest::of(request, origin),
                    ask,
                );
                Answer::later(move |body| fetch.run(body))
            }
        }
    }
}

impl Cache {
    /// Has what is stored not used any more, after a request that has changed something.
    fn invalidate(&self, target: &Target, status: StatusCode, response: &FieldLines) {
        if !invalidation::invalidates(&target.method, status) {
            return;
        }
        let Target { path, query, secure, host, .. } = target;
        let requested = RequestTarget { path, query: query.as_deref(), secure: *secure, host };
        for target in invalidation::targets(&requested, response) {
            let text = match &target.query {
                Some(query) => format!("{}?{query}", target.path),
                None => target.path,
            };
            // By whatever name of this host it was asked for.
            for tag in key::target_tags(text.as_bytes()) {
                self.store.invalidate_tag(&tag, Invalidation::Hard);
            }
        }
    }
}

/// The response as clients see it that was not stored.
pub(super) fn said(mut response: Response, status: CacheStatus) -> Response {
    surrogate::remove_consumed(&mut response.fields);
    response.fields.push("Cache-Status", status.to_string());
    response
}

fn around(answer: Answer, finish: impl FnOnce(Response) -> Response + 'static) -> Answer {
    match answer {
        Answer::Now(response) => Answer::Now(finish(response)),
        Answer::Later(later) => Answer::later(move |body| async move { finish(later(body).await) }),
    }
}
