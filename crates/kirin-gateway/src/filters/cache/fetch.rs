//! Asks the place for a response that is not stored, or must be revalidated. [`super::collapse`]
//! has the other requests for it at the same time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::StatusCode;
use kirin_cache::validation;
use kirin_cache::{CacheStatus, Forwarded, Unstorable, surrogate};
use kirin_client_bytes::ClientShare;
use kirin_clock::steady_seconds;
use kirin_compress::Codings;
use kirin_http::{Answer, CacheResult, FieldLines, RequestBody, Response};
use kirin_origin::Begun;
use kirin_store::Now;
use tokio::time::Instant;

use super::cache_request::{CacheRequest, Miss, as_cache, as_known};
use super::keep::Keep;
use super::memory::{Cache, CacheEntry};
use super::pending_fetches::{FetchOutcome, PendingFetch};
use super::settings::CacheSettings;
use super::stored_response::StoredResponse;
use crate::filters::backend::Backend;
use crate::request::kept_request::KeptRequest;

/// A request that the place must answer.
pub struct CacheFetch {
    pub(super) cache: Rc<Cache>,
    pub(super) settings: Arc<CacheSettings>,
    pub(super) cache_request: CacheRequest,
    /// The key under which the response is expected to be stored. Requests wait for each other by
    /// this key.
    pub(super) key: Vec<u8>,
    pub(super) why: Forwarded,
    pub(super) request: KeptRequest,
    backend: Rc<dyn Backend>,
    /// The moment when the place was asked.
    pub(super) begun: Arc<Begun>,
    /// The client that the memory of the response is counted for, until it is stored.
    pub(super) share: ClientShare,
}

impl CacheFetch {
    /// Creates a fetch for `request`, which `backend` will answer.
    pub fn new(
        cache: &Rc<Cache>,
        settings: &Arc<CacheSettings>,
        miss: Miss,
        request: KeptRequest,
        backend: Rc<dyn Backend>,
    ) -> Self {
        let (cache, settings) = (Rc::clone(cache), Arc::clone(settings));
        let (begun, share) = (Arc::new(cache.near.begin()), ClientShare::default());
        let Miss { request: cache_request, key, why } = miss;
        Self { cache, settings, cache_request, key, why, request, backend, begun, share }
    }

    /// Notes for the log what the cache had.
    pub(super) fn note(&self, result: CacheResult) {
        self.request.notes().set_cache_result(result);
    }

    /// Sends the request to the place as it is. `is_noted` says that the cache expects no response
    /// that others can use.
    pub async fn pass(mut self, is_noted: bool, body: RequestBody) -> Response {
        self.share = body.share().clone();
        if self.cache_request.is_partial && !is_noted {
            if let Some(response) = self.part_of_what_comes() {
                return response;
            }
            self.load().await;
            if let Some(response) = self.found_by_now(false) {
                return response;
            }
        }
        let counters = &self.cache.counters;
        match is_noted {
            true => counters.passed.add(),
            false => counters.misses.add(),
        }
        self.note(CacheResult::Miss);
        let answer = self.request.with(|request| {
            as_known(request, &self.settings, |request| self.backend.answer(request))
        });
        let (response, delay) = given(answer, body).await;
        if !self.cache_request.is_plain {
            // This is not the response to a plain GET.
            return with_cache_status(
                response,
                CacheStatus { detail: Some("head-or-condition"), ..self.status() },
            );
        }
        self.received(None, response, delay).await
    }

    /// Asks the place to revalidate what is stored, or for the complete response.
    pub async fn go(mut self, pending: Option<PendingFetch>, body: RequestBody) -> Response {
        // The request may have waited until now.
        self.begun = Arc::new(self.cache.near.begin());
        self.share = body.share().clone();
        let stale = match self.find() {
            CacheEntry::Response(found) => Some(found),
            CacheEntry::Nothing { .. } | CacheEntry::Pass { .. } => None,
        };
        let conditions = match &stale {
            Some(found) => found.conditions(),
            None => Vec::new(),
        };
        match conditions.is_empty() {
            true => self.cache.counters.misses.add(),
            false => self.cache.counters.validations.add(),
        }
        self.note(CacheResult::Miss);
        let (mut response, mut delay) = self.given(&conditions, body).await;
        let Some(found) = stale else { return self.received(pending, response, delay).await };
        if response.status == StatusCode::NOT_MODIFIED && !conditions.is_empty() {
            if found.is_meant_by(&response.fields) {
                self.cache.counters.not_modified.add();
                self.note(CacheResult::Revalidated);
                add_date(&mut response.fields);
                return self.not_modified(pending, found, &response.fields, delay).await;
            }
            // The 304 is about another response, so it says nothing.
            self.cache.counters.misses.add();
            (response, delay) = self.given(&[], RequestBody::empty()).await;
        }
        let status = response.status;
        if let Some(response) = self.in_place_of_error(&found, status, false) {
            if let Some(pending) = pending {
                pending.finish(FetchOutcome::Failed(status));
            }
            return response;
        }
        self.received(pending, response, delay).await
    }

