//! Counters of the caches of all routes since the start. Each event loop counts for itself; `GET
//! /status` adds them up.

use std::sync::Arc;

use kirin_metrics::Count;
use serde_json::{Map, Value};

/// The counters of one event loop.
#[derive(Debug, Default)]
pub struct CacheCounters {
    /// Requests answered with a fresh response.
    pub hits: Count,
    /// Requests answered with a stale response. The cache revalidates it at the same time, or the
    /// client accepts it.
    pub stale_hits: Count,
    /// Requests answered with the response to another request, which they waited for or read as it
    /// arrived.
    pub collapsed: Count,
    /// Times that the place was asked because no response was stored, or none that can be
    /// revalidated.
    pub misses: Count,
    /// Times that the place was asked to revalidate a response.
    pub validations: Count,
    /// Times that the place answered 304.
    pub not_modified: Count,
    /// Times that the place failed and a stale response was sent.
    pub stale_if_error: Count,
    /// Requests passed to the place because the response is known not to be stored.
    pub passed: Count,
    /// Requests that bypass the cache because of the configuration or their form.
    pub bypassed: Count,
    /// Responses stored.
    pub stored: Count,
    /// Responses not stored: they must not be, or are too large.
    pub not_stored: Count,
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

/// Returns the sums of all loops, with the names of the counters.
pub fn totals(loops: &[Arc<CacheCounters>]) -> impl Iterator<Item = (&'static str, u64)> {
    CacheCounters::default().named().map(|(name, _)| name).into_iter().enumerate().map(
        |(index, name)| {
            let count = |counters: &Arc<CacheCounters>| counters.named()[index].1.get();
            (name, loops.iter().map(count).sum())
        },
    )
}

/// Returns the sums of all loops as JSON.
pub fn sum(loops: &[Arc<CacheCounters>]) -> Map<String, Value> {
    totals(loops).map(|(name, sum)| (name.to_owned(), sum.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_all_loops_are_added() {
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
