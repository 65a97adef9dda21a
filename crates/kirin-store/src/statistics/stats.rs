//! The numbers of the store for `stats`, `stats items` and `stats sizes`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::clock::Now;
use crate::statistics::counters::StoreStats;
use crate::store::Store;

/// The numbers of `stats items`. Memcached has one set for each slab class; this store has a single
/// class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemStats {
    /// The number of items. Expired items that have not been swept yet are included.
    pub number: u64,
    /// Seconds since the last access of the item that would be evicted first.
    pub age_seconds: u64,
    /// Seconds between the last access of the last evicted item and its eviction.
    pub evicted_time_seconds: u64,
    /// Bytes of keys, values and side data.
    pub mem_requested: u64,
}

impl Store {
    /// Returns the numbers for `stats`.
    pub fn stats(&self) -> StoreStats {
        let mut stats = StoreStats {
            bytes: self.budget.used() as u64,
            limit_maxbytes: self.budget.limit() as u64,
            curr_tags: self.tags.len() as u64,
            curr_prefixes: self.prefixes.len() as u64,
            cmd_flush: self.flushes.load(Ordering::Relaxed),
            ..StoreStats::default()
        };
        for locked in &self.shards {
            locked.counters.add_to(&mut stats);
            let shard = locked.shard.read();
            stats.curr_items += shard.len() as u64;
            stats.hash_bytes += shard.table_bytes() as u64;
        }
        stats
    }

    /// Sets all counters to 0 (`stats reset`).
    pub fn reset_stats(&self) {
        self.flushes.store(0, Ordering::Relaxed);
        for locked in &self.shards {
            locked.counters.reset();
        }
    }

    /// Returns the numbers for `stats items`, or `None` if the store is empty.
    pub fn item_stats(&self, now: Now) -> Option<ItemStats> {
        let mut stats = ItemStats::default();
        for locked in &self.shards {
            let shard = locked.shard.read();
            stats.number += shard.len() as u64;
            stats.mem_requested += shard.content_bytes() as u64;
            let age = shard.oldest_access().map_or(0, |access| now.seconds_since(access));
            stats.age_seconds = stats.age_seconds.max(age);
        }
        stats.evicted_time_seconds = u64::from(self.evicted_idle_seconds.load(Ordering::Relaxed));
        (stats.number > 0).then_some(stats)
    }

    /// Returns the numbers for `stats sizes`: for each size, in steps of 32 bytes, the number of
    /// items that take at most that. Examines every item, one shard at a time.
    pub fn item_sizes(&self) -> BTreeMap<usize, u64> {
        let mut sizes = BTreeMap::new();
        for locked in &self.shards {
            let shard = locked.shard.read();
            for index in (0..shard.end()).filter(|&index| shard.occupied(index).is_some()) {
                let bytes = shard.item_bytes(index) + size_of::<crate::memory::slab::Slot>();
                *sizes.entry(bytes.next_multiple_of(32)).or_insert(0) += 1;
            }
        }
        sizes
    }
}
