//! The keys of a shard that have changed and were not sent yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::HashSet;

use crate::hand_over::item_step::ItemStep;

/// The most bytes that the keys of all shards take. When they take more, the hand-over has failed.
pub(crate) const PENDING_LIMIT_BYTES: usize = 64 << 20;

/// The bytes that a key takes besides its own: its entry in the set, and its allocation.
const KEY_FIXED_BYTES: usize = 48;

/// The bytes of all keys that wait.
#[derive(Debug, Default)]
pub(crate) struct PendingBytes {
    bytes: AtomicUsize,
    /// Whether a key was dropped.
    is_over: AtomicBool,
}

impl PendingBytes {
    pub(crate) fn get(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether keys were dropped because too many waited.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Gives back the bytes of keys that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes of {before} are given back");
    }
}

/// The keys of a shard that have changed.
#[derive(Debug)]
pub(crate) struct ChangedKeys {
    keys: HashSet<Box<[u8]>>,
    /// Changes after the switch that the other side has to make to its own item, in their order.
    steps: Vec<(Box<[u8]>, ItemStep)>,
    /// Whether changes count that no client has asked for, such as an eviction.
    pub(crate) counts_all: bool,
    pending: Arc<PendingBytes>,
}

impl ChangedKeys {
    pub(crate) fn new(pending: Arc<PendingBytes>) -> ChangedKeys {
        let (keys, steps) = Default::default();
        ChangedKeys { keys, steps, counts_all: true, pending }
    }

    /// Notes a key. Drops it if too many wait.
    #[cold]
    pub(crate) fn insert(&mut self, key: &[u8]) {
        if self.keys.contains(key) {
            return;
        }
        if self.pending.get() > PENDING_LIMIT_BYTES {
            return self.pending.is_over.store(true, Ordering::Relaxed);
        }
        self.keys.insert(key.into());
        self.pending.bytes.fetch_add(Self::bytes_of(key), Ordering::Relaxed);
    }

    /// Notes a step of an item that does not replace it. Before the switch both sides have the same
    /// item, so the key is enough. So it is if the whole item has to be sent anyway.
    #[cold]
    pub(crate) fn insert_step(&mut self, key: &[u8], step: ItemStep) {
        if self.counts_all || self.keys.contains(key) {
            return self.insert(key);
        }
        if self.pending.get() > PENDING_LIMIT_BYTES {
            return self.pending.is_over.store(true, Ordering::Relaxed);
        }
        self.steps.push((key.into(), step));
        self.pending.bytes.fetch_add(Self::bytes_of(key), Ordering::Relaxed);
    }

    /// Takes all steps. They count as waiting until they are given back.
    pub(crate) fn take_steps(&mut self) -> Vec<(Box<[u8]>, ItemStep)> {
        std::mem::take(&mut self.steps)
    }

    /// Takes all keys. They count as waiting until they are given back.
    pub(crate) fn take(&mut self) -> HashSet<Box<[u8]>> {
        std::mem::take(&mut self.keys)
    }

    /// Returns the bytes that a key counts for.
    pub(crate) fn bytes_of(key: &[u8]) -> usize {
        key.len() + KEY_FIXED_BYTES
    }
}
