//! Limits on the rate of requests: a token bucket for each key, such as an address.
//!
//! All event loops share a limit. Its memory is bounded, and no task cleans it up. A bucket is one
//! number, the moment at which it is full again (the virtual scheduling form of the generic cell
//! rate algorithm, ITU-T I.371). So a full bucket and an absent one are the same.

use std::fmt;
use std::hash::RandomState;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::limit_refusal::LimitRefusal;
use super::request_key::RequestKey;
use super::variables::RequestValues;

/// The buckets of one limit: 1 MiB. If clients with more keys come at once, the fullest buckets are
/// forgotten.
const BUCKETS: usize = 64 * 1024;

/// How many buckets a key may be in, so that a search reads two cache lines.
const WAYS: usize = 8;

/// The number of locks over the buckets.
const SHARDS: usize = 64;

/// A limit on the rate of requests.
pub struct RateLimit {
    key: RequestKey,
    /// The nanoseconds in which one request becomes possible.
    interval: u64,
    /// The nanoseconds in which an empty bucket becomes full.
    full: u64,
    /// The time of the first request.
    start: OnceLock<Instant>,
    hasher: RandomState,
    /// The buckets. A shard has none before its first request, because each reload of a
    /// configuration reads its limits again, and most of these are not used.
    shards: Vec<Mutex<Box<[Bucket]>>>,
    /// What happens to a request that is too many.
    pub refusal: LimitRefusal,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    /// The hash of the key. Zero marks a bucket without a key.
    hash: u64,
    /// The time when it is full again, in nanoseconds since the start.
    full_at: u64,
}

/// There are too many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// How long until the next one may come.
    pub retry_after: Duration,
}

impl RateLimit {
    /// Allows `requests` each `per` on average, and up to `burst` (at least 1) at once.
    pub fn new(
        key: RequestKey,
        requests: u64,
        per: Duration,
        burst: u64,
        refusal: LimitRefusal,
    ) -> Self {
        let interval = nanoseconds(per) / requests.max(1);
        let interval = interval.max(1);
        Self {
            key,
            interval,
            full: interval.saturating_mul(burst.max(1)),
            start: OnceLock::new(),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            refusal,
        }
    }

    /// Counts a request that comes at `now`. A request without the field or cookie, or without a
    /// value of the variables, counts for its address.
    pub fn count(&self, request: &RequestValues<'_>, now: Instant) -> Result<(), TooMany> {
        let hash = self.key.hash(request, &self.hasher);
        let start = *self.start.get_or_init(|| now);
        self.take(hash, nanoseconds(now.saturating_duration_since(start)))
    }

    /// Returns whether the other limit counts the same and allows the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.key == other.key
            && self.interval == other.interval
            && self.full == other.full
            && self.refusal.settings() == other.refusal.settings()
    }

    fn take(&self, hash: u64, now: u64) -> Result<(), TooMany> {
        let mut shard = self.shards[hash as usize % SHARDS].lock();
        if shard.is_empty() {
            *shard = vec![Bucket::default(); BUCKETS / SHARDS].into_boxed_slice();
        }
        let set = (hash >> 32) as usize % (shard.len() / WAYS) * WAYS;
        let bucket = bucket_of(&mut shard[set..set + WAYS], hash);
        let full_at = bucket.full_at.max(now).saturating_add(self.interval);
        let missing = full_at - now;
        if missing > self.full {
            return Err(TooMany { retry_after: Duration::from_nanos(missing - self.full) });
        }
        bucket.full_at = full_at;
        Ok(())
    }
}

