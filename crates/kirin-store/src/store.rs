//! The store itself: its parts, and what reads them.

use std::hash::BuildHasher;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use foldhash::quality::RandomState;
use parking_lot::{RwLock, RwLockWriteGuard};

use crate::budget::Budget;
use crate::config::StoreConfig;
use crate::invalidation::change_log::ChangeLog;
use crate::invalidation::prefix::PrefixTable;
use crate::invalidation::tag::TagRegistry;
use crate::items::shard::Shard;
use crate::statistics::counters::Counters;

/// Items in memory, under one budget, shared by all threads as `Arc<Store>`.
///
/// It has no thread and no clock of its own. The program calls [`Store::sweep`] once a second; what
/// expired or was invalidated is never served, swept or not.
pub struct Store {
    pub(crate) config: StoreConfig,
    pub(crate) parts: Box<[Part]>,
    pub(crate) hasher: RandomState,
    pub(crate) budget: Budget,
    /// The last number (CAS unique) given to an item.
    pub(crate) sequences: AtomicU64,
    /// Items numbered up to here are gone by `flush_all`.
    pub(crate) flushed_up_to: AtomicU64,
    /// When a delayed `flush_all` is due; 0 for none.
    pub(crate) flush_due: AtomicU32,
    pub(crate) flushes: AtomicU64,
    pub(crate) evicted_idle_seconds: AtomicU32,
    pub(crate) tags: TagRegistry,
    pub(crate) prefixes: PrefixTable,
    pub(crate) change_log: Arc<ChangeLog>,
    /// Shard that the next search for room, or the next sweep, begins with.
    pub(crate) room_cursor: AtomicUsize,
    pub(crate) sweep_cursor: AtomicUsize,
}

/// A shard, its lock, and what is counted about it; apart from its neighbours' cache lines.
#[repr(align(128))]
pub(crate) struct Part {
    pub(crate) shard: RwLock<Shard>,
    pub(crate) counters: Counters,
}

/// A shard locked for writing. When it is let go, or told to, the budget learns how the shard's
/// size has changed.
pub(crate) struct ShardWrite<'a> {
    shard: RwLockWriteGuard<'a, Shard>,
    pub(crate) counters: &'a Counters,
    pub(crate) budget: &'a Budget,
    /// Index of the part.
    pub(crate) part: usize,
    settled_bytes: usize,
    /// Bytes taken from the budget for what is about to be inserted.
    pub(crate) reserved_bytes: usize,
}

impl ShardWrite<'_> {
    pub(crate) fn settle(&mut self) {
        self.shard.drop_copies();
        let bytes = self.shard.bytes();
        self.budget.change(self.settled_bytes + self.reserved_bytes, bytes);
        self.settled_bytes = bytes;
        self.reserved_bytes = 0;
    }
}

impl Drop for ShardWrite<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Deref for ShardWrite<'_> {
    type Target = Shard;
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for ShardWrite<'_> {
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Store {
    /// A store with nothing in it.
    pub fn new(config: StoreConfig) -> Store {
        let (hasher, page_bytes) = (RandomState::default(), config.page_bytes());
        let parts = (0..config.shard_count())
            .map(|_| Part {
                shard: RwLock::new(Shard::new(hasher.clone(), page_bytes)),
                counters: Counters::default(),
            })
            .collect();
        Store {
            budget: Budget::new(config.memory_bytes),
            config,
            parts,
            hasher,
            sequences: AtomicU64::new(0),
            flushed_up_to: AtomicU64::new(0),
            flush_due: AtomicU32::new(0),
            flushes: AtomicU64::new(0),
            evicted_idle_seconds: AtomicU32::new(0),
            tags: TagRegistry::default(),
            prefixes: PrefixTable::default(),
            change_log: Arc::default(),
            room_cursor: AtomicUsize::new(0),
            sweep_cursor: AtomicUsize::new(0),
        }
    }

    /// What the store was made with; [`Store::set_memory_limit`] changes the limit later.
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The part that a hash belongs to. hashbrown uses the highest and the lowest bits itself.
    pub(crate) fn part_of(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.parts.len() - 1)
    }

    /// Locks the part of a hash for writing.
    pub(crate) fn write(&self, hash: u64) -> ShardWrite<'_> {
        self.write_part(self.part_of(hash))
    }

    pub(crate) fn write_part(&self, part: usize) -> ShardWrite<'_> {
        self.locked(part, self.parts[part].shard.write())
    }

    pub(crate) fn try_write_part(&self, part: usize) -> Option<ShardWrite<'_>> {
        Some(self.locked(part, self.parts[part].shard.try_write()?))
    }

    fn locked<'a>(&'a self, part: usize, shard: RwLockWriteGuard<'a, Shard>) -> ShardWrite<'a> {
        ShardWrite {
            settled_bytes: shard.bytes(),
            shard,
            counters: &self.parts[part].counters,
            budget: &self.budget,
            part,
            reserved_bytes: 0,
        }
    }

    /// The number that the next stored item gets: greater than all before.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequences.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last number given.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.sequences.load(Ordering::Relaxed)
    }

    /// CAS and, when the client chose that, the number beside it.
    pub(crate) fn number(&self, new_cas: Option<u64>) -> (u64, Option<u64>) {
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
            .field("shards", &self.parts.len())
            .finish_non_exhaustive()
    }
}
