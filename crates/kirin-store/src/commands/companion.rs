//! Companions: values that are computed from an item once and kept beside it, inside the budget.
//!
//! The web side keeps the compiled page, its response head and its ETag as a companion. Compressed
//! variants are added on demand. A companion lives as long as the content it was made from.
//!
//! There is one exception. While an item lies in a page that is still being filled, a companion is
//! made from a copy of the content. Such a companion lives until that page is full. Otherwise an
//! item that is read early would stay in memory twice.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Now;
use crate::items::item::ItemRef;
use crate::items::side_data::{Companion, SideData};
use crate::store::Store;

/// The most companions that one item keeps.
const COMPANIONS_PER_ITEM: usize = 8;

impl Store {
    /// Returns the companion of type `T` of an item. If there is none, `make` computes it from the
    /// value and also returns how many bytes it holds.
    ///
    /// A new companion is kept for the next reader if the item is still the same and there is room.
    /// The caller gets it in any case. `make` runs without a lock. Two readers may both make a
    /// companion; both then get the one that was kept first.
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

    /// Keeps a companion. Returns the companion that is there already, if there is one.
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
        // The content only changes together with the CAS unique and the sequence number.
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
        // The reader has a copy of an item in a page that is being filled. The companion may hold a
        // slice of that copy.
        let is_separate = side.is_some_and(|side| side.value.is_some());
        let copied_bytes =
            if !is_separate && shard.log.is_copied(slot.address) { item.content.len() } else { 0 };
        let companion = Companion { made, bytes, copied_bytes };
        let more_bytes = companion.charged_bytes()
            + if side.is_none() { SideData::default().bytes() } else { 0 }
            + if copied_bytes > 0 { shard.copied_growth_bytes() } else { 0 };
        // If there is no room at once, the companion is not kept.
        if let Ok(true) = self.make_room(&mut shard, |_| more_bytes, Some(index), now) {
            shard.add_companion(index, companion);
        }
        None
    }
}
