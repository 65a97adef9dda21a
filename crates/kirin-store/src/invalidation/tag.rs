//! Tags: names that many items share and that can be invalidated at once, in O(1).
//!
//! Each tag that an item carries exists once, behind an `Arc` that its items hold. Invalidating a
//! tag writes the last sequence number into it. An item with that number or a smaller one is stale
//! or invalid. This is found when the item is next read.
//!
//! The registry maps names to tags. It forgets the tags that no item holds, so the number of items
//! bounds its size. Its bytes are part of the budget.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use kirin_sync::RwLock;
use kirin_sync::atomic::{AtomicU64, Ordering};

use crate::budget::Budget;
use crate::invalidation::state::{Invalidation, ItemState};
use crate::memory::size_class::allocated_bytes;

/// A tag, shared by the items that carry it.
#[derive(Debug)]
pub(crate) struct ItemTag {
    name: Box<[u8]>,
    /// Items up to this sequence number are stale.
    soft: AtomicU64,
    /// Items up to this sequence number are invalid.
    hard: AtomicU64,
}

impl ItemTag {
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the state of an item with this sequence number by this tag.
    pub(crate) fn state_of(&self, sequence: u64) -> ItemState {
        if sequence <= self.hard.load(Ordering::Relaxed) {
            ItemState::Invalidated
        } else if sequence <= self.soft.load(Ordering::Relaxed) {
            ItemState::Stale
        } else {
            ItemState::Fresh
        }
    }

    fn bytes(&self) -> usize {
        allocated_bytes(size_of::<ItemTag>() + 16) + allocated_bytes(self.name.len())
    }
}

/// All tags that items carry.
#[derive(Debug, Default)]
pub(crate) struct TagRegistry {
    hasher: RandomState,
    tags: RwLock<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    table: HashTable<Arc<ItemTag>>,
    tag_bytes: usize,
    /// The size at which the next search for unused tags is due.
    forget_at: usize,
}

/// With fewer tags than this, no search for unused ones is made.
const FORGET_FLOOR: usize = 1024;

impl TagRegistry {
    /// Returns the tag of this name. Creates it if it is missing. Tells the budget how the size of
    /// the registry has changed. It does so under the lock: other threads must not give bytes back
    /// that are not counted yet.
    pub(crate) fn intern(&self, name: &[u8], budget: &Budget) -> Arc<ItemTag> {
        let hash = self.hasher.hash_one(name);
        if let Some(tag) = self.tags.read().table.find(hash, |tag| *tag.name == *name) {
            return Arc::clone(tag);
        }
        let mut registered = self.tags.write();
        if let Some(tag) = registered.table.find(hash, |tag| *tag.name == *name) {
            return Arc::clone(tag);
        }
        let before = registered.bytes();
        if registered.table.len() >= registered.forget_at.max(FORGET_FLOOR) {
            registered.forget_unused(&self.hasher);
        }
        let tag = Arc::new(ItemTag {
            name: name.into(),
            soft: AtomicU64::new(0),
            hard: AtomicU64::new(0),
        });
        registered.tag_bytes += tag.bytes();
        registered
            .table
            .insert_unique(hash, Arc::clone(&tag), |tag| self.hasher.hash_one(&*tag.name));
        budget.change(before, registered.bytes());
        tag
    }

    /// Makes every item stale or invalid that carries this tag and has at most this sequence
    /// number. Returns false if no item carries the tag.
    pub(crate) fn invalidate(&self, name: &[u8], how: Invalidation, sequence: u64) -> bool {
        let registered = self.tags.read();
        let Some(tag) = registered.table.find(self.hasher.hash_one(name), |tag| *tag.name == *name)
        else {
            return false;
        };
        let limit = match how {
            Invalidation::Soft => &tag.soft,
            Invalidation::Hard => &tag.hard,
        };
        limit.fetch_max(sequence, Ordering::Relaxed);
        Arc::strong_count(tag) > 1
    }

    /// Forgets the tags that no item holds. Returns the bytes that this frees.
    pub(crate) fn forget_unused(&self) -> usize {
        let mut registered = self.tags.write();
        let before = registered.bytes();
        registered.forget_unused(&self.hasher);
        debug_assert!(registered.bytes() <= before, "the registry grows from {before} bytes");
        before - registered.bytes()
    }

    pub(crate) fn len(&self) -> usize {
        self.tags.read().table.len()
    }
}

impl Registered {
    fn bytes(&self) -> usize {
        self.tag_bytes + self.table.allocation_size()
    }

    fn forget_unused(&mut self, hasher: &RandomState) {
        let mut given_back = 0;
        self.table.retain(|tag| {
            let held = Arc::strong_count(tag) > 1;
            if !held {
                given_back += tag.bytes();
            }
            held
        });
        debug_assert!(self.tag_bytes >= given_back, "{given_back} bytes of {}", self.tag_bytes);
        self.tag_bytes -= given_back;
        debug_assert!(!self.table.is_empty() || self.tag_bytes == 0, "{}", self.tag_bytes);
        self.table.shrink_to(self.table.len() * 2, |tag| hasher.hash_one(&*tag.name));
        // Twice the tags in use: as many new tags share the cost of each search.
        self.forget_at = self.table.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_nothing_holds_are_forgotten() {
        let registry = TagRegistry::default();
        let budget = Budget::new(0);
        let kept = registry.intern(b"kept", &budget);
        assert!(budget.used() > 0);
        for i in 0..10_000 {
            registry.intern(format!("tag-{i}").as_bytes(), &budget);
        }
        assert!(registry.len() <= 2 * FORGET_FLOOR, "{} tags", registry.len());
        let freed = registry.forget_unused();
        assert!(freed > 0);
        assert_eq!(registry.len(), 1);
        assert_eq!(budget.used() - freed, registry.tags.read().bytes());
        assert!(registry.invalidate(b"kept", Invalidation::Soft, 7));
        assert_eq!(kept.state_of(7), ItemState::Stale);
        assert_eq!(kept.state_of(8), ItemState::Fresh);
        assert!(!registry.invalidate(b"tag-1", Invalidation::Hard, 7));
    }
}
