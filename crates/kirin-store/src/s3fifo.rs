//! S3-FIFO: the order in which items leave.
//!
//! A new item goes into a small queue, a tenth of the shard. At its end it leaves, unless it was hit
//! meanwhile: then it moves to the main queue, whose items go round once more for each hit they had.
//! A key that comes back soon after it left goes straight to the main queue. So a scan only ever
//! passes through the small queue, and a hit is a mark that a reader can set without a lock.
//!
//! (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023. They promote after
//! two hits in their simulator; one does better on our traces, see `docs/store.md`.)

use std::sync::atomic::Ordering;

use crate::ghost::Ghost;
use crate::list::List;
use crate::shard::Shard;
use crate::slab::{Slab, Slot, mark, place};

/// The small queue's share of a shard is one in this many bytes.
const SMALL_ONE_IN: usize = 10;

/// The queues of one shard.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    small: List,
    main: List,
    ghost: Ghost,
    /// Bytes of the items in the small queue.
    small_bytes: usize,
}

impl Queues {
    /// Enters a slot that was just filled.
    pub(crate) fn insert(&mut self, slab: &mut Slab, index: u32, hash: u64, bytes: usize) {
        if self.ghost.forget(hash) {
            slab.get_mut(index).place |= place::MAIN;
            self.main.push(slab, index);
        } else {
            self.small.push(slab, index);
            self.small_bytes += bytes;
        }
    }

    /// Takes a slot out before it is released.
    pub(crate) fn remove(&mut self, slab: &mut Slab, index: u32, bytes: usize) {
        if slab.get(index).is_in_main() {
            self.main.unlink(slab, index);
        } else {
            self.small.unlink(slab, index);
            self.small_bytes -= bytes;
        }
    }

    /// The item in a slot has another size now.
    pub(crate) fn resize(&mut self, slab: &Slab, index: u32, from_bytes: usize, to_bytes: usize) {
        if !slab.get(index).is_in_main() {
            self.small_bytes = self.small_bytes - from_bytes + to_bytes;
        }
    }

    /// Remembers the key of an item that is evicted from the small queue.
    pub(crate) fn remember(&mut self, hash: u64, items: usize) {
        self.ghost.remember(hash, items);
    }

    /// What the queues take from the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.ghost.bytes()
    }

    /// All slots, from those that would leave first to the newest of the main queue.
    pub(crate) fn iter<'a>(&self, slab: &'a Slab) -> impl Iterator<Item = u32> + 'a {
        self.small.iter(slab).chain(self.main.iter(slab))
    }
}

impl Shard {
    /// The item that should leave next, but never `spare`. What is `dead` leaves as soon as it
    /// comes to the end of its queue, however often it was hit.
    pub(crate) fn victim(&mut self, spare: Option<u32>, dead: impl Fn(&Shard, u32) -> bool) -> Option<u32> {
        // Each step takes a hit off an item or moves it to the main queue; more hits than these
        // nobody can have, and the spared item costs a step each round.
        for _ in 0..self.len() * (mark::HITS as usize + 2) + 2 {
            let small_is_full = self.queues.small_bytes * SMALL_ONE_IN >= self.content_bytes();
            let (small, main) = (self.queues.small.tail(), self.queues.main.tail());
            let index = if small_is_full { small.or(main) } else { main.or(small) }?;
            let was_in_main = self.slot(index).is_in_main();
            let bytes = self.item_bytes(index);
            let hits = *self.slot_mut(index).marks.get_mut() & mark::HITS;
            if spare != Some(index) && (hits == 0 || dead(self, index)) {
                return Some(index);
            }
            let Shard { slab, queues, .. } = self;
            queues.remove(slab, index, bytes);
            let slot = slab.get_mut(index);
            let marks = slot.marks.get_mut();
            // One promoted starts anew; one in the main queue pays a hit for its round.
            let left = if was_in_main { hits.saturating_sub(1) } else { 0 };
            *marks = *marks & !mark::HITS | left;
            slot.place |= place::MAIN;
            queues.main.push(slab, index);
        }
        None
    }
}

impl Slot {
    pub(crate) fn is_in_main(&self) -> bool {
        self.place & place::MAIN != 0
    }

    /// Counts a hit, up to what [`mark::HITS`] holds. A reader may do this: one that loses a race
    /// against another leaves it at that.
    pub(crate) fn count_hit(&self) {
        let marks = self.marks.load(Ordering::Relaxed);
        if marks & mark::HITS < mark::HITS {
            let _ = self.marks.compare_exchange(marks, marks + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}
