//! Limits on the requests that are in progress at the same time: in all of a route, or for each
//! key, such as an address.
//!
//! All event loops share a limit. It remembers only keys that have a request in progress, so its
//! memory is bounded by the number of these.

use std::collections::HashMap;
use std::fmt;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::access::Refusal;
use super::limit_refusal::LimitRefusal;
use super::request_key::RequestKey;
use super::variables::RequestValues;

/// The number of locks over the counts.
const SHARDS: usize = 16;

/// A limit on requests in progress.
pub struct InFlightLimit {
    key: RequestKey,
    /// The most requests of a key at the same time.
    max: u32,
    hasher: RandomState,
    counts: Vec<Mutex<HashMap<u64, u32>>>,
    /// What happens to a request that is too many.
    pub refusal: LimitRefusal,
}

/// A request in progress. It counts until this is dropped.
#[derive(Debug)]
pub struct InFlightPermit {
    limit: Arc<InFlightLimit>,
    hash: u64,
}

impl InFlightLimit {
    /// Allows `max` requests of each key at the same time.
    pub fn new(key: RequestKey, max: u32, refusal: LimitRefusal) -> Self {
        let counts = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { key, max, hasher: RandomState::new(), counts, refusal }
    }

    /// Returns whether the other limit counts the same and does the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.key == other.key
            && self.max == other.max
            && self.refusal.settings() == other.refusal.settings()
    }

    /// Begins a request that comes at `now`. Returns `Ok(None)` in a dry run of a request that is
    /// too many.
    pub fn begin(
        self: &Arc<Self>,
        request: &RequestValues<'_>,
        now: Instant,
    ) -> Result<Option<InFlightPermit>, Refusal<'_>> {
        let hash = self.key.hash(request, &self.hasher);
        {
            let mut counts = self.shard(hash).lock();
            let count = counts.entry(hash).or_insert(0);
            if *count < self.max {
                *count += 1;
                return Ok(Some(InFlightPermit { limit: Arc::clone(self), hash }));
            }
        }
        match self.refusal.refuse(&**self, 1, now) {
            Some(refused) => Err(refused),
            None => Ok(None),
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<HashMap<u64, u32>> {
        &self.counts[hash as usize % SHARDS]
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        let mut counts = self.limit.shard(self.hash).lock();
        if let Some(count) = counts.get_mut(&self.hash) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.hash);
            }
        }
    }
}

/// The limit in words.
impl fmt::Display for InFlightLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests at the same time for each {}", self.max, self.key)
    }
}

impl fmt::Debug for InFlightLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightLimit").field("key", &self.key).field("max", &self.max).finish()
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::request::test_requests::with_request;
    use crate::routing::limit_refusal::RefusalSettings;

    fn limit(key: RequestKey, max: u32, is_dry_run: bool) -> Arc<InFlightLimit> {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let refusal = LimitRefusal::new(RefusalSettings { status, page: None, is_dry_run });
        Arc::new(InFlightLimit::new(key, max, refusal))
    }

    /// Begins a request with these field lines. Returns the status of a refusal.
    fn begin(limit: &Arc<InFlightLimit>, fields: &str) -> Result<Option<InFlightPermit>, u16> {
        with_request(&format!("GET / HTTP/1.1\r\nHost: a{fields}"), |request| {
            let begun = limit.begin(&request.values(), Instant::now());
            begun.map_err(|refused| refused.response.status.as_u16())
        })
    }

    #[test]
    fn a_request_counts_until_it_has_ended() {
        let limit = limit(RequestKey::Header("k".into()), 2, false);
        let one = begin(&limit, "\r\nK: a").unwrap();
        let two = begin(&limit, "\r\nK: a").unwrap();
        assert_eq!(begin(&limit, "\r\nK: a").unwrap_err(), 503);
        let other = begin(&limit, "\r\nK: b").unwrap();
        drop(two);
        let again = begin(&limit, "\r\nK: a").unwrap();
        assert_eq!(begin(&limit, "\r\nK: a").unwrap_err(), 503);
        assert_eq!(limit.refusal.refused(), 2);
        drop((one, other, again));
        assert!(limit.counts.iter().all(|shard| shard.lock().is_empty()), "nothing is left");
    }

    #[test]
    fn a_dry_run_lets_pass_and_counts() {
        let limit = limit(RequestKey::Route, 1, true);
        let first = begin(&limit, "").unwrap();
        assert!(first.is_some());
        for _ in 0..3 {
            assert!(begin(&limit, "\r\nK: a").unwrap().is_none());
        }
        assert_eq!((limit.refusal.refused(), limit.refusal.passed()), (0, 3));
        drop(first);
        assert!(begin(&limit, "").unwrap().is_some());
    }
}
