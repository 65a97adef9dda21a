//! Asks the place for a response that is not stored, or must be revalidated. [`super::collapse`]
//! has the other requests for it at the same time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use http::{Method, StatusCode};
use kirin_cache::validation;
use kirin_cache::{CacheStatus, Forwarded, Policy, Unstorable, policy_of, storable, surrogate};
use kirin_clock::steady_seconds;
use kirin_compress::Codings;
use kirin_http::{Answer, AnsweredBy, Body, ClientShare, FieldLines, RequestBody, Response};
use kirin_store::{Moment, Now};
use tokio::time::Instant;

use super::cache_request::{CacheRequest, Miss, as_cache, as_known};
use super::fill::fill;
use super::keep::{self, Keep};
use super::memory::{Cache, CacheEntry};
use super::pending_fetches::{FetchOutcome, PendingFetch};
use super::settings::CacheSettings;
use super::shared_response::SharedResponse;
use super::stored_response::StoredResponse;
use crate::filters::backend::Backend;
use crate::request::kept_request::KeptRequest;

/// A request that the place must answer.
pub struct Fetch {
    pub(super) cache: Rc<Cache>,
    pub(super) settings: Arc<CacheSettings>,
    pub(super) cache_request: CacheRequest,
    /// The key under which the response is expected to be stored. Requests wait for each other by
    /// this key.
    pub(super) key: Vec<u8>,
    why: Forwarded,
    pub(super) request: KeptRequest,
    backend: Rc<dyn Backend>,
    /// The moment when the place was asked.
    began: Arc<Moment>,
    /// The client that the memory of the response is counted for, until it is stored.
    share: ClientShare,
}

impl Fetch {
    /// A fetch for `request`, which `backend` will answer.
    pub fn new(
        cache: &Rc<Cache>,
        settings: &Arc<CacheSettings>,
        miss: Miss,
        request: KeptRequest,
        backend: Rc<dyn Backend>,
    ) -> Self {
        let (cache, settings) = (Rc::clone(cache), Arc::clone(settings));
        let (began, share) = (Arc::new(cache.store.moment()), ClientShare::default());
        let Miss { request: cache_request, key, why } = miss;
        Self { cache, settings, cache_request, key, why, request, backend, began, share }
    }

