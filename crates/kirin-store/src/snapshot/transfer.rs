//! Writes the items of a store to a snapshot and loads them from one.

use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::atomic::Ordering;

use crate::clock::{Expires, Now};
use crate::commands::storage::NewItem;
use crate::invalidation::state::ItemState;
use crate::items::item::ItemRef;
use crate::items::value::NewValue;
use crate::memory::slab::mark;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::{
    BlockWriter, HEADER_BYTES, SnapshotRecord, SnapshotSummary, check, read_array,
};
use crate::snapshot::time::{SnapshotTime, translate_expiry};
use crate::store::Store;

/// Slots that are read under one lock.
const SLOTS_PER_LOCK: usize = 256;

impl Store {
    /// Writes all live items to `to`, each shard in the order of eviction. Other threads may use
    /// the store meanwhile. An item that changes is written as it was before or after the change.
    pub fn write_snapshot(
        &self,
        to: &mut impl Write,
        time: impl Into<SnapshotTime>,
    ) -> Result<SnapshotSummary, SnapshotError> {
        let time = time.into();
        let now = time.now;
        let mut blocks = BlockWriter::begin(to, time, self.last_sequence())?;
        for locked in &self.shards {
            let order = locked.shard.read().in_queue_order();
            for some in order.chunks(SLOTS_PER_LOCK) {
                let items: Vec<ItemRef> = {
                    let shard = locked.shard.read();
                    let live = some.iter().filter(|&&index| shard.occupied(index).is_some());
                    live.filter_map(|&index| match self.state_of(&shard, index, now) {
                        ItemState::Fresh => Some(shard.item(index, 0)),
                        ItemState::Stale => Some(shard.item(index, mark::STALE)),
                        ItemState::Invalidated | ItemState::Expired => None,
                    })
                    .collect()
                };
                for item in &items {
                    blocks.record(item)?;
                }
            }
        }
        blocks.finish()
    }

    /// Loads a snapshot. All of it is checked before the first item goes in, so a damaged or
    /// foreign file changes nothing. Items that are in the store already are kept.
    pub fn read_snapshot(
        &self,
        from: &mut (impl Read + Seek),
        time: impl Into<SnapshotTime>,
    ) -> Result<SnapshotSummary, SnapshotError> {
        let time = time.into();
        let start = from.stream_position()?;
        let last_sequence = check(from)?;
        from.seek(SeekFrom::Start(start + HEADER_BYTES as u64))?;
        self.sequences.fetch_max(last_sequence, Ordering::Relaxed);
        let mut summary = SnapshotSummary::default();
        let mut block = Vec::new();
        loop {
            let length = u32::from_le_bytes(read_array(from)?) as usize;
            if length == 0 {
                return Ok(summary);
            }
            let _checked = u64::from_le_bytes(read_array(from)?);
            block.resize(length, 0);
            from.read_exact(&mut block)?;
            summary.bytes += length as u64;
            let mut records = &block[..];
            while !records.is_empty() {
                let record = SnapshotRecord::parse(&mut records).ok_or(SnapshotError::Damaged {
                    at_byte: 0,
                    what: "a record does not fit its block",
                })?;
                if self.load(&record, time) {
                    summary.items += 1;
                } else {
                    summary.skipped += 1;
                }
            }
        }
    }

    /// Inserts a loaded item. Returns false if it has expired, is there already or finds no room.
    fn load(&self, record: &SnapshotRecord<'_>, time: SnapshotTime) -> bool {
        let expires = translate_expiry(Expires::from_raw(record.expires), |moment| {
            time.store_moment_of(moment)
        });
        if expires.is_due(time.now)
            || !self.is_storable(record.key, record.value.len(), &record.tags)
        {
            return false;
        }
        let hash = self.hash(record.key);
        let mut shard = self.lock_shard_of(hash);
        if shard.find(hash, record.key).is_some() {
            return false;
        }
        let item = NewItem {
            value: NewValue::Copied(record.value),
            flags: record.flags,
            expires,
            tags: &record.tags,
        };
        let mut entered = self.prepare(&shard, record.key, &item);
        // A CAS unique that a client chose does not tell when the item was stored.
        entered.side.sequence = (record.cas > self.last_sequence()).then(|| self.next_sequence());
        entered.cas = record.cas;
        entered.last_access = time.store_moment_of(Now::from_raw(record.last_access));
        entered.marks = record.marks;
        let bytes = shard.growth_bytes(&entered, None);
        // If the snapshot is larger than the limit, it must not evict items that it has just
        // loaded.
        if !self.budget.reserve(bytes) {
            return false;
        }
        shard.reserved_bytes += bytes;
        shard.insert(hash, entered);
        true
    }
}
