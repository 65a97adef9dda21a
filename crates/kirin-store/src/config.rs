//! The configuration of a store.

/// The longest key in bytes. Memcached's limit of 250 bytes is part of its protocol. The store
/// takes longer keys, so that the web side can use a request target as a key.
pub const KEY_LIMIT_BYTES: usize = 2048;

/// The longest tag in bytes, and the longest prefix that can be invalidated.
pub const TAG_LIMIT_BYTES: usize = 250;

/// The most tags that one item carries. An item with more is too large.
pub const TAGS_PER_ITEM: usize = 64;

/// The configuration of a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Bytes for everything that the store holds: keys, values, item metadata, tables, tags and
    /// companions. Default 64 MiB.
    pub memory_bytes: usize,
    /// The largest item in bytes: key, value and metadata together. Default 1 MiB.
    pub item_limit_bytes: usize,
    /// The number of shards, each with a lock of its own. It is rounded up to a power of two and is
    /// at most 256. With 0, the default, there are at most 64, and each has room for eight of the
    /// largest items.
    pub shards: usize,
    /// Whether items are evicted to make room for others. If not (memcached's `-M`), a full store
    /// answers [`StoreOutcome::OutOfMemory`](crate::StoreOutcome). Default true.
    pub evict: bool,
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig { memory_bytes: 64 << 20, item_limit_bytes: 1 << 20, shards: 0, evict: true }
    }
}

impl StoreConfig {
    /// Returns the number of shards.
    pub(crate) fn shard_count(&self) -> usize {
        if self.shards > 0 {
            return self.shards.min(256).next_power_of_two();
        }
        let roomy = self.memory_bytes / self.item_limit_bytes.max(1).saturating_mul(8).max(1);
        let floor = roomy.clamp(1, 64);
        // Rounds down to a power of two. Rounding up would leave less room than each shard needs.
        if floor.is_power_of_two() { floor } else { floor.next_power_of_two() / 2 }
    }
}

impl StoreConfig {
    /// Returns the size of the pages that small items are packed into. It is a 64th of what a shard
    /// may hold, between 4 KiB and 1 MiB.
    pub(crate) fn page_bytes(&self) -> usize {
        let share = self.memory_bytes / self.shard_count();
        let floor = (share / 64).clamp(4 << 10, 1 << 20);
        if floor.is_power_of_two() { floor } else { floor.next_power_of_two() / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_leave_room_for_eight_of_the_largest_items_each() {
        let shards = |memory_bytes, item_limit_bytes| {
            StoreConfig { memory_bytes, item_limit_bytes, ..StoreConfig::default() }.shard_count()
        };
        assert_eq!(shards(64 << 20, 1 << 20), 8);
        assert_eq!(shards(100 << 20, 1 << 20), 8);
        assert_eq!(shards(1 << 20, 1 << 20), 1);
        assert_eq!(shards(64 << 30, 1 << 20), 64);
        assert_eq!(StoreConfig { shards: 5, ..StoreConfig::default() }.shard_count(), 8);
    }
}