    /// Asks the place with `conditions` and returns its response.
    async fn given(
        &self,
        conditions: &[(&'static str, Vec<u8>)],
        body: RequestBody,
    ) -> (Response, u64) {
        let answer = self.request.with(|request| {
            as_cache(request, &self.settings, conditions, |request| self.backend.answer(request))
        });
        given(answer, body).await
    }

    /// Stores the response again with the fields of the 304: it is valid for as long as they say.
    async fn not_modified(
        self,
        pending: Option<PendingFetch>,
        found: StoredResponse,
        said_now: &FieldLines,
        delay: u64,
    ) -> Response {
        let status = CacheStatus { forwarded_status: Some(304), ..self.status() };
        let Some(cached) = found.cached() else { return Response::error(StatusCode::BAD_GATEWAY) };
        let (page_status, body) = (self.page_status(&found), cached.page.body.clone());
        let fields = validation::merge(&cached.stored_fields(&found.item), said_now);
        let received = steady_seconds();
        let unstored = self.unstored_fields(said_now);
        let (mut response, outcome) = match self.policy(page_status, &fields, delay) {
            Ok(policy) => {
                let kept = self.keep(pending.as_ref(), &policy, page_status, &fields);
                let kept = kept.map(|(keep, _)| keep);
                match self.renew(kept, body).await {
                    Ok(found) => {
                        let ttl = found.cached().map(|cached| found.ttl(cached, received));
                        let status = CacheStatus { stored: true, ttl, ..status };
                        (self.respond(&found, status), FetchOutcome::Stored)
                    }
                    Err(reason) => {
                        let status = CacheStatus { detail: Some(reason.name()), ..status };
                        (self.respond(&found, status), FetchOutcome::from_stored(Err(reason)))
                    }
                }
            }
            Err(reason) => {
                // It may be used this once.
                self.cache.drop_everywhere(found.item.key());
                let status = CacheStatus { detail: Some(reason.name()), ..status };
                (self.respond(&found, status), FetchOutcome::NotStored)
            }
        };
        if let Some(pending) = pending {
            pending.finish(outcome);
        }
        response.fields.append(&unstored);
        response
    }

    /// Stores a response again, with other fields.
    async fn renew(&self, keep: Option<Keep>, body: Bytes) -> Result<StoredResponse, Unstorable> {
        let (keep, store) = (keep.ok_or(Unstorable::TooLarge)?, &self.cache.store);
        keep.watch(&self.cache.near).await?;
        keep.store(store, &[body], Now::on_steady_clock())?;
        let stored = keep.stored(store, Now::on_steady_clock()).ok_or(Unstorable::NoMemory)?;
        self.cache.share(&keep);
        Ok(stored)
    }

    /// Returns the stored response, if the place has failed and the response may replace the error
    /// (RFC 5861 section 4). `collapsed` says that another request has learned this.
    pub(super) fn in_place_of_error(
        &self,
        found: &StoredResponse,
        status: StatusCode,
        collapsed: bool,
    ) -> Option<Response> {
        let now = steady_seconds();
        let cached = found.cached()?;
        if !matches!(status.as_u16(), 500 | 502 | 503 | 504) || !cached.policy.serves_error(now) {
            return None;
        }
        self.cache.counters.stale_if_error.add();
        self.note(CacheResult::Stale);
        let status = CacheStatus {
            forwarded_status: Some(status.as_u16()),
            collapsed,
            ttl: Some(found.ttl(cached, now)),
            detail: Some("stale-if-error"),
            ..self.status()
        };
        Some(self.respond(found, status))
    }

    pub(super) fn find(&self) -> CacheEntry {
        self.request.with(|request| {
            self.cache.find(&self.cache_request, request.head.fields, steady_seconds())
        })
    }

    /// Returns the response with what is stored. The caller of the cache compresses it.
    pub(super) fn respond(&self, stored: &StoredResponse, status: CacheStatus) -> Response {
        self.request.with(|request| {
            self.cache.respond(stored, request.head, Codings::NONE, steady_seconds(), status)
        })
    }

    pub(super) fn status(&self) -> CacheStatus {
        CacheStatus::forwarded(self.why)
    }

    fn page_status(&self, found: &StoredResponse) -> StatusCode {
        let head = found.cached().and_then(|cached| cached.page.head.as_ref());
        head.map_or(StatusCode::OK, |head| head.status)
    }
}

/// Returns a response that is not stored, as clients see it.
pub(super) fn with_cache_status(mut response: Response, status: CacheStatus) -> Response {
    surrogate::remove_consumed(&mut response.fields);
    response.fields.push("Cache-Status", status.to_string());
    response
}

/// Waits for the response. Returns it with the seconds that it took.
async fn given(answer: Answer, body: RequestBody) -> (Response, u64) {
    let began = Instant::now();
    let response = match answer {
        Answer::Now(response) => response,
        Answer::Later(later) => later(body).await,
    };
    (response, began.elapsed().as_secs())
}

/// Adds `Date` if it is missing, as a recipient must that passes the response on (RFC 9110 section
/// 6.6.1).
pub(super) fn add_date(fields: &mut FieldLines) {
    if !fields.has_date() {
        fields.push("Date", httpdate::fmt_http_date(SystemTime::now()));
    }
}
