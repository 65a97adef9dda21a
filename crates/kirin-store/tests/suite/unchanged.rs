//! An item that was begun earlier is refused if something that it depends on has been invalidated
//! meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use kirin_store::{
    DeleteRequest, Expires, Invalidation, Moment, NewItem, Now, Store, StoreConfig, StoreOutcome,
    StoreRequest,
};

const NOW: Now = Now::from_unix_seconds(1_700_000_000);

fn store_since(
    store: &Store,
    key: &[u8],
    value: &[u8],
    tags: &[&[u8]],
    since: &Moment,
) -> StoreOutcome {
    let request = StoreRequest { unchanged_since: Some(since), ..StoreRequest::default() };
    store.store(key, NewItem::new(value).tags(tags), &request, NOW)
}

/// Returns whether `/a/b` with the tag `t` can be stored if `between` happens after it was begun.
fn is_stored_after(between: impl FnOnce(&Store)) -> bool {
    let store = Store::new(StoreConfig { memory_bytes: 1 << 20, ..StoreConfig::default() });
    let since = store.moment();
    between(&store);
    let outcome = store_since(&store, b"/a/b", b"old", &[b"t"], &since);
    assert_eq!(
        outcome.is_stored(),
        store.get(b"/a/b", NOW).is_some_and(|item| item.value_slice() == b"old")
    );
    assert!(outcome.is_stored() || outcome == StoreOutcome::NotStored, "{outcome:?}");
    outcome.is_stored()
}

#[test]
fn a_value_that_was_begun_before_an_invalidation_is_not_stored_after_it() {
    type Between = fn(&Store);
    let invalidations: [(&str, Between); 14] = [
        ("delete", |store| {
            store.delete(b"/a/b", NOW);
        }),
        ("delete of what is there", |store| {
            store.set(b"/a/b", NewItem::new(b"older"), NOW);
            store.delete(b"/a/b", NOW);
        }),
        ("marked stale", |store| {
            store.meta_delete(
                b"/a/b",
                &DeleteRequest { invalidate: true, ..DeleteRequest::default() },
                NOW,
            );
        }),
        ("tag", |store| {
            store.invalidate_tag(b"t", Invalidation::Hard);
        }),
        ("tag, softly", |store| {
            store.invalidate_tag(b"t", Invalidation::Soft);
        }),
        ("prefix", |store| {
            store.invalidate_prefix(b"/a/", Invalidation::Hard, NOW);
        }),
        ("prefix that is the key", |store| {
            store.invalidate_prefix(b"/a/b", Invalidation::Hard, NOW);
        }),
        ("every key", |store| {
            store.invalidate_prefix(b"", Invalidation::Soft, NOW);
        }),
        ("prefix, swept", |store| {
            store.invalidate_prefix(b"/a", Invalidation::Hard, NOW);
            for _ in 0..10 {
                store.sweep(NOW, 1000);
            }
        }),
        ("flush", |store| store.flush_all(NOW, NOW)),
        ("flush that was put off", |store| {
            store.flush_all(NOW.plus_seconds(1), NOW);
            store.get(b"x", NOW.plus_seconds(1));
        }),
        ("a newer page", |store| {
            store.set(b"/a/b", NewItem::new(b"new"), NOW);
        }),
        ("a newer page that is over", |store| {
            store.set(b"/a/b", NewItem::new(b"new").expires(Expires::PAST), NOW);
        }),
        ("a newer page that has been evicted", |store| {
            store.set(b"/a/b", NewItem::new(b"new"), NOW);
            for number in 0..20_000 {
                store.set(format!("{number}").as_bytes(), NewItem::new(b"new"), NOW);
            }
            assert!(store.peek(b"/a/b", NOW).is_none(), "not evicted");
        }),
    ];
    for (name, between) in invalidations {
        assert!(!is_stored_after(between), "{name}");
    }
}

#[test]
fn an_unrelated_change_does_not_prevent_storing() {
    type Between = fn(&Store);
    let others: [(&str, Between); 6] = [
        ("nothing", |_| {}),
        ("another key", |store| {
            store.delete(b"/a", NOW);
        }),
        ("another tag", |store| {
            store.invalidate_tag(b"/a/b", Invalidation::Hard);
        }),
        ("another prefix", |store| {
            store.invalidate_prefix(b"/b", Invalidation::Hard, NOW);
        }),
        ("a longer prefix", |store| {
            store.invalidate_prefix(b"/a/bc", Invalidation::Hard, NOW);
        }),
        ("another page", |store| {
            store.set(b"/a/c", NewItem::new(b"new"), NOW);
        }),
    ];
    for (name, between) in others {
        assert!(is_stored_after(between), "{name}");
    }
}

