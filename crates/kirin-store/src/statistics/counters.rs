//! The counters of a shard. Readers add to them under a shared lock, so they are atomic.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of the store since its start or since [`Store::reset_stats`](crate::Store::reset_stats),
/// with the names of memcached's `stats`. The first six are current values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // The names are memcached's, explained in its doc/protocol.txt.
pub struct StoreStats {
    pub curr_items: u64,
    /// All bytes that count against `limit_maxbytes`.
    pub bytes: u64,
    pub limit_maxbytes: u64,
    /// Bytes of the tables from hash to slot.
    pub hash_bytes: u64,
    /// Tags that items carry.
    pub curr_tags: u64,
    /// Invalidated prefixes that the sweep has not applied yet.
    pub curr_prefixes: u64,
    pub total_items: u64,
    pub cmd_set: u64,
    pub cmd_flush: u64,
    pub get_hits: u64,
    pub get_misses: u64,
    /// Misses because the item had expired.
    pub get_expired: u64,
    /// Misses because the item had been flushed or invalidated by tag or prefix.
    pub get_flushed: u64,
    pub delete_hits: u64,
    pub delete_misses: u64,
    pub incr_hits: u64,
    pub incr_misses: u64,
    pub decr_hits: u64,
    pub decr_misses: u64,
    pub cas_hits: u64,
    pub cas_misses: u64,
    pub cas_badval: u64,
    pub touch_hits: u64,
    pub touch_misses: u64,
    pub evictions: u64,
    pub evicted_unfetched: u64,
    /// Evicted items that had an expiry.
    pub evicted_nonzero: u64,
    pub expired_unfetched: u64,
    /// Expired or invalidated items that were removed to make room.
    pub reclaimed: u64,
    pub store_too_large: u64,
    pub store_no_memory: u64,
    /// Items freed by the sweep (`crawler_reclaimed`).
    pub swept_items: u64,
    /// Items examined by the sweep (`crawler_items_checked`).
    pub examined_items: u64,
}

impl StoreStats {
    /// Adds the writing commands that another store has counted.
    pub fn add_writes(&mut self, other: &StoreStats) {
        self.cmd_set += other.cmd_set;
        self.cmd_flush += other.cmd_flush;
        self.delete_hits += other.delete_hits;
        self.delete_misses += other.delete_misses;
        self.incr_hits += other.incr_hits;
        self.incr_misses += other.incr_misses;
        self.decr_hits += other.decr_hits;
        self.decr_misses += other.decr_misses;
        self.cas_hits += other.cas_hits;
        self.cas_misses += other.cas_misses;
        self.cas_badval += other.cas_badval;
        self.touch_hits += other.touch_hits;
        self.touch_misses += other.touch_misses;
        self.store_too_large += other.store_too_large;
        self.store_no_memory += other.store_no_memory;
    }
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// The counters of one shard.
        #[derive(Debug, Default)]
        pub(crate) struct ShardCounters {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl ShardCounters {
            /// Adds these counters to `stats`.
            pub(crate) fn add_to(&self, stats: &mut StoreStats) {
                $(stats.$name += self.$name.load(Ordering::Relaxed);)*
            }

            /// Sets all counters to 0 (`stats reset`).
            pub(crate) fn reset(&self) {
                $(self.$name.store(0, Ordering::Relaxed);)*
            }
        }
    };
}

counters!(
    get_hits,
    get_misses,
    get_expired,
    get_flushed,
    cmd_set,
    total_items,
    delete_hits,
    delete_misses,
    incr_hits,
    incr_misses,
    decr_hits,
    decr_misses,
    cas_hits,
    cas_misses,
    cas_badval,
    touch_hits,
    touch_misses,
    evictions,
    evicted_unfetched,
    evicted_nonzero,
    expired_unfetched,
    reclaimed,
    store_too_large,
    store_no_memory,
    swept_items,
    examined_items,
);

/// Adds 1 to a counter.
pub(crate) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