/// The limit in words.
impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interval, burst) = (Duration::from_nanos(self.interval), self.full / self.interval);
        write!(
            f,
            "one request in {interval:?} on average and {burst} at once for each {}",
            self.key
        )
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Returns the bucket of `hash`. If there is none, the fullest of the set becomes it.
fn bucket_of(set: &mut [Bucket], hash: u64) -> &mut Bucket {
    let mut chosen = 0;
    for (index, bucket) in set.iter().enumerate() {
        if bucket.hash == hash {
            chosen = index;
            break;
        }
        if bucket.full_at < set[chosen].full_at {
            chosen = index;
        }
    }
    let bucket = &mut set[chosen];
    if bucket.hash != hash {
        *bucket = Bucket { hash, full_at: 0 };
    }
    bucket
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;
    use crate::routing::limit_refusal::RefusalSettings;
    use crate::routing::path_pattern::PathPattern;
    use crate::routing::value_template::ValueTemplate;
    use kirin_http::{Origin, Peer};
    use proptest::prelude::*;
    use std::hash::BuildHasher;

    /// Counts a request from `address` with these field lines, some time after the start.
    fn count(
        limit: &RateLimit,
        address: &str,
        fields: &str,
        after: Duration,
    ) -> Result<(), TooMany> {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}");
        let start = *limit.start.get_or_init(Instant::now);
        let peer = Peer::Tcp(address.parse().unwrap());
        with_request(head.trim_end(), |request| {
            let origin = Origin { peer: &peer, ..request.origin };
            limit.count(&RequestValues { origin, ..request.values() }, start + after)
        })
    }

    fn limit(key: RequestKey, requests: u64, per_seconds: u64, burst: u64) -> RateLimit {
        let settings = RefusalSettings {
            status: http::StatusCode::TOO_MANY_REQUESTS,
            page: None,
            is_dry_run: false,
        };
        let per = Duration::from_secs(per_seconds);
        RateLimit::new(key, requests, per, burst, LimitRefusal::new(settings))
    }

    fn template(text: &str) -> RequestKey {
        let path = PathPattern::parse("/").unwrap();
        RequestKey::Template(ValueTemplate::parse(text, &path).unwrap())
    }

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let limit = limit(RequestKey::Address, 2, 1, 3);
        for _ in 0..3 {
            assert_eq!(count(&limit, "10.0.0.1:1", "", NOW), Ok(()));
        }
        let retry_after = Duration::from_millis(500);
        assert_eq!(count(&limit, "10.0.0.1:2", "", NOW), Err(TooMany { retry_after }));
        assert_eq!(count(&limit, "10.0.0.1:2", "", retry_after), Ok(()));
        assert!(count(&limit, "10.0.0.1:2", "", retry_after).is_err());
        assert_eq!(count(&limit, "10.0.0.2:1", "", NOW), Ok(()), "another client");
    }

    #[test]
    fn a_refused_request_does_not_make_it_worse() {
        let limit = limit(RequestKey::Address, 1, 1, 1);
        assert_eq!(count(&limit, "10.0.0.1:1", "", NOW), Ok(()));
        for _ in 0..100 {
            assert!(count(&limit, "10.0.0.1:1", "", NOW).is_err());
        }
        assert_eq!(count(&limit, "10.0.0.1:1", "", Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn fields_and_cookies_are_keys_and_without_them_the_address_is() {
        for (key, one, other) in [
            (RequestKey::Header("X-Key".into()), "x-key: a\r\n", "X-Key: b\r\n"),
            (RequestKey::Cookie("id".into()), "Cookie: x=1; id=a\r\n", "Cookie: id=b; x=a\r\n"),
            (template("{header.k}{cookie.id}"), "K: a\r\nCookie: id=b\r\n", "K: ab\r\n"),
        ] {
            let limit = limit(key, 1, 60, 1);
            for fields in [one, other, ""] {
                assert_eq!(count(&limit, "10.0.0.1:1", fields, NOW), Ok(()), "{fields}");
                assert!(count(&limit, "10.0.0.1:1", fields, NOW).is_err(), "{fields}");
            }
            assert!(count(&limit, "10.0.0.2:1", one, NOW).is_err(), "the same key from elsewhere");
            assert_eq!(count(&limit, "10.0.0.2:1", "", NOW), Ok(()));
        }
    }

    #[test]
    fn a_flood_of_keys_does_not_free_those_that_have_used_theirs_up() {
        let limit = limit(RequestKey::Header("k".into()), 1, 3600, 100);
        let busy: Vec<u64> = (1..=1000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for hash in &busy {
            while limit.take(*hash, 0).is_ok() {}
        }
        for n in 0..1_000_000u64 {
            let _ = limit.take(limit.hasher.hash_one(n).max(1), 1);
        }
        let freed = busy.iter().filter(|hash| limit.take(**hash, 2).is_ok()).count();
        assert_eq!(freed, 0);
    }

    proptest! {
        #[test]
        fn no_order_of_requests_gets_more_than_burst_and_rate(
            requests in 1u64..50, burst in 1u64..20, gaps in prop::collection::vec(0u64..200_000_000, 1..300),
        ) {
            let limit = limit(RequestKey::Address, requests, 1, burst);
            let (mut now, mut taken) = (0u64, 0u64);
            for gap in gaps {
                now += gap;
                taken += u64::from(limit.take(7, now).is_ok());
            }
            prop_assert!(taken <= burst + now / limit.interval, "{taken} in {now} ns");
        }
    }
}
