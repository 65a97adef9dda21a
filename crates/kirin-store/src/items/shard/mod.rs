//! A shard of the store. It has a table of keys, the slots of the items, the log with keys and
//! values, and the queues for eviction.
//!
//! A shard only works on its own items. Sequence numbers, invalidation and the budget belong to the
//! whole store. They are the business of its callers.

mod memory;

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use foldhash::quality::RandomState;
use foldhash::{HashMap, HashSet};
use hashbrown::HashTable;

use crate::clock::{Expires, Now};
use crate::eviction::s3fifo::Queues;
use crate::hand_over::changed_keys::ChangedKeys;
use crate::hand_over::item_step::ItemStep;
use crate::items::item::ItemRef;
use crate::items::prepared_item::{PlacedValue, PreparedItem};
use crate::items::side_data::{Companion, SideData};
use crate::items::value::{FilledBuffer, NewValue};
use crate::memory::log::Log;
use crate::memory::page::Record;
use crate::memory::region::Region;
use crate::memory::slab::{Slab, Slot, mark, status};

/// A shard of the store, behind a lock of its own.
pub(crate) struct Shard {
    hasher: RandomState,
    /// Slot indices by the hash of the key. The hash itself is not kept. When the table grows, it
    /// is computed from the key again, which is cheaper than four more bytes an item.
    table: HashTable<u32>,
    pub(crate) slab: Slab,
    pub(crate) log: Log,
    pub(crate) queues: Queues,
    sides: HashMap<u32, Arc<SideData>>,
    /// The slots with companions that were made from a copy.
    copied: HashSet<u32>,
    /// Bytes of all side data. The other parts know their own size.
    side_bytes: usize,
    /// Notes changes while the store is handed over.
    pub(crate) changed: Option<Box<ChangedKeys>>,
    /// The slot at which the sweep continues.
    pub(crate) sweep_cursor: u32,
    /// The last sequence number when the sweep began at slot 0.
    pub(crate) sweep_starts: u64,
    /// The sweep has looked at all items up to this sequence number.
    pub(crate) swept_up_to: u64,
}

/// An item whose key and value take more than this fraction of a page is not packed. So at most
/// this fraction of a page is lost because the next record does not fit.
const PACKED_ONE_IN: usize = 8;

/// An item with more bytes than this is never packed. A slow reader of it should not hold a page of
/// the largest size.
const PACKED_LIMIT_BYTES: usize = 32 << 10;

impl Shard {
    pub(crate) fn new(hasher: RandomState, page_bytes: usize) -> Shard {
        Shard {
            hasher,
            table: HashTable::new(),
            slab: Slab::default(),
            log: Log::new(page_bytes),
            queues: Queues::default(),
            sides: HashMap::default(),
            copied: HashSet::default(),
            side_bytes: 0,
            changed: None,
            sweep_cursor: 0,
            sweep_starts: 0,
            swept_up_to: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns the slot of a key.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.table.find(hash, |&index| self.key(index) == key).copied()
    }

    /// Returns the sequence number at which an item was stored, even if a client chose its CAS
    /// unique.
    pub(crate) fn sequence(&self, index: u32) -> u64 {
        self.side(index).and_then(|side| side.sequence).unwrap_or(self.slot(index).cas)
    }

    /// Returns whether an item was stored at this sequence number or later. False for a stale item:
    /// its number is that of the mark. The number at which it was stored has been noted
    /// (`Store::note_leaving`).
    pub(crate) fn is_stored_since(&self, index: u32, sequence: u64) -> bool {
        let is_stale = self.slot(index).marks.load(Ordering::Relaxed) & mark::STALE != 0;
        !is_stale && self.sequence(index) >= sequence
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot {
        self.slab.get(index)
    }

    /// Returns a slot for a change of its item.
    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        self.note_change(index);
        self.slab.get_mut(index)
    }

    /// Notes that a client writes or removes the item with this key, whether it is there or not.
    #[inline]
    pub(crate) fn note_write(&mut self, key: &[u8]) {
        if let Some(changed) = &mut self.changed {
            changed.insert(key);
        }
    }

    /// Notes a change that a client makes to an item, without the rest of it.
    #[inline]
    pub(crate) fn note_step(&mut self, key: &[u8], step: ItemStep) {
        if let Some(changed) = &mut self.changed {
            changed.insert_step(key, step);
        }
    }

    /// Notes that an item changes, perhaps without the wish of a client.
    #[inline]
    fn note_change(&mut self, index: u32) {
        if self.changed.is_some() {
            self.note_key_of(index);
        }
    }

    #[cold]
    fn note_key_of(&mut self, index: u32) {
        let Self { changed: Some(changed), slab, log, .. } = self else { return };
        if changed.counts_all {
            changed.insert(log.record(slab.get(index).address).key);
        }
    }

    /// Returns the slot at `index` if it holds an item.
    pub(crate) fn occupied(&self, index: u32) -> Option<&Slot> {
        self.slab.find(index).filter(|slot| !slot.is_vacant())
    }

    /// Returns one more than the highest slot index.
    pub(crate) fn end(&self) -> u32 {
        self.slab.end()
    }

    fn record(&self, index: u32) -> Record<'_> {
        self.log.record(self.slab.get(index).address)
    }

