//! The commands, one behaviour a test, with the answers of memcached.

use std::sync::Arc;

use kirin_store::{
    ArithmeticOutcome, ArithmeticRequest, DeleteOutcome, DeleteRequest, Direction, Expires,
    GetRequest, Invalidation, MetaHit, MetaOutcome, NewItem, Now, Store, StoreConfig, StoreMode,
    StoreOutcome, StoreRequest, ValueBuffer,
};

const NOW: Now = Now::from_unix_seconds(1_700_000_000);

fn store() -> Store {
    Store::new(StoreConfig::default())
}

fn value(store: &Store, key: &str, now: Now) -> Option<String> {
    store
        .get(key.as_bytes(), now)
        .map(|item| String::from_utf8_lossy(item.value_slice()).into_owned())
}

fn store_as(store: &Store, mode: StoreMode, key: &[u8], value: &[u8], now: Now) -> StoreOutcome {
    let request = StoreRequest { mode, ..StoreRequest::default() };
    store.store(key, NewItem::new(value), &request, now)
}

fn compare_and_store(store: &Store, value: &[u8], cas: u64) -> StoreOutcome {
    let request = StoreRequest { compare_cas: Some(cas), ..StoreRequest::default() };
    store.store(b"k", NewItem::new(value), &request, NOW)
}

fn number(outcome: ArithmeticOutcome) -> u64 {
    match outcome {
        ArithmeticOutcome::Counted(counted) => counted.value,
        other => panic!("not counted: {other:?}"),
    }
}

fn hit(outcome: MetaOutcome) -> MetaHit {
    match outcome {
        MetaOutcome::Hit(hit) => hit,
        other => panic!("no hit: {other:?}"),
    }
}

fn cas_of(outcome: StoreOutcome) -> u64 {
    match outcome {
        StoreOutcome::Stored { cas } => cas,
        other => panic!("not stored: {other:?}"),
    }
}

#[test]
fn get_returns_the_value_and_flags_of_set() {
    let store = store();
    assert!(store.set(b"k", NewItem::new(b"v").flags(7), NOW).is_stored());
    let item = store.get(b"k", NOW).expect("a hit");
    assert_eq!((item.key(), item.value_slice(), item.flags()), (&b"k"[..], &b"v"[..], 7));
    assert_eq!(&item.value()[..], b"v");
    assert!(store.get(b"other", NOW).is_none());
    let stats = store.stats();
    assert_eq!((stats.get_hits, stats.get_misses, stats.curr_items), (1, 1, 1));
}

#[test]
fn an_item_expires_at_its_time() {
    let store = store();
    store.set(b"k", NewItem::new(b"v").expires(Expires::after_seconds(10, NOW)), NOW);
    assert!(store.get(b"k", NOW.plus_seconds(9)).is_some());
    assert!(store.get(b"k", NOW.plus_seconds(10)).is_none());
    assert!(store_as(&store, StoreMode::Add, b"k", b"w", NOW.plus_seconds(10)).is_stored());
}

#[test]
fn add_and_replace_keep_their_conditions() {
    let store = store();
    assert_eq!(store_as(&store, StoreMode::Replace, b"k", b"v", NOW), StoreOutcome::NotStored);
    assert!(store_as(&store, StoreMode::Add, b"k", b"v", NOW).is_stored());
    assert_eq!(store_as(&store, StoreMode::Add, b"k", b"w", NOW), StoreOutcome::NotStored);
    assert!(store_as(&store, StoreMode::Replace, b"k", b"w", NOW).is_stored());
    assert_eq!(value(&store, "k", NOW).as_deref(), Some("w"));
}