    /// Sends the request to the place as it is.
    pub async fn pass(mut self, body: RequestBody) -> Response {
        self.share = body.share().clone();
        if self.cache_request.is_partial
            && self.why != Forwarded::Bypass
            && let Some(response) = self.part_of_what_comes()
        {
            return response;
        }
        let counters = &self.cache.counters;
        match self.why {
            Forwarded::Bypass => counters.passed.add(),
            _ => counters.misses.add(),
        }
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
        self.began = Arc::new(self.cache.store.moment());
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
        let (mut response, mut delay) = self.given(&conditions, body).await;
        let Some(found) = stale else { return self.received(pending, response, delay).await };
        if response.status == StatusCode::NOT_MODIFIED && !conditions.is_empty() {
            if found.is_meant_by(&response.fields) {
                self.cache.counters.not_modified.add();
                complete(&mut response.fields);
                return self.not_modified(pending, found, &response.fields, delay);
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
    fn not_modified(
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
                let kept = self.keep(&policy, page_status, &fields).ok_or(Unstorable::TooLarge);
                let renewed = kept.and_then(|(keep, _)| {
                    keep.store(&self.cache.store, &[body], now())?;
                    keep.stored(&self.cache.store, now()).ok_or(Unstorable::NoMemory)
                });
                match renewed {
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
                self.cache.store.delete(found.item.key(), now());
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

    /// Returns the stored response, if the place has failed and the response may stand in (RFC 5861
    /// section 4). `collapsed` says that another request has learned this.
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
        let status = CacheStatus {
            forwarded_status: Some(status.as_u16()),
            collapsed,
            ttl: Some(found.ttl(cached, now)),
            detail: Some("stale-if-error"),
            ..self.status()
        };
        Some(self.respond(found, status))
    }

    /// Handles a response of the place, of which the body may still arrive.
    async fn received(
        self,
        pending: Option<PendingFetch>,
        mut response: Response,
        delay: u64,
    ) -> Response {
        let received = steady_seconds();
        complete(&mut response.fields);
        let stored = self.policy(response.status, &response.fields, delay).and_then(|policy| {
            let kept = self.keep(&policy, response.status, &response.fields);
            let length = response.body.length().unwrap_or(0);
            let fits = |(keep, _): &(Keep, FieldLines)| keep.has_room(&self.cache.store, length);
            let is_in_memory = matches!(
                response.body,
                Body::Empty | Body::Bytes(_) | Body::Segments(_) | Body::Stream(_)
            );
            let kept = kept.filter(fits).filter(|_| is_in_memory).ok_or(Unstorable::TooLarge)?;
            kept.0.check_unpurged(&self.cache.store)?;
            Ok((policy, kept))
        });
        let (policy, (keep, fields)) = match stored {
            Ok(stored) => stored,
            Err(reason) => {
                self.cache.counters.not_stored.add();
                self.remember(reason, &response);
                if let Some(pending) = pending
                    && !is_of_gone_client(&response)
                    && !is_of_one_request(response.status)
                {
                    pending.finish(match FetchOutcome::from_stored(Err(reason)) {
                        FetchOutcome::NotStored if self.cache_request.has_credentials() => {
                            FetchOutcome::PerVisitor
                        }
                        outcome => outcome,
                    });
                }
                return with_cache_status(
                    response,
                    CacheStatus { detail: Some(reason.name()), ..self.status() },
                );
            }
        };
        let unstored = self.unstored_fields(&response.fields);
        let status = CacheStatus { stored: true, ..self.status() };
        let pieces = match std::mem::replace(&mut response.body, Body::Empty) {
            Body::Bytes(bytes) => vec![bytes],
            Body::Segments(segments) => segments,
            Body::Stream(source) => {
                let (shared, filler, body) = SharedResponse::new(
                    response.status,
                    fields.clone(),
                    (policy, keep),
                    source.length(),
                );
                if let Some(pending) = &pending {
                    pending.fills(Arc::clone(&shared));
                }
                let cache = Rc::clone(&self.cache);
                tokio::task::spawn_local(fill(
                    source,
                    (shared, filler),
                    cache,
                    pending,
                    self.share.clone(),
                ));
                response.body = body;
                response.fields = fields;
                response.fields.append(&unstored);
                push_age(&mut response.fields, &policy);
                return with_cache_status(response, status);
            }
            _ => Vec::new(),
        };
        let stored = self.cache.store(&keep, &pieces);
        if let Some(pending) = pending {
            pending.finish(FetchOutcome::from_stored(stored));
        }
        let found = stored.ok().and_then(|()| keep.stored(&self.cache.store, now()));
        if let Some(found) = found {
            let ttl = found.cached().map(|cached| found.ttl(cached, received));
            let mut response = self.respond(&found, CacheStatus { ttl, ..status });
            response.fields.append(&unstored);
            return response;
        }
        // There was no room, or a purge came meanwhile.
        response.body = Body::Segments(pieces);
        let reason = stored.err().unwrap_or(Unstorable::NoMemory);
        with_cache_status(
            response,
            CacheStatus { stored: false, detail: Some(reason.name()), ..status },
        )
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

    fn storable_request(&self) -> kirin_cache::StorableRequest<'static> {
        kirin_cache::StorableRequest {
            method: &Method::GET,
            has_authorization: self.cache_request.has_authorization,
            has_cookie: self.cache_request.has_cookie,
            no_store: self.cache_request.directives.no_store,
        }
    }

    fn policy(
        &self,
        status: StatusCode,
        fields: &FieldLines,
        delay: u64,
    ) -> Result<Policy, Unstorable> {
        // `Date` and `Expires` are compared with the wall clock. From then on the age is a
        // duration.
        let wall = kirin_clock::wall_seconds();
        let policy =
            policy_of(self.storable_request(), status, fields, &self.settings.rules, wall, delay)?;
        Ok(Policy { received: steady_seconds(), ..policy })
    }

    /// Returns what is needed to store the response, and its fields that are stored.
    fn keep(
        &self,
        policy: &Policy,
        status: StatusCode,
        said: &FieldLines,
    ) -> Option<(Keep, FieldLines)> {
        let mut fields = said.clone();
        for name in storable::unstored_fields(said) {
            fields.remove(&name);
        }
        let keep = self.request.with(|request| {
            Keep::new(
                request.head,
                &self.settings,
                (&self.cache_request.key, &self.began),
                policy,
                status,
                &fields,
            )
        });
        keep.map(|keep| (keep, fields))
    }

    /// Returns the fields that are not stored, but sent to this client.
    fn unstored_fields(&self, response: &FieldLines) -> FieldLines {
        let names = storable::unstored_fields(response);
        // A body that others read too has no trailers (RFC 9111 section 3.1), so it announces none.
        let is_dropped = |name: &str| {
            matches!(name, "age" | "content-range" | "trailer")
                || name == "set-cookie" && self.settings.rules.ignore_cookies
        };
        let mut unstored = FieldLines::new();
        for (name, value) in response.iter() {
            let is_unstored = names
                .iter()
                .any(|other| name.eq_ignore_ascii_case(other.as_bytes()) && !is_dropped(other));
            if is_unstored {
                // It was a field line before.
                let _ = unstored.try_push(name, value);
            }
        }
        unstored
    }

    /// Remembers that responses to this target are not stored, so that the next requests do not
    /// wait for each other.
    fn remember(&self, reason: Unstorable, response: &Response) {
        let is_of_request = reason.is_of_request(self.storable_request());
        let is_of_visitor = matches!(reason, Unstorable::Cookie | Unstorable::Authorization);
        // An error ends some time. Many requests come then and must find each other.
        let is_error = response.status.is_server_error()
            || response.answered_by == AnsweredBy::SERVER
            || is_of_one_request(response.status);
        if is_error || is_of_request && !is_of_visitor {
            return;
        }
        let primary_key = &self.cache_request.key;
        // Requests without credentials may get another response, and one that is stored.
        let key = match self.cache_request.has_credentials() {
            true => keep::credentials_key(primary_key),
            false => self.key.clone(),
        };
        keep::remember_pass(&self.cache.store, &key, primary_key, now());
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
fn complete(fields: &mut FieldLines) {
    if !fields.has_date() {
        fields.push("Date", httpdate::fmt_http_date(SystemTime::now()));
    }
}

/// Whether the request itself caused the error, such as by a field that is too large. The requests
/// that wait have not sent that, so the next of them goes.
fn is_of_one_request(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 408 | 413 | 417 | 421 | 429 | 431)
}

/// Whether the client left before the response. Then it says nothing about what others would get.
fn is_of_gone_client(response: &Response) -> bool {
    response.answered_by == AnsweredBy::SERVER && response.status.as_u16() == 499
}

fn push_age(fields: &mut FieldLines, policy: &Policy) {
    if policy.initial_age > 0 {
        fields.push("Age", policy.initial_age.to_string());
    }
}

fn now() -> Now {
    Now::from_unix_seconds(steady_seconds())
}
