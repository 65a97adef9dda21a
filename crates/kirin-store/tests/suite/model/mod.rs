//! Random commands on a store with room for everything, compared with a simple map.

mod reference;

use kirin_store::{
    ArithmeticOutcome, ArithmeticRequest, DeleteOutcome, DeleteRequest, Direction, Expires,
    GetRequest, Invalidation, ItemRef, MetaOutcome, NewItem, NewValue, Now, Store, StoreConfig,
    StoreMode, StoreOutcome, StoreRequest,
};
use proptest::collection::vec;
use proptest::prelude::*;

use reference::{Answer, Item, Mode, Reference, Storing};

const KEYS: [&[u8]; 6] = [b"a", b"b", b"user:1", b"user:2", b"user:1:name", b""];
const PREFIXES: [&[u8]; 4] = [b"user:", b"user:1", b"a", b""];
const TAGS: [&[u8]; 3] = [b"blog", b"front page", b"x"];
const START: u64 = 1_700_000_000;

/// A CAS unique, in relation to the item that is there.
#[derive(Clone, Copy, Debug)]
enum Cas {
    None,
    Current,
    Older,
    Newer,
    Zero,
}

#[derive(Clone, Debug)]
enum Command {
    Get(usize),
    Peek(usize),
    Store {
        key: usize,
        mode: Mode,
        value: Vec<u8>,
        owned: bool,
        flags: u32,
        lives: Option<u64>,
        tags: Vec<u8>,
        cas: Cas,
        new_cas: bool,
        older: bool,
        vivify: Option<Option<u64>>,
    },
    Count {
        key: usize,
        up: bool,
        delta: u64,
        vivify: Option<Option<u64>>,
        touch: Option<Option<u64>>,
        cas: Cas,
    },
    Delete {
        key: usize,
        invalidate: bool,
        strip: bool,
        lives: Option<Option<u64>>,
        cas: Cas,
    },
    Touch {
        key: usize,
        lives: Option<u64>,
        get: bool,
    },
    MetaGet {
        key: usize,
        vivify: Option<Option<u64>>,
        recache_seconds: Option<u64>,
        touch: Option<Option<u64>>,
        no_bump: bool,
    },
    Flush(u64),
    Tag(usize, bool),
    Prefix(usize, bool),
    Sweep(usize),
    Companion(usize),
    Pass(u64),
}

fn lives() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![2 => Just(None), 3 => (0u64..12).prop_map(Some)]
}

fn cas() -> impl Strategy<Value = Cas> {
    prop_oneof![
        6 => Just(Cas::None),
        3 => Just(Cas::Current),
        1 => Just(Cas::Older),
        1 => Just(Cas::Newer),
        1 => Just(Cas::Zero)
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[0-9]{1,21}".prop_map(String::into_bytes),
        "[ +-]?[0-9]{1,3} ?x?".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..40),
        (2000usize..6000).prop_map(|len| vec![b'z'; len]),
    ]
}

