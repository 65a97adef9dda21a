//! Passive ejection: a server that fails consecutive requests gets none for a while.
//!
//! After that time, one request tries the server. If it succeeds, the server is back. If it fails,
//! the server is ejected for twice as long. Failures are requests without a response; an error
//! response of the server is not a failure.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often the time of an ejection is doubled at most.
const MAX_DOUBLINGS: u32 = 4;

/// The state of one server, shared by the event loops.
#[derive(Debug, Default)]
pub(crate) struct Ejection {
    /// Consecutive failures.
    failures: AtomicU32,
    /// Consecutive ejections.
    rounds: AtomicU32,
    /// The end of the ejection, in milliseconds since the start.
    until: AtomicU64,
}

/// Which requests may be sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EjectionState {
    /// Any request.
    Active,
    /// One request at a time, to try the server.
    Trial,
    /// No request, unless there is no other server.
    Ejected,
}

impl Ejection {
    pub(crate) fn state(&self, max_failures: u32, now: u64) -> EjectionState {
        if max_failures == 0 || self.failures.load(Relaxed) < max_failures {
            EjectionState::Active
        } else if now < self.until.load(Relaxed) {
            EjectionState::Ejected
        } else {
            EjectionState::Trial
        }
    }

    /// Returns how many failures there were since the last response.
    pub(crate) fn failures_in_a_row(&self) -> u32 {
        self.failures.load(Relaxed)
    }

    /// Returns the time until the end of the ejection.
    pub(crate) fn left(&self, max_failures: u32, now: u64) -> Duration {
        match self.state(max_failures, now) {
            EjectionState::Ejected => {
                Duration::from_millis(self.until.load(Relaxed).saturating_sub(now))
            }
            EjectionState::Active | EjectionState::Trial => Duration::ZERO,
        }
    }

    /// Counts a failure. Returns whether it has ejected the server.
    pub(crate) fn failed(&self, max_failures: u32, time: Duration, now: u64) -> bool {
        let was = self.state(max_failures, now);
        let failures = self.failures.fetch_update(Relaxed, Relaxed, |n| Some(n.saturating_add(1)));
        let failures = failures.unwrap_or_else(|n| n).saturating_add(1);
        // Requests that were in flight at the ejection say nothing new.
        if max_failures == 0 || failures < max_failures || was == EjectionState::Ejected {
            return false;
        }
        let rounds = self.rounds.fetch_add(1, Relaxed).min(MAX_DOUBLINGS);
        let millis =
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX).saturating_mul(1 << rounds);
        self.until.store(now.saturating_add(millis), Relaxed);
        true
    }

    /// Counts a response. Returns whether it has brought the server back.
    pub(crate) fn answered(&self, max_failures: u32) -> bool {
        // There is usually nothing to write. Then all loops keep the cache line.
        if self.failures.load(Relaxed) == 0 {
            return false;
        }
        let failures = self.failures.swap(0, Relaxed);
        self.rounds.store(0, Relaxed);
        max_failures > 0 && failures >= max_failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    #[test]
    fn only_consecutive_failures_eject_a_server() {
        let ejection = Ejection::default();
        assert!(!ejection.failed(3, TIME, 0));
        assert!(!ejection.failed(3, TIME, 1));
        assert!(!ejection.answered(3));
        assert!(!ejection.failed(3, TIME, 2));
        assert!(!ejection.failed(3, TIME, 3));
        assert_eq!(ejection.state(3, 3), EjectionState::Active);
        assert!(ejection.failed(3, TIME, 4));
        assert_eq!(ejection.state(3, 4), EjectionState::Ejected);
    }

    #[test]
    fn the_ejection_time_doubles_up_to_sixteen_times_the_first() {
        let ejection = Ejection::default();
        let mut now = 0;
        let mut times = Vec::new();
        for _ in 0..7 {
            assert!(ejection.failed(1, TIME, now));
            let back = (now..)
                .step_by(1000)
                .find(|now| ejection.state(1, *now) == EjectionState::Trial)
                .unwrap();
            times.push((back - now) / 1000);
            now = back;
        }
        assert_eq!(times, [10, 20, 40, 80, 160, 160, 160]);
        assert!(ejection.answered(1));
        assert_eq!(ejection.state(1, now), EjectionState::Active);
        assert!(ejection.failed(1, TIME, now));
        assert_eq!(ejection.state(1, now + 10_000), EjectionState::Trial);
    }

    #[test]
    fn failures_during_an_ejection_do_not_prolong_it() {
        let ejection = Ejection::default();
        assert!(ejection.failed(1, TIME, 0));
        for now in 1..100 {
            assert!(!ejection.failed(1, TIME, now));
        }
        assert_eq!(ejection.state(1, 10_000), EjectionState::Trial);
    }

    #[test]
    fn without_a_number_of_failures_no_server_is_ejected() {
        let ejection = Ejection::default();
        for now in 0..100 {
            assert!(!ejection.failed(0, TIME, now));
            assert_eq!(ejection.state(0, now), EjectionState::Active);
        }
    }
}
