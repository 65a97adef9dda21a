//! The store: its shards, its budget and its counters of sequence numbers.

use std::hash::BuildHasher;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use foldhash::quality::RandomState;
use kirin_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kirin_sync::{RwLock, RwLockWriteGuard};

use crate::budget::Budget;
use crate::config::StoreConfig;
use crate::eviction::watch::EvictionWatch;
use crate::hand_over::giving::PendingInvalidations;
use crate::invalidation::change_log::ChangeLog;
use crate::invalidation::prefix::PrefixTable;
use crate::invalidation::tag::TagRegistry;
use crate::items::shard::Shard;
use crate::statistics::counters::ShardCounters;

/// Items in memory under one budget, shared by all threads as `Arc<Store>`.
///
/// It has no thread and no clock of its own. The program calls [`Store::sweep`] once a second. An
/// expired or invalidated item is never served, whether it was swept or not.
pub struct Store {
    pub(crate) config: StoreConfig,
    pub(crate) shards: Box<[LockedShard]>,
    pub(crate) hasher: RandomState,
    pub(crate) budget: Budget,
    /// The last sequence number, which is the CAS unique of most items.
    pub(crate) sequences: AtomicU64,
    /// `flush_all` has invalidated the items up to this sequence number.
    pub(crate) flushed_up_to: AtomicU64,
    /// The raw time of a delayed `flush_all`, or 0 for none.
    pub(crate) flush_due: AtomicU32,
    pub(crate) flushes: AtomicU64,
    pub(crate) evicted_idle_seconds: AtomicU32,
    pub(crate) eviction_watch: EvictionWatch,
    pub(crate) tags: TagRegistry,
    pub(crate) prefixes: PrefixTable,
    pub(crate) change_log: Arc<ChangeLog>,
    /// Notes invalidations while the store is handed over.
    pub(crate) invalidations: PendingInvalidations,
    /// The shard at which the next search for room begins.
    pub(crate) room_cursor: AtomicUsize,
    pub(crate) sweep_cursor: AtomicUsize,
}

/// A shard with its lock and its counters. It shares no cache line with its neighbours.
#[repr(align(128))]
pub(crate) struct LockedShard {
    pub(crate) shard: RwLock<Shard>,
    pub(crate) counters: ShardCounters,
}

/// A shard that is locked for writing. On release it tells the budget how the shard's size has
/// changed.
pub(crate) struct ShardGuard<'a> {
    shard: RwLockWriteGuard<'a, Shard>,
    pub(crate) counters: &'a ShardCounters,
    pub(crate) budget: &'a Budget,
    /// The index of the shard.
    pub(crate) index: usize,
    settled_bytes: usize,
    /// Bytes taken from the budget for an item that is about to be inserted.
    pub(crate) reserved_bytes: usize,
}

impl ShardGuard<'_> {
    pub(crate) fn settle(&mut self) {
        self.shard.drop_copies();
        let bytes = self.shard.bytes();
        self.budget.change(self.settled_bytes + self.reserved_bytes, bytes);
        self.settled_bytes = bytes;
        self.reserved_bytes = 0;
    }
}

impl Drop for ShardGuard<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Deref for ShardGuard<'_> {
    type Target = Shard;
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for ShardGuard<'_> {
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Store {
    /// Creates an empty store.
    pub fn new(config: StoreConfig) -> Store {
        Store::with_hasher(config, RandomState::default())
    }

    /// Creates an empty store whose keys have the hashes of `hasher`.
    pub(crate) fn with_hasher(config: StoreConfig, hasher: RandomState) -> Store {
        let page_bytes = config.page_bytes();
        let shards = (0..config.shard_count())
            .map(|_| LockedShard {
                shard: RwLock::new(Shard::new(hasher.clone(), page_bytes)),
                counters: ShardCounters::default(),
            })
            .collect();
        Store {
            budget: Budget::new(config.memory_bytes),
            config,
            shards,
            hasher,
            sequences: AtomicU64::new(0),
            flushed_up_to: AtomicU64::new(0),
            flush_due: AtomicU32::new(0),
            flushes: AtomicU64::new(0),
            evicted_idle_seconds: AtomicU32::new(0),
            eviction_watch: EvictionWatch::default(),
            tags: TagRegistry::default(),
            prefixes: PrefixTable::default(),
            change_log: Arc::default(),
            invalidations: PendingInvalidations::default(),
            room_cursor: AtomicUsize::new(0),
            sweep_cursor: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the index of the shard for a hash. hashbrown uses the highest and the lowest bits
    /// itself.
    #[inline]
    pub(crate) fn shard_index(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.shards.len() - 1)
    }

    /// Locks the shard of a hash for writing.
    pub(crate) fn lock_shard_of(&self, hash: u64) -> ShardGuard<'_> {
        self.lock_shard(self.shard_index(hash))
    }

    pub(crate) fn lock_shard(&self, index: usize) -> ShardGuard<'_> {
        self.locked(index, self.shards[index].shard.write())
    }

    pub(crate) fn try_lock_shard(&self, index: usize) -> Option<ShardGuard<'_>> {
        Some(self.locked(index, self.shards[index].shard.try_write()?))
    }

    fn locked<'a>(&'a self, index: usize, shard: RwLockWriteGuard<'a, Shard>) -> ShardGuard<'a> {
        ShardGuard {
            settled_bytes: shard.bytes(),
            shard,
            counters: &self.shards[index].counters,
            budget: &self.budget,
            index,
            reserved_bytes: 0,
        }
    }

    /// Takes the next sequence number. It is greater than all before.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequences.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the last sequence number.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.sequences.load(Ordering::Relaxed)
    }

    /// Returns the CAS unique for an item. If the client chose it, also returns the item's sequence
    /// number.
    pub(crate) fn assign_cas(&self, new_cas: Option<u64>) -> (u64, Option<u64>) {
        let number = self.next_sequence();
        match new_cas.filter(|&cas| cas != 0) {
            Some(cas) => (cas, Some(number)),
            None => (number, None),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("used_bytes", &self.budget.used())
            .field("limit_bytes", &self.budget.limit())
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}
