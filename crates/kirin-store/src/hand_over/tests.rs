//! Both sides of a hand-over, while the giving side is written to.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use crate::hand_over::following::{Follower, HandOverStep};
use crate::hand_over::frame;
use crate::hand_over::giving::{HandOver, HandOverError};
use crate::{
    ArithmeticRequest, DeleteRequest, Expires, GetRequest, Invalidation, NewItem, Now, Store,
    StoreConfig, StoreMode, StoreRequest,
};

const NOON: Now = Now::from_unix_seconds(1_700_000_000);

fn store() -> Arc<Store> {
    Arc::new(Store::new(StoreConfig::default()))
}

/// What a client can see of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    value: Vec<u8>,
    cas: u64,
    flags: u32,
    expires: Expires,
    is_stale: bool,
    tags: Vec<Vec<u8>>,
}

fn seen(store: &Store, now: Now) -> BTreeMap<Vec<u8>, Seen> {
    let keys = (0..KEYS).map(|number| format!("k{number}").into_bytes());
    keys.filter_map(|key| {
        let item = store.peek(&key, now)?;
        let tags = item.tags().map(<[u8]>::to_vec).collect();
        let seen = Seen {
            value: item.value_slice().to_vec(),
            cas: item.cas(),
            flags: item.flags(),
            expires: item.expires(),
            is_stale: item.is_stale(),
            tags,
        };
        Some((key, seen))
    })
    .collect()
}

const KEYS: u8 = 12;

#[derive(Clone, Debug)]
enum Step {
    Set(u8, u8, bool),
    Add(u8),
    Append(u8),
    Delete(u8),
    Invalidate(u8),
    Count(u8),
    Touch(u8, u8),
    TouchByGet(u8),
    PurgeTag(u8, bool),
    PurgePrefix(u8, bool),
    Flush,
    FlushLater,
    Sweep,
    /// The giving side copies the next shards.
    Copy(u8),
    /// It sends what has changed.
    Send,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..KEYS;
    let step = prop_oneof![
        6 => (key.clone(), 0..4_u8, any::<bool>()).prop_map(|(k, t, big)| Step::Set(k, t, big)),
        2 => key.clone().prop_map(Step::Add),
        1 => key.clone().prop_map(Step::Append),
        2 => key.clone().prop_map(Step::Delete),
        1 => key.clone().prop_map(Step::Invalidate),
        2 => key.clone().prop_map(Step::Count),
        1 => (key.clone(), 1..100_u8).prop_map(|(k, s)| Step::Touch(k, s)),
        1 => key.clone().prop_map(Step::TouchByGet),
        2 => (0..4_u8, any::<bool>()).prop_map(|(t, soft)| Step::PurgeTag(t, soft)),
        2 => (key, any::<bool>()).prop_map(|(k, soft)| Step::PurgePrefix(k, soft)),
        1 => Just(Step::Flush),
        1 => Just(Step::FlushLater),
        1 => Just(Step::Sweep),
        3 => (1..9_u8).prop_map(Step::Copy),
        2 => Just(Step::Send),
    ];
    proptest::collection::vec(step, 0..120)
}

fn how(is_soft: bool) -> Invalidation {
    if is_soft { Invalidation::Soft } else { Invalidation::Hard }
}

