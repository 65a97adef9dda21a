//! What has been invalidated of late, so that a page which was begun before is not stored after it.
//!
//! A page that an application makes takes time, and is stored when it is done. What it was made from may have changed
//! meanwhile, and the invalidation that said so has found nothing: there was no item yet. So every invalidation leaves a trace
//! here, the number up to which it reaches, and [`Store::store`] with `unchanged_since` refuses what would be stored over a
//! later one. The trace is kept under the hash of the key, tag or prefix, in a table of fixed size in which later traces
//! cover earlier ones and those of other names: never is one forgotten, and now and then a page is not stored which could
//! have been, and will be the next time it is made.
//!
//! An invalidation and a store at the same moment: one leaves its trace, then reads the last number and marks what is up to it;
//! the other takes its number, then looks for traces. With a full fence between the two in each (as in Dekker's algorithm) at
//! least one sees the other: either the item is not stored, or the mark covers it.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::config::TAG_LIMIT_BYTES;
use crate::store::Store;

/// Traces, a power of two: 32 KiB. With a hundred invalidations while a page is made, one page in forty is refused in vain.
const SLOTS: usize = 4096;

/// Keys, tags and prefixes of the same name have different traces.
const TAG: u8 = b't';
const PREFIX: u8 = b'p';

/// A moment in the life of a store, to be remembered when work on an item begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(crate) u64);

/// The traces of invalidations.
#[derive(Debug)]
pub(crate) struct Changes {
    slots: Box<[AtomicU64]>,
    /// The lengths of prefixes that have ever been invalidated, a bit each.
    prefix_lengths: [AtomicU64; TAG_LIMIT_BYTES / 64 + 1],
}

impl Default for Changes {
    fn default() -> Self {
        Changes {
            slots: std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect(),
            prefix_lengths: Default::default(),
        }
    }
}

impl Changes {
    fn slot(&self, hash: u64) -> &AtomicU64 {
        // Other bits than those that choose the shard.
        &self.slots[(hash >> 16) as usize & (SLOTS - 1)]
    }

    fn leave(&self, hash: u64, number: u64) {
        self.slot(hash).fetch_max(number, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    fn is_after(&self, hash: u64, since: Moment) -> bool {
        self.slot(hash).load(Ordering::Relaxed) >= since.0
    }

    /// The lengths that occur, up to `longest`.
    fn lengths(&self, longest: usize) -> impl Iterator<Item = usize> {
        (0..=longest.min(TAG_LIMIT_BYTES)).filter(|length| {
            self.prefix_lengths[length / 64].load(Ordering::Relaxed) & 1 << (length % 64) != 0
        })
    }
}

impl Store {
    /// The present moment: later invalidations count as after it. Takes a number, as storing an item does.
    pub fn moment(&self) -> Moment {
        Moment(self.next_number())
    }

    /// Whether an item of this key and these tags has been invalidated since: one that is on its way is no answer to who asks
    /// now, and will not be stored. Now and then it says so of one that has not.
    pub fn is_invalidated_since(&self, since: Moment, key: &[u8], tags: &[&[u8]]) -> bool {
        self.is_changed_since(since, self.hash(key), key, tags)
    }

    /// Notes that the item of a key, hashed, is not what it was, there or not.
    pub(crate) fn note_key(&self, hash: u64) {
        self.changes.leave(hash, self.last_number());
    }

    /// Notes that an item has left which was stored at `number`: an older one must not take its place.
    pub(crate) fn note_eviction(&self, hash: u64, number: u64) {
        self.changes.leave(hash, number);
    }

    pub(crate) fn note_tag(&self, tag: &[u8]) {
        self.changes.leave(self.hash_of(TAG, tag), self.last_number());
    }

    pub(crate) fn note_prefix(&self, prefix: &[u8]) {
        let length = prefix.len();
        if let Some(word) = self.changes.prefix_lengths.get(length / 64) {
            word.fetch_or(1 << (length % 64), Ordering::Relaxed);
        }
        self.changes.leave(self.hash_of(PREFIX, prefix), self.last_number());
    }

    /// Whether an item of this key and these tags may have been invalidated since. Call with the item's own number taken.
    pub(crate) fn is_changed_since(&self, since: Moment, hash: u64, key: &[u8], tags: &[&[u8]]) -> bool {
        fence(Ordering::SeqCst);
        self.changes.is_after(hash, since)
            || tags.iter().any(|tag| self.changes.is_after(self.hash_of(TAG, tag), since))
            || self.changes.lengths(key.len()).any(|length| {
                let prefix = key.get(..length).unwrap_or(key);
                self.changes.is_after(self.hash_of(PREFIX, prefix), since)
            })
    }

    fn hash_of(&self, kind: u8, name: &[u8]) -> u64 {
        use std::hash::BuildHasher;
        self.hasher.hash_one((kind, name))
    }
}