#[test]
fn append_and_prepend_keep_flags_and_expiry() {
    let store = store();
    assert_eq!(store_as(&store, StoreMode::Append, b"k", b"x", NOW), StoreOutcome::NotStored);
    let expires = Expires::after_seconds(10, NOW);
    store.set(b"k", NewItem::new(b"mid").flags(3).expires(expires), NOW);
    let before = store.get(b"k", NOW).expect("a hit").cas();
    assert!(store_as(&store, StoreMode::Append, b"k", b"-end", NOW).is_stored());
    assert!(store_as(&store, StoreMode::Prepend, b"k", b"start-", NOW).is_stored());
    let item = store.get(b"k", NOW).expect("a hit");
    assert_eq!(item.value_slice(), b"start-mid-end");
    assert_eq!((item.flags(), item.expires()), (3, expires));
    assert!(item.cas() > before);
}

#[test]
fn cas_stores_only_over_the_item_that_was_seen() {
    let store = store();
    assert_eq!(compare_and_store(&store, b"v", 1), StoreOutcome::NotFound);
    let cas = cas_of(store.set(b"k", NewItem::new(b"v"), NOW));
    assert_eq!(compare_and_store(&store, b"w", cas + 1), StoreOutcome::Exists);
    assert_eq!(compare_and_store(&store, b"w", 0), StoreOutcome::Exists);
    let next = cas_of(compare_and_store(&store, b"w", cas));
    assert!(next > cas && cas > 0);
    assert_eq!(compare_and_store(&store, b"x", cas), StoreOutcome::Exists);
    let stats = store.stats();
    assert_eq!((stats.cas_misses, stats.cas_badval, stats.cas_hits), (1, 3, 1));
}

#[test]
fn numbers_count_as_memcached_counts_them() {
    /// The old value, the direction, the delta, and the answer with the value that is then stored.
    type Row = (&'static str, Direction, u64, Option<(u64, &'static str)>);
    let table: [Row; 12] = [
        ("5", Direction::Up, 3, Some((8, "8"))),
        ("9", Direction::Up, 1, Some((10, "10"))),
        ("10", Direction::Down, 1, Some((9, "9 "))),
        ("5", Direction::Down, 6, Some((0, "0"))),
        ("18446744073709551615", Direction::Up, 1, Some((0, "0                   "))),
        ("18446744073709551616", Direction::Up, 1, None),
        ("007", Direction::Up, 1, Some((8, "8  "))),
        ("7 ", Direction::Up, 1, Some((8, "8 "))),
        ("", Direction::Up, 1, None),
        ("x", Direction::Up, 1, None),
        ("-1", Direction::Up, 1, None),
        ("1x", Direction::Down, 1, None),
    ];
    for (old, direction, delta, want) in table {
        let store = store();
        store.set(b"n", NewItem::new(old.as_bytes()).flags(9), NOW);
        let request = ArithmeticRequest { direction, delta, ..ArithmeticRequest::default() };
        match (store.arithmetic(b"n", &request, NOW), want) {
            (ArithmeticOutcome::Counted(counted), Some((number, stored))) => {
                assert_eq!(counted.value, number, "{old:?}");
                assert_eq!(value(&store, "n", NOW).as_deref(), Some(stored), "{old:?}");
                assert_eq!(counted.item.flags(), 9, "{old:?}");
            }
            (ArithmeticOutcome::NonNumeric, None) => {}
            (got, _) => panic!("{old:?} {direction:?} {delta}: {got:?}"),
        }
    }
    let one_up = ArithmeticRequest { delta: 1, ..ArithmeticRequest::default() };
    assert!(matches!(store().arithmetic(b"none", &one_up, NOW), ArithmeticOutcome::NotFound));
}

#[test]
fn a_reader_keeps_what_it_got_while_the_item_is_counted() {
    let store = store();
    store.set(b"n", NewItem::new(b"10"), NOW);
    let held = store.get(b"n", NOW).expect("a hit");
    let direction = Direction::Down;
    let one_down = ArithmeticRequest { direction, delta: 1, ..ArithmeticRequest::default() };
    assert_eq!(number(store.arithmetic(b"n", &one_down, NOW)), 9);
    assert_eq!(held.value_slice(), b"10");
    assert_eq!(value(&store, "n", NOW).as_deref(), Some("9 "));
}

