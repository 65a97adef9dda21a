//! The keys that the engine is known not to have.
//!
//! A route may try the store for each URL, also for those of static files. Without this table, each
//! of them would ask the engine at each request.
//!
//! The table holds no keys, but 64-bit hashes of them, each in the one slot that the hash chooses.
//! A newer key overwrites an older one in the same slot, which is then asked for again. So the
//! memory is fixed, and no operation takes a lock.
//!
//! Two keys with the same hash are the same key to this table. If the engine lacks one of them and
//! has the other, the other looks absent, which is a miss, until the entry is removed. That is
//! acceptable: the chance is 2^-64 for each pair of such keys, and an eviction would have caused
//! the same miss. Strangers choose keys, but the hash has a random key, and neither that nor a hash
//! leaves the process. The hash is not a cryptographic one; the store's own tables use the same.
//!
//! The epoch is mixed into each entry, so a higher epoch makes all entries useless at once. An
//! entry of an older epoch equals that of another key with the same chance of 2^-64.
//!
//! An answer of the engine may be outdated when it is inserted. So the caller inserts the key first
//! and then looks into the store's change log ([`kirin_store::Store::change_since`]). If it finds a
//! change, it removes the key. An invalidation enters the change into the log first, and then calls
//! [`AbsentKeys::remove`] or [`AbsentKeys::forget_all`]. The log has locks, so one of the two sees
//! the other.

use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;

/// The number of slots, 8 bytes each. A power of two.
const SLOTS: usize = 1 << 17;

/// A slot without an entry.
const VACANT: u64 = 0;

/// An odd number with bits all over, 2^64 divided by the golden ratio. Products of it with
/// different epochs differ.
const EPOCH_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A table of keys that the engine is known not to have, shared by all threads.
///
/// It takes no memory before the first key is inserted, and 1 MiB from then on.
#[derive(Debug)]
pub struct AbsentKeys {
    slots: OnceLock<Box<[AtomicU64]>>,
    slot_count: usize,
    hasher: RandomState,
    epoch: AtomicU64,
}

impl Default for AbsentKeys {
    fn default() -> Self {
        Self::with_slots(SLOTS)
    }
}

impl AbsentKeys {
    fn with_slots(slot_count: usize) -> Self {
        Self {
            slots: OnceLock::new(),
            slot_count,
            hasher: RandomState::default(),
            epoch: AtomicU64::new(0),
        }
    }

    /// Notes that the engine has no `key`. See the head of this file for what must follow.
    pub fn insert(&self, key: &[u8]) {
        let slots = self
            .slots
            .get_or_init(|| (0..self.slot_count).map(|_| AtomicU64::new(VACANT)).collect());
        let hash = self.hasher.hash_one(key);
        if let Some(slot) = slot_of(slots, hash) {
            slot.store(self.entry(hash), Ordering::Release);
        }
    }

    /// Notes that the engine may have `key`. Other keys of the same slot may be forgotten, which
    /// is always safe.
    pub fn remove(&self, key: &[u8]) {
        let Some(slots) = self.slots.get() else { return };
        if let Some(slot) = slot_of(slots, self.hasher.hash_one(key)) {
            slot.store(VACANT, Ordering::Release);
        }
    }

    /// Returns whether the engine is known not to have `key`.
    pub fn has(&self, key: &[u8]) -> bool {
        let Some(slots) = self.slots.get() else { return false };
        let hash = self.hasher.hash_one(key);
        slot_of(slots, hash).is_some_and(|slot| slot.load(Ordering::Acquire) == self.entry(hash))
    }

    /// Forgets all keys. This costs the same however many they are.
    pub fn forget_all(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the entry of a key with this hash in the present epoch.
    fn entry(&self, hash: u64) -> u64 {
        let epoch = self.epoch.load(Ordering::Acquire);
        let entry = hash ^ epoch.wrapping_mul(EPOCH_STEP);
        if entry == VACANT { 1 } else { entry }
    }
}

/// Returns the slot of a key. It does not depend on the epoch, so a removal cannot miss an entry.
fn slot_of(slots: &[AtomicU64], hash: u64) -> Option<&AtomicU64> {
    let index = usize::try_from(hash % slots.len() as u64).ok()?;
    slots.get(index)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_absent_from_its_insertion_to_its_removal() {
        let keys = AbsentKeys::default();
        assert!(!keys.has(b"a"));
        keys.remove(b"a");
        keys.insert(b"a");
        keys.insert(b"a");
        assert!(keys.has(b"a") && !keys.has(b"b") && !keys.has(b""));
        keys.remove(b"a");
        assert!(!keys.has(b"a"));
        keys.insert(b"a");
        assert!(keys.has(b"a"));
    }

    #[test]
    fn all_keys_are_forgotten_at_once() {
        let keys = AbsentKeys::default();
        for epoch in 0..1000_u64 {
            keys.insert(&epoch.to_le_bytes());
            assert!(keys.has(&epoch.to_le_bytes()));
            keys.forget_all();
            assert!((0..=epoch).all(|old| !keys.has(&old.to_le_bytes())), "epoch {epoch}");
        }
    }

    #[test]
    fn the_table_takes_memory_with_the_first_key() {
        let keys = AbsentKeys::default();
        assert!(!keys.has(b"a"));
        keys.remove(b"a");
        keys.forget_all();
        assert!(keys.slots.get().is_none());
        keys.insert(b"a");
        assert_eq!(keys.slots.get().map(|slots| size_of_val(&**slots)), Some(1 << 20));
    }

    #[test]
    fn most_keys_of_a_half_full_table_are_known() {
        let keys = AbsentKeys::default();
        let half = SLOTS as u64 / 2;
        (0..half).for_each(|key| keys.insert(&key.to_le_bytes()));
        let known = (0..half).filter(|key| keys.has(&key.to_le_bytes())).count() as u64;
        // A key survives if none of the later ones has its slot: 1 - e^-0.5 of 0.5, or 79 %.
        assert!(known > half * 3 / 4, "{known} of {half}");
        assert!((half..2 * half).all(|key| !keys.has(&key.to_le_bytes())));
    }

    #[test]
    fn threads_share_the_table() {
        let keys = AbsentKeys::with_slots(4);
        thread::scope(|scope| {
            for thread in 0..4_u8 {
                let keys = &keys;
                scope.spawn(move || {
                    for number in 0..1000_u16 {
                        let [low, high] = number.to_le_bytes();
                        keys.insert(&[thread, low, high]);
                        keys.remove(&[thread, low, high]);
                        assert!(!keys.has(&[thread, low, high]));
                    }
                });
            }
        });
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8),
        Remove(u8),
        ForgetAll,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0..32_u8).prop_map(Step::Insert),
            4 => (0..32_u8).prop_map(Step::Remove),
            1 => Just(Step::ForgetAll),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn no_key_is_absent_without_an_insertion(steps in steps(), slot_bits in 0..6_u32) {
            let keys = AbsentKeys::with_slots(1 << slot_bits);
            let mut model = HashSet::new();
            for step in steps {
                match step {
                    Step::Insert(key) => {
                        keys.insert(&[key]);
                        model.insert(key);
                        prop_assert!(keys.has(&[key]));
                    }
                    Step::Remove(key) => {
                        keys.remove(&[key]);
                        model.remove(&key);
                    }
                    Step::ForgetAll => {
                        keys.forget_all();
                        model.clear();
                    }
                }
                for key in 0..=u8::MAX {
                    prop_assert!(!keys.has(&[key]) || model.contains(&key), "key {}", key);
                }
            }
        }
    }
}
