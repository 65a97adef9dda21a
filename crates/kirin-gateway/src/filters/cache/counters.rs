//! What the caches of the routes have done since the start. Each event loop counts for itself; `GET
//! /status` adds them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Map, Value};

/// Counts of one event loop.
#[derive(Debug, Default)]
pub struct CacheCounters {
    /// Requests answered by what is fresh.
    pub hits: Count,
    /// Requests answered by what is stale: it is made anew meanwhile, or the client does not mind.
    pub stale_hits: Count,
    /// Requests that were answered by what another had asked for: waited for, or read while it
    /// came.
    pub collapsed: Count,
    /// Times that the place was asked since nothing was stored, or nothing that it could be asked
    /// about.
    pub misses: Count,
    /// Times that it was asked whether what is stored is still good.
    pub validations: Count,
    /// Times that it said so.
    pub not_modified: Count,
    /// Times that it failed and what is stale took its place.
    pub stale_if_error: Count,
    /// Requests passed on since it is known that the answer is not stored.
    pub passed: Count,
    /// Requests that the configuration or their form keeps away.
    pub bypassed: Count,
    /// Responses stored.
    pub stored: Count,
    /// Responses that may not be stored, or are too large.
    pub not_stored: Count,
}

/// A count that one thread writes and any reads.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more. Not one instruction, and so without the price of one: the loop is the only one
    /// that writes.
    pub fn add(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

impl CacheCounters {
    fn named(&self) -> [(&'static str, &Count); 11] {
        [
            ("hits", &self.hits),
            ("stale_hits", &self.stale_hits),
            ("collapsed", &self.collapsed),
            ("misses", &self.misses),
            ("validations", &self.validations),
            ("not_modified", &self.not_modified),
            ("stale_if_error", &self.stale_if_error),
            ("passed", &self.passed),
            ("bypassed", &self.bypassed),
            ("stored", &self.stored),
            ("not_stored", &self.not_stored),
        ]
    }
}

/// The counts of all loops.
pub fn sum(loops: &[Arc<CacheCounters>]) -> Map<String, Value> {
    let mut sums = Map::new();
    for (index, (name, _)) in CacheCounters::default().named().iter().enumerate() {
        let count = |counters: &Arc<CacheCounters>| counters.named()[index].1.0.load(Relaxed);
        sums.insert((*name).to_owned(), loops.iter().map(count).sum::<u64>().into());
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_of_all_loops() {
        let loops = [Arc::<CacheCounters>::default(), Arc::default()];
        loops[0].hits.add();
        loops[1].hits.add();
        loops[1].not_stored.add();
        let sum = sum(&loops);
        assert_eq!(
            (&sum["hits"], &sum["not_stored"], &sum["misses"]),
            (&2.into(), &1.into(), &0.into())
        );
    }
}
