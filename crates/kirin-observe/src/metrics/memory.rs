//! The metrics of the store, the caches and purges.

use kirin_gateway::filters::cache::counters;
use kirin_gateway::purge::counters::COUNTERS as PURGES;
use kirin_metrics::Exposition;

use super::Metrics;
use super::families as f;

impl Metrics {
    /// Writes the metrics of the store, the caches and purges.
    pub(super) fn write_store(&self, out: &mut Exposition) {
        let stats = self.store.stats();
        out.sample(&f::STORE_ITEMS, &[], stats.curr_items);
        out.sample(&f::STORE_BYTES, &[], stats.bytes);
        out.sample(&f::STORE_LIMIT, &[], stats.limit_maxbytes);
        out.sample(&f::STORE_TAGS, &[], stats.curr_tags);
        out.sample(&f::STORE_GETS, &["hit"], stats.get_hits);
        out.sample(&f::STORE_GETS, &["miss"], stats.get_misses);
        out.sample(&f::STORE_SETS, &[], stats.cmd_set);
        out.sample(&f::STORE_DELETES, &["hit"], stats.delete_hits);
        out.sample(&f::STORE_DELETES, &["miss"], stats.delete_misses);
        out.sample(&f::STORE_EVICTIONS, &[], stats.evictions);
        out.sample(&f::STORE_EXPIRED, &["sweep"], stats.swept_items);
        out.sample(&f::STORE_EXPIRED, &["room"], stats.reclaimed);
        out.sample(&f::STORE_REFUSED, &["too_large"], stats.store_too_large);
        out.sample(&f::STORE_REFUSED, &["no_memory"], stats.store_no_memory);
        for (event, count) in counters::totals(&self.cache_counters) {
            out.sample(&f::CACHE_EVENTS, &[event], count);
        }
        out.sample(&f::PURGES, &[], PURGES.purges());
        for (kind, count) in PURGES.found() {
            out.sample(&f::PURGED, &[kind], count);
        }
    }
}