#[test]
fn arithmetic_makes_a_missing_item_when_asked() {
    let store = store();
    let request = ArithmeticRequest {
        vivify: Some(Expires::after_seconds(60, NOW)),
        initial: 13,
        delta: 5,
        ..ArithmeticRequest::default()
    };
    assert_eq!(number(store.arithmetic(b"n", &request, NOW)), 13);
    assert_eq!(number(store.arithmetic(b"n", &request, NOW)), 18);
    assert!(store.get(b"n", NOW.plus_seconds(60)).is_none());
}

#[test]
fn touch_changes_the_expiry_and_not_the_cas() {
    let store = store();
    assert!(!store.touch(b"k", Expires::NEVER, NOW));
    let cas =
        cas_of(store.set(b"k", NewItem::new(b"v").expires(Expires::after_seconds(5, NOW)), NOW));
    assert!(store.touch(b"k", Expires::after_seconds(50, NOW), NOW));
    let item = store.get_and_touch(b"k", Expires::NEVER, NOW.plus_seconds(40)).expect("a hit");
    assert_eq!((item.cas(), item.expires()), (cas, Expires::NEVER));
    assert!(store.get(b"k", NOW.plus_seconds(4000)).is_some());
}

#[test]
fn flush_all_removes_the_items_stored_before_it() {
    let store = store();
    store.set(b"old", NewItem::new(b"v"), NOW);
    store.flush_all(NOW, NOW);
    store.set(b"new", NewItem::new(b"v"), NOW);
    assert!(store.get(b"old", NOW).is_none());
    assert!(store.get(b"new", NOW).is_some());
    store.flush_all(NOW.plus_seconds(10), NOW);
    assert!(store.get(b"new", NOW.plus_seconds(9)).is_some());
    store.set(b"late", NewItem::new(b"v"), NOW.plus_seconds(9));
    assert!(store.get(b"new", NOW.plus_seconds(10)).is_none());
    assert!(store.get(b"late", NOW.plus_seconds(10)).is_none());
    assert!(store_as(&store, StoreMode::Add, b"old", b"w", NOW.plus_seconds(10)).is_stored());
    assert!(store.get(b"old", NOW.plus_seconds(99)).is_some());
}

#[test]
fn a_value_that_is_too_large_is_refused_and_set_removes_the_old_one() {
    let store = store();
    let large = vec![0; 1 << 20];
    store.set(b"k", NewItem::new(b"v"), NOW);
    assert_eq!(store_as(&store, StoreMode::Add, b"k", &large[..], NOW), StoreOutcome::TooLarge);
    assert!(store.get(b"k", NOW).is_some());
    assert_eq!(store_as(&store, StoreMode::Append, b"k", &large, NOW), StoreOutcome::TooLarge);
    assert!(store.get(b"k", NOW).is_some());
    assert_eq!(store.set(b"k", NewItem::new(&large[..]), NOW), StoreOutcome::TooLarge);
    assert!(store.get(b"k", NOW).is_none());
    assert!(store.set(b"k", NewItem::new(vec![7; (1 << 20) - 100]), NOW).is_stored());
    assert_eq!(store.get(b"k", NOW).expect("a hit").value_len(), (1 << 20) - 100);
}

#[test]
fn a_large_value_in_a_buffer_of_the_store_is_kept_where_it_is() {
    let store = store();
    for len in [0, 10, ValueBuffer::WORTHWHILE_BYTES, 300_000] {
        let mut buffer = ValueBuffer::zeroed(len);
        buffer.fill(b'x');
        let written_at = buffer.as_ptr();
        assert!(store.set(b"k", NewItem::new(buffer), NOW).is_stored());
        let item = store.get(b"k", NOW).expect("a hit");
        assert_eq!(item.value(), vec![b'x'; len]);
        assert_eq!(
            item.value().as_ptr() == written_at,
            len >= ValueBuffer::WORTHWHILE_BYTES,
            "{len}"
        );
        assert_eq!(item.value().as_ptr(), item.value_slice().as_ptr());
    }
}

