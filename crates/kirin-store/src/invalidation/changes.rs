//! The store's use of the [`ChangeLog`](crate::invalidation::change_log::ChangeLog).

use std::hash::BuildHasher;

use foldhash::HashMap;
use kirin_sync::atomic::{Ordering, fence};

use crate::hand_over::frame::Invalidated;
use crate::invalidation::change_log::{Change, Moment};
use crate::items::shard::Shard;
use crate::store::Store;

/// Goes into the hash of a tag, so that a tag and a key of the same name have different hashes.
const TAG: u8 = b't';

/// Goes into the hash of a prefix, for the same reason.
const PREFIX: u8 = b'p';

impl Store {
    /// Returns the present moment: later invalidations count as after it. Takes a sequence number,
    /// as storing an item does.
    pub fn moment(&self) -> Moment {
        self.change_log.begin(self.next_sequence())
    }

    /// Returns what has happened since a moment to an item with this key and these tags. If
    /// something has, an item in progress does not answer a new request, and storing it is refused.
    pub fn change_since(&self, since: &Moment, key: &[u8], tags: &[&[u8]]) -> Option<Change> {
        self.hashed_change_since(since, self.hash(key), key, tags)
    }

    /// Notes that the item under a key with this hash has changed or gone, whether it was there or
    /// not.
    pub(crate) fn note_key(&self, hash: u64) {
        self.change_log.note(hash, || self.last_sequence());
    }

    /// Notes that an item was stored at `sequence` under a key with this hash.
    pub(crate) fn note_stored(&self, hash: u64, sequence: u64) {
        self.change_log.note(hash, || sequence);
    }

    /// Notes when an item was stored that is now freed, evicted or marked stale. An item that was
    /// begun earlier must not take its place.
    ///
    /// Skips an item that is stale already. Its sequence number is that of the mark, and the number
    /// under which it was stored was noted when it was marked.
    pub(crate) fn note_leaving(&self, shard: &Shard, index: u32) {
        if shard.is_stored_since(index, self.change_log.oldest_at_least()) {
            self.note_stored(self.hash(shard.key(index)), shard.sequence(index));
        }
    }

    /// Notes the invalidation of a tag.
    pub(crate) fn note_tag(&self, tag: &[u8]) {
        self.change_log.note(self.hash_of(TAG, tag), || self.last_sequence());
    }

    /// Notes the invalidation of a prefix.
    pub(crate) fn note_prefix(&self, prefix: &[u8]) {
        self.change_log.note_prefix_length(prefix.len());
        self.change_log.note(self.hash_of(PREFIX, prefix), || self.last_sequence());
    }

    /// Works as [`Store::change_since`], for a key whose hash is known. A writer must take the
    /// item's own sequence number before this call.
    pub(crate) fn hashed_change_since(
        &self,
        since: &Moment,
        hash: u64,
        key: &[u8],
        tags: &[&[u8]],
    ) -> Option<Change> {
        fence(Ordering::SeqCst);
        let mut change = None;
        for hash in self.name_hashes(hash, key, tags) {
            match self.change_log.change_since(hash, since) {
                Some(Change::Invalidated) => return Some(Change::Invalidated),
                Some(Change::Unknown) => change = Some(Change::Unknown),
                None => {}
            }
        }
        change
    }

    /// Returns whether something has happened since a moment to an item with this key and these
    /// tags, beside what `own` has: sequence numbers by the hashes of names.
    pub(crate) fn is_changed_by_others(
        &self,
        since: &Moment,
        key: &[u8],
        tags: &[&[u8]],
        own: &HashMap<u64, u64>,
    ) -> bool {
        fence(Ordering::SeqCst);
        self.name_hashes(self.hash(key), key, tags).any(|hash| {
            let noted = self.change_log.noted(hash);
            self.change_log.change_since(hash, since).is_some()
                && own.get(&hash).is_none_or(|own| noted.is_some_and(|noted| noted > *own))
        })
    }

    /// Returns the hash under which an invalidation is noted.
    pub(crate) fn hash_of_invalidated(&self, what: &Invalidated<'_>) -> u64 {
        match what {
            Invalidated::Tag(tag, _) => self.hash_of(TAG, tag),
            Invalidated::Prefix(prefix, _) => self.hash_of(PREFIX, prefix),
            Invalidated::All => self.hash_of(PREFIX, b""),
        }
    }

    /// Returns the hashes of all names by which an item can be invalidated.
    fn name_hashes(&self, hash: u64, key: &[u8], tags: &[&[u8]]) -> impl Iterator<Item = u64> {
        let by_tags = tags.iter().map(|tag| self.hash_of(TAG, tag));
        let by_prefixes = self.change_log.prefix_lengths(key.len()).map(move |length| {
            let prefix = key.get(..length).unwrap_or(key);
            self.hash_of(PREFIX, prefix)
        });
        std::iter::once(hash).chain(by_tags).chain(by_prefixes)
    }

    fn hash_of(&self, kind: u8, name: &[u8]) -> u64 {
        self.hasher.hash_one((kind, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invalidation::change_log::CHANGE_LIMIT;
    use crate::{Invalidation, StoreConfig};

    fn entries(store: &Store) -> usize {
        store.change_log.len()
    }

    fn invalidate(store: &Store, numbers: std::ops::Range<u32>) {
        for number in numbers {
            store.invalidate_tag(format!("tag-{number}").as_bytes(), Invalidation::Hard);
        }
    }

    #[test]
    fn no_invalidation_is_recorded_without_a_moment() {
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
    fn changes_before_the_oldest_moment_are_dropped() {
        let store = Store::new(StoreConfig::default());
        for round in 0..100 {
            let _moment = store.moment();
            invalidate(&store, round * 1000..(round + 1) * 1000);
        }
        assert!(entries(&store) < 5000, "{} entries", entries(&store));
    }

    #[test]
    fn a_full_log_drops_the_oldest_changes_and_answers_unknown() {
        let store = Store::new(StoreConfig::default());
        let old = store.moment();
        let limit = CHANGE_LIMIT;
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
