//! Copies of items that another store has: this one is then a near cache of that one.
//!
//! A copy keeps the CAS unique and the marks of the original. It may be kept as long as somebody
//! proves that it is still true. [`Store::forget_at`] sets the time at which the last proof is too
//! old. Reading an item costs nothing more for that: every access looks for a delayed flush anyway.

use std::sync::atomic::{Ordering, fence};

use bytes::Bytes;

use crate::clock::Now;
use crate::commands::storage::{NewItem, StoreOutcome, StoreRequest};
use crate::invalidation::change_log::Moment;
use crate::items::item::ItemRef;
use crate::memory::slab::mark;
use crate::store::Store;

/// A copy of an item of another store.
#[derive(Clone, Debug)]
pub struct CopiedItem<'a> {
    /// The item.
    pub item: NewItem<'a>,
    /// Its CAS unique. 0 stands for the next one of this store.
    pub cas: u64,
    /// Whether the item is stale (meta `X`).
    pub is_stale: bool,
    /// Whether a client has won the right to recache the item (meta `Z`).
    pub is_won: bool,
    /// Whether a client has fetched the item (meta `h`).
    pub was_fetched: bool,
}

impl CopiedItem<'_> {
    /// Returns the item for a reader, if the copy was not kept. It has no tags, and no companion is
    /// kept beside it.
    pub fn detached(&self, key: &[u8], now: Now) -> ItemRef {
        ItemRef {
            content: Bytes::from([key, self.item.value.as_slice()].concat()),
            side: None,
            cas: self.cas,
            expires: self.item.expires,
            last_access: now,
            flags: self.item.flags,
            key_len: u16::try_from(key.len()).unwrap_or(u16::MAX),
            marks: self.marks(),
        }
    }

    fn marks(&self) -> u8 {
        let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
        mark(self.is_stale, mark::STALE)
            | mark(self.is_won, mark::WON)
            | mark(self.was_fetched, mark::FETCHED)
    }
}

impl Store {
    /// Keeps a copy, unless something has happened since `since` to the key, a tag of the item or a
    /// prefix of the key. The caller takes that moment before it asks for the original. Returns
    /// whether the copy was kept.
    ///
    /// No counter of a command changes, because no client has stored the item.
    pub fn keep_copy(&self, key: &[u8], copy: &CopiedItem<'_>, since: &Moment, now: Now) -> bool {
        self.flush_if_due(now);
        if !self.is_storable(key, copy.item.value.as_slice().len(), copy.item.tags) {
            return false;
        }
        let request = StoreRequest {
            new_cas: Some(copy.cas),
            unchanged_since: Some(since),
            ..StoreRequest::default()
        };
        let marks = copy.marks();
        let hash = self.hash(key);
        let outcome = self
            .retry_while_contended(|| self.try_store(hash, key, &copy.item, &request, marks, now));
        let is_kept = outcome.is_some_and(StoreOutcome::is_stored);
        if is_kept {
            self.keep_within_limit(now);
        }
        is_kept
    }

    /// Drops all items that are stored before the time `at`, when it has come. A later call sets
    /// another time. A delayed [`Store::flush_all`] takes the place of this one, and the other way
    /// round.
    pub fn forget_at(&self, at: Now) {
        self.flush_due.store(at.raw(), Ordering::Relaxed);
    }

    /// Returns whether a time is set at which all items are dropped. It is no more when the items
    /// have been dropped. Whoever keeps a copy asks this afterwards: either this returns false, or
    /// the copy is dropped with the others.
    pub fn will_forget(&self) -> bool {
        // The other side clears the time, and then reads the last sequence number.
        fence(Ordering::SeqCst);
        self.flush_due.load(Ordering::Relaxed) != 0
    }

    /// Drops all items at once, as `flush_all` does, but counts no command.
    pub fn forget_all(&self) {
        self.flush_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expires, Invalidation, StoreConfig};

    const NOW: Now = Now::from_unix_seconds(1_000);

