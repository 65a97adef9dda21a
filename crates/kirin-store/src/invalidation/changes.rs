//! Records what is invalidated while a page is being made, so that the page is not stored
//! afterwards.
//!
//! An application takes time to make a page. The data behind the page may change meanwhile, and the
//! invalidation that follows finds no item yet. [`Store::moment`] is therefore called before the
//! application is asked, and [`Store::store`] with `unchanged_since` refuses the page if its key,
//! one of its tags or a prefix of its key has been invalidated since.
//!
//! While at least one [`Moment`] is held, each invalidation enters the 64-bit hash of its name and
//! its number into a log. An unrelated invalidation has another hash and does not matter. Two names
//! that share a hash cost one refusal. Entries older than the oldest moment are of no use and are
//! dropped. The log is bounded: when a part is full, its older half is forgotten, and pages that
//! were begun before that are refused ([`Change::Unknown`]).
//!
//! Why no invalidation is missed:
//!
//! - [`Store::moment`] takes a number, registers it, and then the caller reads its data. The
//!   invalidator changes the data, looks for registered moments, and then reads the last number. A
//!   full fence stands between the two steps of each (Dekker's algorithm). So either the
//!   invalidator sees the moment and makes an entry with a number that is not smaller, or the
//!   caller reads data that has been changed already.
//! - The invalidator makes its entry, then reads the last number and marks what is up to it. A
//!   writer takes the item's number, then looks for entries. Both hold the lock of the part of the
//!   log for that. So either the writer sees the entry, or the mark covers the item.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use crate::config::TAG_LIMIT_BYTES;
use crate::items::shard::Shard;
use crate::store::Store;

/// Parts of the log, and of the registered moments, each with a lock of its own. A power of two.
const PARTS: usize = 16;

/// Names that a part of the log holds at most: 262,144 in all, which take some 9 MB.
const PART_LIMIT: usize = 16 * 1024;

/// Below this size a part is not searched for entries that are of no use any more.
const PRUNE_FLOOR: usize = 64;

/// Keys, tags and prefixes of the same name have different hashes.
const TAG: u8 = b't';
const PREFIX: u8 = b'p';

/// The moment at which work on an item began. Later invalidations are recorded while it is held.
#[derive(Debug)]
pub struct Moment {
    number: u64,
    changes: Arc<Changes>,
}

/// What has happened to a key since a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key, a tag or a prefix of the key has been invalidated.
    Invalidated,
    /// Not known: so many names have been invalidated since that some are forgotten.
    Unknown,
}

/// The log of invalidations, and the moments that it is kept for.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    log: [Mutex<Log>; PARTS],
    moments: [Mutex<BTreeSet<u64>>; PARTS],
    /// Moments that are held.
    moment_count: AtomicUsize,
    /// No moment that is held, or will be, has a smaller number.
    oldest_at_least: AtomicU64,
    /// The lengths of prefixes that have ever been invalidated, a bit each.
    prefix_lengths: [AtomicU64; TAG_LIMIT_BYTES / 64 + 1],
}

/// A part of the log.
#[derive(Debug, Default)]
struct Log {
    /// The last number up to which a name, hashed, was invalidated.
    numbers: HashMap<u64, u64, BuildHasherDefault<AlreadyHashed>>,
    /// The size at which the next search for useless entries is due.
    prune_at: usize,
    /// Entries numbered up to here may be missing although a moment needs them.
    forgotten_up_to: u64,
}

impl Changes {
    fn log(&self, hash: u64) -> &Mutex<Log> {
        // Other bits than those that choose the shard, and than those that hashbrown uses.
        &self.log[(hash >> 16) as usize % PARTS]
    }

    /// Enters a name, hashed, with the number that `number` gives, if anybody may ask for it.
    fn note(&self, hash: u64, number: impl FnOnce() -> u64) {
        fence(Ordering::SeqCst);
        if self.moment_count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut log = self.log(hash).lock();
        // Not before the moments have been looked for.
        let number = number();
        let entry = log.numbers.entry(hash).or_default();
        *entry = number.max(*entry);
        if log.numbers.len() > log.prune_at.max(PRUNE_FLOOR) {
            log.prune(self.oldest_moment());
        }
    }

