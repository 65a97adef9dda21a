//! Makes room in the budget.
//!
//! There is one budget for the whole store, not one for each shard. An item of a megabyte must not
//! empty its shard while other shards keep items that are never read.
//!
//! Room is made before an item goes in, so the store is within its budget at every moment. If the
//! shard that needs room holds more than its share, its own items leave. Otherwise the items of
//! another shard leave, if its lock is free.

use std::sync::atomic::Ordering;

use kirin_faults::Point;

use crate::clock::{Expires, Now};
use crate::eviction::watch::Eviction;
use crate::invalidation::state::ItemState;
use crate::items::shard::Shard;
use crate::memory::slab::mark;
use crate::statistics::counters::bump;
use crate::store::{ShardGuard, Store};

static ROOM: Point = Point::new("memory.item", &[]);

/// Other threads hold the shards whose items could leave. The caller must release its lock and try
/// again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contended;

impl Store {
    /// Returns the limit in bytes that is in force.
    pub fn memory_limit(&self) -> usize {
        self.budget.limit()
    }

    /// Returns the bytes that the store takes.
    pub fn used_bytes(&self) -> usize {
        self.budget.used()
    }

    /// Changes the limit (`cache_memlimit`). Evicts items at once if the store takes more.
    pub fn set_memory_limit(&self, bytes: usize, now: Now) {
        self.budget.set_limit(bytes);
        self.keep_within_limit(now);
    }

    /// Evicts items until the store is within its limit. Only a lowered limit, a grown tag registry
    /// or a companion can have brought it above the limit.
    pub(crate) fn keep_within_limit(&self, now: Now) {
        let mut empty_shards = 0;
        while self.budget.used() > self.budget.limit() && empty_shards < self.shards.len() {
            let index = self.room_cursor.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            let mut shard = self.lock_shard(index);
            let share = self.share_bytes();
            let mut evicted = false;
            while self.budget.used() > self.budget.limit() && (!evicted || shard.bytes() > share) {
                if !self.free_some(&mut shard, None, now) {
                    break;
                }
                evicted = true;
            }
            empty_shards = if evicted { 0 } else { empty_shards + 1 };
            if !evicted {
                shard.clear();
            }
        }
    }

    /// Reserves `bytes` for an item that goes into `shard`. Evicts other items, but never
    /// `protected`. Returns false if no item is left that could be evicted.
    pub(crate) fn make_room(
        &self,
        shard: &mut ShardGuard<'_>,
        need: impl Fn(&Shard) -> usize,
        protected: Option<u32>,
        now: Now,
    ) -> Result<bool, Contended> {
        if ROOM.refuses() {
            return Ok(false);
        }
        loop {
            // The need is computed each time, because an evicted item may also leave a page to
            // write to.
            let bytes = need(shard);
            if self.budget.reserve(bytes) {
                shard.reserved_bytes += bytes;
                return Ok(true);
            }
            if !self.config.evict || bytes > self.budget.limit() {
                return Ok(false);
            }
            let is_over_share = shard.bytes() >= self.share_bytes();
            if is_over_share && self.free_some(shard, protected, now) {
                continue;
            }
            match self.free_elsewhere(shard.index, now) {
                Ok(true) => {}
                _ if self.free_some(shard, protected, now) => {}
                without => return without,
            }
        }
    }

    /// Returns the bytes that each shard may hold before its own items leave first.
    fn share_bytes(&self) -> usize {
        self.budget.limit() / self.shards.len()
    }

    /// Frees memory of a shard other than `own`. Prefers a shard that holds more than its share.
    fn free_elsewhere(&self, own: usize, now: Now) -> Result<bool, Contended> {
        let mut contended = false;
        for at_least in [self.share_bytes(), 0] {
            for _ in 0..self.shards.len() {
                let index = self.room_cursor.fetch_add(1, Ordering::Relaxed) % self.shards.len();
                if index == own {
                    continue;
                }
                // A thread never waits for a second lock while it holds one.
                let Some(mut shard) = self.try_lock_shard(index) else {
                    contended = true;
                    continue;
                };
                if shard.bytes() >= at_least && self.free_some(&mut shard, None, now) {
                    return Ok(true);
                }
            }
        }
        if contended { Err(Contended) } else { Ok(false) }
    }