fn write(store: &Store, step: &Step, number: usize) {
    let key = |k: &u8| format!("k{k}").into_bytes();
    let tag = |t: &u8| format!("t{t}").into_bytes();
    match step {
        Step::Set(k, t, big) => {
            let mut value = format!("{number}").into_bytes();
            if *big {
                value.resize(70_000, b'x');
            }
            let tag = tag(t);
            let tags = [&tag[..]];
            let item = NewItem::new(&value[..]).flags(number as u32);
            let item = if *t == 0 { item } else { item.tags(&tags) };
            store.set(&key(k), item, NOON);
        }
        Step::Add(k) => {
            let request = StoreRequest { mode: StoreMode::Add, ..StoreRequest::default() };
            store.store(&key(k), NewItem::new(b"7"), &request, NOON);
        }
        Step::Append(k) => {
            let request = StoreRequest { mode: StoreMode::Append, ..StoreRequest::default() };
            store.store(&key(k), NewItem::new(b"+"), &request, NOON);
        }
        Step::Delete(k) => _ = store.delete(&key(k), NOON),
        Step::Invalidate(k) => {
            let request = DeleteRequest { invalidate: true, ..DeleteRequest::default() };
            store.meta_delete(&key(k), &request, NOON);
        }
        Step::Count(k) => {
            let request = ArithmeticRequest {
                delta: 3,
                vivify: Some(Expires::NEVER),
                initial: 5,
                ..ArithmeticRequest::default()
            };
            store.arithmetic(&key(k), &request, NOON);
        }
        Step::Touch(k, seconds) => {
            let expires = Expires::after_seconds((*seconds).into(), NOON);
            store.touch(&key(k), expires, NOON);
        }
        Step::TouchByGet(k) => {
            let touch = Some(Expires::after_seconds(1000, NOON));
            store.meta_get(&key(k), &GetRequest { touch, ..GetRequest::default() }, NOON);
        }
        Step::PurgeTag(t, soft) => _ = store.invalidate_tag(&tag(t), how(*soft)),
        Step::PurgePrefix(k, soft) => {
            let key = key(k);
            store.invalidate_prefix(&key[..2], how(*soft), NOON);
        }
        Step::Flush => store.flush_all(NOON, NOON),
        Step::FlushLater => store.flush_all(NOON.plus_seconds(50), NOON),
        Step::Sweep => _ = store.sweep(NOON, 10_000),
        Step::Copy(_) | Step::Send => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_follower_has_what_the_giver_has(before in steps(), during in steps()) {
        let (old, new) = (store(), store());
        for (number, step) in before.iter().enumerate() {
            write(&old, step, number);
        }
        new.number_from(HandOver::following_sequence(&old));
        let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
        let (mut sent, mut next) = (Vec::new(), 0);
        for (number, step) in during.iter().enumerate() {
            match step {
                Step::Copy(count) => {
                    for _ in 0..*count {
                        if next < old.shards.len() {
                            hand_over.copy_shard(next, &mut sent, NOON).unwrap();
                            next += 1;
                        }
                    }
                }
                Step::Send => _ = hand_over.send_changes(&mut sent, NOON).unwrap(),
                step => write(&old, step, 1000 + number),
            }
        }
        for index in next..old.shards.len() {
            hand_over.copy_shard(index, &mut sent, NOON).unwrap();
        }
        let due = old.flush_due.load(Ordering::Relaxed);
        frame::write_flush_due(&mut sent, due).unwrap();
        hand_over.switch(&mut sent, NOON).unwrap();
        prop_assert_eq!(hand_over.pending_bytes(), 0);
        let mut follower = Follower::new(Arc::clone(&new), 0, NOON);
        let step = follower.follow(&mut &sent[..], || NOON).unwrap();
        prop_assert_eq!(step, HandOverStep::Switched);
        prop_assert_eq!(seen(&new, NOON), seen(&old, NOON));
        let later = NOON.plus_seconds(60);
        prop_assert_eq!(seen(&new, later), seen(&old, later));
    }
}

/// Sends what the giver has, up to the switch, and returns the follower.
fn followed(old: &Arc<Store>, new: &Arc<Store>, hand_over: &HandOver) -> Follower {
    let mut sent = Vec::new();
    hand_over.copy(&mut sent, || NOON).unwrap();
    hand_over.switch(&mut sent, NOON).unwrap();
    new.number_from(HandOver::following_sequence(old));
    let mut follower = Follower::new(Arc::clone(new), 0, NOON);
    let mut from = &sent[..];
    assert_eq!(follower.follow(&mut from, || NOON).unwrap(), HandOverStep::Copied);
    assert_eq!(follower.follow(&mut from, || NOON).unwrap(), HandOverStep::Switched);
    follower
}

fn value(store: &Store, key: &[u8]) -> Option<Vec<u8>> {
    store.peek(key, NOON).map(|item| item.value_slice().to_vec())
}

#[test]
fn after_the_switch_a_write_of_the_old_side_is_one_of_the_new_side() {
    let (old, new) = (store(), store());
    for key in [&b"a"[..], b"b", b"c", b"d"] {
        old.set(key, NewItem::new(b"before").tags(&[b"t"]), NOON);
    }
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    let mut follower = followed(&old, &new, &hand_over);
    // The new side goes on with higher numbers.
    assert!(new.set(b"own", NewItem::new(b"1"), NOON).is_stored());
    assert!(new.peek(b"own", NOON).unwrap().cas() > old.peek(b"d", NOON).unwrap().cas());
    // `b` is purged there while the old side still makes it.
    new.delete(b"b", NOON);
    new.set(b"c", NewItem::new(b"new"), NOON);
    old.set(b"a", NewItem::new(b"late").tags(&[b"t"]), NOON);
    old.set(b"b", NewItem::new(b"late").tags(&[b"t"]), NOON);
    old.set(b"c", NewItem::new(b"late").tags(&[b"t"]), NOON);
    old.delete(b"d", NOON);
    let mut sent = Vec::new();
    hand_over.send_changes(&mut sent, NOON).unwrap();
    assert_eq!(follower.follow(&mut &sent[..], || NOON).unwrap(), HandOverStep::Ended);
    let late = Some(b"late".to_vec());
    assert_eq!((value(&new, b"a"), value(&new, b"b")), (late.clone(), None));
    assert_eq!((value(&new, b"c"), value(&new, b"d")), (late, None));
    assert_eq!(value(&new, b"own"), Some(b"1".to_vec()));
    // A purge by a late request reaches all that the new side has.
    old.invalidate_tag(b"t", Invalidation::Hard);
    let mut sent = Vec::new();
    hand_over.send_changes(&mut sent, NOON).unwrap();
    follower.follow(&mut &sent[..], || NOON).unwrap();
    assert_eq!((value(&new, b"a"), value(&new, b"c")), (None, None));
}

#[test]
fn an_eviction_or_a_sweep_after_the_switch_takes_nothing_away() {
    let (old, new) = (store(), store());
    let soon = Expires::after_seconds(10, NOON);
    old.set(b"a", NewItem::new(b"1").expires(soon), NOON);
    old.set(b"b", NewItem::new(b"1"), NOON);
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    let mut follower = followed(&old, &new, &hand_over);
    let later = NOON.plus_seconds(20);
    new.set(b"a", NewItem::new(b"2"), later);
    old.sweep(later, 10_000);
    old.set_memory_limit(1, later);
    let mut sent = Vec::new();
    assert_eq!(hand_over.send_changes(&mut sent, later).unwrap(), 0);
    follower.follow(&mut &sent[..], || later).unwrap();
    assert!(new.peek(b"a", later).is_some() && new.peek(b"b", later).is_some());
}

#[test]
fn what_the_new_program_has_stored_itself_stays() {
    let (old, new) = (store(), store());
    old.set(b"version", NewItem::new(b"1"), NOON);
    old.set(b"other", NewItem::new(b"1"), NOON);
    new.number_from(HandOver::following_sequence(&old));
    new.set(b"version", NewItem::new(b"2"), NOON);
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    old.delete(b"version", NOON);
    old.flush_all(NOON, NOON);
    old.set(b"other", NewItem::new(b"3"), NOON);
    drop(followed(&old, &new, &hand_over));
    assert_eq!(value(&new, b"version"), Some(b"2".to_vec()));
    assert_eq!(value(&new, b"other"), Some(b"3".to_vec()));
}

#[test]
fn times_are_those_of_the_clock_of_the_follower() {
    let (old, new) = (store(), store());
    old.set(b"a", NewItem::new(b"1").expires(Expires::after_seconds(100, NOON)), NOON);
    old.set(b"b", NewItem::new(b"1"), NOON);
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    let mut sent = Vec::new();
    hand_over.copy(&mut sent, || NOON).unwrap();
    let hour_later = NOON.plus_seconds(3600);
    let mut follower = Follower::new(Arc::clone(&new), 3600, hour_later);
    follower.follow(&mut &sent[..], || hour_later).unwrap();
    assert!(new.peek(b"a", hour_later.plus_seconds(99)).is_some());
    assert!(new.peek(b"a", hour_later.plus_seconds(100)).is_none());
    assert_eq!(new.peek(b"b", hour_later).unwrap().expires(), Expires::NEVER);
}

#[test]
fn too_many_changes_end_the_hand_over_and_not_the_store() {
    let old = store();
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    let second = HandOver::begin(Arc::clone(&old));
    assert!(matches!(second, Err(HandOverError::GoingOn)));
    for number in 0..600_000 {
        old.delete(format!("{number:0>100}").as_bytes(), NOON);
    }
    assert!(hand_over.pending_bytes() < 70 << 20, "{}", hand_over.pending_bytes());
    let sent = hand_over.send_changes(&mut Vec::new(), NOON);
    assert!(matches!(sent, Err(HandOverError::TooFast)));
    drop(hand_over);
    assert!(HandOver::begin(old).is_ok());
}

#[test]
fn a_stream_that_ends_or_says_nonsense_is_an_error() {
    let mut follower = Follower::new(store(), 0, NOON);
    for (sent, is_error) in [
        (&b""[..], false),
        (b"\x02\x01\0\0\0", true),
        (b"\x02\xff\xff\xff\xffabc", true),
        (b"\x63\0\0\0\0", true),
        (b"\x01\x01\0\0\0x", true),
        (b"\x03\0\0\0\0", true),
        (b"\x02\x01\0\0\0k", false),
    ] {
        let result = follower.follow(&mut &sent[..], || NOON);
        assert_eq!(result.is_err(), is_error, "{sent:?}");
    }
}

#[test]
fn no_write_is_lost_while_threads_write() {
    let (old, new) = (store(), store());
    new.number_from(HandOver::following_sequence(&old));
    let (to, mut from) = UnixStream::pair().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let mut follower = Follower::new(Arc::clone(&new), 0, NOON);
            while follower.follow(&mut from, || NOON).unwrap() != HandOverStep::Switched {}
        });
        let (old, is_over) = (&old, &is_over);
        let writers: Vec<_> = (0..3_u32)
            .map(|writer| {
                scope.spawn(move || {
                    let mut number = 0_u32;
                    while !is_over.load(Ordering::Relaxed) {
                        let step = match (number + writer) % 7 {
                            0 => Step::Delete((number % u32::from(KEYS)) as u8),
                            1 => Step::Count((number % u32::from(KEYS)) as u8),
                            2 => Step::PurgeTag((number % 4) as u8, number.is_multiple_of(2)),
                            _ => Step::Set((number % u32::from(KEYS)) as u8, 1, false),
                        };
                        write(old, &step, number as usize);
                        number += 1;
                    }
                })
            })
            .collect();
        let hand_over = HandOver::begin(Arc::clone(old)).unwrap();
        let mut to = std::io::BufWriter::new(to);
        hand_over.copy(&mut to, || NOON).unwrap();
        for _ in 0..200 {
            hand_over.send_changes(&mut to, NOON).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        hand_over.switch(&mut to, NOON).unwrap();
        follower.join().unwrap();
    });
    assert_eq!(seen(&new, NOON), seen(&old, NOON));
}

