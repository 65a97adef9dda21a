//! The decision about new code that is on trial, from counts alone.
//!
//! Each count is one of events that happen once to each subject: a visitor gets a first failed
//! response, a visitor gets a first slow response, a worker ends. If old and new code are the same,
//! chance alone says on which side such an event happens: on the new one with a known probability,
//! whatever traffic and time do. So the events are throws of a coin, and [`Evidence`] says how
//! unlikely they are.

/// How much more often the event may happen with the new code: the alternatives that the test
/// weighs, all alike.
const RATIOS: [f64; 5] = [1.5, 2.0, 4.0, 10.0, 100.0];

/// The evidence that ends a trial. It is wrong in at most one of this many trials of equal code,
/// however often one looks (Ville's inequality).
const DECISIVE: f64 = 1000.0;

/// The fewest crashes without an answer in between that are a loop.
const CRASH_LOOP: u64 = 3;

/// The new code's workers may have this many times the memory of the old code's.
const MEMORY_RATIO: u64 = 2;

/// A difference in memory of a worker that is never too much, in bytes.
const MEMORY_MARGIN_BYTES: u64 = 64 << 20;

/// Requests to the new code below which a promotion says that little was seen.
const FEW_REQUESTS: u64 = 100;

/// The events of one kind on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// With the new code.
    pub new: u64,
    /// With the old code.
    pub old: u64,
}

impl Events {
    /// Returns the evidence that the event happens more often with the new code. `share` is the
    /// probability that it happens there if both are equal.
    ///
    /// It is a mixture of likelihood ratios. Its expectation stays 1 under equal code, so it
    /// exceeds `n` in at most one of `n` trials.
    pub fn evidence(self, share: f64) -> f64 {
        let (new, all) = (self.new as f64, (self.new + self.old) as f64);
        let weighed = RATIOS.iter().map(|ratio| {
            let mean = 1.0 - share + ratio * share;
            (new * ratio.ln() - all * mean.ln()).exp()
        });
        weighed.sum::<f64>() / RATIOS.len() as f64
    }

    /// Returns whether the event happens more often with the new code, beyond reasonable doubt.
    pub(crate) fn convicts(self, share: f64) -> bool {
        self.evidence(share) >= DECISIVE
    }
}

/// What is known of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Visitors with a failed response: status 5xx, no response, or none in time. Requests that
    /// fail together do not count.
    pub(crate) failing_visitors: Events,
    /// Visitors with a slow response.
    pub(crate) slow_visitors: Events,
    /// Workers that have ended unexpectedly.
    pub(crate) crashes: Events,
    /// Workers of the new code that have ended unexpectedly since it last answered a request.
    pub(crate) crashes_in_a_row: u64,
    /// How many workers the new code should have.
    pub(crate) workers: u64,
    /// The mean resident memory of a worker in bytes: new, old. `None` if unknown.
    pub(crate) worker_bytes: Option<(u64, u64)>,
}

/// Why new code is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// More of its visitors get failed responses.
    Failures,
    /// More of its workers end.
    Crashes,
    /// Its workers end one after the other and answer nothing.
    CrashLoop,
    /// More of its visitors get slow responses.
    Slowness,
    /// Its workers need more memory.
    Memory,
}

impl Fault {
    /// Returns the words for the log.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Failures => "more visitors get failed responses",
            Self::Crashes => "more workers end unexpectedly",
            Self::CrashLoop => "its workers end one after the other and answer nothing",
            Self::Slowness => "more visitors get slow responses",
            Self::Memory => "workers need more memory",
        }
    }
}

impl Comparison {
    /// Returns why the new code is worse than the old one, if that is certain. `share` is that of
    /// the visitors of the new code, at most a half.
    pub(crate) fn fault(&self, share: f64) -> Option<Fault> {
        if self.failing_visitors.convicts(share) {
            return Some(Fault::Failures);
        }
        if self.is_crash_loop() {
            return Some(Fault::CrashLoop);
        }
        // Both sides have the same number of workers, so equal workers end equally often. Those
        // that end because of a request end less often on the new side, which has fewer requests.
        if self.crashes.convicts(0.5) {
            return Some(Fault::Crashes);
        }
        if self.slow_visitors.convicts(share) {
            return Some(Fault::Slowness);
        }
        self.needs_memory().then_some(Fault::Memory)
    }

    /// Returns whether all workers of the new code have crashed without an answer in between, while
    /// those of the old one have not.
    fn is_crash_loop(&self) -> bool {
        self.crashes_in_a_row >= self.workers.max(CRASH_LOOP)
            && self.crashes.new > 2 * self.crashes.old
    }

