//! A log of invalidations, kept while an item is being prepared.
//!
//! An application takes time to make a page. The data behind the page may change meanwhile, and the
//! invalidation that follows finds no item yet. The caller therefore takes a [`Moment`] before it
//! asks the application. Storing the page later is refused if its key, one of its tags or a prefix
//! of its key has been invalidated since that moment.
//!
//! While at least one [`Moment`] is held, each invalidation enters the 64-bit hash of its name and
//! its sequence number into the log. An unrelated invalidation has another hash and does not
//! matter. Two names with the same hash cost one refusal. Entries older than the oldest moment are
//! dropped, because nothing needs them. The log is bounded: when a stripe is full, its older half
//! is forgotten. Pages that were begun before that are refused ([`Change::Unknown`]).
//!
//! Why no invalidation is missed:
//!
//! - `Store::moment` takes a sequence number, registers it, and then the caller reads its data. The
//!   invalidator changes the data, looks for registered moments, and then reads the last sequence
//!   number. A full fence stands between the two steps of each (Dekker's algorithm). So either the
//!   invalidator sees the moment and makes an entry with a number that is not smaller, or the
//!   caller reads data that has been changed already.
//! - The invalidator makes its entry, then reads the last sequence number and marks all items up to
//!   it. A writer takes the item's number, then looks for entries. Both hold the lock of the stripe
//!   for that. So either the writer sees the entry, or the mark covers the item.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use kirin_sync::Mutex;
use kirin_sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use crate::config::TAG_LIMIT_BYTES;

/// Stripes of the log, and of the registered moments. Each has a lock of its own. A power of two.
const STRIPES: usize = 16;

/// The most names that a stripe of the log holds.
const STRIPE_LIMIT: usize = 16 * 1024;

/// The most names that the log holds. They take about 9 MB.
#[cfg(test)]
pub(crate) const CHANGE_LIMIT: u32 = (STRIPES * STRIPE_LIMIT) as u32;

/// Below this size a stripe is not searched for useless entries.
const PRUNE_FLOOR: usize = 64;

/// The moment at which work on an item began. Later invalidations are recorded while it is held.
#[derive(Debug)]
pub struct Moment {
    sequence: u64,
    log: Arc<ChangeLog>,
}

/// The change of a key since a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key, a tag or a prefix of the key has been invalidated.
    Invalidated,
    /// The change is not known, because the log has dropped names: too many were invalidated since
    /// then.
    Unknown,
}

/// The log of invalidations, and the moments that it is kept for.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    stripes: [Mutex<Stripe>; STRIPES],
    /// The sequence numbers of the moments that are held.
    moments: [Mutex<BTreeSet<u64>>; STRIPES],
    /// The number of moments that are held.
    moment_count: AtomicUsize,
    /// A lower bound: no moment that is held, or will be, has a smaller sequence number.
    oldest_at_least: AtomicU64,
    /// The lengths of all prefixes that have ever been invalidated, one bit each.
    prefix_lengths: [AtomicU64; TAG_LIMIT_BYTES / 64 + 1],
}

/// A part of the log with a lock of its own.
#[derive(Debug, Default)]
struct Stripe {
    /// For the hash of each name, the last sequence number up to which it was invalidated.
    sequences: HashMap<u64, u64, BuildHasherDefault<AlreadyHashed>>,
    /// The size at which the next search for useless entries is due.
    prune_at: usize,
    /// Entries up to this sequence number may be missing although a moment needs them.
    forgotten_up_to: u64,
}

impl ChangeLog {
    fn stripe(&self, hash: u64) -> &Mutex<Stripe> {
        // These bits differ from those that choose the shard, and from those that hashbrown uses.
        &self.stripes[(hash >> 16) as usize % STRIPES]
    }

    /// Registers a moment with this sequence number.
    pub(crate) fn begin(self: &Arc<Self>, sequence: u64) -> Moment {
        let is_new = self.moments[sequence as usize % STRIPES].lock().insert(sequence);
        debug_assert!(is_new, "two moments have the number {sequence}");
        self.moment_count.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        Moment { sequence, log: Arc::clone(self) }
    }

