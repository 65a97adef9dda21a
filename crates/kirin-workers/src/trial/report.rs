//! A trial as operators see it.

use std::fmt;
use std::time::Duration;

use crate::config::TrialConfig;

/// A trial that is going on, or the last one.
#[derive(Clone, Debug)]
pub struct TrialReport {
    /// How it was configured when it began.
    pub config: TrialConfig,
    /// How long it has lasted.
    pub lasted: Duration,
    /// The new code.
    pub new: TrialSide,
    /// The old code.
    pub old: TrialSide,
    /// How it has ended. `None` while it is going on.
    pub end: Option<TrialEnd>,
}

/// The end of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialEnd {
    /// Whether the new code serves everybody.
    pub is_promoted: bool,
    /// Why.
    pub reason: String,
}

/// What has happened on one side of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialSide {
    /// The generation of the application.
    pub generation: u64,
    /// Requests that have ended.
    pub requests: u64,
    /// Responses with a status 5xx by the application.
    pub errors: u64,
    /// Requests whose worker was lost or broke the protocol.
    pub lost: u64,
    /// Requests whose worker took too long.
    pub overdue: u64,
    /// Requests that got no worker.
    pub refused: u64,
    /// Visitors with a failed response that is no failure of many together: without those that got
    /// no worker, or whose worker was lost with the requests of others.
    pub failing_visitors: u64,
    /// Visitors with at least one slow response.
    pub slow_visitors: u64,
    /// Workers that have ended unexpectedly.
    pub crashes: u64,
    /// The time in which workers answered half of the requests.
    pub median: Option<Duration>,
    /// The time in which workers answered nine of ten requests.
    pub usual: Option<Duration>,
    /// The mean resident memory of a worker in bytes.
    pub worker_bytes: Option<u64>,
}

impl TrialSide {
    /// Returns how many requests have failed.
    pub fn failures(&self) -> u64 {
        self.errors + self.lost + self.overdue + self.refused
    }
}

impl fmt::Display for TrialSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { generation, requests, errors, lost, overdue, refused, .. } = self;
        let failures = self.failures();
        write!(f, "generation {generation}: {requests} requests, {failures} failed")?;
        if failures > 0 {
            let visitors = self.failing_visitors;
            write!(f, " for {visitors} visitors (5xx {errors}, worker lost {lost}, ")?;
            write!(f, "overdue {overdue}, no worker {refused})")?;
        }
        write!(f, ", {} visitors with slow responses", self.slow_visitors)?;
        if let (Some(median), Some(usual)) = (self.median, self.usual) {
            let (median, usual) = (median.as_secs_f64() * 1000.0, usual.as_secs_f64() * 1000.0);
            write!(f, ", median {median:.1} ms, nine of ten in {usual:.1} ms")?;
        }
        write!(f, ", {} workers crashed", self.crashes)?;
        match self.worker_bytes {
            Some(bytes) => write!(f, ", {} MB a worker", bytes >> 20),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_line_of_a_side_has_all_figures() {
        let side = TrialSide {
            generation: 2,
            requests: 300,
            errors: 5,
            lost: 1,
            overdue: 2,
            refused: 3,
            failing_visitors: 4,
            slow_visitors: 6,
            crashes: 1,
            median: Some(Duration::from_micros(1500)),
            usual: Some(Duration::from_millis(12)),
            worker_bytes: Some(30 << 20),
        };
        assert_eq!(
            side.to_string(),
            "generation 2: 300 requests, 11 failed for 4 visitors (5xx 5, worker lost 1, overdue \
             2, no worker 3), 6 visitors with slow responses, median 1.5 ms, nine of ten in 12.0 \
             ms, 1 workers crashed, 30 MB a worker"
        );
    }
}
