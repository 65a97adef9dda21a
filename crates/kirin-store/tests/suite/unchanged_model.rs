//! `unchanged_since` against a model: beginnings, invalidations and endings in any order, and many
//! threads at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use kirin_store::{Invalidation, Moment, NewItem, Now, Store, StoreConfig, StoreRequest};
use proptest::prelude::*;

const NOW: Now = Now::from_unix_seconds(1_700_000_000);

const KEYS: [&str; 5] = ["/", "/a", "/a/1", "/a/2", "/b/1"];
const PREFIXES: [&str; 5] = ["", "/", "/a", "/a/", "/b/1"];
const TAGS: [&str; 3] = ["front", "a", "/a"];

fn store_since(store: &Store, key: &str, value: &str, tags: &[&[u8]], since: &Moment) -> bool {
    let request = StoreRequest { unchanged_since: Some(since), ..StoreRequest::default() };
    store
        .store(key.as_bytes(), NewItem::new(value.as_bytes()).tags(tags), &request, NOW)
        .is_stored()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    /// Stores the item that was begun at this position, under this key and with this tag.
    End(usize, usize, Option<usize>),
    Delete(usize),
    Tag(usize, Invalidation),
    Prefix(usize, Invalidation),
    Set(usize, Option<usize>),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let how = || prop_oneof![Just(Invalidation::Soft), Just(Invalidation::Hard)];
    prop_oneof![
        3 => Just(Step::Begin),
        3 => (0..8usize, 0..KEYS.len(), prop::option::of(0..TAGS.len()))
            .prop_map(|(begun, key, tag)| Step::End(begun, key, tag)),
        1 => (0..KEYS.len()).prop_map(Step::Delete),
        1 => (0..TAGS.len(), how()).prop_map(|(tag, how)| Step::Tag(tag, how)),
        1 => (0..PREFIXES.len(), how()).prop_map(|(prefix, how)| Step::Prefix(prefix, how)),
        1 => (0..KEYS.len(), prop::option::of(0..TAGS.len())).prop_map(|(key, tag)| Step::Set(key, tag)),
        1 => Just(Step::Sweep),
    ]
}

/// An event that has happened.
enum Event {
    Nothing,
    /// An item was stored under this key, or deleted.
    Key(usize),
    Tag(usize),
    Prefix(usize),
}

fn concerns(past: &Event, key: usize, tag: Option<usize>) -> bool {
    match past {
        Event::Nothing => false,
        Event::Key(other) => *other == key,
        Event::Tag(other) => Some(*other) == tag,
        Event::Prefix(prefix) => KEYS[key].starts_with(PREFIXES[*prefix]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_page_is_refused_when_it_was_purged_since_and_only_then(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let store = Store::new(StoreConfig { shards: 2, ..StoreConfig::default() });
        let mut begun: Vec<(Moment, usize)> = Vec::new();
        let mut past = Vec::new();
        for step in steps {
            let mut happened = Event::Nothing;
            let tags = |tag: Option<usize>| tag.map(|tag| TAGS[tag].as_bytes()).into_iter().collect::<Vec<_>>();
            match step {
                Step::Begin => begun.push((store.moment(), past.len())),
                Step::End(position, key, tag) if position < begun.len() => {
                    let (moment, at) = begun.swap_remove(position);
                    let expected = !past[at..].iter().any(|past| concerns(past, key, tag));
                    let stored = store_since(&store, KEYS[key], "page", &tags(tag), &moment);
                    prop_assert_eq!(stored, expected, "{} with {:?}", KEYS[key], tag);
                    if stored {
                        happened = Event::Key(key);
                    }
                }
                Step::End(..) => {}
                Step::Delete(key) => {
                    store.delete(KEYS[key].as_bytes(), NOW);
                    happened = Event::Key(key);
                }
                Step::Tag(tag, how) => {
                    store.invalidate_tag(TAGS[tag].as_bytes(), how);
                    happened = Event::Tag(tag);
                }
                Step::Prefix(prefix, how) => {
                    store.invalidate_prefix(PREFIXES[prefix].as_bytes(), how, NOW);
                    happened = Event::Prefix(prefix);
                }
                Step::Set(key, tag) => {
                    store.set(KEYS[key].as_bytes(), NewItem::new(b"set").tags(&tags(tag)), NOW);
                    happened = Event::Key(key);
                }
                Step::Sweep => drop(store.sweep(NOW, 1000)),
            }
            past.push(happened);
        }
    }
}

/// Ends all threads, even if an assertion fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Races makers against purgers. The source of each page is a number that only grows. Makers read
/// it and store what they have read. Purgers increase it and purge by key, tag or prefix in random
/// order. After a purge has returned, no reader may find a smaller number than the purger wrote.
/// One more page is never purged, and must be stored each time.
#[test]
fn concurrent_purges_of_all_kinds_leave_no_old_page_and_disturb_no_other() {
    const PAGES: usize = 6;
    let key = |page: usize| format!("/{}/{page}", page % 2);
    let store = Store::new(StoreConfig { shards: 2, ..StoreConfig::default() });
    let sources: [AtomicU64; PAGES] = Default::default();
    let (ended, stored) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for maker in 0..2u64 {
            let (store, sources, ended, stored) = (&store, &sources, &ended, &stored);
            scope.spawn(move || {
                let mut random = Random(maker + 1);
                while !ended.load(Ordering::Relaxed) {
                    let page = random.below(PAGES);
                    let since = store.moment();
                    let value = sources[page].load(Ordering::SeqCst).to_string();
                    (0..random.below(200)).for_each(|_| std::hint::spin_loop());
                    let tag = format!("t{page}");
                    if store_since(store, &key(page), &value, &[tag.as_bytes()], &since) {
                        stored.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let undisturbed = scope.spawn(|| {
            let _end = EndOnDrop(&ended);
            while !ended.load(Ordering::Relaxed) {
                let since = store.moment();
                thread::yield_now();
                assert!(
                    store_since(&store, "other", "x", &[b"other"], &since),
                    "refused without a reason"
                );
            }
        });
        let purgers = [7, 11].map(|seed| {
            let (store, sources, ended) = (&store, &sources, &ended);
            scope.spawn(move || {
                let _end = EndOnDrop(ended);
                let mut random = Random(seed);
                for _ in 0..20_000 {
                    let page = random.below(PAGES);
                    let change = sources[page].fetch_add(1, Ordering::SeqCst) + 1;
                    match random.below(4) {
                        0 => drop(store.delete(key(page).as_bytes(), NOW)),
                        1 => drop(
                            store.invalidate_tag(format!("t{page}").as_bytes(), Invalidation::Hard),
                        ),
                        2 => {
                            let prefix = format!("/{}/", page % 2);
                            store.invalidate_prefix(prefix.as_bytes(), Invalidation::Hard, NOW);
                        }
                        _ => {
                            store.invalidate_prefix(key(page).as_bytes(), Invalidation::Hard, NOW);
                            store.sweep(NOW, 10);
                        }
                    }
                    if let Some(item) = store.get(key(page).as_bytes(), NOW) {
                        let found: u64 =
                            std::str::from_utf8(item.value_slice()).unwrap().parse().unwrap();
                        assert!(found >= change, "{found} after the purge that followed {change}");
                    }
                    (0..random.below(300)).for_each(|_| std::hint::spin_loop());
                }
            })
        });
        for purger in purgers {
            purger.join().expect("no old page");
        }
        ended.store(true, Ordering::Relaxed);
        undisturbed.join().expect("stored each time");
    });
    assert!(stored.load(Ordering::Relaxed) > 100, "{stored:?} pages stored");
}

/// A xorshift generator: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}
