//! Invalidated key prefixes.
//!
//! Invalidating a prefix writes one entry to this table. That takes O(1), whatever the number of
//! items. A read of an item that is older than the newest entry looks up the prefixes of its key,
//! in the lengths that occur.
//!
//! The sweep applies the entries to the items and then drops them ([`PrefixTable::retire`]). So the
//! table is empty most of the time. It never holds more than [`PREFIX_LIMIT`] entries.

use foldhash::HashMap;
use kirin_sync::RwLock;
use kirin_sync::atomic::{AtomicU64, Ordering};

use crate::invalidation::state::{Invalidation, ItemState};

/// The most entries in the table. Before it takes one more, the store applies all entries to all
/// items.
pub(crate) const PREFIX_LIMIT: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct PrefixEntry {
    soft: u64,
    hard: u64,
}

/// The prefixes whose items are stale or invalid.
#[derive(Debug, Default)]
pub(crate) struct PrefixTable {
    /// The highest sequence number of any entry. No entry matters to an item with a higher number,
    /// so most reads stop here.
    newest: AtomicU64,
    entries: RwLock<PrefixEntries>,
}

#[derive(Debug, Default)]
struct PrefixEntries {
    by_prefix: HashMap<Box<[u8]>, PrefixEntry>,
    /// The lengths that occur, in ascending order.
    lengths: Vec<usize>,
}

impl PrefixEntries {
    /// Returns whether there are at most as many lengths as prefixes.
    fn are_lengths_fewer(&self) -> bool {
        self.lengths.len() <= self.by_prefix.len()
    }
}

impl PrefixTable {
    /// Adds a prefix. Returns its sequence number, or `None` if the table is full and does not have
    /// the prefix.
    ///
    /// The entry takes a sequence number of its own, so that [`PrefixTable::retire`] can tell
    /// whether a sweep began before it or after it.
    pub(crate) fn invalidate(
        &self,
        prefix: &[u8],
        how: Invalidation,
        sequences: &AtomicU64,
    ) -> Option<u64> {
        self.invalidate_up_to(prefix, how, || sequences.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Does the same with a sequence number of the caller, which is asked for under the lock.
    pub(crate) fn invalidate_up_to(
        &self,
        prefix: &[u8],
        how: Invalidation,
        sequence: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let mut entries = self.entries.write();
        if entries.by_prefix.len() >= PREFIX_LIMIT && !entries.by_prefix.contains_key(prefix) {
            return None;
        }
        let sequence = sequence();
        if let Err(at) = entries.lengths.binary_search(&prefix.len()) {
            entries.lengths.insert(at, prefix.len());
        }
        let entry = entries.by_prefix.entry(prefix.into()).or_default();
        match how {
            Invalidation::Soft => entry.soft = entry.soft.max(sequence),
            Invalidation::Hard => entry.hard = entry.hard.max(sequence),
        }
        debug_assert!(entries.by_prefix.len() <= PREFIX_LIMIT, "{}", entries.by_prefix.len());
        debug_assert!(entries.are_lengths_fewer(), "a length of no prefix is looked up");
        self.newest.fetch_max(sequence, Ordering::Release);
        Some(sequence)
    }

    /// Returns the state of an item with this sequence number by this table. Reads the key only if
    /// the item is older than some entry.
    pub(crate) fn state_of<'k>(&self, sequence: u64, key: impl FnOnce() -> &'k [u8]) -> ItemState {
        if sequence > self.newest.load(Ordering::Acquire) {
            return ItemState::Fresh;
        }
        let key = key();
        let entries = self.entries.read();
        let mut state = ItemState::Fresh;
        for &length in &entries.lengths {
            let Some(prefix) = key.get(..length) else { break };
            let Some(entry) = entries.by_prefix.get(prefix) else { continue };
            if sequence <= entry.hard {
                return ItemState::Invalidated;
            }
            if sequence <= entry.soft {
                state = ItemState::Stale;
            }
        }
        state
    }

    /// Returns the last sequence number, once no entry with a smaller number is still being added.
    /// A sweep that begins now applies all entries up to it.
    pub(crate) fn settled_up_to(&self, sequences: &AtomicU64) -> u64 {
        let _no_writer = self.entries.read();
        sequences.load(Ordering::Relaxed)
    }

    /// Drops the entries up to the sequence number `applied`. All items have been compared with
    /// them.
    pub(crate) fn retire(&self, applied: u64) {
        if self.is_empty() {
            return;
        }
        let mut entries = self.entries.write();
        entries.by_prefix.retain(|_, entry| entry.soft.max(entry.hard) > applied);
        let mut lengths: Vec<usize> = entries.by_prefix.keys().map(|prefix| prefix.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        entries.lengths = lengths;
        let newest = entries.by_prefix.values().map(|entry| entry.soft.max(entry.hard)).max();
        debug_assert!(entries.are_lengths_fewer(), "a length of no prefix is looked up");
        debug_assert!(newest <= Some(self.newest.load(Ordering::Relaxed)), "{newest:?} is newer");
        self.newest.store(newest.unwrap_or(0), Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.read().by_prefix.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.read().by_prefix.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_matching_prefix_decides() {
        let table = PrefixTable::default();
        assert!(table.invalidate(b"user:42:", Invalidation::Hard, &AtomicU64::new(7)).is_some());
        assert!(table.invalidate(b"user:", Invalidation::Soft, &AtomicU64::new(9)).is_some());
        assert_eq!(table.state_of(8, || b"user:42:name"), ItemState::Invalidated);
        assert_eq!(table.state_of(9, || b"user:42:name"), ItemState::Stale);
        assert_eq!(table.state_of(11, || b"user:42:name"), ItemState::Fresh);
        assert_eq!(table.state_of(3, || b"user:7:name"), ItemState::Stale);
        assert_eq!(table.state_of(3, || b"page:7"), ItemState::Fresh);
        table.retire(8);
        assert_eq!(table.len(), 1);
        table.retire(10);
        assert!(table.is_empty());
    }

    #[test]
    fn a_full_table_takes_no_new_prefix() {
        let (table, numbers) = (PrefixTable::default(), AtomicU64::new(0));
        for i in 0..PREFIX_LIMIT {
            assert!(
                table
                    .invalidate(format!("p{i}").as_bytes(), Invalidation::Hard, &numbers)
                    .is_some()
            );
        }
        assert_eq!(table.invalidate(b"one more", Invalidation::Hard, &numbers), None);
        assert!(
            table.invalidate(b"p7", Invalidation::Hard, &numbers).is_some(),
            "one that is there may be renewed"
        );
    }
}
