//! A trial that is going on: the side of each visitor, and what happens on both sides.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_balance::ClientKey;
use parking_lot::Mutex;

use super::report::TrialSide;
use super::response_times::ResponseTimes;
use super::verdict::{Comparison, Events, Fault};
use crate::config::TrialConfig;

/// The most visitors of one kind that a trial remembers. The decision has fallen long before.
const MAX_VISITORS: usize = 100_000;

/// Responses of the new code for each of its workers that are not timed: what a worker does for the
/// first time takes longer.
const WARM_UP: u64 = 10;

/// Responses of the old code after which it is known what is slow, and between two looks at it.
const TIMED_FIRST: u64 = 100;

/// A response is slow if it takes this many times the time in which the old code answers nine of
/// ten requests, and [`SLOW_MARGIN`].
const SLOW_RATIO: u32 = 2;
const USUAL: f64 = 0.9;
const SLOW_MARGIN: Duration = Duration::from_millis(10);

/// A side of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    New,
    Old,
}

/// What has become of a request to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The application has answered.
    Answered { is_error: bool, took: Duration },
    /// Its worker was lost or broke the protocol. One that had other requests too is not the fault
    /// of this one, and counts as a crash only.
    Lost { had_others: bool },
    /// Its worker took too long.
    Overdue,
    /// It got no worker.
    Refused,
}

/// A trial that is going on.
pub(crate) struct RunningTrial {
    /// The generation that is on trial.
    pub(crate) new: u64,
    /// The generation that serves.
    pub(crate) old: u64,
    pub(crate) config: TrialConfig,
    pub(crate) began_at: Instant,
    /// Visitors below this number get the new code.
    limit: u64,
    /// The key of the visitors' numbers. It is another one for each trial, so that it is not always
    /// the same visitors who try.
    key: RandomState,
    counts: Mutex<Counts>,
}

/// What has happened on both sides.
#[derive(Default)]
struct Counts {
    new: Tally,
    old: Tally,
    comparison: Comparison,
    failing: HashSet<u64>,
    slow: HashSet<u64>,
    /// The time from which on a response is slow, when it is known.
    slow_from: Option<Duration>,
    /// The responses of the new code up to this number are not timed.
    untimed: u64,
    /// The workers of the new code for which `untimed` has been raised.
    warmed_workers: u64,
    /// Whether the supervisor has been told of a fault.
    is_decided: bool,
}

/// What has happened on one side.
#[derive(Default)]
struct Tally {
    requests: u64,
    errors: u64,
    lost: u64,
    overdue: u64,
    refused: u64,
    times: ResponseTimes,
}

/// A visitor, while a trial is going on.
pub(crate) struct Visitor {
    trial: Arc<RunningTrial>,
    number: u64,
}

impl RunningTrial {
    pub(crate) fn new(
        (new, old): (u64, u64),
        config: TrialConfig,
        workers: usize,
        now: Instant,
    ) -> Self {
        Self {
            new,
            old,
            config,
            began_at: now,
            limit: (config.share() * u64::MAX as f64) as u64,
            key: RandomState::new(),
            counts: Mutex::new(Counts::with_workers(workers)),
        }
    }

    /// Returns a visitor: one with this session, or of this address.
    pub(crate) fn visitor(self: Arc<Self>, session: Option<&[u8]>, address: ClientKey) -> Visitor {
        let number = match session {
            Some(session) => self.key.hash_one(session),
            None => self.key.hash_one(address),
        };
        Visitor { trial: self, number }
    }

    /// Notes a worker that has ended unexpectedly.
    pub(crate) fn note_crash(&self, generation: u64) {
        if let Some(side) = self.side_of(generation) {
            let comparison = &mut self.counts.lock().comparison;
            count(&mut comparison.crashes, side);
            comparison.crashes_in_a_row += u64::from(side == Side::New);
        }
    }

    /// Notes how many workers each side has from now on.
    pub(crate) fn resize(&self, workers: usize) {
        let mut counts = self.counts.lock();
        counts.comparison.workers = workers as u64;
        counts.warmed_workers = counts.warmed_workers.min(workers as u64);
    }

    /// Notes how many workers of the new code are there. If there are more than before, what the
    /// added ones do for the first time is not timed. They share the requests with the others, so
    /// it takes as many responses as for all.
    pub(crate) fn note_workers(&self, workers: usize) {
        let mut counts = self.counts.lock();
        // One that is still there may be about to leave.
        let workers = (workers as u64).min(counts.comparison.workers);
        if workers > counts.warmed_workers {
            counts.warmed_workers = workers;
            counts.untimed = counts.new.requests + WARM_UP * workers;
        }
    }

    /// Notes the mean memory of a worker on both sides, in bytes: new, old.
    pub(crate) fn note_memory(&self, bytes: Option<(u64, u64)>) {
        let known = &mut self.counts.lock().comparison.worker_bytes;
        *known = bytes.or(*known);
    }

