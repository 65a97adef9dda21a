//! The counters of purges since the start of the program, for metrics.
//!
//! There is one set for the program: purges come from event loops and from the admin listener, and
//! they are rare.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::purge::command::Purged;

/// The counters of the program.
pub static COUNTERS: PurgeCounters = PurgeCounters {
    purges: AtomicU64::new(0),
    keys: AtomicU64::new(0),
    prefixes: AtomicU64::new(0),
    tags: AtomicU64::new(0),
};

/// The counters of purges.
#[derive(Debug)]
pub struct PurgeCounters {
    purges: AtomicU64,
    keys: AtomicU64,
    prefixes: AtomicU64,
    tags: AtomicU64,
}

impl PurgeCounters {
    /// Returns the number of purges.
    pub fn purges(&self) -> u64 {
        self.purges.load(Relaxed)
    }

    /// Returns the numbers of names that were found, by kind.
    pub fn found(&self) -> [(&'static str, u64); 3] {
        [("key", &self.keys), ("prefix", &self.prefixes), ("tag", &self.tags)]
            .map(|(kind, count)| (kind, count.load(Relaxed)))
    }

    pub(crate) fn count(&self, purged: &Purged) {
        self.purges.fetch_add(1, Relaxed);
        self.keys.fetch_add(purged.keys as u64, Relaxed);
        self.prefixes.fetch_add(purged.prefixes as u64, Relaxed);
        self.tags.fetch_add(purged.tags as u64, Relaxed);
    }
}
