//! What a shard counts. Readers add to these under a shared lock, so they are atomic.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// Counters of one shard.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counters {
            /// Adds these to `stats`.
            pub(crate) fn add_to(&self, stats: &mut crate::statistics::stats::StoreStats) {
                $(stats.$name += self.$name.load(Ordering::Relaxed);)*
            }

            /// Starts from nothing (`stats reset`).
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

/// Adds one.
pub(crate) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