    /// Returns the key of an item.
    #[inline]
    pub(crate) fn key(&self, index: u32) -> &[u8] {
        self.record(index).key
    }

    /// Returns the value of an item.
    pub(crate) fn value(&self, index: u32) -> &[u8] {
        match self.side(index).and_then(|side| side.value.as_ref()) {
            Some(value) => value,
            None => self.record(index).value,
        }
    }

    /// Returns the side data of an item.
    #[inline]
    pub(crate) fn side(&self, index: u32) -> Option<&Arc<SideData>> {
        if self.slab.get(index).has_side() { self.sides.get(&index) } else { None }
    }

    /// Returns the item in a slot for a reader. Its marks are those before this access, with
    /// `also_marks` added.
    pub(crate) fn item(&self, index: u32, also_marks: u8) -> ItemRef {
        self.item_beside(index, self.side(index), also_marks)
    }

    /// Does the same for a caller that has found the side data of the item already.
    #[inline]
    pub(crate) fn item_beside(
        &self,
        index: u32,
        side: Option<&Arc<SideData>>,
        also_marks: u8,
    ) -> ItemRef {
        let slot = self.slab.get(index);
        let record = self.log.record(slot.address);
        let content = match side.and_then(|side| side.value.as_ref()) {
            // The value is elsewhere. The reader should not hold a page for the key alone.
            Some(_) => Bytes::copy_from_slice(record.key),
            None => self.log.share_record(slot.address, &record),
        };
        ItemRef {
            key_len: record.key.len() as u16,
            content,
            side: side.cloned(),
            cas: slot.cas,
            expires: Expires::from_raw(slot.expires),
            last_access: Now::from_raw(slot.last_access.load(Ordering::Relaxed)),
            flags: slot.flags,
            marks: slot.marks.load(Ordering::Relaxed) | also_marks,
        }
    }

    /// Marks an item as fetched and used. A reader may call this.
    #[inline]
    pub(crate) fn mark_fetched(&self, index: u32, now: Now) {
        let marks = &self.slab.get(index).marks;
        // The mark is read before it is written, so that readers of a hot item share the cache
        // line.
        if marks.load(Ordering::Relaxed) & mark::FETCHED == 0 {
            marks.fetch_or(mark::FETCHED, Ordering::Relaxed);
        }
        self.mark_used(index, now);
    }

    /// Marks an item as used. A reader may call this.
    #[inline]
    pub(crate) fn mark_used(&self, index: u32, now: Now) {
        let slot = self.slab.get(index);
        slot.count_hit();
        if slot.last_access.load(Ordering::Relaxed) != now.raw() {
            slot.last_access.store(now.raw(), Ordering::Relaxed);
        }
    }

    /// Decides whether a value is packed into a page or gets an allocation of its own.
    pub(crate) fn place_value<'a>(&self, key: &[u8], value: &'a NewValue<'_>) -> PlacedValue<'a> {
        let slice = value.as_slice();
        match value {
            _ if self.is_packed(key.len() + slice.len()) => {
                PlacedValue::Packed(Cow::Borrowed(slice))
            }
            NewValue::Buffer(FilledBuffer(value)) => PlacedValue::Separate(value.clone()),
            NewValue::Owned(_) | NewValue::Copied(_) => {
                PlacedValue::Separate(Region::copy_of(slice))
            }
        }
    }