    fn change_since(&self, hash: u64, since: &Moment) -> Option<Change> {
        let log = self.log(hash).lock();
        match log.numbers.get(&hash) {
            Some(number) if *number >= since.number => Some(Change::Invalidated),
            _ if log.forgotten_up_to >= since.number => Some(Change::Unknown),
            _ => None,
        }
    }

    /// Drops what no moment needs. `last_number` is the last that was given.
    pub(crate) fn prune(&self, last_number: u64) {
        let oldest = self.oldest_moment();
        self.oldest_at_least.fetch_max(oldest.min(last_number), Ordering::Relaxed);
        for log in &self.log {
            log.lock().prune(oldest);
        }
    }

    fn oldest_moment(&self) -> u64 {
        let first = |moments: &Mutex<BTreeSet<u64>>| moments.lock().first().copied();
        self.moments.iter().filter_map(first).min().unwrap_or(u64::MAX)
    }

    /// The lengths that occur, up to `longest`.
    fn lengths(&self, longest: usize) -> impl Iterator<Item = usize> {
        (0..=longest.min(TAG_LIMIT_BYTES)).filter(|length| {
            self.prefix_lengths[length / 64].load(Ordering::Relaxed) & 1 << (length % 64) != 0
        })
    }
}

impl Log {
    fn prune(&mut self, oldest_moment: u64) {
        self.numbers.retain(|_, number| *number >= oldest_moment);
        if self.numbers.len() >= PART_LIMIT {
            let mut numbers: Vec<u64> = self.numbers.values().copied().collect();
            let middle = numbers.len() / 2;
            let forgotten = *numbers.select_nth_unstable(middle).1;
            self.numbers.retain(|_, number| *number > forgotten);
            self.forgotten_up_to = forgotten.max(self.forgotten_up_to);
        }
        // Twice what is in use: each search is paid for by as many new entries.
        self.prune_at = (self.numbers.len() * 2).clamp(PRUNE_FLOOR, PART_LIMIT);
        self.numbers.shrink_to(self.prune_at);
    }
}

impl Moment {
    /// Items with this number or a greater one are newer.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        self.changes.moments[self.number as usize % PARTS].lock().remove(&self.number);
        self.changes.moment_count.fetch_sub(1, Ordering::Release);
    }
}

impl Store {
    /// The present moment: later invalidations count as after it. Takes a number, as storing an
    /// item does.
    pub fn moment(&self) -> Moment {
        let number = self.next_number();
        self.changes.moments[number as usize % PARTS].lock().insert(number);
        self.changes.moment_count.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        Moment { number, changes: Arc::clone(&self.changes) }
    }

    /// What has happened since to an item of this key and these tags: one that is on its way is no
    /// answer to a request that comes now, and will not be stored.
    pub fn change_since(&self, since: &Moment, key: &[u8], tags: &[&[u8]]) -> Option<Change> {
        self.hashed_change_since(since, self.hash(key), key, tags)
    }

    /// Notes that the item of a key, hashed, is not what it was, there or not.
    pub(crate) fn note_key(&self, hash: u64) {
        self.changes.note(hash, || self.last_number());
    }

    /// Notes that an item was stored at `number` under a key, hashed.
    pub(crate) fn note_stored(&self, hash: u64, number: u64) {
        self.changes.note(hash, || number);
    }

    /// Notes when an item was stored that is freed, evicted or marked stale now: one that was begun
    /// before must not take its place. A stale item is left out. Its number is that of the mark,
    /// and the number under which it was stored was noted when it was marked.
    pub(crate) fn note_leaving(&self, shard: &Shard, index: u32) {
        let number = self.changes.oldest_at_least.load(Ordering::Relaxed);
        if shard.is_stored_since(index, number) {
            self.note_stored(self.hash(shard.key(index)), shard.sequence(index));
        }
    }

