//! Companions: what is computed from a value once and kept beside it, inside the budget.
//!
//! The web side keeps the compiled page, its response head and its ETag here, and compressed
//! variants as they are asked for. A companion lives as long as the content it was made from; one
//! that was made while the item's page was being filled, from a copy, until that is full: or what
//! is asked for early would be in memory twice for good.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Now;
use crate::items::item::ItemRef;
use crate::items::side_data::{Companion, SideData};
use crate::store::Store;

/// Companions that one item keeps.
const COMPANIONS_PER_ITEM: usize = 8;

impl Store {
    /// The companion of type `T` of an item: the one that is there, or the one that `make` computes
    /// from the value, with the bytes it holds.
    ///
    /// What was made is kept for the next reader when the item is still the same and there is room;
    /// the caller gets it in any case. `make` runs under no lock. Two readers at once may both make
    /// one; both then get the one that was kept first.
    pub fn companion<T: Any + Send + Sync>(
        &self,
        item: &ItemRef,
        now: Now,
        make: impl FnOnce(&Bytes) -> (T, usize),
    ) -> Arc<T> {
        if let Some(found) = item.companion::<T>() {
            return found;
        }
        let (made, bytes) = make(&item.value());
        let made = Arc::new(made);
        self.keep_companion(item, now, Arc::clone(&made), bytes).unwrap_or(made)
    }

    /// Keeps a companion; answers the one that is there already.
    fn keep_companion<T: Any + Send + Sync>(
        &self,
        item: &ItemRef,
        now: Now,
        made: Arc<T>,
        bytes: usize,
    ) -> Option<Arc<T>> {
        let hash = self.hash(item.key());
        let mut shard = self.lock_shard_of(hash);
        let index = shard.find(hash, item.key())?;
        // Content only changes together with these two.
        let sequence = |side: Option<&Arc<SideData>>| side.and_then(|side| side.sequence);
        let slot = shard.slot(index);
        if (slot.cas, sequence(shard.side(index))) != (item.cas, sequence(item.side.as_ref())) {
            return None;
        }
        let side = shard.side(index);
        if let Some(found) = side.and_then(|side| side.companion::<T>()) {
            return Some(found);
        }
        if side.is_some_and(|side| side.companions.len() >= COMPANIONS_PER_ITEM) {
            return None;
        }
        // Of an item in a page that is being filled, the reader has a copy. A companion may well
        // hold a slice of that.
        let is_separate = side.is_some_and(|side| side.value.is_some());
        let copied_bytes =
            if !is_separate && shard.log.is_copied(slot.address) { item.content.len() } else { 0 };
        let companion = Companion { made, bytes, copied_bytes };
        let more_bytes = companion.charged_bytes()
            + if side.is_none() { SideData::default().bytes() } else { 0 }
            + if copied_bytes > 0 { shard.copied_growth_bytes() } else { 0 };
        // One that finds no room at once is not worth waiting for.
        if let Ok(true) = self.make_room(&mut shard, |_| more_bytes, Some(index), now) {
            shard.add_companion(index, companion);
        }
        None
    }
}
