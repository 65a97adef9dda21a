//! Invalidation of many items at once: by tag, by prefix, of everything.
//!
//! None of these visits an item. Every stored item is numbered (its CAS unique, which only grows);
//! an invalidation notes the number it reaches up to, and [`Store::state`] compares when the item
//! is next looked at. A writer, the sweep or eviction then makes the state permanent.

use std::sync::atomic::Ordering;

use crate::clock::{Expires, Now};
use crate::config::TAG_LIMIT_BYTES;
use crate::invalidation::state::{Invalidation, ItemState};
use crate::items::shard::Shard;
use crate::store::Store;

impl Store {
    /// Makes every item that carries `tag` and was stored before this call stale or gone. O(1).
    /// False when no item carries the tag.
    pub fn invalidate_tag(&self, tag: &[u8], how: Invalidation) -> bool {
        self.note_tag(tag);
        self.tags.invalidate(tag, how, self.last_sequence())
    }

    /// Makes every item whose key begins with `prefix` and was stored before this call stale or
    /// gone. O(1), amortised: the table that notes prefixes is bounded, and when it is full this
    /// first applies it to all items. False when `prefix` is longer than
    /// [`TAG_LIMIT_BYTES`] and nothing was done. The empty prefix is every key.
    pub fn invalidate_prefix(&self, prefix: &[u8], how: Invalidation, now: Now) -> bool {
        if prefix.len() > TAG_LIMIT_BYTES {
            return false;
        }
        self.note_prefix(prefix);
        while !self.prefixes.invalidate(prefix, how, &self.sequences) {
            self.sweep_everything(now);
        }
        true
    }

    /// Drops all items that were stored before the moment `at`: now, when that has come, or when
    /// it comes. A later call replaces one that still waits.
    pub fn flush_all(&self, at: Now, now: Now) {
        self.flush_if_due(now);
        self.flushes.fetch_add(1, Ordering::Relaxed);
        if at <= now {
            self.note_prefix(b"");
            self.flush_due.store(0, Ordering::Relaxed);
            self.flushed_up_to.fetch_max(self.last_sequence(), Ordering::Release);
        } else {
            self.flush_due.store(at.raw(), Ordering::Relaxed);
        }
    }

    /// Carries out a flush that was put off until now.
    pub(crate) fn flush_if_due(&self, now: Now) {
        let due = self.flush_due.load(Ordering::Relaxed);
        if due == 0 || due > now.raw() {
            return;
        }
        let ours =
            self.flush_due.compare_exchange(due, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if ours {
            self.note_prefix(b"");
            self.flushed_up_to.fetch_max(self.last_sequence(), Ordering::Release);
        }
    }

    /// What has become of the item in a slot.
    pub(crate) fn state_of(&self, shard: &Shard, index: u32, now: Now) -> ItemState {
        let slot = shard.slot(index);
        if Expires::from_raw(slot.expires).is_due(now) {
            return ItemState::Expired;
        }
        let side = shard.side(index);
        let sequence = side.and_then(|side| side.sequence).unwrap_or(slot.cas);
        if sequence <= self.flushed_up_to.load(Ordering::Acquire) {
            return ItemState::Invalidated;
        }
        let by_prefix =
            std::iter::once_with(|| self.prefixes.state_of(sequence, || shard.key(index)));
        let by_tags =
            side.iter().flat_map(|side| side.tags.iter().map(|tag| tag.state_of(sequence)));
        let mut state = ItemState::Fresh;
        for one in by_prefix.chain(by_tags) {
            match one {
                ItemState::Invalidated => return ItemState::Invalidated,
                ItemState::Stale => state = ItemState::Stale,
                _ => {}
            }
        }
        state
    }
}
