//! Companions: what is computed from a value once and kept beside it, inside the budget.
//!
//! The web side keeps the compiled page, its response head and its ETag here, and compressed
//! variants as they are asked for. A companion lives as long as the content it was made from.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::Now;
use crate::item::ItemRef;
use crate::side::{Companion, Side};
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
        let mut shard = self.write(hash);
        let index = shard.find(hash, item.key())?;
        if !item.is_same_content(shard.slot(index).blob.as_ref()?) {
            return None;
        }
        let mut side = shard.side(index).map(|side| Side::clone(side)).unwrap_or_default();
        if let Some(found) = side.companion::<T>() {
            return Some(found);
        }
        if side.companions.len() >= COMPANIONS_PER_ITEM {
            return None;
        }
        side.companions.push(Companion { made, bytes });
        let more = side.bytes().saturating_sub(shard.side(index).map_or(0, |side| side.bytes()));
        // A companion that finds no room at once is not worth waiting for.
        if let Ok(true) = self.make_room(&mut shard, more, Some(index), now) {
            shard.set_side(index, side);
        }
        None
    }
}
