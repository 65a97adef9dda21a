//! S3-FIFO: the queues that decide which item is evicted next.
//!
//! A new item goes into a small queue, which takes a tenth of the shard. At the end of that queue
//! it is evicted, unless it was hit in that time. An item that was hit moves to the main queue,
//! where each hit gives it another round. A key that comes back soon after its eviction goes
//! straight to the main queue.
//!
//! So a scan only passes through the small queue, and a hit is a mark that a reader can set without
//! an exclusive lock.
//!
//! Size counts, too: small items stay longer than large ones, see [`SizedFifo`].
//!
//! The algorithm is that of Yang et al., "FIFO queues are all you need for cache eviction", SOSP
//! 2023. Their simulator promotes an item after two hits. One hit does better on our traces, see
//! `docs/store.md`.

use std::sync::atomic::Ordering;

use crate::eviction::ghost::Ghost;
use crate::eviction::sized_fifo::{SizedFifo, TurnoverClock};
use crate::memory::slab::{Slab, Slot, mark, status};

/// The small queue takes one in this many bytes of a shard.
const SMALL_ONE_IN: usize = 10;

/// The queues of one shard.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    small: SizedFifo,
    main: SizedFifo,
    ghost: Ghost,
    clock: TurnoverClock,
    /// Bytes of the items in the small queue.
    small_bytes: usize,
    /// Bytes of the items in both queues.
    all_bytes: usize,
}

impl Queues {
    /// Adds a slot that was just filled.
    pub(crate) fn insert(&mut self, slab: &mut Slab, index: u32, hash: u64, bytes: usize) {
        debug_assert!(!slab.get(index).is_in_main(), "a new item is in the main queue");
        self.clock.count(slab.len());
        self.all_bytes += bytes;
        if self.ghost.forget(hash) {
            self.enter_main(slab, index, bytes);
        } else {
            self.small.push(slab, index, bytes, &self.clock);
            self.small_bytes += bytes;
        }
    }

    fn enter_main(&mut self, slab: &mut Slab, index: u32, bytes: usize) {
        slab.get_mut(index).status |= status::MAIN;
        self.main.push(slab, index, bytes, &self.clock);
    }

    /// Takes out a slot before it is released.
    pub(crate) fn remove(&mut self, slab: &mut Slab, index: u32, bytes: usize) {
        debug_assert!(self.all_bytes >= bytes, "{bytes} bytes leave {}", self.all_bytes);
        self.all_bytes -= bytes;
        self.unlink(slab, index, bytes);
        // The slot is released after this.
        debug_assert!(slab.len() > 1 || self.all_bytes == 0, "{} bytes of none", self.all_bytes);
        debug_assert!(self.small_bytes <= self.all_bytes, "{} bytes are small", self.small_bytes);
    }

    fn unlink(&mut self, slab: &mut Slab, index: u32, bytes: usize) {
        if slab.get(index).is_in_main() {
            self.main.unlink(slab, index);
        } else {
            self.small.unlink(slab, index);
            debug_assert!(self.small_bytes >= bytes, "{bytes} bytes leave {}", self.small_bytes);
            self.small_bytes -= bytes;
        }
    }

    /// Notes that the item in a slot has changed its size.
    pub(crate) fn resize(
        &mut self,
        slab: &mut Slab,
        index: u32,
        from_bytes: usize,
        to_bytes: usize,
    ) {
        debug_assert!(self.all_bytes >= from_bytes, "{from_bytes} bytes of {}", self.all_bytes);
        self.all_bytes = self.all_bytes - from_bytes + to_bytes;
        if slab.get(index).is_in_main() {
            self.main.resize(slab, index, to_bytes);
        } else {
            self.small.resize(slab, index, to_bytes);
            debug_assert!(self.small_bytes >= from_bytes, "{from_bytes} of {}", self.small_bytes);
            self.small_bytes = self.small_bytes - from_bytes + to_bytes;
        }
        debug_assert!(self.small_bytes <= self.all_bytes, "{} bytes are small", self.small_bytes);
    }

    /// Moves an item that was hit to the start of the main queue.
    pub(crate) fn keep(&mut self, slab: &mut Slab, index: u32, bytes: usize) {
        self.unlink(slab, index, bytes);
        self.enter_main(slab, index, bytes);
    }

    /// Returns the slot whose item an eviction tries first, but never `protected`.
    pub(crate) fn last(&self, slab: &Slab, protected: Option<u32>) -> Option<u32> {
        let small = || self.small.last(slab, &self.clock, protected);
        let main = || self.main.last(slab, &self.clock, protected);
        let small_is_full = self.small_bytes * SMALL_ONE_IN >= self.all_bytes;
        if small_is_full { small().or_else(main) } else { main().or_else(small) }
    }

    /// Remembers the key of an item that is evicted from the small queue.
    pub(crate) fn remember(&mut self, hash: u64, items: usize) {
        self.ghost.remember(hash, items);
    }

    /// Returns the bytes that the queues take from the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.ghost.bytes()
    }

    /// Lists all slots, from about those that would be evicted first to the newest of the main
    /// queue.
    pub(crate) fn in_order(&self, slab: &Slab) -> Vec<u32> {
        let mut order = self.small.in_order(slab, &self.clock);
        order.append(&mut self.main.in_order(slab, &self.clock));
        order
    }
}

impl Slot {
    pub(crate) fn is_in_main(&self) -> bool {
        self.status & status::MAIN != 0
    }

    /// Counts a hit, up to the limit of [`mark::HITS`]. A reader may call this. A hit that loses a
    /// race against another one is not counted.
    pub(crate) fn count_hit(&self) {
        let marks = self.marks.load(Ordering::Relaxed);
        if marks & mark::HITS < mark::HITS {
            let _ =
                self.marks.compare_exchange(marks, marks + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}