    pub(crate) fn note_tag(&self, tag: &[u8]) {
        self.changes.note(self.hash_of(TAG, tag), || self.last_number());
    }

    pub(crate) fn note_prefix(&self, prefix: &[u8]) {
        let length = prefix.len();
        if let Some(word) = self.changes.prefix_lengths.get(length / 64) {
            word.fetch_or(1 << (length % 64), Ordering::SeqCst);
        }
        self.changes.note(self.hash_of(PREFIX, prefix), || self.last_number());
    }

    /// The same as [`Store::change_since`] for a key that is hashed. Call with the item's own
    /// number taken.
    pub(crate) fn hashed_change_since(
        &self,
        since: &Moment,
        hash: u64,
        key: &[u8],
        tags: &[&[u8]],
    ) -> Option<Change> {
        fence(Ordering::SeqCst);
        let by_key = std::iter::once(hash);
        let by_tags = tags.iter().map(|tag| self.hash_of(TAG, tag));
        let by_prefixes = self.changes.lengths(key.len()).map(|length| {
            let prefix = key.get(..length).unwrap_or(key);
            self.hash_of(PREFIX, prefix)
        });
        let mut change = None;
        for hash in by_key.chain(by_tags).chain(by_prefixes) {
            match self.changes.change_since(hash, since) {
                Some(Change::Invalidated) => return Some(Change::Invalidated),
                Some(Change::Unknown) => change = Some(Change::Unknown),
                None => {}
            }
        }
        change
    }

    fn hash_of(&self, kind: u8, name: &[u8]) -> u64 {
        self.hasher.hash_one((kind, name))
    }
}

/// Gives back the hash that it gets.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Invalidation, StoreConfig};

    fn entries(store: &Store) -> usize {
        store.changes.log.iter().map(|log| log.lock().numbers.len()).sum()
    }

    fn invalidate(store: &Store, numbers: std::ops::Range<u32>) {
        for number in numbers {
            store.invalidate_tag(format!("tag-{number}").as_bytes(), Invalidation::Hard);
        }
    }

    #[test]
    fn nothing_is_recorded_when_nothing_is_being_made() {
        let store = Store::new(StoreConfig::default());
        invalidate(&store, 0..1000);
        assert_eq!(entries(&store), 0);
        let moment = store.moment();
        invalidate(&store, 0..1000);
        assert_eq!(entries(&store), 1000);
        drop(moment);
        store.sweep(crate::Now::from_unix_seconds(1), 1);
        assert_eq!(entries(&store), 0);
    }

    #[test]
    fn what_happened_before_the_oldest_moment_is_dropped() {
        let store = Store::new(StoreConfig::default());
        for round in 0..100 {
            let _moment = store.moment();
            invalidate(&store, round * 1000..(round + 1) * 1000);
        }
        assert!(entries(&store) < 5000, "{} entries", entries(&store));
    }

    #[test]
    fn a_full_log_forgets_the_oldest_and_says_so() {
        let store = Store::new(StoreConfig::default());
        let old = store.moment();
        let limit = (PARTS * PART_LIMIT) as u32;
        invalidate(&store, 0..limit / 4 * 3);
        store.sweep(crate::Now::from_unix_seconds(1), 1);
        assert_eq!(store.change_since(&old, b"key", &[b"other"]), None, "not full yet");
        assert_eq!(store.change_since(&old, b"key", &[b"tag-0"]), Some(Change::Invalidated));
        invalidate(&store, 0..2 * limit);
        assert!(entries(&store) <= limit as usize, "{} entries", entries(&store));
        let new = store.moment();
        invalidate(&store, 0..1000);
        assert_eq!(store.change_since(&old, b"key", &[]), Some(Change::Unknown));
        assert_eq!(store.change_since(&new, b"key", &[b"other"]), None);
        assert_eq!(store.change_since(&new, b"key", &[b"tag-7"]), Some(Change::Invalidated));
    }
}
