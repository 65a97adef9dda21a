//! Buckets that several machines fill.

use std::sync::atomic::Ordering;

use kirin_origin::{BucketName, OriginError};
use kirin_tests::wait_for;

use crate::machine::{Engine, Machine, on_each_engine};

on_each_engine! {
    machines_add_to_the_same_buckets
    any_number_of_buckets_is_counted_at_once
    a_full_bucket_has_no_key
    a_bucket_lacks_at_most_64_times_its_content
    what_kirin_has_not_written_is_no_bucket
    counting_is_reported_to_nobody
    without_the_server_nothing_is_counted
}

/// A day in microseconds: much longer than a test, whose own time is not noticed.
const DAY: u64 = 24 * 60 * 60 * 1_000_000;

const LIMIT: &str = "00c0ffee";

fn count(machine: &Machine, added: &[(BucketName, u64)]) -> Result<Vec<u64>, OriginError> {
    machine.call(machine.origin.count(LIMIT, 10 * DAY, added))
}

/// Returns the days that the buckets lack, rounded up.
fn days(machine: &Machine, added: &[(BucketName, u64)]) -> Vec<u64> {
    let lacking = count(machine, added).expect("an answer");
    lacking.iter().map(|lacking| lacking.div_ceil(DAY)).collect()
}

fn key(bucket: BucketName) -> String {
    format!("kirin:c:{{{LIMIT}}}{bucket:032x}")
}

fn machines_add_to_the_same_buckets<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    assert_eq!(days(&a, &[(1, DAY), (2, 2 * DAY)]), [1, 2]);
    assert_eq!(days(&b, &[(3, DAY), (1, 3 * DAY)]), [1, 4]);
    assert_eq!(days(&a, &[(1, DAY)]), [5]);
    let other = a.call(a.origin.count("another", DAY, &[(1, DAY)])).expect("an answer");
    assert_eq!(other, [DAY]);
    assert_eq!(count(&a, &[]), Ok(vec![]));
}

fn any_number_of_buckets_is_counted_at_once<E: Engine>() {
    let server = E::start();
    let machine = Machine::of(&server);
    let added: Vec<_> = (0..5000).map(|bucket| (u128::from(bucket), DAY * (bucket % 7))).collect();
    let expected: Vec<u64> = (0..5000).map(|bucket| bucket % 7).collect();
    assert_eq!(days(&machine, &added), expected);
}

fn a_full_bucket_has_no_key<E: Engine>() {
    let server = E::start();
    let machine = Machine::of(&server);
    count(&machine, &[(1, 1), (2, DAY)]).expect("an answer");
    let exists = |bucket| server.server_of(&key(bucket)).command(&["EXISTS", &key(bucket)]);
    wait_for("the end of a microsecond", || (exists(1) == "0").then_some(()));
    assert_eq!(exists(2), "1");
    let left = server.server_of(&key(2)).command(&["PTTL", &key(2)]);
    let left: u64 = left.parse().expect("a number");
    assert!((DAY / 2000..=DAY / 1000).contains(&left), "{left}");
}

fn a_bucket_lacks_at_most_64_times_its_content<E: Engine>() {
    let server = E::start();
    let machine = Machine::of(&server);
    assert_eq!(days(&machine, &[(1, 639 * DAY)]), [639]);
    assert_eq!(days(&machine, &[(1, 2 * DAY)]), [641]);
    // As if the clock of the server had been set back.
    assert_eq!(days(&machine, &[(1, DAY)]), [641]);
}

fn what_kirin_has_not_written_is_no_bucket<E: Engine>() {
    let server = E::start();
    let machine = Machine::of(&server);
    let engine = server.server_of(&key(1));
    for words in [&["SET", &key(1), "x"][..], &["SET", &key(1), "-5"], &["LPUSH", &key(1), "x"]] {
        engine.command(&["DEL", &key(1)]);
        engine.command(words);
        assert_eq!(days(&machine, &[(1, DAY)]), [1], "{words:?}");
    }
}

fn counting_is_reported_to_nobody<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    let reports = |machine: &Machine| {
        // A reply comes after all reports.
        count(machine, &[(7, 1)]).expect("an answer");
        machine.origin.counters().invalidations.load(Ordering::Relaxed)
    };
    // The machine that came last may have purged all.
    let _ = (a.load("any"), b.load("any"));
    let before = (reports(&a), reports(&b));
    for machine in [&a, &b, &a] {
        count(machine, &[(1, DAY)]).expect("an answer");
    }
    assert_eq!((reports(&a), reports(&b)), before);
}

fn without_the_server_nothing_is_counted<E: Engine>() {
    let server = E::start();
    let machine = Machine::of(&server);
    drop(server);
    machine.wait_until_away();
    assert!(matches!(count(&machine, &[(1, DAY)]), Err(OriginError::Away(_))));
}
