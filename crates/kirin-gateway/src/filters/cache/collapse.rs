//! Collapses requests for one key at the same time. One of them is forwarded to the place, and its
//! response answers the others: from memory if it is stored by then, or while it arrives.

use kirin_cache::{CacheStatus, Collapse, Reuse, collapse, reuse};
use kirin_clock::steady_seconds;
use kirin_http::{CacheResult, RequestBody, Response};
use tokio::time::{Instant, timeout_at};

use super::fetch::CacheFetch;
use super::memory::CacheEntry;
use super::pending_fetches::{FetchEvent, FetchOutcome, Joined};
use super::shared_response::SharedResponse;

/// The most keys under which a request waits for others. A request learns the fields that a target
/// varies by from the response to another request. The number is limited, because a place may name
/// other fields in each response.
const MAX_KEYS: usize = 3;

/// The way in which this request can use a response that arrives for another request.
enum SharedUse {
    /// It is the answer.
    Answer(Response),
    /// It can be used after it is stored.
    WhenStored,
    /// It is too old.
    TooOld,
    /// It is another variant. The request's own variant has this key.
    Variant(Vec<u8>),
    /// It is for other clients only.
    NotForIt,
}

impl CacheFetch {
    /// Forwards the request to the place, or waits for another request that was forwarded.
    pub async fn run(mut self, body: RequestBody) -> Response {
        let give_up = Instant::now() + self.settings.wait;
        let mut collapsed = false;
        let mut keys = 1;
        let mut joined = self.settings.pending_fetches.join(&self.key);
        loop {
            let mut waiting = match joined {
                Joined::Leads(mut pending) => {
                    // Another request may have stored it since the cache was searched, or another
                    // machine may do so.
                    return match self.lead(&mut pending, give_up, collapsed).await {
                        Some(response) => {
                            pending.finish(FetchOutcome::Stored);
                            response
                        }
                        None => self.go(Some(pending), body).await,
                    };
                }
                Joined::Full => return self.go(None, body).await,
                Joined::Waits(waiting) => waiting,
            };
            let outcome = match timeout_at(give_up, waiting.event()).await {
                Ok(FetchEvent::FetchOutcome(outcome)) => Ok(outcome),
                Ok(FetchEvent::Filling(response)) => {
                    match self.shared_use(&response, waiting.is_early()) {
                        SharedUse::Answer(response) => return response,
                        SharedUse::WhenStored => timeout_at(give_up, waiting.outcome()).await,
                        SharedUse::TooOld => {
                            joined = self.settings.pending_fetches.join_anew(&self.key, &waiting);
                            continue;
                        }
                        // Requests for the same variant join each other under its key.
                        SharedUse::Variant(key) if keys < MAX_KEYS => {
                            keys += 1;
                            joined = self.settings.pending_fetches.join(&key);
                            self.key = key;
                            continue;
                        }
                        SharedUse::Variant(_) | SharedUse::NotForIt => {
                            return self.go(None, body).await;
                        }
                    }
                }
                Err(elapsed) => Err(elapsed),
            };
            match outcome {
                Ok(FetchOutcome::Stored) => {
                    collapsed = true;
                    // When the server has taken it, this machine asks for its copy.
                    self.load().await;
                    if let Some(response) = self.found_by_now(collapsed) {
                        return response;
                    }
                    match self.find() {
                        CacheEntry::Nothing { key, .. } if key != self.key => self.key = key,
                        _ => return self.go(None, body).await,
                    }
                }
                Ok(FetchOutcome::Failed(status)) => {
                    let found = self.find();
                    let stale = match &found {
                        CacheEntry::Response(found) => self.in_place_of_error(found, status, true),
                        CacheEntry::Nothing { .. } | CacheEntry::Pass { .. } => None,
                    };
                    return match stale {
                        Some(response) => response,
                        None => self.go(None, body).await,
                    };
                }
                Ok(FetchOutcome::PerVisitor) if self.cache_request.has_credentials() => {
                    return self.go(None, body).await;
                }
                Ok(FetchOutcome::Lost | FetchOutcome::PerVisitor) => {}
                // This request cannot use the response, or the response takes too long.
                Ok(FetchOutcome::NotStored) | Err(_) => return self.go(None, body).await,
            }
            joined = self.settings.pending_fetches.join(&self.key);
        }
    }

    /// Returns the part that the request asks for of a response that arrives at the moment. Returns
    /// `None` if it is not known to be a part of that.
    pub(super) fn part_of_what_comes(&self) -> Option<Response> {
        let coming = self.settings.pending_fetches.filling(&self.key)?;
        match self.shared_use(&coming, false) {
            SharedUse::Answer(response) => Some(response),
            _ => None,
        }
    }

    /// Returns the response that is stored by now, if it is an answer.
    pub(super) fn found_by_now(&self, collapsed: bool) -> Option<Response> {
        let CacheEntry::Response(found) = self.find() else { return None };
        let (cached, now) = (found.cached()?, steady_seconds());
        match reuse(&cached.policy, &self.cache_request.directives, now, found.item.is_stale()) {
            Reuse::Fresh | Reuse::Stale | Reuse::StaleWhileRevalidate => {}
            // It comes from the place, and is newer than this request.
            Reuse::ValidateRequested if collapsed => {}
            Reuse::ValidateRequested | Reuse::ValidateStale => return None,
        }
        let ttl = found.ttl(cached, now);
        let status = match collapsed {
            true => {
                self.cache.counters.collapsed.add();
                self.note(CacheResult::Hit);
                CacheStatus { collapsed, ttl: Some(ttl), ..self.status() }
            }
            false => {
                self.cache.counters.hits.add();
                self.note(CacheResult::Hit);
                CacheStatus::hit(ttl)
            }
        };
        Some(self.respond(&found, status))
    }

    /// Returns how `coming` can be used for the request. `is_earlier` says that the request is
    /// older than that response.
    fn shared_use(&self, coming: &SharedResponse, is_earlier: bool) -> SharedUse {
        let SharedResponse { keep, policy, .. } = coming;
        let key =
            self.request.with(|request| keep.key_for(&self.cache_request.key, request.head.fields));
        if key != keep.key() {
            return SharedUse::Variant(key);
        }
        if !self.cache_request.may_have(policy) {
            return SharedUse::NotForIt;
        }
        let now = steady_seconds();
        match collapse(policy, &self.cache_request.directives, now, is_earlier) {
            // The data of the response may have changed before this request arrived.
            _ if keep.check_unpurged(&self.cache.store).is_err() => return SharedUse::TooOld,
            Collapse::Forward => return SharedUse::TooOld,
            Collapse::WaitUntilStored => return SharedUse::WhenStored,
            Collapse::Share => {}
        }
        let Some(mut response) = self.request.with(|request| coming.answer(request.head)) else {
            return SharedUse::WhenStored;
        };
        self.cache.counters.collapsed.add();
        self.note(CacheResult::Hit);
        let status = CacheStatus { collapsed: true, ttl: Some(policy.ttl(now)), ..self.status() };
        let status = status.for_codes(response.status.as_u16(), coming.status.as_u16());
        response.fields.push("Age", policy.age(now).to_string());
        response.fields.push("Cache-Status", status.to_string());
        SharedUse::Answer(response)
    }
}
