//! Invalidation of many items at once: by tag, by prefix, or of all items.
//!
//! No invalidation visits an item. Every stored item has a sequence number, which only grows (its
//! CAS unique, as a rule). An invalidation notes the number up to which items are invalid.
//! [`Store::state_of`] compares the two when the item is next read. A writer, the sweep or an
//! eviction then makes the result permanent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::clock::{Expires, Now};
use crate::config::TAG_LIMIT_BYTES;
use crate::hand_over::frame::Invalidated;
use crate::invalidation::state::{Invalidation, ItemState};
use crate::items::shard::Shard;
use crate::items::side_data::SideData;
use crate::store::Store;

impl Store {
    /// Makes every item stale or invalid that carries `tag` and was stored before this call. O(1).
    /// Returns false if no item carries the tag.
    pub fn invalidate_tag(&self, tag: &[u8], how: Invalidation) -> bool {
        self.note_tag(tag);
        let sequence = self.last_sequence();
        let is_carried = self.tags.invalidate(tag, how, sequence);
        self.invalidations.note(&Invalidated::Tag(tag, how), sequence);
        is_carried
    }

    /// Makes every item stale or invalid whose key starts with `prefix` and that was stored before
    /// this call. The empty prefix matches every key.
    ///
    /// O(1), amortised: the table of prefixes is bounded. If it is full, this call first applies it
    /// to all items. Returns false and does nothing if `prefix` is longer than [`TAG_LIMIT_BYTES`].
    pub fn invalidate_prefix(&self, prefix: &[u8], how: Invalidation, now: Now) -> bool {
        if prefix.len() > TAG_LIMIT_BYTES {
            return false;
        }
        self.note_prefix(prefix);
        loop {
            if let Some(sequence) = self.prefixes.invalidate(prefix, how, &self.sequences) {
                self.invalidations.note(&Invalidated::Prefix(prefix, how), sequence);
                return true;
            }
            self.sweep_everything(now);
        }
    }

    /// Drops all items that were stored before the time `at`. If that time is still to come, the
    /// items are dropped then. A later call replaces one that still waits.
    pub fn flush_all(&self, at: Now, now: Now) {
        self.flush_if_due(now);
        self.flushes.fetch_add(1, Ordering::Relaxed);
        if at <= now {
            self.flush_due.store(0, Ordering::Relaxed);
            self.flush_now();
        } else {
            self.flush_due.store(at.raw(), Ordering::Relaxed);
            self.invalidations.note_flush_due(at.raw());
        }
    }

    /// Carries out a delayed flush whose time has come.
    pub(crate) fn flush_if_due(&self, now: Now) {
        let due = self.flush_due.load(Ordering::Relaxed);
        if due == 0 || due > now.raw() {
            return;
        }
        let ours =
            self.flush_due.compare_exchange(due, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if ours {
            self.flush_now();
        }
    }

    pub(crate) fn flush_now(&self) {
        self.note_prefix(b"");
        let sequence = self.last_sequence();
        self.flushed_up_to.fetch_max(sequence, Ordering::Release);
        self.invalidations.note(&Invalidated::All, sequence);
        self.invalidations.note_flush_due(0);
    }

    /// Returns the state of the item in a slot.
    pub(crate) fn state_of(&self, shard: &Shard, index: u32, now: Now) -> ItemState {
        self.state_beside(shard, index, shard.side(index), now)
    }

    /// Does the same for a caller that has found the side data of the item already.
    #[inline]
    pub(crate) fn state_beside(
        &self,
        shard: &Shard,
        index: u32,
        side: Option<&Arc<SideData>>,
        now: Now,
    ) -> ItemState {
        let slot = shard.slot(index);
        if Expires::from_raw(slot.expires).is_due(now) {
            return ItemState::Expired;
        }
        let sequence = side.and_then(|side| side.sequence).unwrap_or(slot.cas);
        if sequence <= self.flushed_up_to.load(Ordering::Acquire) {
            return ItemState::Invalidated;
        }
        let mut state = self.prefixes.state_of(sequence, || shard.key(index));
        for tag in side.map_or(&[][..], |side| &side.tags) {
            match tag.state_of(sequence) {
                ItemState::Invalidated => return ItemState::Invalidated,
                ItemState::Stale if state == ItemState::Fresh => state = ItemState::Stale,
                _ => {}
            }
        }
        state
    }
}
