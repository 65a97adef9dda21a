//! Asking the place for what is not stored, or not any more. Who else wants it at the same time is
//! in [`super::collapse`].

use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use http::{Method, StatusCode};
use kirin_cache::validation;
use kirin_cache::{CacheStatus, Forwarded, Policy, Unstorable, policy_of, storable};
use kirin_compress::Codings;
use kirin_http::{Answer, AnsweredBy, Body, ClientShare, FieldLines, RequestBody, Response};
use kirin_store::{Moment, Now};
use tokio::time::Instant;

use super::asked::{Asked, as_cache, as_known};
use super::fill::fill;
use super::flights::{Flight, Landed};
use super::forward::said;
use super::keep::{self, Keep};
use super::settings::CacheSettings;
use super::shared_response::SharedResponse;
use super::{Ask, Cache, Found, FoundResponse, steady_now, ttl};
use crate::request::kept_request::KeptRequest;

/// A request that is to be answered by the place.
pub struct Fetch {
    pub(super) cache: Rc<Cache>,
    pub(super) settings: Arc<CacheSettings>,
    pub(super) asked: Asked,
    /// Where what comes is expected to be stored: what requests wait for each other by.
    pub(super) key: Vec<u8>,
    why: Forwarded,
    pub(super) request: KeptRequest,
    ask: Ask,
    /// When the place was asked.
    began: Arc<Moment>,
    /// For whom it is counted what is stored, until it is.
    share: ClientShare,
}

impl Fetch {
    /// For a request; `how` is what it asks, the key it is missing at, and why.
    pub fn new(
        cache: &Rc<Cache>,
        settings: &Arc<CacheSettings>,
        how: (Asked, Vec<u8>, Forwarded),
        request: KeptRequest,
        ask: Ask,
    ) -> Self {
        let ((asked, key, why), began) = (how, Arc::new(cache.store.moment()));
        let (cache, settings) = (Rc::clone(cache), Arc::clone(settings));
        let share = ClientShare::default();
        Self { cache, settings, asked, key, why, request, ask, began, share }
    }

    /// Goes to the place as it is.
    pub async fn pass(mut self, body: RequestBody) -> Response {
        self.share = body.share().clone();
        if self.asked.is_partial
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
        let answer = self.request.with(|request, origin| {
            as_known(request, &self.settings, |request| (self.ask)(request, origin))
        });
        let (response, delay) = given(answer, body).await;
        if !self.asked.is_plain {
            // The response is not the one to a plain GET.
            return said(
                response,
                CacheStatus { detail: Some("head-or-condition"), ..self.status() },
            );
        }
        self.received(None, response, delay).await
    }

