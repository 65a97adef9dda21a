//! Requests for one key at the same time: one goes to the place, and the others are answered with
//! what it brings. From memory if that is stored by then, and while it comes if not.

use kirin_cache::{CacheStatus, Collapse, Reuse, collapse, reuse};
use kirin_http::{RequestBody, Response};
use tokio::time::{Instant, timeout_at};

use super::fetch::Fetch;
use super::flights::{Joined, Landed, News};
use super::shared_response::SharedResponse;
use super::{Found, steady_now, ttl};

/// Keys under which a request looks for those that are like it at most. What a target varies by is
/// learned from a response to another request; places that say something else each time are
/// nobody's guide.
const MAX_KEYS: usize = 3;

/// What a response that comes is to a request.
enum Along {
    /// The answer.
    Answer(Response),
    /// Nothing before it is stored.
    WhenStored,
    /// Too old.
    TooOld,
    /// Another variant than its own, which has this key.
    Variant(Vec<u8>),
    /// For others only.
    NotForIt,
}

impl Fetch {
    /// Goes to the place, or waits for somebody who does.
    pub async fn run(mut self, body: RequestBody) -> Response {
        let give_up = Instant::now() + self.settings.wait;
        let mut collapsed = false;
        let mut keys = 1;
        let mut joined = self.settings.flights.join(&self.key);
        loop {
            let mut waiting = match joined {
                Joined::Leads(flight) => {
                    // Somebody may have come back between our look and this.
                    return match self.found_by_now(collapsed) {
                        Some(response) => response,
                        None => self.go(Some(flight), body).await,
                    };
                }
                Joined::Full => return self.go(None, body).await,
                Joined::Waits(waiting) => waiting,
            };
            let landed = match timeout_at(give_up, waiting.news()).await {
                Ok(News::Landed(landed)) => Ok(landed),
                Ok(News::Filling(response)) => match self.along(&response, waiting.is_early()) {
                    Along::Answer(response) => return response,
                    Along::WhenStored => timeout_at(give_up, waiting.landed()).await,
                    Along::TooOld => {
                        joined = self.settings.flights.join_anew(&self.key, &waiting);
                        continue;
                    }
                    // Those who want ours find each other by its key.
                    Along::Variant(key) if keys < MAX_KEYS => {
                        keys += 1;
                        joined = self.settings.flights.join(&key);
                        self.key = key;
                        continue;
                    }
                    Along::Variant(_) | Along::NotForIt => return self.go(None, body).await,
                },
                Err(elapsed) => Err(elapsed),
            };
            match landed {
                Ok(Landed::Stored) => {
                    collapsed = true;
                    if let Some(response) = self.found_by_now(collapsed) {
                        return response;
                    }
                    match self.find() {
                        Found::Nothing { key, .. } if key != self.key => self.key = key,
                        _ => return self.go(None, body).await,
                    }
                }
                Ok(Landed::Failed(status)) => {
                    let found = self.find();
                    let stale = match &found {
                        Found::Response(found) => self.in_place_of_error(found, status, true),
                        Found::Nothing { .. } | Found::Pass { .. } => None,
                    };
                    return match stale {
                        Some(response) => response,
                        None => self.go(None, body).await,
                    };
                }
                Ok(Landed::Personal) if self.asked.has_credentials() => {
                    return self.go(None, body).await;
                }
                Ok(Landed::Lost | Landed::Personal) => {}
                // It is of no use to us, or takes too long.
                Ok(Landed::NotStored) | Err(_) => return self.go(None, body).await,
            }
            joined = self.settings.flights.join(&self.key);
        }
    }

    /// The part of what comes just now for others that the request asks for, if that is known to be
    /// one.
    pub(super) fn part_of_what_comes(&self) -> Option<Response> {
        let coming = self.settings.flights.filling(&self.key)?;
        match self.along(&coming, false) {
            Along::Answer(response) => Some(response),
            _ => None,
        }
    }

    /// What is stored by now, if it is an answer.
    fn found_by_now(&self, collapsed: bool) -> Option<Response> {
        let Found::Response(found) = self.find() else { return None };
        let (cached, now) = (found.cached()?, steady_now());
        match reuse(&cached.policy, &self.asked.directives, now, found.item.is_stale()) {
            Reuse::Fresh | Reuse::Stale | Reuse::StaleWhileRevalidate => {}
            // It has just come from the place, after this was asked.
            Reuse::ValidateRequested if collapsed => {}
            Reuse::ValidateRequested | Reuse::ValidateStale => return None,
        }
        let ttl = ttl(cached, &found.item, now);
        let status = match collapsed {
            true => {
                self.cache.counters.collapsed.add();
                CacheStatus { collapsed, ttl: Some(ttl), ..self.status() }
            }
            false => {
                self.cache.counters.hits.add();
                CacheStatus::hit(ttl)
            }
        };
        Some(self.respond(&found, status))
    }

    /// What `coming` is to the request, which was there before it if it `is_earlier`.
    fn along(&self, coming: &SharedResponse, is_earlier: bool) -> Along {
        let SharedResponse { keep, policy, .. } = coming;
        let key = self.request.with(|request, _| keep.key_for(&self.asked.key, request.fields));
        if key != keep.key() {
            return Along::Variant(key);
        }
        if !self.asked.may_have(policy) {
            return Along::NotForIt;
        }
        let now = steady_now();
        match collapse(policy, &self.asked.directives, now, is_earlier) {
            // What it was made from has changed before this was asked, perhaps.
            _ if keep.check_unpurged(&self.cache.store).is_err() => return Along::TooOld,
            Collapse::Forward => return Along::TooOld,
            Collapse::WaitUntilStored => return Along::WhenStored,
            Collapse::Share => {}
        }
        let Some(mut response) = self.request.with(|request, _| coming.answer(request)) else {
            return Along::WhenStored;
        };
        self.cache.counters.collapsed.add();
        let status = CacheStatus { collapsed: true, ttl: Some(policy.ttl(now)), ..self.status() };
        response.fields.push("Age", policy.age(now).to_string());
        response.fields.push("Cache-Status", status.to_string());
        Along::Answer(response)
    }
}