#[test]
fn an_invalidation_before_the_beginning_does_not_prevent_storing() {
    let store = Store::new(StoreConfig::default());
    store.set(b"/a/b", NewItem::new(b"older").tags(&[b"t"]), NOW);
    store.invalidate_tag(b"t", Invalidation::Soft);
    store.invalidate_prefix(b"/a", Invalidation::Soft, NOW);
    store.delete(b"/a/c", NOW);
    store.flush_all(NOW, NOW);
    for key in [b"/a/b", b"/a/c"] {
        let since = store.moment();
        assert!(store_since(&store, key, b"new", &[b"t"], &since).is_stored());
        assert!(
            store
                .get(key, NOW)
                .is_some_and(|item| !item.is_stale() && item.value_slice() == b"new")
        );
        assert_eq!(
            store_since(&store, key, b"old", &[], &since),
            StoreOutcome::NotStored,
            "another was begun at the same time, and is there already"
        );
    }
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Races readers against writers. The data is a number. Writers change it and invalidate. Readers
/// take a moment, read the number and store what they have read. After an invalidation has
/// returned, no reader may find an older number in the store.
#[test]
fn nobody_gets_an_old_page_after_its_invalidation() {
    for (kind, tags) in [("tag", &[&b"t"[..]][..]), ("prefix", &[]), ("key", &[])] {
        let store = Store::new(StoreConfig { shards: 1, ..StoreConfig::default() });
        let (data, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let stored = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        let since = store.moment();
                        let value = data.load(Ordering::SeqCst).to_string();
                        if store_since(&store, b"/page", value.as_bytes(), tags, &since).is_stored()
                        {
                            stored.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            // The threads end even if an assertion fails.
            let _end = EndOnDrop(&ended);
            let mut change = 0;
            while stored.load(Ordering::Relaxed) < 5_000 {
                change += 1;
                data.store(change, Ordering::SeqCst);
                match kind {
                    "tag" => {
                        store.invalidate_tag(b"t", Invalidation::Hard);
                    }
                    "prefix" => {
                        store.invalidate_prefix(b"/p", Invalidation::Hard, NOW);
                    }
                    _ => {
                        store.delete(b"/page", NOW);
                    }
                }
                if let Some(item) = store.get(b"/page", NOW) {
                    let found: u64 =
                        std::str::from_utf8(item.value_slice()).unwrap().parse().unwrap();
                    assert_eq!(found, change, "{kind}: an old page after its invalidation");
                }
                // There is sometimes enough time to store a page here.
                (0..change % 300).for_each(|_| std::hint::spin_loop());
            }
        });
    }
}

#[test]
fn a_caller_learns_whether_a_value_was_invalidated_since_a_moment() {
    type Between = fn(&Store);
    let cases: [(&str, bool, Between); 6] = [
        ("nothing", false, |_| {}),
        ("another tag", false, |store| {
            store.invalidate_tag(b"other", Invalidation::Hard);
        }),
        ("delete of what is not there", true, |store| {
            store.delete(b"/a/b", NOW);
        }),
        ("tag", true, |store| {
            store.invalidate_tag(b"t", Invalidation::Hard);
        }),
        ("tag, softly", true, |store| {
            store.invalidate_tag(b"t", Invalidation::Soft);
        }),
        ("prefix", true, |store| {
            store.invalidate_prefix(b"/a/", Invalidation::Hard, NOW);
        }),
    ];
    for (what, expected, between) in cases {
        let store = Store::new(StoreConfig { memory_bytes: 1 << 20, ..StoreConfig::default() });
        let since = store.moment();
        between(&store);
        assert_eq!(store.change_since(&since, b"/a/b", &[b"t"]).is_some(), expected, "{what}");
        assert_eq!(
            store.change_since(&store.moment(), b"/a/b", &[b"t"]),
            None,
            "{what}, before it was begun"
        );
    }
}

#[test]
fn many_unrelated_invalidations_do_not_prevent_storing() {
    let store = Store::new(StoreConfig { memory_bytes: 1 << 20, ..StoreConfig::default() });
    let since: Vec<Moment> = (0..100).map(|_| store.moment()).collect();
    for number in 0..50_000 {
        let name = format!("/other/{number}");
        match number % 3 {
            0 => drop(store.delete(name.as_bytes(), NOW)),
            1 => drop(store.invalidate_tag(name.as_bytes(), Invalidation::Hard)),
            _ => drop(store.invalidate_prefix(name.as_bytes(), Invalidation::Soft, NOW)),
        }
    }
    for (number, since) in since.iter().enumerate() {
        let (key, tag) = (format!("/page/{number}"), format!("tag {number}"));
        let tags = [&b"front"[..], tag.as_bytes()];
        assert_eq!(store.change_since(since, key.as_bytes(), &tags), None, "{key}");
        assert!(store_since(&store, key.as_bytes(), b"new", &tags, since).is_stored(), "{key}");
    }
}

#[test]
fn an_item_marked_stale_by_the_sweep_does_not_count_as_newer() {
    let store = Store::new(StoreConfig { shards: 1, ..StoreConfig::default() });
    store.set(b"/a/b", NewItem::new(b"older").tags(&[b"t"]), NOW);
    store.invalidate_tag(b"t", Invalidation::Soft);
    let since = store.moment();
    store.sweep(NOW, 1000);
    assert!(store_since(&store, b"/a/b", b"new", &[b"t"], &since).is_stored());

    // An item that was stored since then is newer, stale or not.
    let since = store.moment();
    store.set(b"/a/b", NewItem::new(b"newest").tags(&[b"other"]), NOW);
    store.invalidate_tag(b"other", Invalidation::Soft);
    store.sweep(NOW, 1000);
    assert_eq!(store_since(&store, b"/a/b", b"old", &[b"t"], &since), StoreOutcome::NotStored);
}
