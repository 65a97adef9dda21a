//! A doubly linked list through the slots of a shard.

use crate::memory::slab::{NIL, Slab};

/// A first-in, first-out queue from head to tail. Any slot can be taken out.
#[derive(Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> List {
        List { head: NIL, tail: NIL }
    }
}

impl List {
    /// Adds a slot that is in no list.
    pub(crate) fn push(&mut self, slab: &mut Slab, index: u32) {
        let slot = slab.get_mut(index);
        slot.newer = NIL;
        slot.older = self.head;
        debug_assert!(self.head != index, "slot {index} is in the list already");
        if self.head == NIL {
            debug_assert!(self.tail == NIL, "a list without a head ends with {}", self.tail);
            self.tail = index;
        } else {
            slab.get_mut(self.head).newer = index;
        }
        self.head = index;
    }

    /// Takes out a slot that is in this list.
    pub(crate) fn unlink(&mut self, slab: &mut Slab, index: u32) {
        let slot = slab.get(index);
        let (newer, older) = (slot.newer, slot.older);
        if newer == NIL {
            debug_assert!(self.head == index, "slot {index} is not in the list of {}", self.head);
            self.head = older;
        } else {
            debug_assert!(slab.get(newer).older == index, "{newer} does not come after {index}");
            slab.get_mut(newer).older = older;
        }
        if older == NIL {
            debug_assert!(self.tail == index, "slot {index} is not in the list to {}", self.tail);
            self.tail = newer;
        } else {
            debug_assert!(slab.get(older).newer == index, "{older} does not come before {index}");
            slab.get_mut(older).newer = newer;
        }
    }

    /// Returns the slot that has been here longest.
    pub(crate) fn tail(&self) -> Option<u32> {
        (self.tail != NIL).then_some(self.tail)
    }

    /// Lists all slots, from the tail to the head.
    pub(crate) fn iter<'a>(&self, slab: &'a Slab) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(self.tail(), |&index| {
            let newer = slab.get(index).newer;
            (newer != NIL).then_some(newer)
        })
    }
}
