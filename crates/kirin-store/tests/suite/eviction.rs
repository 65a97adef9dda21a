//! The promises of the budget: the store never exceeds it, and items in use stay.

use std::collections::{BTreeMap, HashMap};

use kirin_store::{
    ArithmeticRequest, Expires, NewItem, NewValue, Now, Store, StoreConfig, StoreMode,
    StoreOutcome, StoreRequest,
};
use proptest::collection::vec;
use proptest::prelude::*;

const NOW: Now = Now::from_unix_seconds(1_700_000_000);

fn store(memory_bytes: usize, shards: usize) -> Store {
    Store::new(StoreConfig {
        memory_bytes,
        shards,
        item_limit_bytes: memory_bytes / 4,
        ..StoreConfig::default()
    })
}

fn key(i: usize) -> Vec<u8> {
    format!("key-{i:08}").into_bytes()
}

#[derive(Clone, Debug)]
enum Command {
    Set(usize, usize, bool, Vec<u8>),
    Append(usize, usize),
    Incr(usize),
    Get(usize),
    Delete(usize),
    Companion(usize, usize),
    Limit(usize),
    Sweep,
}

fn command() -> impl Strategy<Value = Command> {
    let len = || prop_oneof![4 => 0usize..300, 2 => 0usize..9_000, 1 => 0usize..40_000];
    prop_oneof![
        8 => (0usize..400, len(), any::<bool>(), vec(any::<u8>(), 0..3))
            .prop_map(|(key, len, owned, tags)| Command::Set(key, len, owned, tags)),
        1 => (0usize..400, 0usize..2_000).prop_map(|(key, len)| Command::Append(key, len)),
        1 => (0usize..400).prop_map(Command::Incr),
        4 => (0usize..400).prop_map(Command::Get),
        1 => (0usize..400).prop_map(Command::Delete),
        1 => (0usize..400, len()).prop_map(|(key, len)| Command::Companion(key, len)),
        1 => (150_000usize..400_000).prop_map(Command::Limit),
        1 => Just(Command::Sweep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_never_above_its_budget(commands in vec(command(), 1..600), shards in 1usize..5) {
        let store = store(200_000, shards);
        for command in &commands {
            match command {
                Command::Set(i, len, owned, tags) => {
                    let value = vec![b'1'; *len];
                    let value = if *owned { NewValue::from(value) } else { NewValue::Copied(&value) };
                    let tags: Vec<&[u8]> = tags.chunks(1).collect();
                    let item = NewItem { value, flags: 0, expires: Expires::NEVER, tags: &tags };
                    let outcome = store.set(&key(*i), item, NOW);
                    prop_assert!(outcome.is_stored(), "{len}: {outcome:?}");
                    prop_assert!(store.peek(&key(*i), NOW).is_some(), "what was just stored is there");
                }
                Command::Append(i, len) => {
                    let request = StoreRequest { mode: StoreMode::Append, ..StoreRequest::default() };
                    let value = vec![b'2'; *len];
                    store.store(&key(*i), NewItem::new(&value[..]), &request, NOW);
                }
                Command::Incr(i) => {
                    let delta = u64::MAX / 3;
                    let request = ArithmeticRequest { delta, ..ArithmeticRequest::default() };
                    store.arithmetic(&key(*i), &request, NOW);
                }
                Command::Get(i) => {
                    store.get(&key(*i), NOW);
                }
                Command::Delete(i) => {
                    store.delete(&key(*i), NOW);
                }
                Command::Companion(i, bytes) => {
                    if let Some(item) = store.get(&key(*i), NOW) {
                        store.companion(&item, NOW, |_| ((), *bytes));
                    }
                }
                Command::Limit(bytes) => store.set_memory_limit(*bytes, NOW),
                Command::Sweep => {
                    store.sweep(NOW, 1000);
                }
            }
            prop_assert!(
                store.used_bytes() <= store.memory_limit(),
                "{command:?}: {} of {}",
                store.used_bytes(),
                store.memory_limit()
            );
        }
        for i in 0..400 {
            store.delete(&key(i), NOW);
        }
        store.sweep(NOW, 100_000);
        prop_assert_eq!(store.stats().curr_items, 0);
        // The tables and one chunk of slots for each shard remain.
        prop_assert!(store.used_bytes() < shards.next_power_of_two() * 40_000, "{}", store.used_bytes());
    }
}

#[test]
fn a_hot_set_survives_a_scan() {
    let store = store(4 << 20, 4);
    let value = [b'v'; 200];
    // Clients constantly read a tenth of the items that fit.
    let hot = 1_000;
    for i in 0..hot {
        store.set(&key(i), NewItem::new(&value), NOW);
        store.get(&key(i), NOW);
    }
    for i in 0..200_000 {
        store.set(&key(hot + i), NewItem::new(&value), NOW);
        store.get(&key(i % hot), NOW);
    }
    let survivors = (0..hot).filter(|&i| store.get(&key(i), NOW).is_some()).count();
    assert!(survivors >= hot * 99 / 100, "{survivors} of {hot}");
    let stats = store.stats();
    assert!(stats.evictions > 150_000 && stats.evicted_unfetched > 150_000, "{stats:?}");
}

#[test]
fn expired_items_leave_before_live_ones() {
    let store = store(1 << 20, 1);
    let value = [b'v'; 1000];
    for i in 0..400 {
        let expires = if i % 2 == 0 { Expires::after_seconds(10, NOW) } else { Expires::NEVER };
        store.set(&key(i), NewItem::new(&value).expires(expires), NOW);
        store.get(&key(i), NOW);
    }
    let later = NOW.plus_seconds(10);
    for i in 1000..1650 {
        store.set(&key(i), NewItem::new(&value), later);
    }
    let stats = store.stats();
    assert!(stats.reclaimed > 100 && stats.evictions == 0, "{stats:?}");
    let alive = (1..400).step_by(2).filter(|&i| store.peek(&key(i), later).is_some()).count();
    assert_eq!(alive, 200);
}

#[test]
fn without_eviction_a_full_store_refuses() {
    let config =
        StoreConfig { memory_bytes: 100_000, evict: false, shards: 1, ..StoreConfig::default() };
    let store = Store::new(config);
    let value = [b'v'; 1000];
    let stored =
        (0..200).take_while(|&i| store.set(&key(i), NewItem::new(&value), NOW).is_stored()).count();
    assert!((40..100).contains(&stored), "{stored}");
    let add = StoreRequest { mode: StoreMode::Add, ..StoreRequest::default() };
    assert_eq!(store.store(&key(500), NewItem::new(&value), &add, NOW), StoreOutcome::OutOfMemory);
    assert!(store.get(&key(0), NOW).is_some());
    assert!(
        store.set(&key(0), NewItem::new(&value[..900]), NOW).is_stored(),
        "one of the same size fits"
    );
    assert_eq!(store.set(&key(0), NewItem::new(&[0; 5000]), NOW), StoreOutcome::OutOfMemory);
    assert!(store.get(&key(0), NOW).is_none(), "a set that is refused leaves no old value behind");
    let stats = store.stats();
    assert_eq!((stats.evictions, stats.store_no_memory), (0, 3), "{stats:?}");
}

#[test]
fn a_large_item_takes_room_from_all_shards() {
    let store =
        Store::new(StoreConfig { memory_bytes: 4 << 20, shards: 16, ..StoreConfig::default() });
    let value = [b'v'; 1000];
    for i in 0..10_000 {
        store.set(&key(i), NewItem::new(&value), NOW);
    }
    let large = vec![b'l'; 1_000_000];
    for i in 0..3 {
        assert!(store.set(&key(1_000_000 + i), NewItem::new(large.clone()), NOW).is_stored());
        assert!(store.get(&key(1_000_000 + i), NOW).is_some());
    }
    assert!(store.stats().curr_items > 200, "{:?}", store.stats());
    assert!(store.used_bytes() <= 4 << 20);
}

#[test]
fn a_lowered_limit_takes_effect_at_once() {
    let store = store(4 << 20, 4);
    for i in 0..20_000 {
        store.set(&key(i), NewItem::new(&[b'v'; 100]), NOW);
    }
    assert!(store.used_bytes() > 3 << 20);
    store.set_memory_limit(1 << 20, NOW);
    assert!(store.used_bytes() <= 1 << 20, "{}", store.used_bytes());
    assert!(store.stats().curr_items > 1000);
    store.set_memory_limit(0, NOW);
    assert_eq!(store.stats().curr_items, 0);
    assert_eq!(store.set(b"k", NewItem::new(b"v"), NOW), StoreOutcome::OutOfMemory);
}

#[test]
fn tags_count_against_the_budget_and_go_with_their_items() {
    let store = store(4 << 20, 1);
    for i in 0..5_000 {
        let name = format!("tag-{i}");
        store.set(&key(i), NewItem::new(b"v").tags(&[name.as_bytes()]), NOW);
    }
    assert!(store.stats().curr_tags > 0);
    let with_tags = store.used_bytes();
    assert!(with_tags <= 4 << 20);
    for i in 0..5_000 {
        store.set(&key(i), NewItem::new(b"v"), NOW);
    }
    store.sweep(NOW, 100_000);
    assert_eq!(store.stats().curr_tags, 0);
    assert!(store.used_bytes() < with_tags / 2, "{} of {with_tags}", store.used_bytes());
}

/// Returns ranks by Zipf's law with exponent 1, the same in every run.
fn zipf_ranks(objects: usize, requests: usize) -> Vec<usize> {
    let mut sum = 0.0;
    let cumulated: Vec<f64> = (1..=objects)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut random = 1u64;
    (0..requests)
        .map(|_| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let point = (random >> 11) as f64 / (1u64 << 53) as f64 * sum;
            cumulated.partition_point(|&sum| sum < point)
        })
        .collect()
}

/// Returns the misses of an LRU cache of `capacity` objects.
fn lru_misses(ranks: &[usize], capacity: usize) -> usize {
    let (mut last_use, mut by_use, mut misses) = (HashMap::new(), BTreeMap::new(), 0);
    for (time, &rank) in ranks.iter().enumerate() {
        match last_use.insert(rank, time) {
            Some(before) => {
                by_use.remove(&before);
            }
            None => {
                misses += 1;
                if last_use.len() > capacity
                    && let Some((_, oldest)) = by_use.pop_first()
                {
                    last_use.remove(&oldest);
                }
            }
        }
        by_use.insert(time, rank);
    }
    misses
}

#[test]
fn fewer_requests_miss_than_with_lru_at_the_same_number_of_items() {
    let store = store(1 << 20, 1);
    let ranks = zipf_ranks(40_000, 300_000);
    let (mut misses, mut most_items) = (0, 0);
    for &rank in &ranks {
        if store.get(&key(rank), NOW).is_none() {
            misses += 1;
            store.set(&key(rank), NewItem::new(&[b'v'; 200]), NOW);
        }
        if misses % 1000 == 0 {
            most_items = most_items.max(store.stats().curr_items as usize);
        }
    }
    let lru = lru_misses(&ranks, most_items);
    assert!(most_items > 3_000, "{most_items} items of about 260 bytes in a mebibyte");
    assert!(misses * 100 < lru * 90, "{misses} misses with {most_items} items, LRU {lru}");
}
