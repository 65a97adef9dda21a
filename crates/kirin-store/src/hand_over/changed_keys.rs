//! The keys of a shard that have changed and were not sent yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::HashSet;

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
    /// Whether changes count that no client has asked for, such as an eviction.
    pub(crate) counts_all: bool,
    pending: Arc<PendingBytes>,
}

impl ChangedKeys {
    pub(crate) fn new(pending: Arc<PendingBytes>) -> ChangedKeys {
        ChangedKeys { keys: HashSet::default(), counts_all: true, pending }
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

    /// Takes all keys. They count as waiting until they are given back.
    pub(crate) fn take(&mut self) -> HashSet<Box<[u8]>> {
        std::mem::take(&mut self.keys)
    }

    /// Returns the bytes that a key counts for.
    pub(crate) fn bytes_of(key: &[u8]) -> usize {
        key.len() + KEY_FIXED_BYTES
    }
}