    fn is_packed(&self, len: usize) -> bool {
        len <= (self.log.page_bytes() / PACKED_ONE_IN).min(PACKED_LIMIT_BYTES)
    }

    /// Inserts an item whose key is not in the table.
    pub(crate) fn insert(&mut self, hash: u64, prepared: PreparedItem<'_>) -> u32 {
        let index = self.slab.take();
        let bytes = prepared.bytes();
        self.slab.get_mut(index).address = self.log.append(index, prepared.key, &prepared.value);
        self.fill(index, prepared);
        let Shard { table, slab, log, hasher, queues, .. } = self;
        table.insert_unique(hash, index, |&index| {
            hasher.hash_one(log.record(slab.get(index).address).key)
        });
        queues.insert(slab, index, hash, bytes);
        debug_assert!(self.table.len() == self.slab.len(), "{} keys of items", self.table.len());
        debug_assert!(self.item_bytes(index) == bytes, "{bytes} bytes are counted for {index}");
        self.note_change(index);
        index
    }

    /// Puts new content into a slot. The item keeps its place in its queue.
    pub(crate) fn replace(&mut self, index: u32, prepared: PreparedItem<'_>) {
        self.note_change(index);
        let (old_bytes, bytes) = (self.item_bytes(index), prepared.bytes());
        self.queues.resize(&mut self.slab, index, old_bytes, bytes);
        self.take_side(index);
        let old = self.slab.get(index).address;
        match self.log.value_mut(old) {
            Some(value) if value.len() == prepared.value.len() => {
                value.copy_from_slice(&prepared.value)
            }
            _ => {
                self.log.release(old);
                self.slab.get_mut(index).address =
                    self.log.append(index, prepared.key, &prepared.value);
            }
        }
        self.fill(index, prepared);
        debug_assert!(self.item_bytes(index) == bytes, "{bytes} bytes are counted for {index}");
    }

    fn fill(&mut self, index: u32, prepared: PreparedItem<'_>) {
        let slot = self.slab.get_mut(index);
        slot.cas = prepared.cas;
        slot.expires = prepared.expires.raw();
        *slot.last_access.get_mut() = prepared.last_access.raw();
        slot.flags = prepared.flags;
        *slot.marks.get_mut() = prepared.marks;
        self.put_side(index, prepared.side);
    }

    fn put_side(&mut self, index: u32, side: SideData) {
        let needed = side.is_needed();
        self.slab.get_mut(index).set_has_side(needed);
        if needed {
            self.side_bytes += side.bytes();
            let before = self.sides.insert(index, Arc::new(side));
            debug_assert!(before.is_none(), "the bytes of the old side data of {index} are lost");
        }
        debug_assert!(self.sides.len() <= self.slab.len(), "a vacant slot has side data");
    }

    fn take_side(&mut self, index: u32) -> Option<Arc<SideData>> {
        if !self.slab.get(index).has_side() {
            return None;
        }
        debug_assert!(self.sides.contains_key(&index), "slot {index} has lost its side data");
        let side = self.sides.remove(&index)?;
        debug_assert!(self.side_bytes >= side.bytes(), "{} bytes of sides", self.side_bytes);
        self.side_bytes -= side.bytes();
        debug_assert!(!self.sides.is_empty() || self.side_bytes == 0, "{}", self.side_bytes);
        self.slab.get_mut(index).set_has_side(false);
        Some(side)
    }

    /// Changes the side data of an item.
    pub(crate) fn change_side(&mut self, index: u32, change: impl FnOnce(&mut SideData)) {
        let old_bytes = self.item_bytes(index);
        let mut side = self.take_side(index).map(Arc::unwrap_or_clone).unwrap_or_default();
        change(&mut side);
        self.put_side(index, side);
        let bytes = self.item_bytes(index);
        self.queues.resize(&mut self.slab, index, old_bytes, bytes);
    }

