//! How many requests may be sent a second time.
//!
//! When everything fails, retries double the load on what is failing. A budget bounds them by the
//! requests there are: a token bucket that each request fills by a part of a token, and time by a
//! few a second, so that little traffic may retry too (Finagle's RetryBudget).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Parts of a token.
const TOKEN: u64 = 1000;

/// Tokens that time brings, a second.
const PER_SECOND: u64 = 10;

/// Tokens at most: what may be retried at once after a quiet time.
const MOST: u64 = 100 * TOKEN;

/// Shared by all loops, for one upstream.
#[derive(Debug)]
pub struct RetryBudget {
    /// Parts of a token that a request brings.
    per_request: u64,
    parts: AtomicU64,
    start: Instant,
    /// Milliseconds since the start up to which time has been counted.
    counted_until: AtomicU64,
}

impl RetryBudget {
    /// Retries for up to `percent` of the requests, and 10 a second beside that.
    pub fn new(percent: u32, now: Instant) -> Self {
        Self {
            per_request: u64::from(percent.min(100)) * TOKEN / 100,
            parts: AtomicU64::new(PER_SECOND * TOKEN),
            start: now,
            counted_until: AtomicU64::new(0),
        }
    }

    /// Counts a request, which is not a retry.
    pub fn count_request(&self) {
        self.add(self.per_request);
    }

    /// Whether one may be retried; takes it from the budget.
    pub fn take(&self, now: Instant) -> bool {
        let millis = u64::try_from(now.saturating_duration_since(self.start).as_millis())
            .unwrap_or(u64::MAX);
        let before = self.counted_until.fetch_max(millis, Relaxed);
        self.add(millis.saturating_sub(before).saturating_mul(PER_SECOND * TOKEN / 1000));
        self.parts.fetch_update(Relaxed, Relaxed, |parts| parts.checked_sub(TOKEN)).is_ok()
    }

    fn add(&self, parts: u64) {
        if parts > 0 {
            let _ = self
                .parts
                .fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_add(parts).min(MOST)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_fifth_of_the_requests_may_be_retried_and_some_a_second() {
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
    fn a_clock_that_goes_back_gives_nothing() {
        let start = Instant::now() + Duration::from_secs(100);
        let budget = RetryBudget::new(0, start);
        assert_eq!((0..50).filter(|_| budget.take(start - Duration::from_secs(50))).count(), 10);
        assert_eq!((0..50).filter(|_| budget.take(start)).count(), 0);
    }
}
