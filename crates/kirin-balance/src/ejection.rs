//! Passive ejection: a server that fails requests one after the other is left alone for a while.
//!
//! When the time is over, one request tries it. If that is answered the server is back, if not it
//! is away for twice as long. Failures are what the proxy could not get an answer to; an error that
//! the server itself has answered with is none.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The longest time away is the shortest, doubled this often.
const MOST_DOUBLINGS: u32 = 4;

/// The state of one server, shared by the loops.
#[derive(Debug, Default)]
pub(crate) struct Ejection {
    /// One after the other.
    failures: AtomicU32,
    /// Times that it was ejected without an answer in between.
    rounds: AtomicU32,
    /// Milliseconds since the start.
    until: AtomicU64,
}

/// What may be sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Whatever comes.
    In,
    /// One request at a time, to see.
    Trial,
    /// Nothing, unless there is nobody else.
    Out,
}

impl Ejection {
    pub(crate) fn standing(&self, max_failures: u32, now: u64) -> Standing {
        if max_failures == 0 || self.failures.load(Relaxed) < max_failures {
            Standing::In
        } else if now < self.until.load(Relaxed) {
            Standing::Out
        } else {
            Standing::Trial
        }
    }

    /// Failures since the last answer.
    pub(crate) fn failures_in_a_row(&self) -> u32 {
        self.failures.load(Relaxed)
    }

    /// For how much longer nothing is sent.
    pub(crate) fn left(&self, max_failures: u32, now: u64) -> Duration {
        match self.standing(max_failures, now) {
            Standing::Out => Duration::from_millis(self.until.load(Relaxed).saturating_sub(now)),
            Standing::In | Standing::Trial => Duration::ZERO,
        }
    }

    /// Returns whether the server has been ejected by this one.
    pub(crate) fn failed(&self, max_failures: u32, time: Duration, now: u64) -> bool {
        let was = self.standing(max_failures, now);
        let failures = self.failures.fetch_update(Relaxed, Relaxed, |n| Some(n.saturating_add(1)));
        let failures = failures.unwrap_or_else(|n| n).saturating_add(1);
        // Requests that were under way when it was ejected say nothing new.
        if max_failures == 0 || failures < max_failures || was == Standing::Out {
            return false;
        }
        let rounds = self.rounds.fetch_add(1, Relaxed).min(MOST_DOUBLINGS);
        let millis =
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX).saturating_mul(1 << rounds);
        self.until.store(now.saturating_add(millis), Relaxed);
        true
    }

    /// Returns whether the server has come back by this one.
    pub(crate) fn answered(&self, max_failures: u32) -> bool {
        // Nearly always nothing to write: a line of cache that all loops can keep.
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
    fn failures_in_a_row_eject_and_an_answer_between_them_does_not() {
        let ejection = Ejection::default();
        assert!(!ejection.failed(3, TIME, 0));
        assert!(!ejection.failed(3, TIME, 1));
        assert!(!ejection.answered(3));
        assert!(!ejection.failed(3, TIME, 2));
        assert!(!ejection.failed(3, TIME, 3));
        assert_eq!(ejection.standing(3, 3), Standing::In);
        assert!(ejection.failed(3, TIME, 4));
        assert_eq!(ejection.standing(3, 4), Standing::Out);
    }

    #[test]
    fn the_time_away_doubles_up_to_sixteen_times() {
        let ejection = Ejection::default();
        let mut now = 0;
        let mut times = Vec::new();
        for _ in 0..7 {
            assert!(ejection.failed(1, TIME, now));
            let back = (now..)
                .step_by(1000)
                .find(|now| ejection.standing(1, *now) == Standing::Trial)
                .unwrap();
            times.push((back - now) / 1000);
            now = back;
        }
        assert_eq!(times, [10, 20, 40, 80, 160, 160, 160]);
        assert!(ejection.answered(1));
        assert_eq!(ejection.standing(1, now), Standing::In);
        assert!(ejection.failed(1, TIME, now));
        assert_eq!(ejection.standing(1, now + 10_000), Standing::Trial);
    }

    #[test]
    fn failures_of_requests_under_way_do_not_lengthen_it() {
        let ejection = Ejection::default();
        assert!(ejection.failed(1, TIME, 0));
        for now in 1..100 {
            assert!(!ejection.failed(1, TIME, now));
        }
        assert_eq!(ejection.standing(1, 10_000), Standing::Trial);
    }

    #[test]
    fn nothing_is_ejected_when_no_number_is_given() {
        let ejection = Ejection::default();
        for now in 0..100 {
            assert!(!ejection.failed(0, TIME, now));
            assert_eq!(ejection.standing(0, now), Standing::In);
        }
    }
}