    /// Evicts the next item, and updates the budget and the counters.
    fn evict_one(&self, shard: &mut ShardGuard<'_>, protected: Option<u32>, now: Now) -> bool {
        let dead = |shard: &Shard, index| {
            matches!(self.state_of(shard, index, now), ItemState::Invalidated | ItemState::Expired)
        };
        let Some(index) = shard.victim(protected, dead) else { return false };
        debug_assert!(Some(index) != protected, "the protected slot {index} is to be evicted");
        let state = self.state_of(shard, index, now);
        let slot = shard.slot(index);
        let fetched = slot.marks.load(Ordering::Relaxed) & mark::FETCHED != 0;
        let counters = shard.counters;
        self.note_leaving(shard, index);
        match state {
            ItemState::Expired | ItemState::Invalidated => {
                bump(&counters.reclaimed);
                if state == ItemState::Expired && !fetched {
                    bump(&counters.expired_unfetched);
                }
                shard.remove(index);
            }
            ItemState::Fresh | ItemState::Stale => {
                bump(&counters.evictions);
                if !fetched {
                    bump(&counters.evicted_unfetched);
                }
                if Expires::from_raw(slot.expires) != Expires::NEVER {
                    bump(&counters.evicted_nonzero);
                }
                let idle =
                    now.seconds_since(Now::from_raw(slot.last_access.load(Ordering::Relaxed)));
                self.evicted_idle_seconds.store(idle as u32, Ordering::Relaxed);
                self.eviction_watch.note(|| Eviction {
                    key: shard.key(index),
                    value_len: shard.value(index).len(),
                    idle_seconds: idle,
                    was_fetched: fetched,
                    seconds_left: Expires::from_raw(slot.expires).seconds_left(now),
                });
                shard.evict(index);
            }
        }
        true
    }

    /// Evicts items until the shard takes less memory. Returns false if no item is left to evict.
    fn free_some(&self, shard: &mut ShardGuard<'_>, protected: Option<u32>, now: Now) -> bool {
        let before = shard.bytes();
        shard.log.forget_released_pages();
        while shard.bytes() >= before {
            let freed = if shard.log.is_worth_compacting() {
                shard.compact()
            } else {
                // If no item is left to evict, closing the holes must do.
                self.evict_one(shard, protected, now) || shard.compact()
            };
            if !freed {
                break;
            }
        }
        shard.settle();
        shard.bytes() < before
    }
}

impl Shard {
    /// Returns the item that should be evicted next, but never `protected`. An item that is `dead`
    /// leaves as soon as it reaches the end of its queue, whatever its hits.
    pub(crate) fn victim(
        &mut self,
        protected: Option<u32>,
        dead: impl Fn(&Shard, u32) -> bool,
    ) -> Option<u32> {
        // Each step takes a hit from an item or moves it to the main queue. There cannot be more
        // steps than this.
        for _ in 0..self.len() * (mark::HITS as usize + 2) + 2 {
            let index = self.queues.last(&self.slab, protected)?;
            let was_in_main = self.slot(index).is_in_main();
            let hits = self.slot(index).marks.load(Ordering::Relaxed) & mark::HITS;
            if hits == 0 || dead(self, index) {
                return Some(index);
            }
            let bytes = self.item_bytes(index);
            let Shard { slab, queues, .. } = self;
            queues.keep(slab, index, bytes);
            let marks = slab.get_mut(index).marks.get_mut();
            // A promoted item starts with no hits. An item in the main queue pays one hit for
            // another round.
            let left = if was_in_main { hits.saturating_sub(1) } else { 0 };
            *marks = *marks & !mark::HITS | left;
        }
        None
    }
}