/// Sends what has changed since, and applies it.
fn follow_on(hand_over: &HandOver, follower: &mut Follower) {
    let mut sent = Vec::new();
    hand_over.send_changes(&mut sent, NOON).unwrap();
    assert_eq!(follower.follow(&mut &sent[..], || NOON).unwrap(), HandOverStep::Ended);
}

#[test]
fn after_the_switch_the_old_side_stores_what_it_has_invalidated_itself() {
    let (old, new) = (store(), store());
    for key in [&b"a"[..], b"b", b"c"] {
        old.set(key, NewItem::new(b"before").tags(&[b"t"]), NOON);
    }
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    let mut follower = followed(&old, &new, &hand_over);
    for in_one_batch in [true, false] {
        let next = |follower: &mut Follower| {
            if !in_one_batch {
                follow_on(&hand_over, follower);
            }
        };
        old.delete(b"a", NOON);
        next(&mut follower);
        old.set(b"a", NewItem::new(b"late").tags(&[b"t"]), NOON);
        next(&mut follower);
        old.invalidate_tag(b"t", Invalidation::Hard);
        next(&mut follower);
        old.set(b"b", NewItem::new(b"late").tags(&[b"t"]), NOON);
        next(&mut follower);
        old.invalidate_prefix(b"c", Invalidation::Hard, NOON);
        next(&mut follower);
        old.set(b"c", NewItem::new(b"late"), NOON);
        follow_on(&hand_over, &mut follower);
        let late = Some(b"late".to_vec());
        assert_eq!((value(&new, b"a"), value(&new, b"b")), (None, late.clone()));
        assert_eq!(value(&new, b"c"), late);
    }
    // The new side purges later, so what is made at that time is not stored.
    new.delete(b"b", NOON);
    old.set(b"b", NewItem::new(b"later"), NOON);
    follow_on(&hand_over, &mut follower);
    assert_eq!(value(&new, b"b"), None);
}

