//! `get`, `gat` and `touch`.

use crate::clock::{Expires, Now};
use crate::hand_over::item_step::ItemStep;
use crate::invalidation::state::ItemState;
use crate::items::item::ItemRef;
use crate::memory::slab::{Slot, mark};
use crate::statistics::counters::bump;
use crate::store::Store;

impl Store {
    /// Returns the item of a key. Counts a hit or a miss, and marks the item as used.
    ///
    /// Also finds an invalidated item that may still be served; see [`ItemRef::is_stale`].
    pub fn get(&self, key: &[u8], now: Now) -> Option<ItemRef> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let locked = &self.shards[self.shard_index(hash)];
        let shard = locked.shard.read();
        let Some(index) = shard.find(hash, key) else {
            bump(&locked.counters.get_misses);
            return None;
        };
        let side = shard.side(index);
        let stale = match self.state_beside(&shard, index, side, now) {
            ItemState::Fresh => 0,
            ItemState::Stale => mark::STALE,
            ItemState::Invalidated => {
                bump(&locked.counters.get_misses);
                bump(&locked.counters.get_flushed);
                return None;
            }
            ItemState::Expired => {
                bump(&locked.counters.get_misses);
                bump(&locked.counters.get_expired);
                return None;
            }
        };
        let item = shard.item_beside(index, side, stale);
        shard.mark_fetched(index, now);
        bump(&locked.counters.get_hits);
        Some(item)
    }

    /// Returns the item of a key without counting or marking anything (meta `me`, metrics,
    /// debugging).
    pub fn peek(&self, key: &[u8], now: Now) -> Option<ItemRef> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let shard = self.shards[self.shard_index(hash)].shard.read();
        let index = shard.find(hash, key)?;
        match self.state_of(&shard, index, now) {
            ItemState::Fresh => Some(shard.item(index, 0)),
            ItemState::Stale => Some(shard.item(index, mark::STALE)),
            ItemState::Invalidated | ItemState::Expired => None,
        }
    }

    /// Returns the bytes that an item takes from the budget (the size in meta `me`).
    pub fn charged_bytes(&self, key: &[u8]) -> Option<usize> {
        let hash = self.hash(key);
        let shard = self.shards[self.shard_index(hash)].shard.read();
        let index = shard.find(hash, key)?;
        Some(shard.item_bytes(index) + size_of::<Slot>())
    }

    /// Carries out `touch`: changes the expiry of an item. Returns false if there is no such item.
    pub fn touch(&self, key: &[u8], expires: Expires, now: Now) -> bool {
        self.touch_item(key, expires, now).is_some()
    }

    /// Carries out `gat` and `gats`: [`Store::touch`] and [`Store::get`] in one. Counts as a touch
    /// and as a get.
    pub fn get_and_touch(&self, key: &[u8], expires: Expires, now: Now) -> Option<ItemRef> {
        let item = self.touch_item(key, expires, now);
        let counters = &self.shards[self.shard_index(self.hash(key))].counters;
        bump(if item.is_some() { &counters.get_hits } else { &counters.get_misses });
        item
    }

    fn touch_item(&self, key: &[u8], expires: Expires, now: Now) -> Option<ItemRef> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.lock_shard_of(hash);
        let Some(index) = self.find_live(&mut shard, hash, key, now) else {
            bump(&shard.counters.touch_misses);
            return None;
        };
        bump(&shard.counters.touch_hits);
        shard.note_step(key, ItemStep::Touch(expires));
        shard.slot_mut(index).expires = expires.raw();
        let item = shard.item(index, 0);
        shard.mark_fetched(index, now);
        Some(item)
    }
}