    /// Adds a companion to an item.
    pub(crate) fn add_companion(&mut self, index: u32, companion: Companion) {
        if companion.copied_bytes > 0 {
            self.copied.insert(index);
        }
        self.change_side(index, |side| side.companions.push(companion));
    }

    /// Gives an item a new CAS unique. `sequence` is the item's sequence number if `cas` differs
    /// from it.
    pub(crate) fn set_cas(&mut self, index: u32, cas: u64, sequence: Option<u64>) {
        self.slot_mut(index).cas = cas;
        if self.side(index).and_then(|side| side.sequence) != sequence {
            self.change_side(index, |side| side.sequence = sequence);
        }
    }

    /// Returns the value of an item for a change in place. `None` if its page is full or something
    /// was computed from the value.
    pub(crate) fn value_mut(&mut self, index: u32) -> Option<&mut [u8]> {
        let has_only_tags =
            |side: &Arc<SideData>| side.value.is_none() && side.companions.is_empty();
        if !self.side(index).is_none_or(has_only_tags) {
            return None;
        }
        self.note_change(index);
        self.log.value_mut(self.slab.get(index).address)
    }

    /// Prepares the item in a slot with a new value. Flags, expiry, tags and marks stay. The
    /// companions of the old value do not.
    pub(crate) fn with_new_value<'a>(
        &self,
        index: u32,
        key: &'a [u8],
        value: Vec<u8>,
    ) -> PreparedItem<'a> {
        let slot = self.slab.get(index);
        let value = if self.is_packed(key.len() + value.len()) {
            PlacedValue::Packed(Cow::Owned(value))
        } else {
            PlacedValue::Separate(Region::copy_of(&value))
        };
        let mut prepared = PreparedItem::new(key, value);
        if let Some(side) = self.side(index) {
            prepared.side.tags = side.tags.clone();
            prepared.side.sequence = side.sequence;
        }
        prepared.cas = slot.cas;
        prepared.expires = Expires::from_raw(slot.expires);
        prepared.last_access = Now::from_raw(slot.last_access.load(Ordering::Relaxed));
        prepared.flags = slot.flags;
        prepared.marks = slot.marks.load(Ordering::Relaxed);
        prepared
    }

    /// Removes an item.
    pub(crate) fn remove(&mut self, index: u32) {
        let hash = self.hasher.hash_one(self.key(index));
        self.remove_hashed(index, hash);
    }

    /// Removes an item to make room. Its key is remembered, since the eviction was too early if it
    /// comes back soon.
    pub(crate) fn evict(&mut self, index: u32) {
        let hash = self.hasher.hash_one(self.key(index));
        if !self.slab.get(index).is_in_main() {
            self.queues.remember(hash, self.slab.len());
        }
        self.remove_hashed(index, hash);
    }

    fn remove_hashed(&mut self, index: u32, hash: u64) {
        self.note_change(index);
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        let bytes = self.item_bytes(index);
        self.queues.remove(&mut self.slab, index, bytes);
        self.take_side(index);
        self.log.release(self.slab.get(index).address);
        self.slab.release(index);
        debug_assert!(self.table.len() == self.slab.len(), "{} keys of items", self.table.len());
    }

    /// Lists the slots from the one that would be evicted first to the newest.
    pub(crate) fn in_queue_order(&self) -> Vec<u32> {
        self.queues.in_order(&self.slab)
    }

    /// Returns the last access of the item that would be evicted first.
    pub(crate) fn oldest_access(&self) -> Option<Now> {
        let slot = self.slab.get(self.queues.last(&self.slab, None)?);
        Some(Now::from_raw(slot.last_access.load(Ordering::Relaxed)))
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        let changed = self.changed.take();
        *self = Shard::new(self.hasher.clone(), self.log.page_bytes());
        self.changed = changed;
    }
}

impl Slot {
    fn has_side(&self) -> bool {
        self.status & status::HAS_SIDE != 0
    }

    fn set_has_side(&mut self, has_side: bool) {
        self.status = self.status & !status::HAS_SIDE | if has_side { status::HAS_SIDE } else { 0 };
    }
}