    /// Enters the hash of a name with the sequence number that `sequence` returns. Does nothing
    /// while no moment is held.
    pub(crate) fn note(&self, hash: u64, sequence: impl FnOnce() -> u64) {
        fence(Ordering::SeqCst);
        if self.moment_count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut stripe = self.stripe(hash).lock();
        // The number must be read after the moments have been looked for.
        let sequence = sequence();
        let entry = stripe.sequences.entry(hash).or_default();
        *entry = sequence.max(*entry);
        if stripe.sequences.len() > stripe.prune_at.max(PRUNE_FLOOR) {
            stripe.prune(self.oldest_moment());
        }
    }

    /// Remembers that a prefix of this length has been invalidated.
    pub(crate) fn note_prefix_length(&self, length: usize) {
        if let Some(word) = self.prefix_lengths.get(length / 64) {
            word.fetch_or(1 << (length % 64), Ordering::SeqCst);
        }
    }

    /// Returns the change since a moment of the name with this hash.
    pub(crate) fn change_since(&self, hash: u64, since: &Moment) -> Option<Change> {
        let stripe = self.stripe(hash).lock();
        match stripe.sequences.get(&hash) {
            Some(sequence) if *sequence >= since.sequence => Some(Change::Invalidated),
            _ if stripe.forgotten_up_to >= since.sequence => Some(Change::Unknown),
            _ => None,
        }
    }

    /// Returns the sequence number with which the name with this hash was noted last.
    pub(crate) fn noted(&self, hash: u64) -> Option<u64> {
        self.stripe(hash).lock().sequences.get(&hash).copied()
    }

    /// Drops the entries that no moment needs. `last_sequence` is the last number that was given.
    pub(crate) fn prune(&self, last_sequence: u64) {
        let oldest = self.oldest_moment();
        self.oldest_at_least.fetch_max(oldest.min(last_sequence), Ordering::Relaxed);
        for stripe in &self.stripes {
            stripe.lock().prune(oldest);
        }
    }

    fn oldest_moment(&self) -> u64 {
        let first = |moments: &Mutex<BTreeSet<u64>>| moments.lock().first().copied();
        self.moments.iter().filter_map(first).min().unwrap_or(u64::MAX)
    }

    /// Returns a sequence number below which no moment can ask for an entry.
    pub(crate) fn oldest_at_least(&self) -> u64 {
        self.oldest_at_least.load(Ordering::Relaxed)
    }

    /// Lists the lengths of prefixes that have been invalidated, up to `longest`.
    pub(crate) fn prefix_lengths(&self, longest: usize) -> impl Iterator<Item = usize> {
        (0..=longest.min(TAG_LIMIT_BYTES)).filter(|length| {
            self.prefix_lengths[length / 64].load(Ordering::Relaxed) & 1 << (length % 64) != 0
        })
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.lock().sequences.len()).sum()
    }
}

impl Stripe {
    fn prune(&mut self, oldest_moment: u64) {
        self.sequences.retain(|_, sequence| *sequence >= oldest_moment);
        if self.sequences.len() >= STRIPE_LIMIT {
            let mut sequences: Vec<u64> = self.sequences.values().copied().collect();
            let middle = sequences.len() / 2;
            let forgotten = *sequences.select_nth_unstable(middle).1;
            self.sequences.retain(|_, sequence| *sequence > forgotten);
            self.forgotten_up_to = forgotten.max(self.forgotten_up_to);
        }
        // Twice the entries in use: as many new entries share the cost of each search.
        debug_assert!(self.sequences.len() < STRIPE_LIMIT, "{}", self.sequences.len());
        self.prune_at = (self.sequences.len() * 2).clamp(PRUNE_FLOOR, STRIPE_LIMIT);
        self.sequences.shrink_to(self.prune_at);
    }
}

impl Moment {
    /// Returns the sequence number. Items with this number or a greater one are newer.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        let was_held =
            self.log.moments[self.sequence as usize % STRIPES].lock().remove(&self.sequence);
        debug_assert!(was_held, "the moment {} was not held", self.sequence);
        let moments = self.log.moment_count.fetch_sub(1, Ordering::Release);
        debug_assert!(moments > 0, "the moment {} was not counted", self.sequence);
    }
}

/// A hasher for keys that are hashes already: it returns what it is given.
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
