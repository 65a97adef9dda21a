//! The latency of a server: a moving average that rises at once and falls slowly (the "peak EWMA"
//! of Finagle).
//!
//! The value and its time are two atomics that are not written together. If two loops write at
//! once, the value of one may stay with the time of the other. They are microseconds apart, which
//! does not matter for an average over seconds.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// After this time, an observation counts for 1/e.
const DECAY: Duration = Duration::from_secs(10);

/// The average of one server.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    /// The average in microseconds.
    average: AtomicU64,
    /// The time of the last observation, in milliseconds since the start.
    observed_at: AtomicU64,
}

impl Latency {
    /// Counts a response that began after `latency`.
    pub(crate) fn observe(&self, latency: Duration, now: u64) {
        let observed = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let before = self.average.load(Relaxed);
        let average = if observed >= before {
            observed
        } else {
            let keep = self.kept(now);
            (before as f64 * keep + observed as f64 * (1.0 - keep)) as u64
        };
        self.average.store(average, Relaxed);
        self.observed_at.store(now, Relaxed);
    }

    /// Returns the average in microseconds. Old bad values decay, so that the server is tried
    /// again.
    pub(crate) fn now(&self, now: u64) -> f64 {
        self.average.load(Relaxed) as f64 * self.kept(now)
    }

    fn kept(&self, now: u64) -> f64 {
        let age = now.saturating_sub(self.observed_at.load(Relaxed));
        (-(age as f64) / DECAY.as_millis() as f64).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_counts_at_once_and_fast_ones_over_time() {
        let latency = Latency::default();
        latency.observe(Duration::from_millis(1), 0);
        latency.observe(Duration::from_millis(100), 10);
        assert_eq!(latency.now(10), 100_000.0);
        latency.observe(Duration::from_millis(1), 1_010);
        let soon = latency.now(1_010);
        assert!(soon > 80_000.0 && soon < 100_000.0, "{soon}");
        latency.observe(Duration::from_millis(1), 60_000);
        let late = latency.now(60_000);
        assert!(late < 2_000.0, "{late}");
    }

    #[test]
    fn an_old_latency_counts_less_with_time() {
        let latency = Latency::default();
        latency.observe(Duration::from_secs(5), 0);
        assert!(latency.now(120_000) < 100.0);
    }
}
