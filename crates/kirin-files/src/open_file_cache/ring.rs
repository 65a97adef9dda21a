//! One group of entries, from which CLOCK evicts.

use std::time::Instant;

use super::PathKey;

/// The entries of a group, and the sums that the limits bound.
pub(super) struct CacheRing<V> {
    slots: Vec<Option<CacheSlot<V>>>,
    free: Vec<usize>,
    hand: usize,
    /// The sum of all units.
    pub(super) units: usize,
    /// The sum of all memory in bytes.
    pub(super) bytes: usize,
    pub(super) limit_units: usize,
}

/// An entry.
pub(super) struct CacheSlot<V> {
    pub(super) key: PathKey,
    pub(super) value: V,
    pub(super) looked: Instant,
    /// The number of descriptors. 1 for an entry without any.
    pub(super) units: usize,
    pub(super) bytes: usize,
    /// Whether the path was requested since the hand last passed.
    pub(super) wanted: bool,
}

impl<V> CacheRing<V> {
    pub(super) fn new(limit_units: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), hand: 0, units: 0, bytes: 0, limit_units }
    }

    pub(super) fn slot(&self, at: usize) -> Option<&CacheSlot<V>> {
        self.slots.get(at)?.as_ref()
    }

    pub(super) fn slot_mut(&mut self, at: usize) -> Option<&mut CacheSlot<V>> {
        self.slots.get_mut(at)?.as_mut()
    }

    /// Stores `slot`. Returns its position.
    pub(super) fn insert(&mut self, slot: CacheSlot<V>) -> usize {
        self.units += slot.units;
        self.bytes += slot.bytes;
        match self.free.pop() {
            Some(at) => {
                self.slots[at] = Some(slot);
                at
            }
            None => {
                self.slots.push(Some(slot));
                self.slots.len() - 1
            }
        }
    }

    /// Removes the entry at `at`.
    pub(super) fn take(&mut self, at: usize) -> Option<CacheSlot<V>> {
        let slot = self.slots.get_mut(at)?.take()?;
        self.units -= slot.units;
        self.bytes -= slot.bytes;
        self.free.push(at);
        Some(slot)
    }

    /// Moves the hand on to an entry that was not requested since the hand last passed, and removes
    /// it. The search ends after two rounds, because the first one clears the bits. Returns `None`
    /// for an empty ring.
    pub(super) fn evict(&mut self) -> Option<CacheSlot<V>> {
        for _ in 0..2 * self.slots.len() {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            match &mut self.slots[self.hand] {
                Some(slot) if slot.wanted => slot.wanted = false,
                Some(_) => return self.take(self.hand),
                None => {}
            }
        }
        None
    }

    /// Returns the entries.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &CacheSlot<V>> {
        self.slots.iter().flatten()
    }
}
