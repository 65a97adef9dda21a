//! `get`, `gat` and `touch`.

use crate::clock::{Expires, Now};
use crate::invalidation::verdict::Verdict;
use crate::items::item::ItemRef;
use crate::memory::slab::{Slot, mark};
use crate::statistics::counters::bump;
use crate::store::Store;

impl Store {
    /// The item of a key, counted as a hit or a miss, and marked as used.
    ///
    /// An invalidated item that is still servable is found too; ask [`ItemRef::is_stale`].
    pub fn get(&self, key: &[u8], now: Now) -> Option<ItemRef> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let part = &self.parts[self.part_of(hash)];
        let shard = part.shard.read();
        let Some(index) = shard.find(hash, key) else {
            bump(&part.counters.get_misses);
            return None;
        };
        let stale = match self.verdict(&shard, index, now) {
            Verdict::Fresh => 0,
            Verdict::Stale => mark::STALE,
            Verdict::Gone => {
                bump(&part.counters.get_misses);
                bump(&part.counters.get_flushed);
                return None;
            }
            Verdict::Expired => {
                bump(&part.counters.get_misses);
                bump(&part.counters.get_expired);
                return None;
            }
        };
        let item = shard.item(index, stale);
        shard.mark_fetched(index, now);
        bump(&part.counters.get_hits);
        Some(item)
    }

    /// The item of a key, without counting or marking anything (meta `me`, metrics, debugging).
    pub fn peek(&self, key: &[u8], now: Now) -> Option<ItemRef> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let shard = self.parts[self.part_of(hash)].shard.read();
        let index = shard.find(hash, key)?;
        match self.verdict(&shard, index, now) {
            Verdict::Fresh => Some(shard.item(index, 0)),
            Verdict::Stale => Some(shard.item(index, mark::STALE)),
            Verdict::Gone | Verdict::Expired => None,
        }
    }

    /// The bytes an item takes from the budget (meta `me` size).
    pub fn charged_bytes(&self, key: &[u8]) -> Option<usize> {
        let hash = self.hash(key);
        let shard = self.parts[self.part_of(hash)].shard.read();
        let index = shard.find(hash, key)?;
        Some(shard.item_bytes(index) + size_of::<Slot>())
    }

    /// `touch`: changes when an item expires. False when it is not there.
    pub fn touch(&self, key: &[u8], expires: Expires, now: Now) -> bool {
        self.touched(key, expires, now).is_some()
    }

    /// `gat`, `gats`: [`Store::touch`] and [`Store::get`] in one. Counts as a touch and as a get.
    pub fn get_and_touch(&self, key: &[u8], expires: Expires, now: Now) -> Option<ItemRef> {
        let item = self.touched(key, expires, now);
        let counters = &self.parts[self.part_of(self.hash(key))].counters;
        bump(if item.is_some() { &counters.get_hits } else { &counters.get_misses });
        item
    }

    fn touched(&self, key: &[u8], expires: Expires, now: Now) -> Option<ItemRef> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.write(hash);
        let Some(index) = self.find_live(&mut shard, hash, key, now) else {
            bump(&shard.counters.touch_misses);
            return None;
        };
        bump(&shard.counters.touch_hits);
        shard.slot_mut(index).expires = expires.raw();
        let item = shard.item(index, 0);
        shard.mark_fetched(index, now);
        Some(item)
    }
}