fn store() -> impl Strategy<Value = Command> {
    let mode = prop_oneof![
        3 => Just(Mode::Set),
        1 => Just(Mode::Add),
        1 => Just(Mode::Replace),
        1 => Just(Mode::Append),
        1 => Just(Mode::Prepend)
    ];
    let conditions =
        (cas(), prop::bool::weighted(0.1), any::<bool>(), proptest::option::weighted(0.2, lives()));
    let item = (value(), any::<bool>(), any::<u32>(), lives(), vec(0..TAGS.len() as u8, 0..3));
    (0..KEYS.len(), mode, item, conditions).prop_map(
        |(key, mode, (value, owned, flags, lives, tags), (cas, new_cas, older, vivify))| {
            Command::Store {
                key,
                mode,
                value,
                owned,
                flags,
                lives,
                tags,
                cas,
                new_cas,
                older,
                vivify,
            }
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let key = || 0..KEYS.len();
    let maybe_lives = || proptest::option::weighted(0.3, lives());
    prop_oneof![
        8 => store(),
        4 => key().prop_map(Command::Get),
        1 => key().prop_map(Command::Peek),
        3 => (key(), any::<bool>(), prop_oneof![0u64..20, any::<u64>()], maybe_lives(), maybe_lives(), cas())
            .prop_map(|(key, up, delta, vivify, touch, cas)| Command::Count { key, up, delta, vivify, touch, cas }),
        2 => (key(), any::<bool>(), prop::bool::weighted(0.2), maybe_lives(), cas())
            .prop_map(|(key, invalidate, strip, lives, cas)| Command::Delete { key, invalidate, strip, lives, cas }),
        2 => (key(), lives(), any::<bool>()).prop_map(|(key, lives, get)| Command::Touch { key, lives, get }),
        4 => (key(), maybe_lives(), proptest::option::of(0u64..12), maybe_lives(), any::<bool>()).prop_map(
            |(key, vivify, recache_seconds, touch, no_bump)| Command::MetaGet {
                key, vivify, recache_seconds, touch, no_bump
            }
        ),
        1 => prop_oneof![Just(0u64), 1u64..8].prop_map(Command::Flush),
        1 => (0..TAGS.len(), any::<bool>()).prop_map(|(tag, hard)| Command::Tag(tag, hard)),
        1 => (0..PREFIXES.len(), any::<bool>()).prop_map(|(prefix, hard)| Command::Prefix(prefix, hard)),
        1 => (1usize..2000).prop_map(Command::Sweep),
        1 => key().prop_map(Command::Companion),
        2 => (0u64..4).prop_map(Command::Pass),
    ]
}

/// The store and the reference side by side.
struct Both {
    store: Store,
    reference: Reference,
    now: u64,
    last_cas: u64,
    /// The last CAS unique that the test chose. These are far above those that the store assigns.
    chosen_cas: u64,
}

impl Both {
    fn now(&self) -> Now {
        Now::from_unix_seconds(self.now)
    }

    fn expires(&self, lives: Option<u64>) -> (Expires, Option<u64>) {
        match lives {
            None => (Expires::NEVER, None),
            Some(seconds) => {
                (Expires::after_seconds(seconds, self.now()), Some(self.now + seconds))
            }
        }
    }

    fn cas(&self, key: &[u8], cas: Cas) -> Option<u64> {
        let current = self.reference.items.get(key).map_or(7, |item| item.cas);
        match cas {
            Cas::None => None,
            Cas::Current => Some(current),
            Cas::Older => Some(current.saturating_sub(1)),
            Cas::Newer => Some(current + 1),
            Cas::Zero => Some(0),
        }
    }

    /// Compares the store's item of a key with the reference's. Takes over a CAS unique that an
    /// invalidation has changed.
    fn same(&mut self, key: &[u8], found: Option<&ItemRef>) {
        let expected = self.reference.items.get_mut(key);
        let (Some(item), Some(expected)) = (found, expected) else {
            let there = self.reference.items.get(key);
            assert!(
                found.is_none() && there.is_none(),
                "{key:?}: got {found:?}, expected {there:?}"
            );
            return;
        };
        assert_eq!(item.key(), key);
        assert_eq!(item.value_slice(), expected.value, "value of {key:?}");
        assert_eq!(item.value(), expected.value, "value of {key:?}");
        assert_eq!(item.flags(), expected.flags, "flags of {key:?}");
        assert_eq!(
            item.expires().time().map(Now::unix_seconds),
            expected.expires,
            "expiry of {key:?}"
        );
        assert_eq!(item.is_stale(), expected.stale, "staleness of {key:?}");
        let mut tags: Vec<&[u8]> = expected.tags.iter().map(|&tag| TAGS[tag as usize]).collect();
        let mut found: Vec<&[u8]> = item.tags().collect();
        tags.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, tags, "tags of {key:?}");
        if expected.stale {
            expected.cas = item.cas();
        }
        assert_eq!(item.cas(), expected.cas, "CAS of {key:?}");
        assert_ne!(item.cas(), 0);
    }

    /// Notes the CAS unique that a key got. It must be new.
    fn renew(&mut self, key: &[u8], cas: u64, chosen: Option<u64>) {
        match chosen {
            Some(chosen) => assert_eq!(cas, chosen),
            None => {
                assert!(cas > self.last_cas, "{cas} after {}", self.last_cas);
                self.last_cas = cas;
            }
        }
        if let Some(item) = self.reference.items.get_mut(key) {
            item.cas = cas;
        }
    }

    /// Makes the result of an invalidation permanent before a writer compares the CAS unique.
    fn settle(&mut self, key: &[u8]) {
        let request = GetRequest {
            touch: None,
            recache_before: Some(Expires::PAST),
            no_bump: true,
            ..GetRequest::default()
        };
        let outcome = self.store.meta_get(key, &request, self.now());
        if let (MetaOutcome::Hit(hit), Some(item)) = (outcome, self.reference.items.get_mut(key)) {
            item.won |= hit.won;
            item.cas = hit.item.cas();
        }
    }

    fn run(&mut self, command: &Command) {
        self.reference.tick(self.now);
        let now = self.now();
        match command.clone() {
            Command::Get(key) => {
                let item = self.store.get(KEYS[key], now);
                self.same(KEYS[key], item.as_ref());
            }
            Command::Peek(key) => {
                let item = self.store.peek(KEYS[key], now);
                self.same(KEYS[key], item.as_ref());
            }
            Command::Store {
                key,
                mode,
                value,
                owned,
                flags,
                lives,
                tags,
                cas,
                new_cas,
                older,
                vivify,
            } => {
                let key = KEYS[key];
                self.settle(key);
                let compare_cas = self.cas(key, cas);
                let (expires, expires_at) = self.expires(lives);
                self.chosen_cas += 1;
                let new_cas = new_cas.then_some(self.chosen_cas);
                let names: Vec<&[u8]> = tags.iter().map(|&tag| TAGS[tag as usize]).collect();
                let given =
                    if owned { NewValue::from(value.clone()) } else { NewValue::Copied(&value) };
                let item = NewItem { value: given, flags, expires, tags: &names };
                let request = StoreRequest {
                    mode: match mode {
                        Mode::Set => StoreMode::Set,
                        Mode::Add => StoreMode::Add,
                        Mode::Replace => StoreMode::Replace,
                        Mode::Append => StoreMode::Append,
                        Mode::Prepend => StoreMode::Prepend,
                    },
                    compare_cas,
                    new_cas,
                    invalidate_older: older,
                    vivify: vivify.map(|lives| self.expires(lives).0),
                    unchanged_since: None,
                };
                let vivify = vivify.map(|lives| self.expires(lives).1);
                let how = Storing { mode, compare_cas, invalidate_older: older, vivify };
                let outcome = self.store.store(key, item, &request, now);
                let new = Item {
                    value: value.clone(),
                    flags,
                    expires: expires_at,
                    tags,
                    ..Item::default()
                };
                let answer = self.reference.store(key, new, &how);
                match (outcome, answer) {
                    (StoreOutcome::Stored { cas }, Answer::Stored) => self.renew(key, cas, new_cas),
                    (StoreOutcome::NotStored, Answer::NotStored)
                    | (StoreOutcome::Exists, Answer::Exists)
                    | (StoreOutcome::NotFound, Answer::NotFound) => {}
                    other => panic!("{other:?}"),
                }
            }
            Command::Count { key, up, delta, vivify, touch, cas } => {
                let key = KEYS[key];
                self.settle(key);
                let compare_cas = self.cas(key, cas);
                let request = ArithmeticRequest {
                    direction: if up { Direction::Up } else { Direction::Down },
                    delta,
                    vivify: vivify.map(|lives| self.expires(lives).0),
                    initial: 10,
                    touch: touch.map(|lives| self.expires(lives).0),
                    compare_cas,
                    new_cas: None,
                };
                let (vivify, touch) = (
                    vivify.map(|lives| self.expires(lives).1),
                    touch.map(|lives| self.expires(lives).1),
                );
                let outcome = self.store.arithmetic(key, &request, now);
                let expected = match self.reference.items.get_mut(key) {
                    Some(item) if compare_cas.is_some_and(|cas| cas != 0 && cas != item.cas) => {
                        Err("exists")
                    }
                    Some(item) => match Reference::count(item, up, delta) {
                        Some(number) => {
                            item.expires = touch.unwrap_or(item.expires);
                            Ok(number)
                        }
                        None => Err("not a number"),
                    },
                    None => match vivify {
                        Some(expires) => {
                            let item = Item { value: b"10".to_vec(), expires, ..Item::default() };
                            self.reference.items.insert(key.to_vec(), item);
                            Ok(10)
                        }
                        None => Err("not found"),
                    },
                };
                match (outcome, expected) {
                    (ArithmeticOutcome::Counted(counted), Ok(number)) => {
                        assert_eq!(counted.value, number);
                        self.renew(key, counted.item.cas(), None);
                        self.same(key, Some(&counted.item));
                    }
                    (ArithmeticOutcome::Exists, Err("exists"))
                    | (ArithmeticOutcome::NonNumeric, Err("not a number"))
                    | (ArithmeticOutcome::NotFound, Err("not found")) => {}
                    other => panic!("{other:?}"),
                }
            }
            Command::Delete { key, invalidate, strip, lives, cas } => {
                let key = KEYS[key];
                self.settle(key);
                let compare_cas = self.cas(key, cas);
                let (expires, expires_at) = (
                    lives.map(|lives| self.expires(lives).0),
                    lives.map(|lives| self.expires(lives).1),
                );
                let request = DeleteRequest {
                    compare_cas,
                    new_cas: None,
                    invalidate,
                    expires,
                    remove_value: strip,
                };
                let outcome = self.store.meta_delete(key, &request, now);
                let Some(item) = self.reference.items.get_mut(key) else {
                    assert_eq!(outcome, DeleteOutcome::NotFound);
                    return;
                };
                if compare_cas.is_some_and(|cas| cas != item.cas) {
                    assert_eq!(outcome, DeleteOutcome::Exists);
                    return;
                }
                assert_eq!(outcome, DeleteOutcome::Deleted);
                if !invalidate && !strip {
                    self.reference.items.remove(key);
                    return;
                }
                if strip {
                    (item.value, item.flags, item.tags) = (Vec::new(), 0, Vec::new());
                }
                if invalidate {
                    (item.stale, item.won) = (true, false);
                    item.expires = expires_at.unwrap_or(item.expires);
                }
                self.reference.tick(self.now);
                if let Some(item) = self.store.peek(key, now) {
                    self.renew(key, item.cas(), None);
                }
            }
            Command::Touch { key, lives, get } => {
                let key = KEYS[key];
                let (expires, expires_at) = self.expires(lives);
                let expected = self.reference.items.get_mut(key);
                let there = expected.is_some();
                if let Some(item) = expected {
                    item.expires = expires_at;
                }
                if get {
                    let item = self.store.get_and_touch(key, expires, now);
                    self.same(key, item.as_ref());
                } else {
                    assert_eq!(self.store.touch(key, expires, now), there);
                }
            }
            Command::MetaGet { key, vivify, recache_seconds, touch, no_bump } => {
                let key = KEYS[key];
                let request = GetRequest {
                    vivify: vivify.map(|lives| self.expires(lives).0),
                    recache_before: recache_seconds.map(|seconds| self.expires(Some(seconds)).0),
                    touch: touch.map(|lives| self.expires(lives).0),
                    new_cas: None,
                    no_bump,
                };
                let recache_before = recache_seconds.map(|seconds| self.now + seconds);
                let (vivify, touch) = (
                    vivify.map(|lives| self.expires(lives).1),
                    touch.map(|lives| self.expires(lives).1),
                );
                let outcome = self.store.meta_get(key, &request, now);
                match (self.reference.items.get_mut(key), vivify) {
                    (None, None) => assert!(matches!(outcome, MetaOutcome::Miss), "{outcome:?}"),
                    (None, Some(expires)) => {
                        let MetaOutcome::Hit(hit) = outcome else { panic!("{outcome:?}") };
                        assert!(hit.won && hit.vivified && !hit.item.is_won());
                        let item = Item { expires, won: true, ..Item::default() };
                        self.reference.items.insert(key.to_vec(), item);
                        self.renew(key, hit.item.cas(), None);
                        self.same(key, Some(&hit.item));
                    }
                    (Some(item), _) => {
                        let MetaOutcome::Hit(hit) = outcome else { panic!("{outcome:?}") };
                        item.expires = touch.unwrap_or(item.expires);
                        let early = matches!((item.expires, recache_before), (Some(at), Some(before)) if at < before);
                        assert_eq!(hit.item.is_won(), item.won);
                        assert_eq!(hit.won, !item.won && (early || item.stale), "{item:?}");
                        assert!(!hit.vivified);
                        item.won |= hit.won;
                        self.same(key, Some(&hit.item));
                    }
                }
            }
            Command::Flush(delay) => {
                self.store.flush_all(now.plus_seconds(delay), now);
                match delay {
                    0 => {
                        self.reference.items.clear();
                        self.reference.flush_due = None;
                    }
                    _ => self.reference.flush_due = Some(self.now + delay),
                }
            }
            Command::Tag(tag, hard) => {
                let how = if hard { Invalidation::Hard } else { Invalidation::Soft };
                let known = self.store.invalidate_tag(TAGS[tag], how);
                let concerns = |_: &[u8], item: &Item| item.tags.contains(&(tag as u8));
                let any = self.reference.items.iter().any(|(key, item)| concerns(key, item));
                assert!(known || !any, "a tag that an item carries is known");
                self.reference.invalidate(hard, concerns);
            }
            Command::Prefix(prefix, hard) => {
                let how = if hard { Invalidation::Hard } else { Invalidation::Soft };
                assert!(self.store.invalidate_prefix(PREFIXES[prefix], how, now));
                self.reference.invalidate(hard, |key, _| key.starts_with(PREFIXES[prefix]));
            }
            Command::Sweep(budget_items) => {
                self.store.sweep(now, budget_items);
            }
            Command::Companion(key) => {
                let Some(item) = self.store.peek(KEYS[key], now) else { return };
                let made = self.store.companion(&item, now, |value| (value.clone(), value.len()));
                assert_eq!(
                    *made,
                    item.value(),
                    "a companion belongs to the content it was made from"
                );
            }
            Command::Pass(seconds) => self.now += seconds,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_answers_as_a_simple_map_does(commands in vec(command(), 1..120)) {
        let store = Store::new(StoreConfig { shards: 2, ..StoreConfig::default() });
        let mut both = Both { store, reference: Reference::default(), now: START, last_cas: 0, chosen_cas: 1 << 40 };
        for command in &commands {
            both.run(command);
        }
        both.reference.tick(both.now);
        for key in KEYS {
            let item = both.store.get(key, both.now());
            both.same(key, item.as_ref());
        }
        prop_assert_eq!(both.store.stats().evictions, 0, "there was room for everything");
    }
}
