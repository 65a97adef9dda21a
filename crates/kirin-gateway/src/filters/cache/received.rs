//! Stores a response that the place has sent, or remembers that such responses are not stored.

use std::rc::Rc;
use std::sync::Arc;

use http::{Method, StatusCode};
use kirin_cache::{CacheStatus, Policy, Unstorable, policy_of, storable};
use kirin_clock::steady_seconds;
use kirin_http::{AnsweredBy, Body, FieldLines, InRequest, Response};
use kirin_store::Now;

use super::fetch::{CacheFetch, add_date, with_cache_status};
use super::fill::fill;
use super::keep::{self, Keep};
use super::pending_fetches::{FetchOutcome, PendingFetch};
use super::shared_response::SharedResponse;

impl CacheFetch {
    /// Handles a response of the place, of which the body may still arrive.
    pub(super) async fn received(
        self,
        pending: Option<PendingFetch>,
        mut response: Response,
        delay: u64,
    ) -> Response {
        let received = steady_seconds();
        add_date(&mut response.fields);
        let stored = self.policy(response.status, &response.fields, delay).and_then(|policy| {
            let kept = self.keep(pending.as_ref(), &policy, response.status, &response.fields);
            let length = response.body.length().unwrap_or(0);
            let fits = |(keep, _): &(Keep, FieldLines)| keep.has_room(&self.cache.store, length);
            let is_in_memory = matches!(
                response.body,
                Body::Empty | Body::Bytes(_) | Body::Segments(_) | Body::Stream(_)
            );
            let kept = kept.filter(fits).filter(|_| is_in_memory).ok_or(Unstorable::TooLarge)?;
            Ok((policy, kept))
        });
        let stored = match stored {
            Ok((policy, kept)) => kept.0.watch(&self.cache.near).await.map(|()| (policy, kept)),
            Err(reason) => Err(reason),
        };
        let (policy, (keep, fields)) = match stored {
            Ok(stored) => stored,
            Err(reason) => {
                self.cache.counters.not_stored.add();
                self.remember(reason, &response);
                if let Some(pending) = pending
                    && !is_of_gone_client(&response)
                    && !is_caused_by_request(response.status)
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
                    policy,
                    keep,
                    source.length(),
                );
                if let Some(pending) = &pending {
                    pending.fills(Arc::clone(&shared));
                }
                let cache = Rc::clone(&self.cache);
                let filled = InRequest::of_current(fill(
                    source,
                    shared,
                    filler,
                    cache,
                    pending,
                    self.share.clone(),
                ));
                tokio::task::spawn_local(filled);
                response.body = body;
                response.fields = fields;
                response.fields.append(&unstored);
                push_age(&mut response.fields, &policy);
                let ttl = Some(policy.ttl(received));
                return with_cache_status(response, CacheStatus { ttl, ..status });
            }
            _ => Vec::new(),
        };
        let stored = self.cache.store(&keep, &pieces);
        if let Some(pending) = pending {
            pending.finish(FetchOutcome::from_stored(stored));
        }
        let found =
            stored.ok().and_then(|()| keep.stored(&self.cache.store, Now::on_steady_clock()));
        if let Some(found) = found {
            let ttl = found.cached().map(|cached| found.ttl(cached, received));
            let mut sent = self.respond(&found, CacheStatus { ttl, ..status });
            sent.fields.append(&unstored);
            // The cache has only kept what the place has made.
            sent.answered_by = response.answered_by;
            return sent;
        }
        // There was no room, or a purge happened at the same time.
        response.body = Body::Segments(pieces);
        let reason = stored.err().unwrap_or(Unstorable::NoMemory);
        with_cache_status(
            response,
            CacheStatus { stored: false, detail: Some(reason.name()), ..status },
        )
    }

    fn storable_request(&self) -> kirin_cache::StorableRequest<'static> {
        kirin_cache::StorableRequest {
            method: &Method::GET,
            has_authorization: self.cache_request.has_authorization,
            has_cookie: self.cache_request.has_cookie,
            no_store: self.cache_request.directives.no_store,
        }
    }

    pub(super) fn policy(
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
    pub(super) fn keep(
        &self,
        pending: Option<&PendingFetch>,
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
                request,
                &self.settings,
                &self.cache_request.key,
                &self.begun,
                policy,
                status,
                &fields,
            )
        });
        let lease = pending.map(|pending| pending.lease.clone()).unwrap_or_default();
        keep.map(|keep| (keep.under(lease), fields))
    }

    /// Returns the fields that are not stored, but sent to this client.
    pub(super) fn unstored_fields(&self, response: &FieldLines) -> FieldLines {
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
        // An error ends at some time. Then many requests arrive, and they must wait for one fetch.
        let is_error = response.status.is_server_error()
            || response.answered_by == AnsweredBy::SERVER
            || is_caused_by_request(response.status);
        if is_error || is_of_request && !is_of_visitor {
            return;
        }
        let primary_key = &self.cache_request.key;
        // Requests without credentials may get another response, and one that is stored.
        let key = match self.cache_request.has_credentials() {
            true => keep::credentials_key(primary_key),
            false => self.key.clone(),
        };
        keep::remember_pass(&self.cache.store, &key, primary_key, Now::on_steady_clock());
    }
}

/// Returns whether the request itself caused the error, such as by a field that is too large. A
/// waiting request did not send the field, so the next one is forwarded.
fn is_caused_by_request(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 408 | 413 | 417 | 421 | 429 | 431)
}

/// Returns whether the client disconnected before the response. Such a response does not show what
/// other clients would get.
fn is_of_gone_client(response: &Response) -> bool {
    response.answered_by == AnsweredBy::SERVER && response.status.as_u16() == 499
}

fn push_age(fields: &mut FieldLines, policy: &Policy) {
    if policy.initial_age > 0 {
        fields.push("Age", policy.initial_age.to_string());
    }
}
