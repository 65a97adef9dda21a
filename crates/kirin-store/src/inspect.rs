//! Reads items without using them, for the lists and events that operators see.
//!
//! Nothing here counts a hit, marks an item as used or removes one that has expired.

use std::sync::atomic::Ordering;

use crate::clock::{Expires, Now};
use crate::invalidation::state::ItemState;
use crate::items::shard::Shard;
use crate::memory::slab::{Slot, mark};
use crate::store::Store;

/// Slots that are visited under one lock, so that other threads do not wait long.
const SLOTS_PER_LOCK: u32 = 256;

/// The position of a scan. The default is the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCursor {
    shard: usize,
    slot: u32,
}

/// An item as a scan sees it. It borrows from the locked shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedItem<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The length of the value in bytes.
    pub value_len: usize,
    /// The expiry.
    pub expires: Expires,
    /// The time of the last access.
    pub last_access: Now,
    /// The CAS unique.
    pub cas: u64,
    /// Whether the item was fetched since it was stored.
    pub was_fetched: bool,
    /// The bytes that the item takes from the budget.
    pub charged_bytes: usize,
}

/// The item that a lookup of a key would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// There is an item, fresh or stale.
    Found {
        /// The length of its value in bytes.
        value_len: usize,
        /// Its expiry.
        expires: Expires,
    },
    /// There is no item.
    NotFound,
    /// The item was flushed or invalidated, and has not been removed yet.
    Flushed,
    /// The item has expired, and has not been removed yet.
    Expired,
}

impl Store {
    /// Visits the items of the next few slots, and moves the cursor behind them. Returns false if
    /// there are no more.
    ///
    /// An item that stays in the store during the whole scan is visited exactly once. `visit` runs
    /// while the shard is locked for reading. It must be short and must not call the store.
    pub fn scan(
        &self,
        cursor: &mut ScanCursor,
        now: Now,
        mut visit: impl FnMut(&ScannedItem<'_>),
    ) -> bool {
        self.flush_if_due(now);
        let Some(locked) = self.shards.get(cursor.shard) else { return false };
        let shard = locked.shard.read();
        let end = cursor.slot.saturating_add(SLOTS_PER_LOCK).min(shard.end());
        for index in cursor.slot..end {
            if shard.occupied(index).is_some()
                && matches!(self.state_of(&shard, index, now), ItemState::Fresh | ItemState::Stale)
            {
                visit(&scanned(&shard, index));
            }
        }
        cursor.slot = end;
        if end >= shard.end() {
            *cursor = ScanCursor { shard: cursor.shard + 1, slot: 0 };
        }
        cursor.shard < self.shards.len()
    }

    /// Returns what a lookup of `key` would find.
    pub fn key_state(&self, key: &[u8], now: Now) -> KeyState {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let shard = self.shards[self.shard_index(hash)].shard.read();
        let Some(index) = shard.find(hash, key) else { return KeyState::NotFound };
        match self.state_of(&shard, index, now) {
            ItemState::Fresh | ItemState::Stale => KeyState::Found {
                value_len: shard.value(index).len(),
                expires: Expires::from_raw(shard.slot(index).expires),
            },
            ItemState::Invalidated => KeyState::Flushed,
            ItemState::Expired => KeyState::Expired,
        }
    }
}

fn scanned(shard: &Shard, index: u32) -> ScannedItem<'_> {
    let slot = shard.slot(index);
    ScannedItem {
        key: shard.key(index),
        value_len: shard.value(index).len(),
        expires: Expires::from_raw(slot.expires),
        last_access: Now::from_raw(slot.last_access.load(Ordering::Relaxed)),
        cas: slot.cas,
        was_fetched: slot.marks.load(Ordering::Relaxed) & mark::FETCHED != 0,
        charged_bytes: shard.item_bytes(index) + size_of::<Slot>(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::commands::storage::NewItem;
    use crate::config::StoreConfig;

    const NOON: Now = Now::from_unix_seconds(1_700_000_000);

    fn listed(store: &Store, now: Now) -> BTreeMap<Vec<u8>, usize> {
        let (mut cursor, mut found) = (ScanCursor::default(), BTreeMap::new());
        while store.scan(&mut cursor, now, |item| {
            *found.entry(item.key.to_vec()).or_insert(0) += 1;
        }) {}
        found
    }

    #[test]
    fn a_scan_visits_each_living_item_once() {
        let store = Store::new(StoreConfig::default());
        for number in 0..5000 {
            store.set(format!("key{number}").as_bytes(), NewItem::new(b"value"), NOON);
        }
        let soon = Expires::after_seconds(10, NOON);
        store.set(b"short", NewItem::new(b"").expires(soon), NOON);
        store.delete(b"key7", NOON);
        let found = listed(&store, NOON);
        assert_eq!(found.len(), 5000);
        assert!(found.values().all(|times| *times == 1));
        assert!(found.contains_key(&b"short"[..]) && !found.contains_key(&b"key7"[..]));
        let later = NOON.plus_seconds(11);
        assert!(!listed(&store, later).contains_key(&b"short"[..]), "expired");
        store.flush_all(later, later);
        assert!(listed(&store, later).is_empty(), "flushed");
    }

    #[test]
    fn a_scan_sees_the_metadata_and_changes_none() {
        let store = Store::new(StoreConfig::default());
        let soon = Expires::after_seconds(10, NOON);
        store.set(b"a", NewItem::new(b"value").expires(soon), NOON);
        let later = NOON.plus_seconds(5);
        let (mut cursor, mut seen) = (ScanCursor::default(), 0);
        while store.scan(&mut cursor, later, |item| {
            seen += 1;
            assert_eq!((item.key, item.value_len, item.expires), (&b"a"[..], 5, soon));
            assert_eq!((item.last_access, item.cas, item.was_fetched), (NOON, 1, false));
            assert!(item.charged_bytes > 6);
        }) {}
        assert_eq!(seen, 1);
        assert_eq!(store.peek(b"a", later).map(|item| item.last_access()), Some(NOON));
    }

    #[test]
    fn the_state_of_a_key_tells_why_there_is_no_item() {
        let store = Store::new(StoreConfig::default());
        let soon = Expires::after_seconds(10, NOON);
        store.set(b"a", NewItem::new(b"abc").expires(soon), NOON);
        store.set(b"b", NewItem::new(b""), NOON);
        assert_eq!(store.key_state(b"a", NOON), KeyState::Found { value_len: 3, expires: soon });
        assert_eq!(store.key_state(b"c", NOON), KeyState::NotFound);
        let later = NOON.plus_seconds(11);
        assert_eq!(store.key_state(b"a", later), KeyState::Expired);
        store.flush_all(later, later);
        assert_eq!(store.key_state(b"b", later), KeyState::Flushed);
    }
}