    fn copy(value: &'static [u8]) -> CopiedItem<'static> {
        let item = NewItem::new(value).flags(7).tags(&[b"tag"]);
        CopiedItem { item, cas: 1 << 50, is_stale: false, is_won: false, was_fetched: false }
    }

    fn store() -> Store {
        Store::new(StoreConfig::default())
    }

    #[test]
    fn a_detached_item_is_the_copy_that_it_was_made_of() {
        let expires = Expires::after_seconds(60, NOW);
        let of =
            CopiedItem { is_stale: true, item: copy(b"value").item.expires(expires), ..copy(b"") };
        let item = of.detached(b"key", NOW);
        assert_eq!((item.key(), item.value_slice()), (&b"key"[..], &b"value"[..]));
        assert_eq!((item.flags(), item.cas(), item.expires()), (7, 1 << 50, expires));
        assert!(item.is_stale() && !item.is_won());
        // Nothing of it is kept in a store, even if that has an item with the same key.
        let store = store();
        assert!(store.keep_copy(b"key", &of, &store.moment(), NOW));
        let length = |value: &bytes::Bytes| (value.len(), 8);
        assert_eq!(*store.companion::<usize>(&item, NOW, length), 5);
        assert!(store.peek(b"key", NOW).expect("an item").companion::<usize>().is_none());
    }

    #[test]
    fn a_copy_is_the_item_that_it_was_made_of() {
        let store = store();
        let expires = Expires::after_seconds(60, NOW);
        let of = CopiedItem {
            is_stale: true,
            is_won: true,
            was_fetched: true,
            item: copy(b"value").item.expires(expires),
            ..copy(b"")
        };
        assert!(store.keep_copy(b"key", &of, &store.moment(), NOW));
        let item = store.get(b"key", NOW).expect("an item");
        assert_eq!((item.value_slice(), item.flags(), item.cas()), (&b"value"[..], 7, 1 << 50));
        assert_eq!((item.expires(), item.is_stale(), item.is_won()), (expires, true, true));
        assert!(item.was_fetched());
        assert_eq!(item.tags().collect::<Vec<_>>(), [b"tag"]);
        let stats = store.stats();
        assert_eq!((stats.cmd_set, stats.curr_items), (0, 1));
    }

    #[test]
    fn a_copy_that_crosses_a_change_is_not_kept() {
        type Change = fn(&Store);
        let changes: [(&str, Change); 6] = [
            ("discard", |store| store.discard(b"key")),
            ("set", |store| assert!(store.set(b"key", NewItem::new(b"new"), NOW).is_stored())),
            ("tag", |store| _ = store.invalidate_tag(b"tag", Invalidation::Hard)),
            ("soft tag", |store| _ = store.invalidate_tag(b"tag", Invalidation::Soft)),
            ("prefix", |store| _ = store.invalidate_prefix(b"k", Invalidation::Hard, NOW)),
            ("all", Store::forget_all),
        ];
        for (what, change) in changes {
            let store = store();
            let since = store.moment();
            change(&store);
            assert!(!store.keep_copy(b"key", &copy(b"old"), &since, NOW), "{what}");
            assert!(store.keep_copy(b"other", &copy(b"old"), &store.moment(), NOW), "{what}");
            let value = store.get(b"key", NOW).map(|item| item.value());
            assert_ne!(value.as_deref(), Some(&b"old"[..]), "{what}");
        }
    }

    #[test]
    fn copies_are_forgotten_when_no_proof_comes() {
        let store = store();
        assert!(!store.will_forget());
        store.forget_at(NOW.plus_seconds(5));
        assert!(store.keep_copy(b"key", &copy(b"value"), &store.moment(), NOW));
        assert!(store.get(b"key", NOW.plus_seconds(4)).is_some());
        store.forget_at(NOW.plus_seconds(9));
        assert!(store.get(b"key", NOW.plus_seconds(8)).is_some() && store.will_forget());
        assert!(store.get(b"key", NOW.plus_seconds(9)).is_none());
        assert!(!store.will_forget(), "what is kept now, nobody would forget");
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let config = StoreConfig { item_limit_bytes: 1024, ..StoreConfig::default() };
        let store = Store::new(config);
        assert!(!store.keep_copy(b"key", &copy(&[0; 1024]), &store.moment(), NOW));
        assert!(store.get(b"key", NOW).is_none());
    }
}
