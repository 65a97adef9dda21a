//! The `cache` of a route: what an application has answered is given to others, as RFC 9111 allows.
//!
//! [`Cache::look`] is called by the router before the place is asked. A hit is a response from
//! memory, at once; what else there is to do is a [`Forward`], which asks the place in the end:
//! [`collapse`] has one request a key go there ([`flights`]) by
//! [`fetch`]; [`keep`] and [`fill`] store what comes, while all who want it read it along
//! ([`shared_response`]). The rules are in `kirin-cache`, the memory is the store's: a cached
//! response is an item with a key that no memcached client comes upon ([`kirin_cache::key`]), and
//! it is served as a page is, conditions, ranges and coded variants included. One cache a loop.

pub mod asked;
pub mod collapse;
pub mod counters;
pub mod entry;
pub mod fetch;
pub mod fill;
pub mod filling_body;
pub mod flights;
pub mod forward;
pub mod keep;
pub mod patience;
pub mod settings;
pub mod shared_response;

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use httparse::Header;
use kirin_cache::{CacheStatus, Forwarded, Reuse, Unstorable, reuse, vary};
use kirin_compress::Codings;
use kirin_http::{Answer, Origin, RequestBody, RequestHead, Response};
use kirin_store::{ItemRef, Now, Store};

use crate::filters::compress_threads::CompressThreads;
use crate::places::store::StorePlace;
use crate::request::answered_by;
use crate::request::kept_request::KeptRequest;
use asked::{Asked, Past};
use counters::CacheCounters;
use entry::{CachedResponse, Entry};
use fetch::Fetch;
use flights::Joined;
use forward::Forward;
use keep::Keep;
use settings::CacheSettings;

/// Asks the place behind the cache; as often as it takes, and also after the request itself has
/// been answered.
pub type Ask = Rc<dyn Fn(&RequestHead<'_>, Origin<'_>) -> Answer>;

/// The cache of one event loop.
pub struct Cache {
    store: Arc<Store>,
    pages: StorePlace,
    counters: Arc<CacheCounters>,
}

/// What has been found for a request.
pub enum Looked {
    /// The response.
    Hit(Response),
    /// The place is to be asked, in this way.
    Forward(Forward),
}

/// What is stored for a request.
enum Found {
    /// Nothing under this key, where it would be.
    Nothing { key: Vec<u8>, why: Forwarded },
    /// That it is no use, under this key.
    Pass { key: Vec<u8> },
    /// A response.
    Response(FoundResponse),
}

/// A stored response.
struct FoundResponse {
    item: ItemRef,
    entry: Arc<Entry>,
}

impl FoundResponse {
    fn cached(&self) -> Option<&CachedResponse> {
        self.entry.response()
    }
}

impl Cache {
    /// In `store`. What it does is counted in `counters`, by this event loop alone.
    pub fn new(
        store: Arc<Store>,
        threads: CompressThreads,
        counters: Arc<CacheCounters>,
    ) -> Rc<Self> {
        Rc::new(Self { pages: StorePlace::new(Arc::clone(&store), threads), store, counters })
    }