#[test]
fn vivify_lets_one_win_and_the_others_wait() {
    let store = store();
    let request =
        GetRequest { vivify: Some(Expires::after_seconds(30, NOW)), ..GetRequest::default() };
    let first = hit(store.meta_get(b"k", &request, NOW));
    assert!(first.won && first.vivified && !first.item.is_won() && first.item.value_len() == 0);
    let second = hit(store.meta_get(b"k", &request, NOW));
    assert!(!second.won && second.item.is_won());
    store.set(b"k", NewItem::new(b"v"), NOW);
    let third = hit(store.meta_get(b"k", &request, NOW));
    assert!(!third.won && !third.item.is_won(), "a set takes the marks away");
}

#[test]
fn recache_lets_one_win_when_little_time_is_left() {
    let store = store();
    store.set(b"k", NewItem::new(b"v").expires(Expires::after_seconds(100, NOW)), NOW);
    let at = |seconds: u64| {
        let now = NOW.plus_seconds(seconds);
        let recache_before = Some(Expires::after_seconds(30, now));
        hit(store.meta_get(b"k", &GetRequest { recache_before, ..GetRequest::default() }, now))
    };
    assert!(!at(60).won);
    assert!(at(71).won);
    let next = at(72);
    assert!(!next.won && next.item.is_won());
}

#[test]
fn an_invalidated_item_is_served_as_stale_and_one_wins() {
    let store = store();
    let cas = cas_of(store.set(b"k", NewItem::new(b"v"), NOW));
    let request = DeleteRequest {
        invalidate: true,
        expires: Some(Expires::after_seconds(30, NOW)),
        ..DeleteRequest::default()
    };
    assert_eq!(store.meta_delete(b"k", &request, NOW), DeleteOutcome::Deleted);
    let plain = store.get(b"k", NOW).expect("served all the same");
    assert!(plain.is_stale() && plain.cas() > cas);
    let first = hit(store.meta_get(b"k", &GetRequest::default(), NOW));
    assert!(first.won && first.item.is_stale() && !first.item.is_won());
    let second = hit(store.meta_get(b"k", &GetRequest::default(), NOW));
    assert!(!second.won && second.item.is_stale() && second.item.is_won());
    // The winner was too slow: the item was invalidated again. The new value is stale at once.
    assert_eq!(store.meta_delete(b"k", &request, NOW), DeleteOutcome::Deleted);
    let late = StoreRequest {
        compare_cas: Some(first.item.cas()),
        invalidate_older: true,
        ..StoreRequest::default()
    };
    assert!(store.store(b"k", NewItem::new(b"late"), &late, NOW).is_stored());
    let after = store.get(b"k", NOW).expect("a hit");
    assert!(after.is_stale() && after.value_slice() == b"late");
    assert_eq!(after.expires(), Expires::after_seconds(30, NOW));
    assert!(store.get(b"k", NOW.plus_seconds(30)).is_none());
}

#[test]
fn a_client_may_choose_the_cas() {
    let store = store();
    let request = StoreRequest { new_cas: Some(77), ..StoreRequest::default() };
    assert_eq!(
        store.store(b"k", NewItem::new(b"v"), &request, NOW),
        StoreOutcome::Stored { cas: 77 }
    );
    let request = StoreRequest {
        compare_cas: Some(77),
        new_cas: Some(5),
        mode: StoreMode::Append,
        ..request
    };
    assert_eq!(
        store.store(b"k", NewItem::new(b"w"), &request, NOW),
        StoreOutcome::Stored { cas: 5 }
    );
    store.flush_all(NOW, NOW);
    assert!(
        store.get(b"k", NOW).is_none(),
        "a chosen CAS does not hide the item from invalidation"
    );
    let request = StoreRequest { new_cas: Some(1), ..StoreRequest::default() };
    store.store(b"k", NewItem::new(b"v"), &request, NOW);
    assert!(store.get(b"k", NOW).is_some(), "nor does it hide what was stored after");
}