    /// Asks the place, if what is stored is still good or for all of it.
    pub async fn go(mut self, flight: Option<Flight>, body: RequestBody) -> Response {
        // It may have waited.
        self.began = Arc::new(self.cache.store.moment());
        self.share = body.share().clone();
        let stale = match self.find() {
            Found::Response(found) => Some(found),
            Found::Nothing { .. } | Found::Pass { .. } => None,
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
        let Some(found) = stale else { return self.received(flight, response, delay).await };
        if response.status == StatusCode::NOT_MODIFIED && !conditions.is_empty() {
            if found.is_meant_by(&response.fields) {
                self.cache.counters.not_modified.add();
                complete(&mut response.fields);
                return self.not_modified(flight, found, &response.fields, delay);
            }
            // Of something else: nothing is known then.
            self.cache.counters.misses.add();
            (response, delay) = self.given(&[], RequestBody::empty()).await;
        }
        let status = response.status;
        if let Some(response) = self.in_place_of_error(&found, status, false) {
            if let Some(flight) = flight {
                flight.land(Landed::Failed(status));
            }
            return response;
        }
        self.received(flight, response, delay).await
    }

    /// What the place says, asked with `conditions`.
    async fn given(
        &self,
        conditions: &[(&'static str, Vec<u8>)],
        body: RequestBody,
    ) -> (Response, u64) {
        let answer = self.request.with(|request, origin| {
            as_cache(request, &self.settings, conditions, |request| (self.ask)(request, origin))
        });
        given(answer, body).await
    }

    /// The place says that what is stored is still good: with what it says now, and for as long.
    fn not_modified(
        self,
        flight: Option<Flight>,
        found: FoundResponse,
        said_now: &FieldLines,
        delay: u64,
    ) -> Response {
        let status = CacheStatus { forwarded_status: Some(304), ..self.status() };
        let Some(cached) = found.cached() else { return Response::error(StatusCode::BAD_GATEWAY) };
        let (page_status, body) = (self.page_status(&found), cached.page.body.clone());
        let fields = validation::merge(&cached.stored_fields(&found.item), said_now);
        let received = steady_now();
        let personal = self.personal_fields(said_now);
        let (mut response, landed) = match self.policy(page_status, &fields, delay) {
            Ok(policy) => {
                let kept = self.keep(&policy, page_status, &fields).ok_or(Unstorable::TooLarge);
                let renewed = kept.and_then(|(keep, _)| {
                    keep.store(&self.cache.store, &[body], now())?;
                    keep.stored(&self.cache.store, now()).ok_or(Unstorable::NoMemory)
                });
                match renewed {
                    Ok(found) => {
                        let ttl = found.cached().map(|cached| ttl(cached, &found.item, received));
                        let status = CacheStatus { stored: true, ttl, ..status };
                        (self.respond(&found, status), Landed::Stored)
                    }
                    Err(reason) => {
                        let status = CacheStatus { detail: Some(reason.name()), ..status };
                        (self.respond(&found, status), Landed::of(Err(reason)))
                    }
                }
            }
            Err(reason) => {
                // It was good for this once.
                self.cache.store.delete(found.item.key(), now());
                let status = CacheStatus { detail: Some(reason.name()), ..status };
                (self.respond(&found, status), Landed::NotStored)
            }
        };
        if let Some(flight) = flight {
            flight.land(landed);
        }
        response.fields.append(&personal);
        response
    }

    /// What is stored, if the place has failed and that may take its place (RFC 5861 section 4).
    /// The request may have waited for another to learn that.
    pub(super) fn in_place_of_error(
        &self,
        found: &FoundResponse,
        status: StatusCode,
        collapsed: bool,
    ) -> Option<Response> {
        let now = steady_now();
        let cached = found.cached()?;
        if !matches!(status.as_u16(), 500 | 502 | 503 | 504) || !cached.policy.serves_error(now) {
            return None;
        }
        self.cache.counters.stale_if_error.add();
        let status = CacheStatus {
            forwarded_status: Some(status.as_u16()),
            collapsed,
            ttl: Some(ttl(cached, &found.item, now)),
            detail: Some("stale-if-error"),
            ..self.status()
        };
        Some(self.respond(found, status))
    }

    /// A whole response has come, or begins to.
    async fn received(
        self,
        flight: Option<Flight>,
        mut response: Response,
        delay: u64,
    ) -> Response {
        let received = steady_now();
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
                if let Some(flight) = flight
                    && !is_of_gone_client(&response)
                    && !is_of_one_request(response.status)
                {
                    flight.land(match Landed::of(Err(reason)) {
                        Landed::NotStored if self.asked.has_credentials() => Landed::Personal,
                        landed => landed,
                    });
                }
                return said(
                    response,
                    CacheStatus { detail: Some(reason.name()), ..self.status() },
                );
            }
        };
        let personal = self.personal_fields(&response.fields);
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
                if let Some(flight) = &flight {
                    flight.fills(Arc::clone(&shared));
                }
                let cache = Rc::clone(&self.cache);
                tokio::task::spawn_local(fill(
                    source,
                    (shared, filler),
                    cache,
                    flight,
                    self.share.clone(),
                ));
                response.body = body;
                response.fields = fields;
                response.fields.append(&personal);
                push_age(&mut response.fields, &policy);
                return said(response, status);
            }
            _ => Vec::new(),
        };
        let stored = self.cache.store(&keep, &pieces);
        if let Some(flight) = flight {
            flight.land(Landed::of(stored));
        }
        let found = stored.ok().and_then(|()| keep.stored(&self.cache.store, now()));
        if let Some(found) = found {
            let ttl = found.cached().map(|cached| ttl(cached, &found.item, received));
            let mut response = self.respond(&found, CacheStatus { ttl, ..status });
            response.fields.append(&personal);
            return response;
        }
        // There was no room, or something has been purged meanwhile.
        response.body = Body::Segments(pieces);
        let reason = stored.err().unwrap_or(Unstorable::NoMemory);
        said(response, CacheStatus { stored: false, detail: Some(reason.name()), ..status })
    }

    pub(super) fn find(&self) -> Found {
        self.request.with(|request, _| self.cache.find(&self.asked, request.fields, steady_now()))
    }

    /// With what is stored. Coded, if at all, by who called the cache.
    pub(super) fn respond(&self, found: &FoundResponse, status: CacheStatus) -> Response {
        self.request.with(|request, _| {
            self.cache.respond(found, request, Codings::NONE, steady_now(), status)
        })
    }

    pub(super) fn status(&self) -> CacheStatus {
        CacheStatus::forwarded(self.why)
    }

    fn page_status(&self, found: &FoundResponse) -> StatusCode {
        let head = found.cached().and_then(|cached| cached.page.head.as_ref());
        head.map_or(StatusCode::OK, |head| head.status)
    }

    fn storable_request(&self) -> kirin_cache::StorableRequest<'static> {
        kirin_cache::StorableRequest {
            method: &Method::GET,
            has_authorization: self.asked.has_authorization,
            has_cookie: self.asked.has_cookie,
            no_store: self.asked.directives.no_store,
        }
    }

    fn policy(
        &self,
        status: StatusCode,
        fields: &FieldLines,
        delay: u64,
    ) -> Result<Policy, Unstorable> {
        // `Date` and `Expires` are compared with the wall clock. The age is a duration from then
        // on.
        let wall = kirin_clock::wall_seconds();
        let policy =
            policy_of(self.storable_request(), status, fields, &self.settings.rules, wall, delay)?;
        Ok(Policy { received: steady_now(), ..policy })
    }

    /// What is needed to store a response with `said`, and its fields that are stored.
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
        let keep = self.request.with(|request, _| {
            Keep::of(
                request,
                &self.settings,
                (&self.asked.key, &self.began),
                policy,
                status,
                &fields,
            )
        });
        keep.map(|keep| (keep, fields))
    }

    /// Fields that are for this client, and not stored.
    fn personal_fields(&self, said: &FieldLines) -> FieldLines {
        let unstored = storable::unstored_fields(said);
        // What is read along has no trailers (RFC 9111 section 3.1), and so announces none.
        let is_dropped = |name: &str| {
            matches!(name, "age" | "content-range" | "trailer")
                || name == "set-cookie" && self.settings.rules.ignore_cookies
        };
        let mut personal = FieldLines::new();
        for (name, value) in said.iter() {
            let is_unstored = unstored
                .iter()
                .any(|other| name.eq_ignore_ascii_case(other.as_bytes()) && !is_dropped(other));
            if is_unstored {
                // It was a field line before.
                let _ = personal.try_push(name, value);
            }
        }
        personal
    }

    /// Has the next requests go by themselves, if it would be the same with them.
    fn remember(&self, reason: Unstorable, response: &Response) {
        let is_of_request = reason.is_of_request(self.storable_request());
        let is_of_visitor = matches!(reason, Unstorable::Cookie | Unstorable::Authorization);
        // An error passes. Then many come at once, and should find each other.
        let is_error = response.status.is_server_error()
            || response.answered_by == AnsweredBy::SERVER
            || is_of_one_request(response.status);
        if is_error || is_of_request && !is_of_visitor {
            return;
        }
        let primary_key = &self.asked.key;
        // Those who do not show who they are may get another response, and one that is stored.
        let key = match self.asked.has_credentials() {
            true => keep::credentials_key(primary_key),
            false => self.key.clone(),
        };
        keep::remember_pass(&self.cache.store, &key, primary_key, now());
    }
}

