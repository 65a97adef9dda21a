//! The `cache` of a route: shares the responses of code between clients, as RFC 9111 allows.
//!
//! [`RouteCache::look`] is called before the place is asked. A hit is a response from memory, at
//! once. In all other cases there is a [`Forward`], which asks the place in the end.
//!
//! - [`collapse`] sends one request for each key to the place ([`pending_fetches`], [`fetch`]).
//! - [`received`], [`keep`] and [`fill`] store the response, and other clients read it meanwhile
//!   ([`shared_response`], [`filling_body`]).
//! - [`sharing`] writes it to the server behind the store, and asks that server before the place.
//!   [`leading`] has one machine ask its place.
//!
//! The rules are in `kirin-cache`. The memory is the store's ([`memory`]): a cached response is an
//! item with a key that no memcached client can name ([`kirin_cache::key`]). It is served as a page
//! is, with conditions, ranges and coded variants.

pub mod cache_request;
pub mod collapse;
pub mod counters;
pub mod entry;
pub mod fetch;
pub mod fill;
pub mod filling_body;
pub mod forward;
pub mod keep;
pub mod leading;
pub mod memory;
pub mod pending_fetches;
pub mod received;
pub mod settings;
pub mod shared_response;
pub mod sharing;
pub mod slow_reader_allowance;
pub mod stored_response;

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use kirin_cache::{CacheStatus, Forwarded, Reuse, reuse};
use kirin_compress::Codings;
use kirin_http::{CacheResult, InRequest, RequestBody, Response};

use super::backend::Backend;
use crate::request::context::Request;
use cache_request::{Bypass, CacheRequest, Miss};
use fetch::CacheFetch;
use forward::{Forward, ForwardMode};
use memory::{Cache, CacheEntry};
use pending_fetches::Joined;
use settings::CacheSettings;

/// The cache of one route.
pub struct RouteCache {
    /// The responses of this event loop.
    pub cache: Rc<Cache>,
    /// The configuration of the route.
    pub settings: Arc<CacheSettings>,
}

/// The answer of the cache to a request.
pub enum CacheLookup {
    /// The response.
    Hit(Response),
    /// The place must be asked, in this way.
    Forward(Forward),
}

impl RouteCache {
    /// Answers from memory, or says how the place must be asked. A hit may have one of `codings`.
    /// `backend` is asked behind the client's back to renew a stale response.
    pub fn look(
        &self,
        request: &Request<'_>,
        codings: Codings,
        backend: &Rc<dyn Backend>,
    ) -> CacheLookup {
        let Self { cache, settings } = self;
        let (head, now, counters) = (request.head, request.origin.now, &cache.counters);
        let forward = |how| CacheLookup::Forward(Forward::new(cache, settings, how));
        let cache_request = match CacheRequest::from_request(request, settings) {
            Ok(cache_request) => cache_request,
            Err(Bypass::Method) => return forward(ForwardMode::Method),
            Err(Bypass::Reason(reason)) => return forward(ForwardMode::Bypass(reason)),
        };
        let directives = &cache_request.directives;
        let (key, why) = match cache.find(&cache_request, head.fields, now) {
            CacheEntry::Response(stored) => {
                let Some(cached) = stored.cached() else {
                    return forward(ForwardMode::Bypass("unreadable"));
                };
                let key = stored.item.key().to_vec();
                match reuse(&cached.policy, directives, now, stored.item.is_stale()) {
                    Reuse::ValidateStale => (key, Forwarded::Stale),
                    Reuse::ValidateRequested => (key, Forwarded::Request),
                    reuse @ (Reuse::Fresh | Reuse::Stale | Reuse::StaleWhileRevalidate) => {
                        let result = match reuse {
                            Reuse::Fresh => {
                                counters.hits.add();
                                CacheResult::Hit
                            }
                            _ => {
                                counters.stale_hits.add();
                                CacheResult::Stale
                            }
                        };
                        request.origin.notes.set_cache_result(result);
                        let status = CacheStatus::hit(stored.ttl(cached, now));
                        let response = cache.respond(&stored, head, codings, now, status);
                        if reuse == Reuse::StaleWhileRevalidate {
                            let miss = Miss { request: cache_request, key, why: Forwarded::Stale };
                            self.revalidate(miss, request, backend);
                        }
                        return CacheLookup::Hit(response);
                    }
                }
            }
            CacheEntry::Nothing { key, why } => (key, why),
            CacheEntry::Pass { .. } if directives.only_if_cached => {
                return CacheLookup::Hit(not_cached());
            }
            CacheEntry::Pass { key, why } => {
                let miss = Miss { request: cache_request, key, why };
                return forward(ForwardMode::Pass { miss, is_noted: true });
            }
        };
        if directives.only_if_cached {
            return CacheLookup::Hit(not_cached());
        }
        let is_missing = matches!(why, Forwarded::UriMiss | Forwarded::VaryMiss);
        // The response would be of use to this request alone, so it is not shared.
        let is_alone = directives.no_store || is_missing && cache_request.is_partial;
        let miss = Miss { request: cache_request, key, why };
        forward(match is_alone {
            true => ForwardMode::Pass { miss, is_noted: false },
            false => ForwardMode::Fetch(miss),
        })
    }

    /// Asks the place for a new response, if no other request does so at this moment.
    fn revalidate(&self, miss: Miss, request: &Request<'_>, backend: &Rc<dyn Backend>) {
        if let Joined::Leads(mut pending) = self.settings.pending_fetches.join(&miss.key) {
            let (kept, backend) = (request.keep(), Rc::clone(backend));
            let fetch = CacheFetch::new(&self.cache, &self.settings, miss, kept, backend);
            tokio::task::spawn_local(InRequest::of_current(async move {
                if fetch.may_renew(&mut pending).await {
                    fetch.go(Some(pending), RequestBody::empty()).await;
                }
            }));
        }
    }
}

/// Returns 504 for a client that wants a stored response only (RFC 9111 section 5.2.1.7).
fn not_cached() -> Response {
    let mut response = Response::error(StatusCode::GATEWAY_TIMEOUT);
    response.fields.push("Cache-Status", "Kirin; detail=only-if-cached");
    response
}
