//! Workers whose parent has ended. They finish their requests.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::parent::{has_workers, signal_workers};

/// How long they may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The workers that one parent has left.
pub(crate) struct Orphans {
    /// The generation of the parent.
    pub(crate) generation: u64,
    /// The process group of the parent.
    pub(crate) group: Pid,
    /// The process ids.
    pub(crate) workers: HashSet<u32>,
}

/// The orphans of all parents, each group with the time at which it is killed.
#[derive(Default)]
pub(crate) struct AllOrphans(Vec<(Orphans, Instant)>);

impl Orphans {
    /// Signals the workers. Returns whether there were any.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        signal_workers(self.group, &self.workers, signal)
    }

    fn are_left(&self) -> bool {
        has_workers(self.group, &self.workers)
    }
}

impl AllOrphans {
    pub(crate) fn add(&mut self, orphans: Orphans, now: Instant) {
        self.0.push((orphans, now + LIMIT));
    }

    /// Returns whether workers of a generation may be left.
    pub(crate) fn may_have(&self, generation: u64) -> bool {
        self.0.iter().any(|(orphans, _)| orphans.generation == generation)
    }

    /// Kills those that have taken too long. Returns the process ids of the groups of which none is
    /// left.
    pub(crate) fn end_overdue(&mut self, now: Instant) -> Vec<u32> {
        let ended = self.0.extract_if(.., |(orphans, deadline)| {
            !orphans.are_left() || (*deadline <= now && orphans.signal(Signal::KILL))
        });
        ended.flat_map(|(orphans, _)| orphans.workers).collect()
    }

    /// Kills all.
    pub(crate) fn kill(&mut self) {
        for (orphans, _) in self.0.drain(..) {
            orphans.signal(Signal::KILL);
        }
    }
}