#[test]
fn after_the_switch_a_refused_command_and_a_delayed_flush_change_nothing() {
    let (old, new) = (store(), store());
    old.set(b"a", NewItem::new(b"before"), NOON);
    old.flush_all(NOON.plus_seconds(10), NOON);
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    let mut follower = followed(&old, &new, &hand_over);
    hand_over.leave_flush();
    new.set(b"a", NewItem::new(b"new"), NOON);
    let other_cas = DeleteRequest { compare_cas: Some(u64::MAX), ..DeleteRequest::default() };
    old.meta_delete(b"a", &other_cas, NOON);
    follow_on(&hand_over, &mut follower);
    assert_eq!(value(&new, b"a"), Some(b"new".to_vec()));
    // It flushes once, at its time.
    let later = NOON.plus_seconds(11);
    assert!(new.peek(b"a", later).is_none());
    new.set(b"b", NewItem::new(b"new"), later);
    old.delete(b"none", later);
    follow_on(&hand_over, &mut follower);
    assert!(new.peek(b"b", later).is_some());
}

#[test]
fn after_the_switch_both_sides_count_and_touch_one_item() {
    let (old, new) = (store(), store());
    for key in [&b"n"[..], b"m"] {
        old.set(key, NewItem::new(b"5"), NOON);
    }
    let hand_over = HandOver::begin(Arc::clone(&old)).unwrap();
    let mut follower = followed(&old, &new, &hand_over);
    let count = |store: &Store, key: &[u8], delta| {
        store.arithmetic(key, &ArithmeticRequest { delta, ..Default::default() }, NOON);
    };
    count(&new, b"n", 1000);
    count(&old, b"n", 1);
    new.set(b"m", NewItem::new(b"70"), NOON);
    let soon = Expires::after_seconds(9, NOON);
    old.touch(b"m", soon, NOON);
    count(&old, b"m", 7);
    follow_on(&hand_over, &mut follower);
    assert_eq!(value(&new, b"n"), Some(b"1006".to_vec()));
    assert_eq!(value(&new, b"m"), Some(b"77".to_vec()));
    assert_eq!(new.peek(b"m", NOON).unwrap().expires(), soon);
    // A whole item has the steps that it has made.
    count(&old, b"n", 1);
    old.set(b"n", NewItem::new(b"20"), NOON);
    count(&old, b"n", 3);
    follow_on(&hand_over, &mut follower);
    assert_eq!(value(&new, b"n"), Some(b"23".to_vec()));
}
