//! Takes memory for a shard from the budget, and frees it.

use std::hash::BuildHasher;

use super::Shard;
use crate::items::prepared_item::PreparedItem;
use crate::items::side_data::Companion;
use crate::memory::page::record_bytes;

/// The bytes of one entry of `Shard::copied`.
const COPIED_BYTES: usize = size_of::<u32>() + 1;

impl Shard {
    /// Returns all bytes that this shard takes from the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.log.bytes()
            + self.side_bytes
            + self.slab.bytes()
            + self.table.allocation_size()
            + self.queues.bytes()
            + self.copied.capacity() * COPIED_BYTES
    }

    /// Returns the bytes by which one more entry of `copied` may grow the shard.
    pub(crate) fn copied_growth_bytes(&self) -> usize {
        if self.copied.len() < self.copied.capacity() {
            0
        } else {
            // hashbrown doubles the capacity, and its smallest sizes need a little more.
            (self.copied.capacity() + 8) * COPIED_BYTES
        }
    }

    /// Returns the bytes by which an item will grow the shard, in the slot `over` or in a new one.
    pub(crate) fn growth_bytes(&self, prepared: &PreparedItem<'_>, over: Option<u32>) -> usize {
        let old_side_bytes = over.and_then(|index| self.side(index)).map_or(0, |side| side.bytes());
        let side = prepared.side_bytes().saturating_sub(old_side_bytes);
        let log = self.log.growth_bytes(prepared.packed_len());
        if over.is_some() {
            return side + log;
        }
        let table = if self.table.len() < self.table.capacity() {
            0
        } else {
            // hashbrown doubles its buckets, and its smallest sizes need a little more.
            self.table.allocation_size() + 64
        };
        side + log + table + self.slab.growth_bytes()
    }

    /// Returns the bytes of keys, values and side data.
    pub(crate) fn content_bytes(&self) -> usize {
        self.log.live_bytes() + self.side_bytes
    }

    /// Returns the bytes of the table from hash to slot.
    pub(crate) fn table_bytes(&self) -> usize {
        self.table.allocation_size()
    }

    /// Returns the bytes that an item takes, without its slot and its entry in the table.
    #[inline]
    pub(crate) fn item_bytes(&self, index: u32) -> usize {
        let record = self.record(index);
        record_bytes(record.key.len() + record.value.len())
            + self.side(index).map_or(0, |side| side.bytes())
    }

    /// Drops the companions that were made from copies of content that readers can share by now.
    pub(crate) fn drop_copies(&mut self) {
        if self.copied.is_empty() || !self.log.was_page_closed() {
            return;
        }
        let mut copied = std::mem::take(&mut self.copied);
        copied.retain(|&index| {
            let Some(slot) = self.occupied(index) else { return false };
            if self.log.is_copied(slot.address) {
                return true;
            }
            let is_copy = |companion: &Companion| companion.copied_bytes > 0;
            if self.side(index).is_some_and(|side| side.companions.iter().any(is_copy)) {
                self.change_side(index, |side| {
                    side.companions.retain(|companion| !is_copy(companion))
                });
            }
            false
        });
        self.copied = copied;
        self.copied.shrink_to(self.copied.len() * 2);
    }

    /// Moves the needed records out of the page with the most holes and frees that page. Returns
    /// false if no page has holes.
    pub(crate) fn compact(&mut self) -> bool {
        self.log.forget_released_pages();
        let Some(page) = self.log.emptiest() else { return false };
        for (index, address) in self.log.records(page) {
            if self.slab.find(index).is_none_or(|slot| slot.address != address) {
                continue;
            }
            // A companion may hold a slice of the page. It is made again when a reader needs it.
            if self.side(index).is_some_and(|side| !side.companions.is_empty()) {
                self.change_side(index, |side| side.companions.clear());
            }
            self.slab.get_mut(index).address = self.log.relocate(address);
        }
        self.log.forget_released_pages();
        true
    }

    /// Shrinks a table that has become much too large.
    pub(crate) fn shrink_table(&mut self) {
        if self.table.capacity() > 1024 && self.table.len() < self.table.capacity() / 4 {
            let Shard { table, slab, log, hasher, .. } = self;
            table.shrink_to(table.len() * 2, |&index| {
                hasher.hash_one(log.record(slab.get(index).address).key)
            });
            self.sides.shrink_to_fit();
        }
    }
}
