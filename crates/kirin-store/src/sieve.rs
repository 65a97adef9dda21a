//! SIEVE: the order in which items leave.
//!
//! One queue, newest at the head. A hit only marks the item, so that readers need no exclusive lock.
//! To evict, a hand walks from the tail towards the head: a marked item loses its mark and stays
//! where it is, the first unmarked one leaves. (Zhang et al., "SIEVE is Simpler than LRU", NSDI
//! 2024.)

use std::sync::atomic::Ordering;

use crate::slab::{NIL, Slab, mark};

/// The queue of one shard, threaded through its slots.
#[derive(Debug)]
pub(crate) struct Sieve {
    head: u32,
    tail: u32,
    hand: u32,
}

impl Default for Sieve {
    fn default() -> Sieve {
        Sieve { head: NIL, tail: NIL, hand: NIL }
    }
}

impl Sieve {
    /// Enters a slot that was just taken.
    pub(crate) fn insert(&mut self, slab: &mut Slab, index: u32) {
        let slot = slab.get_mut(index);
        slot.newer = NIL;
        slot.older = self.head;
        if self.head == NIL {
            self.tail = index;
        } else {
            slab.get_mut(self.head).newer = index;
        }
        self.head = index;
    }

    /// Takes a slot out, before it is released.
    pub(crate) fn remove(&mut self, slab: &mut Slab, index: u32) {
        let slot = slab.get(index);
        let (newer, older) = (slot.newer, slot.older);
        if self.hand == index {
            self.hand = newer;
        }
        if newer == NIL {
            self.head = older;
        } else {
            slab.get_mut(newer).older = older;
        }
        if older == NIL {
            self.tail = newer;
        } else {
            slab.get_mut(older).newer = newer;
        }
    }

    /// The item that should leave next, never `spare`.
    pub(crate) fn victim(&mut self, slab: &Slab, spare: u32) -> Option<u32> {
        // Twice around: the first may only clear marks, the second then finds one without.
        for _ in 0..2 * slab.len() + 1 {
            let index = if self.hand == NIL { self.tail } else { self.hand };
            if index == NIL {
                return None;
            }
            let slot = slab.get(index);
            self.hand = slot.newer;
            if index != spare && slot.marks.fetch_and(!mark::VISITED, Ordering::Relaxed) & mark::VISITED == 0
            {
                return Some(index);
            }
        }
        None
    }

    /// The oldest item.
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }
}
