//! The limit for retries.
//!
//! When everything fails, retries double the load on the failing servers. This token bucket limits
//! them: each request adds a part of a token, and each second adds a few tokens, so that retries
//! are possible with little traffic too (Finagle's RetryBudget).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Parts of a token.
const TOKEN: u64 = 1000;

/// Tokens that are added each second.
const PER_SECOND: u64 = 10;

/// The most parts in the bucket, which limits the retries after a quiet time.
const MAX_PARTS: u64 = 100 * TOKEN;

/// The budget of one upstream, shared by all event loops.
#[derive(Debug)]
pub struct RetryBudget {
    /// Parts of a token that each request adds.
    per_request: u64,
    parts: AtomicU64,
    start: Instant,
    /// The time up to which tokens have been added, in milliseconds since the start.
    counted_until: AtomicU64,
}

impl RetryBudget {
    /// Returns a budget for retries of `percent` of the requests, and 10 more each second.
    pub fn new(percent: u32, now: Instant) -> Self {
        Self {
            per_request: u64::from(percent.min(100)) * TOKEN / 100,
            parts: AtomicU64::new(PER_SECOND * TOKEN),
            start: now,
            counted_until: AtomicU64::new(0),
        }
    }

    /// Counts a request that is not a retry.
    pub fn count_request(&self) {
        self.add(self.per_request);
    }

    /// Takes a retry from the budget. Returns whether there was one.
    pub fn take(&self, now: Instant) -> bool {
        let millis = u64::try_from(now.saturating_duration_since(self.start).as_millis())
            .unwrap_or(u64::MAX);
        let before = self.counted_until.fetch_max(millis, Relaxed);
        self.add(millis.saturating_sub(before).saturating_mul(PER_SECOND * TOKEN / 1000));
        debug_assert!(self.parts.load(Relaxed) <= MAX_PARTS, "more retries than the most");
        self.parts.fetch_update(Relaxed, Relaxed, |parts| parts.checked_sub(TOKEN)).is_ok()
    }

    fn add(&self, parts: u64) {
        if parts > 0 {
            let _ = self.parts.fetch_update(Relaxed, Relaxed, |now| {
                Some(now.saturating_add(parts).min(MAX_PARTS))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_fifth_of_the_requests_and_ten_a_second_may_be_retried() {
        let start = Instant::now();
        let budget = RetryBudget::new(20, start);
        let taken = |requests: usize, now: Instant| {
            (0..requests).for_each(|_| budget.count_request());
            (0..1000).filter(|_| budget.take(now)).count()
        };
        assert_eq!(taken(0, start), 10);
        assert_eq!(taken(0, start), 0);
        assert_eq!(taken(100, start), 20);
        assert_eq!(taken(0, start + Duration::from_secs(2)), 20);
        assert_eq!(taken(0, start + Duration::from_secs(2)), 0);
        assert_eq!(taken(100_000, start + Duration::from_secs(3)), 100);
    }

    #[test]
    fn a_clock_that_goes_back_adds_nothing_to_the_budget() {
        let start = Instant::now() + Duration::from_secs(100);
        let budget = RetryBudget::new(0, start);
        assert_eq!((0..50).filter(|_| budget.take(start - Duration::from_secs(50))).count(), 10);
        assert_eq!((0..50).filter(|_| budget.take(start)).count(), 0);
    }
}
