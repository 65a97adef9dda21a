//! Limits on the rate of requests: a token bucket for each key, such as an address.
//!
//! All event loops share a limit. Its memory is bounded, and no task cleans it up
//! (`rate_limit_buckets.rs`). If it is shared, all machines with the same origin count together
//! (`rate_limit_sharing.rs`).

use std::fmt;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::limit_refusal::LimitRefusal;
use super::rate_limit_buckets::RateBuckets;
pub use super::rate_limit_buckets::TooMany;
use super::rate_limit_sharing::Sharing;
use super::request_key::RequestKey;
use super::variables::RequestValues;

/// A limit on the rate of requests.
pub struct RateLimit {
    pub(super) key: RequestKey,
    pub(super) buckets: RateBuckets,
    hasher: RandomState,
    /// How all machines count together. `None`: each counts for itself.
    pub(super) sharing: Option<Sharing>,
    /// What happens to a request that is too many.
    pub refusal: LimitRefusal,
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
        let buckets = RateBuckets::new(requests, per, burst);
        Self { key, buckets, hasher: RandomState::new(), sharing: None, refusal }
    }

    /// Lets all machines with the same origin count together. Before the limit has a name and an
    /// origin ([`super::settings::GatewayConfig::share_limits`]), it counts on this machine alone.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { sharing: Some(Sharing::default()), ..self }
    }

    /// Counts a request that comes at `now`. A request without the field or cookie, or without a
    /// value of the variables, counts for its address.
    pub fn count(
        self: &Arc<Self>,
        request: &RequestValues<'_>,
        now: Instant,
    ) -> Result<(), TooMany> {
        let hash = self.key.hash(request, &self.hasher);
        let now = self.buckets.time(now);
        match &self.sharing {
            None => self.buckets.take(hash, now),
            Some(sharing) => self.take_shared(sharing, hash, now, || self.key.digest(request)),
        }
    }

    /// Returns whether the other limit counts the same and allows the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.key == other.key
            && self.buckets.allow_same(&other.buckets)
            && self.sharing.as_ref().map(Sharing::name) == other.sharing.as_ref().map(Sharing::name)
            && self.refusal.settings() == other.refusal.settings()
    }
}

/// The limit in words.
impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interval, burst) = (self.buckets.interval(), self.buckets.burst());
        let machines = if self.sharing.is_some() { ", on all machines together" } else { "" };
        let key = &self.key;
        write!(
            f,
            "one request in {interval:?} on average and {burst} at once for each {key}{machines}"
        )
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;
    use crate::routing::limit_refusal::RefusalSettings;
    use crate::routing::path_pattern::PathPattern;
    use crate::routing::value_template::ValueTemplate;
    use kirin_http::{Origin, Peer};

    /// A limit and the time of its first request.
    struct Counted {
        limit: Arc<RateLimit>,
        start: Instant,
    }

    impl Counted {
        fn new(key: RequestKey, requests: u64, per_seconds: u64, burst: u64) -> Self {
            let settings = RefusalSettings {
                status: http::StatusCode::TOO_MANY_REQUESTS,
                page: None,
                is_dry_run: false,
            };
            let per = Duration::from_secs(per_seconds);
            let refusal = LimitRefusal::new(settings);
            let limit = Arc::new(RateLimit::new(key, requests, per, burst, refusal));
            Self { limit, start: Instant::now() }
        }

        /// Counts a request from `address` with these field lines, some time after the start.
        fn count(&self, address: &str, fields: &str, after: Duration) -> Result<(), TooMany> {
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}");
            let peer = Peer::Tcp(address.parse().unwrap());
            with_request(head.trim_end(), |request| {
                let origin = Origin { peer: &peer, ..request.origin };
                let values = RequestValues { origin, ..request.values() };
                self.limit.count(&values, self.start + after)
            })
        }
    }

    fn template(text: &str) -> RequestKey {
        let path = PathPattern::parse("/").unwrap();
        RequestKey::Template(ValueTemplate::parse(text, &path).unwrap())
    }

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let limit = Counted::new(RequestKey::Address, 2, 1, 3);
        for _ in 0..3 {
            assert_eq!(limit.count("10.0.0.1:1", "", NOW), Ok(()));
        }
        let retry_after = Duration::from_millis(500);
        assert_eq!(limit.count("10.0.0.1:2", "", NOW), Err(TooMany { retry_after }));
        assert_eq!(limit.count("10.0.0.1:2", "", retry_after), Ok(()));
        assert!(limit.count("10.0.0.1:2", "", retry_after).is_err());
        assert_eq!(limit.count("10.0.0.2:1", "", NOW), Ok(()), "another client");
    }

    #[test]
    fn a_refused_request_does_not_make_it_worse() {
        let limit = Counted::new(RequestKey::Address, 1, 1, 1);
        assert_eq!(limit.count("10.0.0.1:1", "", NOW), Ok(()));
        for _ in 0..100 {
            assert!(limit.count("10.0.0.1:1", "", NOW).is_err());
        }
        assert_eq!(limit.count("10.0.0.1:1", "", Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn fields_and_cookies_are_keys_and_without_them_the_address_is() {
        for (key, one, other) in [
            (RequestKey::Header("X-Key".into()), "x-key: a\r\n", "X-Key: b\r\n"),
            (RequestKey::Cookie("id".into()), "Cookie: x=1; id=a\r\n", "Cookie: id=b; x=a\r\n"),
            (template("{header.k}{cookie.id}"), "K: a\r\nCookie: id=b\r\n", "K: ab\r\n"),
        ] {
            let limit = Counted::new(key, 1, 60, 1);
            for fields in [one, other, ""] {
                assert_eq!(limit.count("10.0.0.1:1", fields, NOW), Ok(()), "{fields}");
                assert!(limit.count("10.0.0.1:1", fields, NOW).is_err(), "{fields}");
            }
            assert!(limit.count("10.0.0.2:1", one, NOW).is_err(), "the same key from elsewhere");
            assert_eq!(limit.count("10.0.0.2:1", "", NOW), Ok(()));
        }
    }

    #[test]
    fn a_shared_limit_says_so_and_counts_alone_without_an_origin() {
        let limit = Counted::new(RequestKey::Address, 10, 1, 2);
        let text = "one request in 100ms on average and 2 at once for each address";
        assert_eq!(limit.limit.to_string(), text);
        let Counted { limit, start } = limit;
        let limit = Arc::new(Arc::into_inner(limit).unwrap().shared());
        assert_eq!(limit.to_string(), format!("{text}, on all machines together"));
        let limit = Counted { limit, start };
        let counted: Vec<bool> =
            (0..3).map(|_| limit.count("10.0.0.1:1", "", NOW).is_ok()).collect();
        assert_eq!(counted, [true, true, false]);
        assert!(!limit.limit.buckets.have_unsent());
    }
}