#[test]
fn a_delete_may_keep_the_item_without_its_value() {
    let store = store();
    store.set(b"k", NewItem::new(b"value").flags(4).expires(Expires::after_seconds(9, NOW)), NOW);
    let request = DeleteRequest { remove_value: true, ..DeleteRequest::default() };
    assert_eq!(store.meta_delete(b"k", &request, NOW), DeleteOutcome::Deleted);
    let item = store.get(b"k", NOW).expect("still there");
    assert_eq!((item.value_slice(), item.flags()), (&b""[..], 0));
    assert!(store.get(b"k", NOW.plus_seconds(9)).is_none());
    assert_eq!(store.delete(b"other", NOW), DeleteOutcome::NotFound);
    store.set(b"k", NewItem::new(b"v"), NOW);
    let request = DeleteRequest { compare_cas: Some(1), ..DeleteRequest::default() };
    assert_eq!(store.meta_delete(b"k", &request, NOW), DeleteOutcome::Exists);
    assert_eq!(store.delete(b"k", NOW), DeleteOutcome::Deleted);
}

#[test]
fn a_tag_invalidates_its_items_softly_or_finally() {
    let store = store();
    store.set(b"a", NewItem::new(b"v").tags(&[b"blog", b"front"]), NOW);
    store.set(b"b", NewItem::new(b"v").tags(&[b"front"]), NOW);
    store.set(b"c", NewItem::new(b"v"), NOW);
    assert!(store.invalidate_tag(b"blog", Invalidation::Soft));
    assert!(!store.invalidate_tag(b"nobody", Invalidation::Hard));
    assert!(store.get(b"a", NOW).expect("served as stale").is_stale());
    assert!(!store.get(b"b", NOW).expect("a hit").is_stale());
    assert!(hit(store.meta_get(b"a", &GetRequest::default(), NOW)).won);
    assert!(!hit(store.meta_get(b"a", &GetRequest::default(), NOW)).won);
    assert!(store.invalidate_tag(b"front", Invalidation::Hard));
    assert!(store.get(b"a", NOW).is_none() && store.get(b"b", NOW).is_none());
    assert!(store.get(b"c", NOW).is_some());
    store.set(b"a", NewItem::new(b"new").tags(&[b"blog", b"front"]), NOW);
    assert!(!store.get(b"a", NOW).expect("a hit").is_stale());
}

#[test]
fn a_prefix_invalidates_its_items_softly_or_finally() {
    let store = store();
    for key in [&b"user:1:name"[..], b"user:2:name", b"page"] {
        store.set(key, NewItem::new(b"v"), NOW);
    }
    assert!(store.invalidate_prefix(b"user:1:", Invalidation::Hard, NOW));
    assert!(store.invalidate_prefix(b"user:", Invalidation::Soft, NOW));
    assert!(store.get(b"user:1:name", NOW).is_none());
    assert!(store.get(b"user:2:name", NOW).expect("served as stale").is_stale());
    assert!(!store.get(b"page", NOW).expect("a hit").is_stale());
    store.set(b"user:1:name", NewItem::new(b"w"), NOW);
    assert!(!store.get(b"user:1:name", NOW).expect("a hit").is_stale());
    while store.stats().curr_prefixes > 0 {
        store.sweep(NOW, 10_000);
    }
    assert!(
        store.get(b"user:2:name", NOW).expect("served as stale").is_stale(),
        "the sweep has marked it"
    );
    assert!(!store.get(b"user:1:name", NOW).expect("a hit").is_stale());
}

#[test]
fn more_prefixes_than_the_table_holds_all_take_effect() {
    let store = store();
    for i in 0..3000 {
        store.set(format!("{i:04}:x").as_bytes(), NewItem::new(b"v"), NOW);
    }
    for i in 0..3000 {
        assert!(store.invalidate_prefix(format!("{i:04}:").as_bytes(), Invalidation::Hard, NOW));
    }
    for i in 0..3000 {
        assert!(store.get(format!("{i:04}:x").as_bytes(), NOW).is_none(), "{i}");
    }
}