    fn needs_memory(&self) -> bool {
        self.worker_bytes.is_some_and(|(new, old)| {
            new > old.saturating_mul(MEMORY_RATIO) && new - old > MEMORY_MARGIN_BYTES
        })
    }
}

/// Returns whether a promotion after so many requests to the new code says that little was seen.
pub(crate) fn has_seen_little(requests: u64) -> bool {
    requests < FEW_REQUESTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARES: [f64; 4] = [0.01, 0.05, 0.2, 0.5];

    /// Returns the fewest events of the new code that decide, beside `old` of the old one.
    fn fewest(share: f64, old: u64) -> u64 {
        (0..).find(|new| Events { new: *new, old }.convicts(share)).unwrap()
    }

    #[test]
    fn so_many_failing_visitors_end_a_trial() {
        // `bench/test_trial_model.py` has the same table.
        for (share, old, expected) in [
            (0.01, 0, 3),
            (0.01, 10, 4),
            (0.01, 100, 8),
            (0.05, 0, 3),
            (0.05, 1, 4),
            (0.05, 10, 7),
            (0.05, 100, 18),
            (0.2, 0, 6),
            (0.2, 10, 14),
            (0.5, 0, 12),
            (0.5, 10, 38),
        ] {
            assert_eq!(fewest(share, old), expected, "share {share}, {old} of the old code");
        }
    }

    #[test]
    fn evidence_is_one_in_expectation_under_equal_code() {
        for share in SHARES {
            for (new, old) in [(0, 0), (1, 0), (3, 70), (40, 2)] {
                let after = |new, old| Events { new, old }.evidence(share);
                let expected = share * after(new + 1, old) + (1.0 - share) * after(new, old + 1);
                let now = after(new, old);
                assert!((expected / now - 1.0).abs() < 1e-9, "{share}: {expected} after {now}");
            }
        }
    }

    #[test]
    fn each_fault_is_found_alone() {
        let (none, many) = (Events::default(), Events { new: 30, old: 0 });
        let equal = Comparison::default();
        assert_eq!(equal.fault(0.05), None);
        let bytes =
            |new: u64, old: u64| Comparison { worker_bytes: Some((new << 20, old << 20)), ..equal };
        for (comparison, expected) in [
            (Comparison { failing_visitors: many, ..equal }, Some(Fault::Failures)),
            (Comparison { slow_visitors: many, ..equal }, Some(Fault::Slowness)),
            (Comparison { crashes: many, ..equal }, Some(Fault::Crashes)),
            (Comparison { crashes: Events { new: 11, old: 0 }, ..equal }, None),
            (Comparison { failing_visitors: none, ..equal }, None),
            (bytes(300, 100), Some(Fault::Memory)),
            (bytes(200, 100), None),
            (bytes(90, 30), None),
            (bytes(100, 300), None),
        ] {
            assert_eq!(comparison.fault(0.05), expected, "{comparison:?}");
        }
    }

    #[test]
    fn crashes_without_an_answer_in_between_are_a_loop() {
        for (in_a_row, workers, new, old, expected) in [
            (3, 1, 3, 0, Some(Fault::CrashLoop)),
            (2, 1, 2, 0, None),
            (4, 5, 4, 0, None),
            (5, 5, 5, 2, Some(Fault::CrashLoop)),
            (5, 5, 5, 3, None),
        ] {
            let comparison = Comparison {
                crashes_in_a_row: in_a_row,
                workers,
                crashes: Events { new, old },
                ..Comparison::default()
            };
            assert_eq!(comparison.fault(0.05), expected, "{comparison:?}");
        }
    }

    proptest! {
        #[test]
        fn more_events_of_the_new_code_are_more_evidence(
            new in 0u64..5000, old in 0u64..50_000, share in 0.001f64..=0.5,
        ) {
            let now = Events { new, old }.evidence(share);
            prop_assert!(now.is_finite() || new > 100, "{now}");
            let with = |new, old| Events { new, old }.evidence(share);
            prop_assert!(with(new + 1, old) >= now);
            prop_assert!(with(new, old + 1) <= now);
        }

        #[test]
        fn code_that_fails_no_more_than_its_share_stays(old in 0u64..100_000, share in 0.001f64..=0.5) {
            let events = Events { new: (old as f64 * share / (1.0 - share)) as u64, old };
            prop_assert!(!events.convicts(share), "{events:?}");
        }

        #[test]
        fn the_old_code_alone_never_convicts_the_new(old in 0u64..u64::MAX >> 12, share in 0.001f64..=0.5) {
            let events = Events { new: 0, old };
            prop_assert!(!events.convicts(share), "{events:?}");
        }
    }
}
