//! What a store is told when it is made.

/// The longest key that the store takes. Memcached's own limit is 250 and is the protocol's
/// affair; a longer one here lets the web side use a request target as key.
pub const KEY_LIMIT_BYTES: usize = 2048;

/// The longest tag, and the longest prefix that can be invalidated.
pub const TAG_LIMIT_BYTES: usize = 250;

/// The most tags one item carries; more make the item too large.
pub const TAGS_PER_ITEM: usize = 64;

/// Sizes of a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Bytes for everything the store holds: keys, values, item metadata, tables, tags and what is
    /// kept beside items. Default 64 MiB.
    pub memory_bytes: usize,
    /// The largest item: key, value and metadata together, in bytes. Default 1 MiB.
    pub item_limit_bytes: usize,
    /// Parts with a lock of their own; rounded up to a power of two, at most 256. 0, the default,
    /// takes as many as leave each part room for eight of the largest items, at most 64.
    pub shards: usize,
    /// Whether items leave to make room for others. When not (memcached's `-M`), a full store
    /// answers [`StoreOutcome::OutOfMemory`](crate::StoreOutcome). Default true.
    pub evict: bool,
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig { memory_bytes: 64 << 20, item_limit_bytes: 1 << 20, shards: 0, evict: true }
    }
}

impl StoreConfig {
    /// The number of shards that `shards` asks for.
    pub(crate) fn shard_count(&self) -> usize {
        if self.shards > 0 {
            return self.shards.min(256).next_power_of_two();
        }
        let roomy = self.memory_bytes / self.item_limit_bytes.max(1).saturating_mul(8).max(1);
        let floor = roomy.clamp(1, 64);
        // Down to a power of two: rounding up would take the room that was asked for.
        if floor.is_power_of_two() { floor } else { floor.next_power_of_two() / 2 }
    }
}

impl StoreConfig {
    /// Size of the pages that small items are packed into: a 64th of what a shard may hold, between
    /// 4 KiB and 1 MiB.
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