#[test]
fn the_sweep_frees_what_expired() {
    let store = store();
    for i in 0..1000u32 {
        let expires = if i % 2 == 0 { Expires::after_seconds(5, NOW) } else { Expires::NEVER };
        store.set(&i.to_be_bytes(), NewItem::new(b"v").expires(expires), NOW);
    }
    let later = NOW.plus_seconds(5);
    let mut freed = 0;
    for _ in 0..100 {
        freed += store.sweep(later, 256).freed;
    }
    assert_eq!(freed, 500);
    assert_eq!(store.stats().curr_items, 500);
}

#[test]
fn a_companion_is_made_once_and_goes_with_its_content() {
    let store = store();
    store.set(b"k", NewItem::new(b"page"), NOW);
    let used = store.used_bytes();
    let item = store.get(b"k", NOW).expect("a hit");
    let made = store.companion(&item, NOW, |value| (value.len(), 5000));
    assert_eq!(*made, 4);
    assert!(store.used_bytes() >= used + 5000, "it counts");
    let item = store.get(b"k", NOW).expect("a hit");
    assert!(item.companion::<usize>().is_some_and(|found| Arc::ptr_eq(&found, &made)));
    assert!(item.companion::<String>().is_none());
    let again = store.companion(&item, NOW, |_| -> (usize, usize) { panic!("there is one") });
    assert!(Arc::ptr_eq(&again, &made));
    store.set(b"k", NewItem::new(b"other"), NOW);
    assert!(store.get(b"k", NOW).expect("a hit").companion::<usize>().is_none());
}

#[test]
fn a_prefetched_item_is_in_memory_only_once_in_the_end() {
    let value = vec![b'v'; 5_000];
    let used_by = |ask: &dyn Fn(&Store, &[u8])| {
        let store =
            Store::new(StoreConfig { memory_bytes: 64 << 20, shards: 1, ..StoreConfig::default() });
        for i in 0..2_000 {
            let key = format!("key-{i}");
            store.set(key.as_bytes(), NewItem::new(&value[..]), NOW);
            ask(&store, key.as_bytes());
        }
        store.used_bytes()
    };
    let never = used_by(&|_, _| {});
    let at_once = used_by(&|store, key| {
        let item = store.get(key, NOW).expect("a hit");
        store.companion(&item, NOW, |value| (value.clone(), 100));
    });
    assert!(at_once < never + 3 * (1 << 20), "{at_once} instead of {never}");
    // Nor does memory grow when an item is overwritten in place.
    let store =
        Store::new(StoreConfig { memory_bytes: 64 << 20, shards: 1, ..StoreConfig::default() });
    let mut used = Vec::new();
    for _ in 0..10_000 {
        store.set(b"k", NewItem::new(&value[..]), NOW);
        let item = store.get(b"k", NOW).expect("a hit");
        store.companion(&item, NOW, |value| (value.clone(), 100));
        used.push(store.used_bytes());
    }
    assert_eq!(used.first(), used.last());
}

#[test]
fn a_hit_has_the_time_of_the_last_access_and_if_it_is_the_first() {
    let store = store();
    store.set(b"k", NewItem::new(b"v"), NOW);
    let peeked = store.peek(b"k", NOW.plus_seconds(1)).expect("there");
    assert!(!peeked.was_fetched());
    let first = store.get(b"k", NOW.plus_seconds(2)).expect("a hit");
    assert_eq!((first.was_fetched(), first.last_access()), (false, NOW));
    let unseen = GetRequest { no_bump: true, ..GetRequest::default() };
    let second = hit(store.meta_get(b"k", &unseen, NOW.plus_seconds(3)));
    assert_eq!((second.item.was_fetched(), second.item.last_access()), (true, NOW.plus_seconds(2)));
    let third = store.get(b"k", NOW.plus_seconds(9)).expect("a hit");
    assert_eq!(third.last_access(), NOW.plus_seconds(2));
}
