//! Several threads on one store: no write is lost, and none happens twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kirin_store::{
    ArithmeticOutcome, ArithmeticRequest, Expires, GetRequest, Invalidation, MetaOutcome, NewItem,
    Now, Store, StoreConfig, StoreOutcome, StoreRequest,
};

const NOW: Now = Now::from_unix_seconds(1_700_000_000);
const THREADS: u64 = 4;

fn number(store: &Store, key: &[u8]) -> u64 {
    let item = store.get(key, NOW).expect("the counter is there");
    std::str::from_utf8(item.value_slice()).expect("digits").trim().parse().expect("a number")
}

fn on_threads(work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

fn up_by(delta: u64) -> ArithmeticRequest {
    ArithmeticRequest { delta, ..ArithmeticRequest::default() }
}

#[test]
fn every_increment_counts_once() {
    let store = Store::new(StoreConfig { shards: 2, ..StoreConfig::default() });
    store.set(b"n", NewItem::new(b"0"), NOW);
    on_threads(|thread| {
        for i in 0..20_000 {
            let outcome = store.arithmetic(b"n", &up_by(thread + 1), NOW);
            assert!(matches!(outcome, ArithmeticOutcome::Counted(_)), "{outcome:?}");
            if i % 7 == 0 {
                // A reader holds the old content during the next increment.
                let held = store.get(b"n", NOW).expect("there");
                store.arithmetic(b"n", &up_by(0), NOW);
                assert!(held.value_slice().iter().all(u8::is_ascii_digit));
            }
        }
    });
    assert_eq!(number(&store, b"n"), (1..=THREADS).sum::<u64>() * 20_000);
}

#[test]
fn one_of_many_clients_with_the_same_cas_stores() {
    let store = Store::new(StoreConfig::default());
    store.set(b"n", NewItem::new(b"0"), NOW);
    let (stored, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    on_threads(|_| {
        for _ in 0..20_000 {
            let item = store.get(b"n", NOW).expect("there");
            let next = number_of(item.value_slice()) + 1;
            let next = next.to_string();
            let request = StoreRequest { compare_cas: Some(item.cas()), ..StoreRequest::default() };
            match store.store(b"n", NewItem::new(next.as_bytes()), &request, NOW) {
                StoreOutcome::Stored { cas } => {
                    assert!(cas > item.cas());
                    stored.fetch_add(1, Ordering::Relaxed);
                }
                StoreOutcome::Exists => {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!(number(&store, b"n"), stored.load(Ordering::Relaxed));
    let stats = store.stats();
    assert_eq!(stats.cas_hits, stored.load(Ordering::Relaxed));
    assert_eq!(stats.cas_badval, refused.load(Ordering::Relaxed));
}

fn number_of(value: &[u8]) -> u64 {
    std::str::from_utf8(value).expect("digits").parse().expect("a number")
}

#[test]
fn one_wins_each_miss_and_each_invalidation() {
    let store = Store::new(StoreConfig::default());
    let wins = AtomicU64::new(0);
    let request =
        GetRequest { vivify: Some(Expires::after_seconds(60, NOW)), ..GetRequest::default() };
    for round in 0..300u64 {
        on_threads(|_| {
            let MetaOutcome::Hit(hit) = store.meta_get(&round.to_be_bytes(), &request, NOW) else {
                panic!("a miss makes the item");
            };
            wins.fetch_add(u64::from(hit.won), Ordering::Relaxed);
        });
        store.set(&round.to_be_bytes(), NewItem::new(b"v").tags(&[b"all"]), NOW);
        assert!(store.invalidate_tag(b"all", Invalidation::Soft));
        on_threads(|_| {
            let MetaOutcome::Hit(hit) = store.meta_get(&round.to_be_bytes(), &request, NOW) else {
                panic!("a stale item is served");
            };
            assert!(hit.item.is_stale());
            wins.fetch_add(u64::from(hit.won), Ordering::Relaxed);
        });
    }
    assert_eq!(wins.load(Ordering::Relaxed), 600);
}

#[test]
fn a_full_store_under_load_stays_consistent_and_within_its_budget() {
    let store = Arc::new(Store::new(StoreConfig {
        memory_bytes: 2 << 20,
        item_limit_bytes: 200_000,
        shards: 8,
        ..StoreConfig::default()
    }));
    on_threads(|thread| {
        let mut state = thread + 1;
        for i in 0..30_000u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let key = (state >> 33) % 3000;
            let len = if state.is_multiple_of(97) { 50_000 } else { (state >> 20) as usize % 700 };
            match i % 8 {
                0..3 => {
                    let mut value = vec![key as u8; len];
                    value.extend_from_slice(&key.to_be_bytes());
                    let outcome = store.set(&key.to_be_bytes(), NewItem::new(value), NOW);
                    assert!(outcome.is_stored(), "{outcome:?}");
                }
                3 => {
                    store.delete(&key.to_be_bytes(), NOW);
                }
                4 if i % 512 == 4 => {
                    store.sweep(NOW, 500);
                }
                _ => {
                    if let Some(item) = store.get(&key.to_be_bytes(), NOW) {
                        assert_eq!(item.key(), key.to_be_bytes());
                        assert!(item.value_slice().ends_with(&key.to_be_bytes()));
                    }
                }
            }
            assert!(store.used_bytes() <= store.memory_limit());
        }
    });
    assert!(store.stats().evictions > 0);
    let sizes: u64 = store.item_sizes().values().sum();
    assert_eq!(sizes, store.stats().curr_items);
}
