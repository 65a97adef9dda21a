//! Numbers about an origin, for `kirin status` and the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start of the program.
#[derive(Debug, Default)]
pub struct OriginCounters {
    /// Items that were asked for because there was no copy.
    pub reads: AtomicU64,
    /// Those that the server had.
    pub read_hits: AtomicU64,
    /// Copies that were not kept, because an invalidation crossed them or nothing proved them.
    pub copies_refused: AtomicU64,
    /// Items that were written or removed.
    pub writes: AtomicU64,
    /// Writes that began again, because another writer was faster.
    pub write_conflicts: AtomicU64,
    /// Purges of keys, tags and prefixes.
    pub purges: AtomicU64,
    /// Keys that the server has reported as changed.
    pub invalidations: AtomicU64,
    /// Commands without an answer in time.
    pub timeouts: AtomicU64,
    /// Other commands that failed.
    pub failures: AtomicU64,
    /// Connections that were opened.
    pub connections: AtomicU64,
}

impl OriginCounters {
    /// Returns the names and the values of all counters.
    pub fn values(&self) -> [(&'static str, u64); 10] {
        [
            ("connections", &self.connections),
            ("reads", &self.reads),
            ("read_hits", &self.read_hits),
            ("copies_refused", &self.copies_refused),
            ("writes", &self.writes),
            ("write_conflicts", &self.write_conflicts),
            ("purges", &self.purges),
            ("invalidations", &self.invalidations),
            ("timeouts", &self.timeouts),
            ("failures", &self.failures),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