    /// Answers from memory, or says how the place is to be asked, on behalf of `user`. `codings` is
    /// what hits may be coded in. `ask` makes what asks the place, for when a response is made anew
    /// behind the client's back.
    pub fn look(
        self: &Rc<Self>,
        settings: &Arc<CacheSettings>,
        request: &RequestHead<'_>,
        (origin, user): (Origin<'_>, Option<&str>),
        codings: Codings,
        ask: impl FnOnce() -> Ask,
    ) -> Looked {
        let forward = |how| Looked::Forward(Forward::new(self, settings, how));
        let asked = match Asked::of(request, origin, user, settings) {
            Ok(asked) => asked,
            Err(Past::Method) => return forward(forward::How::Method),
            Err(Past::Bypass(reason)) => return forward(forward::How::Bypass(reason)),
        };
        let found = self.find(&asked, request.fields, origin.now);
        let (key, why) = match found {
            Found::Response(found) => {
                let Some(cached) = found.cached() else {
                    return forward(forward::How::Bypass("unreadable"));
                };
                let policy = cached.policy;
                let status = CacheStatus::hit(ttl(cached, &found.item, origin.now));
                let reuse = reuse(&policy, &asked.directives, origin.now, found.item.is_stale());
                match reuse {
                    Reuse::Fresh | Reuse::Stale => {
                        match reuse {
                            Reuse::Fresh => self.counters.hits.add(),
                            _ => self.counters.stale_hits.add(),
                        }
                        return Looked::Hit(
                            self.respond(&found, request, codings, origin.now, status),
                        );
                    }
                    Reuse::StaleWhileRevalidate => {
                        self.counters.stale_hits.add();
                        let response = self.respond(&found, request, codings, origin.now, status);
                        if let Joined::Leads(flight) = settings.flights.join(found.item.key()) {
                            let kept = KeptRequest::of(request, origin);
                            let how = (asked, found.item.key().to_vec(), Forwarded::Stale);
                            let fetch = Fetch::new(self, settings, how, kept, ask());
                            tokio::task::spawn_local(async move {
                                fetch.go(Some(flight), RequestBody::empty()).await;
                            });
                        }
                        return Looked::Hit(response);
                    }
                    Reuse::ValidateStale => (found.item.key().to_vec(), Forwarded::Stale),
                    Reuse::ValidateRequested => (found.item.key().to_vec(), Forwarded::Request),
                }
            }
            Found::Nothing { key, why } => (key, why),
            Found::Pass { .. } if asked.directives.only_if_cached => {
                return Looked::Hit(not_cached());
            }
            Found::Pass { key } => {
                return forward(forward::How::Pass(asked, key, Forwarded::Bypass));
            }
        };
        if asked.directives.only_if_cached {
            return Looked::Hit(not_cached());
        }
        let is_miss = matches!(why, Forwarded::UriMiss | Forwarded::VaryMiss);
        // What is for this request alone is asked for as it is.
        if asked.directives.no_store || is_miss && asked.is_partial {
            return forward(forward::How::Pass(asked, key, why));
        }
        forward(forward::How::Fetch(asked, key, why))
    }

    /// Looks for what is stored.
    fn find(&self, asked: &Asked, fields: &[Header<'_>], now: u64) -> Found {
        let now = Now::from_unix_seconds(now);
        let mut found = self.entry(&asked.key, now);
        let mut variant_key = None;
        if let Some((_, entry)) = &found
            && let Entry::Varies(by) = &**entry
        {
            let mut key = asked.key.clone();
            vary::append_secondary_key(by, fields, &mut key);
            found = self.entry(&key, now);
            variant_key = Some(key);
        }
        if let Some((item, entry)) = found {
            match &*entry {
                Entry::Pass => return Found::Pass { key: item.key().to_vec() },
                Entry::Response(cached) => {
                    return match asked.may_have(&cached.policy) {
                        true => Found::Response(FoundResponse { item, entry }),
                        false => Found::Pass { key: item.key().to_vec() },
                    };
                }
                Entry::Varies(_) | Entry::Unreadable => {}
            }
        }
        if asked.has_credentials()
            && let Some((_, entry)) = self.entry(&keep::credentials_key(&asked.key), now)
            && matches!(*entry, Entry::Pass)
        {
            return Found::Pass { key: asked.key.clone() };
        }
        match variant_key {
            Some(key) => Found::Nothing { key, why: Forwarded::VaryMiss },
            None => Found::Nothing { key: asked.key.clone(), why: Forwarded::UriMiss },
        }
    }

    fn entry(&self, key: &[u8], now: Now) -> Option<(ItemRef, Arc<Entry>)> {
        let item = self.store.get(key, now)?;
        let entry = self.store.companion::<Entry>(&item, now, Entry::compile);
        Some((item, entry))
    }

    /// Stores a response with its body, and counts it.
    fn store(&self, keep: &Keep, body: &[Bytes]) -> Result<(), Unstorable> {
        let stored = keep.store(&self.store, body, Now::from_unix_seconds(steady_now()));
        match stored {
            Ok(()) => self.counters.stored.add(),
            Err(_) => self.counters.not_stored.add(),
        }
        stored
    }

    /// The response with what was found: 200, 206, 304 or 412, as the request has it.
    fn respond(
        &self,
        found: &FoundResponse,
        request: &RequestHead<'_>,
        codings: Codings,
        now: u64,
        status: CacheStatus,
    ) -> Response {
        let Some(cached) = found.cached() else { return Response::error(StatusCode::NOT_FOUND) };
        let seconds = Now::from_unix_seconds(now);
        let mut response =
            self.pages.stored_response(&found.item, &cached.page, request, codings, seconds);
        response.answered_by = answered_by::CACHE;
        response.fields.push("Age", cached.policy.age(now).to_string());
        response.fields.push("Cache-Status", status.to_string());
        response
    }
}

/// Seconds of freshness that are left; of what is stale, since when.
fn ttl(cached: &CachedResponse, item: &ItemRef, now: u64) -> i64 {
    match cached.policy.ttl(now) {
        // It has been purged softly.
        ttl if item.is_stale() => ttl.min(0),
        ttl => ttl,
    }
}

/// 504 for a client that wants nobody asked (RFC 9111 section 5.2.1.7).
fn not_cached() -> Response {
    let mut response = Response::error(StatusCode::GATEWAY_TIMEOUT);
    response.fields.push("Cache-Status", "Kirin; detail=only-if-cached");
    response
}

/// The steady clock's time after waiting, when the loop's has gone on.
fn steady_now() -> u64 {
    kirin_clock::steady_seconds()
}
