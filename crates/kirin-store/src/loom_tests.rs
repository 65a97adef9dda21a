//! All orders in which commands, invalidations and the sweep meet in the store.
//!
//! `cargo test -p kirin-store --features loom --lib loom_tests` runs them. `scripts/planted-bugs`
//! shows that they find bugs.

use std::sync::{Arc, OnceLock};

use foldhash::quality::RandomState;
use kirin_sync::atomic::{AtomicU64, Ordering::Relaxed};
use kirin_sync::model::{check, join, spawn};

use crate::{Invalidation, NewItem, Now, Store, StoreConfig, StoreOutcome, StoreRequest};

const KEY: &[u8] = b"page:1";
const TAG: &[u8] = b"tag";

fn now() -> Now {
    Now::from_unix_seconds(1000)
}

/// Returns an empty store. All stores have the same hashes: loom needs the same steps in each run.
fn store(shards: usize) -> Arc<Store> {
    static HASHER: OnceLock<RandomState> = OnceLock::new();
    let config = StoreConfig { memory_bytes: 1 << 20, item_limit_bytes: 4096, shards, evict: true };
    Arc::new(Store::with_hasher(config, HASHER.get_or_init(RandomState::default).clone()))
}

/// Has an application make a page from data that change meanwhile. `invalidate` follows the change.
fn no_page_of_old_data_stays_after(invalidate: fn(&Store)) {
    check(4, move || {
        let store = store(1);
        let data = Arc::new(AtomicU64::new(0));
        let (invalidated, changed) = (Arc::clone(&store), Arc::clone(&data));
        let thread = spawn(move || {
            changed.store(1, Relaxed);
            invalidate(&invalidated);
        });
        let moment = store.moment();
        let page = data.load(Relaxed).to_string();
        let request = StoreRequest { unchanged_since: Some(&moment), ..StoreRequest::default() };
        store.store(KEY, NewItem::new(page.as_bytes()).tags(&[TAG]), &request, now());
        join(thread);
        if let Some(item) = store.get(KEY, now()) {
            assert_eq!(item.value_slice(), b"1", "a page of old data");
        }
    });
}

#[test]
fn no_page_of_old_data_stays_after_its_tag_is_invalidated() {
    no_page_of_old_data_stays_after(|store| _ = store.invalidate_tag(TAG, Invalidation::Hard));
}

#[test]
fn no_page_of_old_data_stays_after_a_prefix_is_invalidated() {
    no_page_of_old_data_stays_after(|store| {
        assert!(store.invalidate_prefix(b"page:", Invalidation::Hard, now()));
    });
}

#[test]
fn no_page_of_old_data_stays_after_all_items_are_flushed() {
    no_page_of_old_data_stays_after(|store| store.flush_all(now(), now()));
}

#[test]
fn no_page_of_old_data_stays_after_its_key_is_deleted() {
    no_page_of_old_data_stays_after(|store| _ = store.delete(KEY, now()));
}

#[test]
fn of_two_commands_with_the_same_cas_unique_one_stores() {
    fn replace(store: &Store, cas: u64, value: &[u8]) -> bool {
        let request = StoreRequest { compare_cas: Some(cas), ..StoreRequest::default() };
        store.store(KEY, NewItem::new(value), &request, now()).is_stored()
    }
    check(5, || {
        let store = store(1);
        let StoreOutcome::Stored { cas } = store.set(KEY, NewItem::new(&b"0"[..]), now()) else {
            panic!("there is room")
        };
        let other = Arc::clone(&store);
        let thread = spawn(move || replace(&other, cas, b"2"));
        let is_first = replace(&store, cas, b"1");
        assert_ne!(is_first, join(thread), "both or none have stored");
        let value = if is_first { b"1" } else { b"2" };
        assert_eq!(store.get(KEY, now()).expect("an item").value_slice(), value);
    });
}

#[test]
fn a_sweep_retires_no_prefix_that_it_has_not_applied() {
    check(4, || {
        let store = store(1);
        store.set(KEY, NewItem::new(&b"old"[..]), now());
        let other = Arc::clone(&store);
        let thread =
            spawn(move || _ = other.invalidate_prefix(b"page:", Invalidation::Hard, now()));
        store.sweep_everything(now());
        join(thread);
        assert!(store.get(KEY, now()).is_none(), "the invalidated item is there again");
    });
}

#[test]
fn the_budget_counts_the_bytes_of_all_shards() {
    fn counted(store: &Store) -> (usize, usize) {
        let bytes = store.shards.iter().map(|locked| locked.shard.read().bytes()).sum();
        (store.budget.used(), bytes)
    }
    check(5, || {
        let store = store(2);
        let shard_of = |key: &String| store.shard_index(store.hash(key.as_bytes()));
        let key_in = |shard| (0..).map(|n: u32| n.to_string()).find(|key| shard_of(key) == shard);
        let keys = [0, 1].map(|shard| key_in(shard).expect("a key"));
        let (used, bytes) = counted(&store);
        let threads = keys.map(|key| {
            let store = Arc::clone(&store);
            spawn(move || _ = store.set(key.as_bytes(), NewItem::new(&b"value"[..]), now()))
        });
        threads.into_iter().for_each(join);
        let (used_then, bytes_then) = counted(&store);
        assert_eq!(used_then - used, bytes_then - bytes, "the budget counts other bytes");
    });
}
