//! The conditions under which a request gets a line.
//!
//! A path in `except` never gets one. One of the other conditions is enough. So a log can have a
//! sample of all requests, and every error and every slow response.

use std::cell::Cell;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

/// The conditions of a log. By default, all requests get a line.
#[derive(Clone, Debug, Default)]
pub struct LogConditions {
    /// The statuses that get a line. Empty for none by their status.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Whether a response that was cut gets a line.
    pub cut: bool,
    /// The time from which a response gets a line.
    pub slower_than: Option<Duration>,
    /// The share of requests that get a line, from 0 to 1.
    pub sample: Option<f64>,
    /// The paths that get no line.
    pub except: Option<Arc<dyn ExceptedPaths>>,
}

/// The paths that get no line.
pub trait ExceptedPaths: fmt::Debug + Send + Sync {
    /// Returns whether `path`, percent-encoded as sent, is one of them.
    fn contains(&self, path: &str) -> bool;
}

/// The decision about a line before the response has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is written.
    Chosen,
    /// The status and the time decide.
    ByOutcome,
    /// It is not written.
    LeftOut,
}

/// Chooses a share of requests evenly. A share of 0.1 has 9 to 11 of any 100 consecutive requests.
#[derive(Debug, Default)]
pub struct RequestSampler(Cell<u64>);

impl RequestSampler {
    /// Returns whether the next request belongs to the share.
    fn takes_next(&self, share: f64) -> bool {
        // Multiples of the golden ratio are spread evenly over all numbers.
        let number = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(number);
        (number as f64) < share * 2_f64.powi(64)
    }
}

impl LogConditions {
    fn has_outcome(&self) -> bool {
        !self.statuses.is_empty() || self.cut || self.slower_than.is_some()
    }

    /// Decides about a request with this path before its response is sent. `path` is `None` for
    /// bytes that are not a request.
    pub fn choose(&self, path: Option<&str>, sampler: &RequestSampler) -> Choice {
        if let (Some(except), Some(path)) = (&self.except, path)
            && except.contains(path)
        {
            return Choice::LeftOut;
        }
        match self.sample {
            Some(share) if sampler.takes_next(share) => Choice::Chosen,
            _ if self.has_outcome() => Choice::ByOutcome,
            Some(_) => Choice::LeftOut,
            None => Choice::Chosen,
        }
    }

    /// Returns whether the outcome of a request is one that gets a line.
    pub fn wants_outcome(&self, status: StatusCode, is_cut: bool, took: Duration) -> bool {
        self.statuses.iter().any(|range| range.contains(&status.as_u16()))
            || (self.cut && is_cut)
            || self.slower_than.is_some_and(|limit| took >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Health;

    impl ExceptedPaths for Health {
        fn contains(&self, path: &str) -> bool {
            path == "/health"
        }
    }

    fn is_written(conditions: &LogConditions, path: &str, status: u16, cut: bool, ms: u64) -> bool {
        match conditions.choose(Some(path), &RequestSampler::default()) {
            Choice::Chosen => true,
            Choice::LeftOut => false,
            Choice::ByOutcome => conditions.wants_outcome(
                StatusCode::from_u16(status).unwrap(),
                cut,
                Duration::from_millis(ms),
            ),
        }
    }

    #[test]
    fn a_request_is_logged_if_one_condition_holds_and_never_if_excepted() {
        let all = LogConditions { except: Some(Arc::new(Health)), ..LogConditions::default() };
        let errors = LogConditions { statuses: vec![404..=404, 500..=599], ..all.clone() };
        let slow = LogConditions { slower_than: Some(Duration::from_secs(1)), ..errors.clone() };
        let none = LogConditions { sample: Some(0.0), ..slow.clone() };
        let cut = LogConditions { cut: true, ..all.clone() };
        for (conditions, path, status, is_cut, ms, expected) in [
            (&all, "/", 200, false, 0, true),
            (&all, "/health", 500, false, 0, false),
            (&errors, "/", 200, true, 5000, false),
            (&errors, "/", 404, false, 0, true),
            (&errors, "/", 403, false, 0, false),
            (&errors, "/health", 503, false, 0, false),
            (&slow, "/", 200, false, 999, false),
            (&slow, "/", 200, false, 1000, true),
            (&slow, "/", 503, false, 0, true),
            (&none, "/", 200, false, 0, false),
            (&none, "/", 503, false, 0, true),
            (&none, "/", 200, false, 1000, true),
            (&cut, "/", 200, true, 0, true),
            (&cut, "/", 500, false, 0, false),
        ] {
            let written = is_written(conditions, path, status, is_cut, ms);
            assert_eq!(written, expected, "{conditions:?} {path} {status} {is_cut} {ms}");
        }
    }

    #[test]
    fn a_sample_has_its_share_of_consecutive_requests() {
        for share in [0.01, 0.1, 0.5, 1.0] {
            let conditions = LogConditions { sample: Some(share), ..LogConditions::default() };
            let sampler = RequestSampler::default();
            for part in 0..20 {
                let chosen = (0..1000)
                    .filter(|_| conditions.choose(Some("/"), &sampler) == Choice::Chosen)
                    .count();
                let expected = share * 1000.0;
                assert!((chosen as f64 - expected).abs() <= 3.0, "{share} {part}: {chosen}");
            }
        }
    }
}
