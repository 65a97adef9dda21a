//! One part of the store: a table of keys, the slots they lead to, and the queue they leave by.
//!
//! A shard does what it is told to its own items. What needs the whole store — numbering,
//! invalidation, the budget — is decided by its callers in `store.rs`, `write.rs` and `budget.rs`.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foldhash::HashMap;
use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::blob::{Blob, blob_bytes, join};
use crate::clock::{Expires, Now};
use crate::item::ItemRef;
use crate::s3fifo::Queues;
use crate::side::Side;
use crate::slab::{Slab, Slot, mark, place};

/// One part of the store, behind a lock of its own.
pub(crate) struct Shard {
    hasher: RandomState,
    /// Slot indices by the hash of the key. The hash is not kept: it is computed from the key again
    /// when the table grows, which is cheaper than four more bytes an item.
    table: HashTable<u32>,
    pub(crate) slab: Slab,
    pub(crate) queues: Queues,
    sides: HashMap<u32, Arc<Side>>,
    /// Blobs and sides; the table and the slab know their own size.
    content_bytes: usize,
    /// Where the sweep goes on.
    pub(crate) sweep_cursor: u32,
    /// The last number that had been given out when the sweep began at slot 0.
    pub(crate) sweep_starts: u64,
    /// Items numbered up to here have all been looked at by the sweep.
    pub(crate) swept_up_to: u64,
}

/// Everything about an item but its place in the shard.
pub(crate) struct Record {
    pub(crate) blob: Blob,
    pub(crate) key_len: u16,
    pub(crate) side: Side,
    pub(crate) cas: u64,
    pub(crate) expires: Expires,
    pub(crate) last_access: Now,
    pub(crate) flags: u32,
    pub(crate) marks: u8,
}

impl Record {
    /// What the item takes from the budget beside its slot and its place in the table.
    pub(crate) fn bytes(&self) -> usize {
        blob_bytes(self.blob.len()) + if self.side.is_needed() { self.side.bytes() } else { 0 }
    }
}

impl Shard {
    pub(crate) fn new(hasher: RandomState) -> Shard {
        Shard {
            hasher,
            table: HashTable::new(),
            slab: Slab::default(),
            queues: Queues::default(),
            sides: HashMap::default(),
            content_bytes: 0,
            sweep_cursor: 0,
            sweep_starts: 0,
            swept_up_to: 0,
        }
    }