    /// Returns why the new code is worse, if that is certain.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.counts.lock().comparison.fault(self.config.share())
    }

    /// Returns whether its time is over.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began_at) >= self.config.time
    }

    fn side_of(&self, generation: u64) -> Option<Side> {
        if generation == self.new {
            Some(Side::New)
        } else {
            (generation == self.old).then_some(Side::Old)
        }
    }

    /// Returns what has happened on both sides: new, old.
    pub(crate) fn sides(&self) -> (TrialSide, TrialSide) {
        let counts = self.counts.lock();
        let Comparison { failing_visitors, slow_visitors, crashes, worker_bytes, .. } =
            counts.comparison;
        let side = |generation, tally: &Tally, of: fn(Events) -> u64| TrialSide {
            generation,
            requests: tally.requests,
            errors: tally.errors,
            lost: tally.lost,
            overdue: tally.overdue,
            refused: tally.refused,
            failing_visitors: of(failing_visitors),
            slow_visitors: of(slow_visitors),
            crashes: of(crashes),
            median: tally.times.quantile(0.5),
            usual: tally.times.quantile(USUAL),
            worker_bytes: None,
        };
        let (mut new, mut old) = (
            side(self.new, &counts.new, |events| events.new),
            side(self.old, &counts.old, |events| events.old),
        );
        (new.worker_bytes, old.worker_bytes) = worker_bytes.unzip();
        (new, old)
    }
}

impl Visitor {
    /// Returns the generation that the visitor tries, if it gets the new code.
    pub(crate) fn tries(&self) -> Option<u64> {
        (self.number < self.trial.limit).then_some(self.trial.new)
    }

    /// Returns the generation that the visitor gets.
    pub(crate) fn generation(&self) -> u64 {
        self.tries().unwrap_or(self.trial.old)
    }

    /// Notes what has become of a request of the visitor to the workers of a generation. Returns
    /// whether this decides the trial.
    pub(crate) fn note(&self, generation: u64, outcome: Outcome) -> bool {
        // Otherwise the trial has ended meanwhile.
        if generation != self.generation() {
            return false;
        }
        let side = if self.tries().is_some() { Side::New } else { Side::Old };
        let mut counts = self.trial.counts.lock();
        let is_event = counts.note(side, self.number, outcome);
        if !is_event || counts.is_decided || side == Side::Old {
            return false;
        }
        counts.is_decided = counts.comparison.fault(self.trial.config.share()).is_some();
        counts.is_decided
    }
}

impl Counts {
    fn with_workers(workers: usize) -> Self {
        let workers = workers as u64;
        let comparison = Comparison { workers, ..Comparison::default() };
        let (untimed, warmed_workers) = (WARM_UP * workers, workers);
        Self { comparison, untimed, warmed_workers, ..Self::default() }
    }

    /// Returns whether a visitor has got a first failed or slow response.
    fn note(&mut self, side: Side, visitor: u64, outcome: Outcome) -> bool {
        let untimed = self.untimed;
        let tally = if side == Side::New { &mut self.new } else { &mut self.old };
        tally.requests += 1;
        let (is_failure, time) = match outcome {
            Outcome::Answered { is_error, took } => {
                tally.errors += u64::from(is_error);
                if side == Side::New {
                    self.comparison.crashes_in_a_row = 0;
                }
                (is_error, (side == Side::Old || tally.requests > untimed).then_some(took))
            }
            Outcome::Lost { had_others } => {
                tally.lost += 1;
                (!had_others, None)
            }
            Outcome::Overdue => {
                tally.overdue += 1;
                (true, None)
            }
            Outcome::Refused => {
                tally.refused += 1;
                // All visitors of a side are refused together, so they are no throws of a coin.
                (false, None)
            }
        };
        if let Some(time) = time {
            tally.times.add(time);
            if side == Side::Old && tally.times.count().is_multiple_of(TIMED_FIRST) {
                let usual = tally.times.quantile(USUAL);
                self.slow_from = usual.map(|usual| usual * SLOW_RATIO + SLOW_MARGIN);
            }
        }
        let is_slow = time.zip(self.slow_from).is_some_and(|(time, from)| time > from);
        let mut is_event = false;
        if is_failure && is_first(&mut self.failing, visitor) {
            count(&mut self.comparison.failing_visitors, side);
            is_event = true;
        }
        if is_slow && is_first(&mut self.slow, visitor) {
            count(&mut self.comparison.slow_visitors, side);
            is_event = true;
        }
        is_event
    }
}

/// Returns whether a visitor is not among those that are known, and adds it.
fn is_first(known: &mut HashSet<u64>, visitor: u64) -> bool {
    known.len() < MAX_VISITORS && known.insert(visitor)
}

fn count(events: &mut Events, side: Side) {
    match side {
        Side::New => events.new += 1,
        Side::Old => events.old += 1,
    }
}

#[cfg(test)]
#[path = "running_tests.rs"]
mod tests;