impl FoundResponse {
    fn conditions(&self) -> Vec<(&'static str, Vec<u8>)> {
        match self.cached() {
            Some(cached) if cached.has_validator => {
                validation::conditions(&cached.stored_fields(&self.item))
            }
            _ => Vec::new(),
        }
    }

    fn is_meant_by(&self, not_modified: &FieldLines) -> bool {
        self.cached().is_some_and(|cached| {
            validation::applies_to(&cached.stored_fields(&self.item), not_modified)
        })
    }
}

/// The response, and the seconds that it took.
async fn given(answer: Answer, body: RequestBody) -> (Response, u64) {
    let began = Instant::now();
    let response = match answer {
        Answer::Now(response) => response,
        Answer::Later(later) => later(body).await,
    };
    (response, began.elapsed().as_secs())
}

/// Who passes on a response without a date says when it came (RFC 9110 section 6.6.1).
fn complete(fields: &mut FieldLines) {
    if !fields.has_date() {
        fields.push("Date", httpdate::fmt_http_date(SystemTime::now()));
    }
}

/// Errors that a request has brought on itself, by a field that is too large or comes too often:
/// those who wait have not sent that, so the next of them goes.
fn is_of_one_request(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 408 | 413 | 417 | 421 | 429 | 431)
}

/// Nobody has waited for it, so it tells nothing of what others would get.
fn is_of_gone_client(response: &Response) -> bool {
    response.answered_by == AnsweredBy::SERVER && response.status.as_u16() == 499
}

fn push_age(fields: &mut FieldLines, policy: &Policy) {
    if policy.initial_age > 0 {
        fields.push("Age", policy.initial_age.to_string());
    }
}

fn now() -> Now {
    Now::from_unix_seconds(steady_now())
}