    /// All bytes this shard takes from the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.content_bytes + self.slab.bytes() + self.table.allocation_size() + self.queues.bytes()
    }

    /// The bytes by which one more item would grow slab and table.
    pub(crate) fn growth_bytes(&self) -> usize {
        let table = if self.table.len() < self.table.capacity() {
            0
        } else {
            // hashbrown doubles its buckets: as much again, and a little for its smallest sizes.
            self.table.allocation_size() + 64
        };
        self.slab.growth_bytes() + table
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Bytes of keys, values and sides.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    /// Bytes of the table from hash to slot.
    pub(crate) fn table_bytes(&self) -> usize {
        self.table.allocation_size()
    }

    /// The slot of a key.
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.table.find(hash, |&index| key_of(self.slab.get(index)) == key).copied()
    }

    pub(crate) fn slot(&self, index: u32) -> &Slot {
        self.slab.get(index)
    }

    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        self.slab.get_mut(index)
    }

    /// The slot at `index` when it holds an item.
    pub(crate) fn occupied(&self, index: u32) -> Option<&Slot> {
        self.slab.find(index).filter(|slot| slot.blob.is_some())
    }

    /// One more than the highest slot index.
    pub(crate) fn end(&self) -> u32 {
        self.slab.end()
    }

    /// Side of a slot that has one.
    pub(crate) fn side(&self, index: u32) -> Option<&Arc<Side>> {
        if self.slab.get(index).has_side() { self.sides.get(&index) } else { None }
    }

    /// The item in a slot as a reader sees it, with `marks` as they were before this access.
    pub(crate) fn item(&self, index: u32, also_marks: u8) -> Option<ItemRef> {
        let slot = self.slab.get(index);
        Some(ItemRef {
            blob: Arc::clone(slot.blob.as_ref()?),
            side: self.side(index).cloned(),
            cas: slot.cas,
            expires: Expires::from_raw(slot.expires),
            last_access: Now::from_raw(slot.last_access.load(Ordering::Relaxed)),
            flags: slot.flags,
            key_len: slot.key_len,
            marks: slot.marks.load(Ordering::Relaxed) | also_marks,
        })
    }

    /// Notes a fetch; a reader may do this.
    pub(crate) fn mark_fetched(&self, index: u32, now: Now) {
        let marks = &self.slab.get(index).marks;
        // Looking before writing keeps the cache line shared between readers of a hot item.
        if marks.load(Ordering::Relaxed) & mark::FETCHED == 0 {
            marks.fetch_or(mark::FETCHED, Ordering::Relaxed);
        }
        self.mark_used(index, now);
    }

    /// Notes a use that is no fetch; a reader may do this.
    pub(crate) fn mark_used(&self, index: u32, now: Now) {
        let slot = self.slab.get(index);
        slot.count_hit();
        if slot.last_access.load(Ordering::Relaxed) != now.raw() {
            slot.last_access.store(now.raw(), Ordering::Relaxed);
        }
    }

    /// Enters an item whose key is not there yet.
    pub(crate) fn insert(&mut self, hash: u64, record: Record) -> u32 {
        let index = self.slab.take();
        let bytes = record.bytes();
        self.fill(index, record);
        let Shard { table, slab, hasher, queues, .. } = self;
        table.insert_unique(hash, index, |&index| hasher.hash_one(key_of(slab.get(index))));
        queues.insert(slab, index, hash, bytes);
        index
    }

    /// Puts new content into a slot; the item keeps its place in its queue.
    pub(crate) fn replace(&mut self, index: u32, record: Record) {
        let old_bytes = self.item_bytes(index);
        self.content_bytes -= old_bytes;
        self.queues.resize(&self.slab, index, old_bytes, record.bytes());
        if !record.side.is_needed() && self.slab.get(index).has_side() {
            self.sides.remove(&index);
        }
        self.fill(index, record);
    }

    fn fill(&mut self, index: u32, record: Record) {
        self.content_bytes += record.bytes();
        let has_side = record.side.is_needed();
        let slot = self.slab.get_mut(index);
        slot.blob = Some(record.blob);
        slot.key_len = record.key_len;
        slot.cas = record.cas;
        slot.expires = record.expires.raw();
        *slot.last_access.get_mut() = record.last_access.raw();
        slot.flags = record.flags;
        *slot.marks.get_mut() = record.marks;
        slot.set_has_side(has_side);
        if has_side {
            self.sides.insert(index, Arc::new(record.side));
        }
    }

    /// Changes what lies beside a slot.
    pub(crate) fn set_side(&mut self, index: u32, side: Side) {
        let old_bytes = self.item_bytes(index);
        let needed = side.is_needed();
        self.slab.get_mut(index).set_has_side(needed);
        if needed {
            self.sides.insert(index, Arc::new(side));
        } else {
            self.sides.remove(&index);
        }
        let new_bytes = self.item_bytes(index);
        self.content_bytes = self.content_bytes - old_bytes + new_bytes;
        self.queues.resize(&self.slab, index, old_bytes, new_bytes);
    }

    /// Gives an item a new CAS. `sequence` says when it was stored if `cas` does not.
    pub(crate) fn set_cas(&mut self, index: u32, cas: u64, sequence: Option<u64>) {
        self.slab.get_mut(index).cas = cas;
        let side = self.side(index);
        if side.and_then(|side| side.sequence) != sequence {
            let side = side.map(|side| Side::clone(side)).unwrap_or_default();
            self.set_side(index, Side { sequence, ..side });
        }
    }

    /// The value of an item.
    pub(crate) fn value(&self, index: u32) -> &[u8] {
        if let Some(value) = self.side(index).and_then(|side| side.value.as_ref()) {
            return value;
        }
        let slot = self.slab.get(index);
        slot.blob.as_ref().and_then(|blob| blob.get(slot.key_len as usize..)).unwrap_or_default()
    }

    /// The value of an item, to be changed in place: when it lies behind its key, no reader holds it
    /// and nothing was computed from it.
    pub(crate) fn value_mut(&mut self, index: u32) -> Option<&mut [u8]> {
        let has_only_tags = |side: &Arc<Side>| side.value.is_none() && side.companions.is_empty();
        if !self.side(index).is_none_or(has_only_tags) {
            return None;
        }
        let slot = self.slab.get_mut(index);
        let key_len = slot.key_len as usize;
        Arc::get_mut(slot.blob.as_mut()?)?.get_mut(key_len..)
    }

    /// The item in a slot with `parts` as its value. Flags, expiry, tags and marks stay; what was
    /// computed from the old value does not.
    pub(crate) fn rewritten(&self, index: u32, parts: [&[u8]; 3]) -> Record {
        let slot = self.slab.get(index);
        let side = self.side(index);
        Record {
            blob: join(&[key_of(slot), parts[0], parts[1], parts[2]]),
            key_len: slot.key_len,
            side: Side {
                tags: side.map(|side| side.tags.clone()).unwrap_or_default(),
                sequence: side.and_then(|side| side.sequence),
                ..Side::default()
            },
            cas: slot.cas,
            expires: Expires::from_raw(slot.expires),
            last_access: Now::from_raw(slot.last_access.load(Ordering::Relaxed)),
            flags: slot.flags,
            marks: slot.marks.load(Ordering::Relaxed),
        }
    }

    /// Takes an item out.
    pub(crate) fn remove(&mut self, index: u32) {
        let Some(slot) = self.occupied(index) else { return };
        let hash = self.hasher.hash_one(key_of(slot));
        self.remove_hashed(index, hash);
    }

    /// Takes an item out to make room; if it comes back soon, that was a mistake.
    pub(crate) fn evict(&mut self, index: u32) {
        let Some(slot) = self.occupied(index) else { return };
        let hash = self.hasher.hash_one(key_of(slot));
        if !slot.is_in_main() {
            self.queues.remember(hash, self.slab.len());
        }
        self.remove_hashed(index, hash);
    }

    fn remove_hashed(&mut self, index: u32, hash: u64) {
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        let bytes = self.item_bytes(index);
        self.content_bytes -= bytes;
        self.queues.remove(&mut self.slab, index, bytes);
        if self.slab.get(index).has_side() {
            self.sides.remove(&index);
        }
        self.slab.release(index);
    }

    /// What an item takes beside its slot and its place in the table.
    pub(crate) fn item_bytes(&self, index: u32) -> usize {
        let blob = self.slab.get(index).blob.as_ref().map_or(0, |blob| blob_bytes(blob.len()));
        blob + self.side(index).map_or(0, |side| side.bytes())
    }

    /// Slots from the one that would leave first to the newest.
    pub(crate) fn in_queue_order(&self) -> Vec<u32> {
        self.queues.iter(&self.slab).collect()
    }

    /// Last access of the item that would leave first.
    pub(crate) fn oldest_access(&self) -> Option<Now> {
        let slot = self.slab.get(self.queues.iter(&self.slab).next()?);
        Some(Now::from_raw(slot.last_access.load(Ordering::Relaxed)))
    }

    /// Gives a table that became much too large back to the allocator.
    pub(crate) fn shrink(&mut self) {
        if self.table.capacity() > 1024 && self.table.len() < self.table.capacity() / 4 {
            let Shard { table, slab, hasher, .. } = self;
            table.shrink_to(table.len() * 2, |&index| hasher.hash_one(key_of(slab.get(index))));
            self.sides.shrink_to_fit();
        }
    }

    /// Takes every item out.
    pub(crate) fn clear(&mut self) {
        *self = Shard::new(self.hasher.clone());
    }
}

/// The key of the item in a slot; empty for a vacant one.
pub(crate) fn key_of(slot: &Slot) -> &[u8] {
    slot.blob.as_ref().and_then(|blob| blob.get(..slot.key_len as usize)).unwrap_or_default()
}

impl Slot {
    fn has_side(&self) -> bool {
        self.place & place::HAS_SIDE != 0
    }

    fn set_has_side(&mut self, has_side: bool) {
        self.place = self.place & !place::HAS_SIDE | if has_side { place::HAS_SIDE } else { 0 };
    }
}
