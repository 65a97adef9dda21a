//! Histories by hand: one for each way to break a promise, and one beside it that keeps it.

use std::time::Duration;

use super::checker::{Limits, Promise, check, loss};
use super::history::{Fault, History, How, Kind, Machine, Operation, Outcome};

const SET: Kind = Kind::Set { tags: Vec::new() };

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns an operation of machine 0 with the key `k`, from `start` until 10 ms later.
fn operation(id: u64, start: u64, kind: Kind, outcome: Outcome) -> Operation {
    let (start, end) = (millis(start), millis(start + 10));
    Operation { id, machine: 0, key: "k".into(), kind, start, end, outcome }
}

fn on(machine: usize, operation: Operation) -> Operation {
    Operation { machine, ..operation }
}

fn key(key: &str, operation: Operation) -> Operation {
    Operation { key: key.into(), ..operation }
}

fn set(id: u64, start: u64) -> Operation {
    operation(id, start, SET, Outcome::Done)
}

fn tagged(id: u64, start: u64) -> Operation {
    operation(id, start, Kind::Set { tags: vec!["t"] }, Outcome::Done)
}

fn append(id: u64, start: u64) -> Operation {
    operation(id, start, Kind::Append, Outcome::Done)
}

/// Returns a reading. Each value has a CAS unique of its own.
fn get(start: u64, value: &str) -> Operation {
    let unique = value.bytes().map(u64::from).sum();
    operation(1000 + start, start, Kind::Get, Outcome::Value(value.into(), unique))
}

fn miss(start: u64) -> Operation {
    operation(1000 + start, start, Kind::Get, Outcome::Absent)
}

fn cas(id: u64, start: u64, unique: u64, expected: &str) -> Operation {
    operation(id, start, Kind::Cas { unique, expected: expected.into() }, Outcome::Done)
}

fn count(id: u64, start: u64, outcome: Outcome) -> Operation {
    operation(id, start, Kind::Count, outcome)
}

/// Returns what is broken in a history of machines that all run since the beginning.
fn broken(operations: &[Operation]) -> Vec<Promise> {
    broken_with(operations, &[], &Limits::default())
}

fn broken_with(operations: &[Operation], faults: &[Fault], limits: &Limits) -> Vec<Promise> {
    let machines = vec![Machine { born: Duration::ZERO }; 3];
    let history = History { operations: operations.to_vec(), machines, faults: faults.to_vec() };
    check(&history, limits).into_iter().map(|violation| violation.promise).collect()
}

#[test]
fn a_value_is_one_that_somebody_has_written() {
    let refused = operation(1, 10, SET, Outcome::NotDone);
    for (operations, name) in [
        (vec![get(50, "1")], "nobody has written it"),
        (vec![set(1, 10), get(50, "x")], "no number of a write"),
        (vec![set(1, 10), get(50, "1+1")], "a set was appended"),
        (vec![set(1, 10), append(2, 30), get(50, "1+2+2")], "appended twice"),
        (vec![key("other", set(1, 10)), get(50, "1")], "another key"),
        (vec![refused, get(50, "1")], "nothing was sent"),
        (vec![set(1, 70), get(50, "1")], "read before it was written"),
    ] {
        assert_eq!(broken(&operations), [Promise::IsWritten], "{name}");
    }
    let unknown = operation(2, 30, Kind::Append, Outcome::Unknown);
    assert_eq!(broken(&[set(1, 10), append(3, 20), unknown, get(90, "1+3+2")]), []);
    assert_eq!(broken(&[set(1, 10), get(15, "1")]), [], "it is written just now");
}

#[test]
fn a_machine_serves_nothing_older_than_its_own_write() {
    for (end, name) in [
        (set(2, 30), "another value"),
        (operation(2, 30, Kind::Delete, Outcome::Done), "a delete"),
        (key("t", operation(2, 30, Kind::PurgeTag(How::Hard), Outcome::Done)), "its tag"),
        (key("", operation(2, 30, Kind::PurgePrefix(How::Hard), Outcome::Done)), "its prefix"),
        (append(2, 30), "an append"),
    ] {
        let read = |start| broken(&[tagged(1, 10), end.clone(), get(start, "1")]);
        assert_eq!(read(50), [Promise::OwnWrites], "{name}");
        assert_eq!(read(35), [], "{name}: at the same time");
    }
    // Another machine reads it before this one has heard that it is done.
    let slow = Operation { end: millis(90), ..append(2, 30) };
    assert_eq!(broken(&[set(1, 10), slow, on(1, get(50, "1+2")), get(70, "1")]), []);
    let absent = |outcome| operation(2, 30, Kind::Delete, outcome);
    for (end, name) in [
        (absent(Outcome::Unknown), "perhaps deleted"),
        (absent(Outcome::NotDone), "not deleted"),
        (key("t", operation(2, 30, Kind::PurgeTag(How::Soft), Outcome::Done)), "a soft purge"),
        (key("u", operation(2, 30, Kind::PurgeTag(How::Hard), Outcome::Done)), "another tag"),
        (key("x", operation(2, 30, Kind::PurgePrefix(How::Hard), Outcome::Done)), "another prefix"),
    ] {
        assert_eq!(broken(&[tagged(1, 10), end, get(50, "1")]), [], "{name}");
    }
}

#[test]
fn another_machine_is_late_for_as_long_as_its_faults_explain() {
    let history = |start| [set(1, 10), on(1, set(2, 30)), on(2, get(start, "1"))];
    assert_eq!(broken(&history(3000)), []);
    assert_eq!(broken(&history(3050)), [Promise::Fresh]);
    let fault = |machine, from, until| Fault { machine, from: millis(from), until: millis(until) };
    for (fault, start, promises, name) in [
        (fault(2, 100, 200), 6000, &[][..], "since the write"),
        (fault(2, 10, 35), 6000, &[], "when it was written"),
        (fault(2, 100, 200), 6050, &[Promise::Fresh], "too long"),
        (fault(1, 100, 200), 3050, &[Promise::Fresh], "of another machine"),
        (fault(2, 10, 20), 3050, &[Promise::Fresh], "before the write"),
    ] {
        let found = broken_with(&history(start), &[fault], &Limits::default());
        assert_eq!(found, promises, "{name}");
    }
    // What somebody has read was certainly written.
    let unknown = on(1, operation(2, 30, SET, Outcome::Unknown));
    let stale = on(2, get(4000, "1"));
    assert_eq!(broken(&[set(1, 10), unknown.clone(), stale.clone()]), []);
    assert_eq!(broken(&[set(1, 10), unknown, get(50, "2"), stale]), [Promise::Fresh]);
}

#[test]
fn an_acknowledged_write_is_there_in_the_end() {
    // Machine 1 runs only since all of it was done.
    let last = |operations: Vec<Operation>, last: Operation| {
        let machines = vec![Machine { born: Duration::ZERO }, Machine { born: millis(500) }];
        let operations = [operations, vec![on(1, last)]].concat();
        let history = History { operations, machines, ..History::default() };
        let violations = check(&history, &Limits::default());
        violations.iter().map(|violation| violation.promise).collect::<Vec<_>>()
    };
    let delete = |start, outcome| operation(7, start, Kind::Delete, outcome);
    let purge = |kind, name| key(name, operation(8, 50, kind, Outcome::Done));
    let tag = || purge(Kind::PurgeTag(How::Hard), "t");
    for (operations, read, name) in [
        (vec![set(1, 10)], miss(600), "nobody has removed it"),
        (vec![set(1, 10), set(2, 30)], get(600, "1"), "an older value"),
        (vec![set(1, 10), append(2, 30)], get(600, "1"), "an append"),
        (vec![set(1, 10), append(2, 30), append(3, 50)], get(600, "1+3"), "the first append"),
        (vec![delete(10, Outcome::Done), set(1, 30)], miss(600), "deleted before"),
        (vec![tagged(1, 10), set(2, 30), tag()], miss(600), "it has the tag no more"),
        (vec![tag(), tagged(1, 70)], miss(600), "it was purged before"),
        (vec![set(1, 10), purge(Kind::PurgeTag(How::Hard), "t")], miss(600), "no tag"),
        (vec![tagged(1, 10), purge(Kind::PurgeTag(How::Soft), "t")], miss(600), "a soft purge"),
        (vec![set(1, 10), purge(Kind::PurgePrefix(How::Hard), "x")], miss(600), "no such prefix"),
    ] {
        assert_eq!(last(operations, read), [Promise::Kept], "{name}");
    }
    let unknown = || operation(2, 20, SET, Outcome::Unknown);
    for (operations, read, name) in [
        (vec![set(1, 10), set(2, 15)], get(600, "1"), "at the same time"),
        (vec![set(1, 10), unknown()], get(600, "2"), "the unknown one was done"),
        (vec![set(1, 10), unknown()], get(600, "1"), "it was not"),
        (vec![unknown(), set(1, 50)], get(600, "2"), "it was done late"),
        (vec![delete(10, Outcome::Unknown), set(1, 30)], miss(600), "deleted late, perhaps"),
        (vec![set(1, 10), delete(30, Outcome::Done)], miss(600), "deleted"),
        (vec![tagged(1, 10), tag()], miss(600), "purged by its tag"),
        (vec![tagged(1, 10), append(2, 20), tag()], miss(600), "the append kept the tag"),
        (vec![tagged(1, 40), tag()], miss(600), "purged while it was written"),
        (vec![set(1, 10), purge(Kind::PurgePrefix(How::Hard), "k")], miss(600), "its prefix"),
        (vec![], miss(600), "never written"),
    ] {
        assert_eq!(last(operations, read), [], "{name}");
    }
}

#[test]
fn of_two_cas_with_one_unique_only_one_wins() {
    let twice = [set(1, 10), get(30, "1"), cas(2, 50, 49, "1"), cas(3, 55, 49, "1")];
    assert_eq!(broken(&twice), [Promise::Atomic]);
    assert_eq!(broken(&[set(1, 10), get(30, "1"), cas(2, 50, 49, "1"), get(70, "2")]), []);
    let exists = operation(3, 55, Kind::Cas { unique: 49, expected: "1".into() }, Outcome::Exists);
    assert_eq!(broken(&[set(1, 10), get(30, "1"), cas(2, 50, 49, "1"), exists]), []);
    // A machine may be late, but not with a cas.
    let lost = [set(1, 10), on(1, set(2, 30)), cas(3, 50, 49, "1")];
    assert_eq!(broken(&lost), [Promise::Atomic]);
    let not_found = operation(3, 50, Kind::Append, Outcome::Absent);
    assert_eq!(broken(&[set(1, 10), not_found]), [Promise::Atomic]);
    let same = |value: &str, start| {
        operation(1000 + start, start, Kind::Get, Outcome::Value(value.into(), 7))
    };
    let operations = [set(1, 10), same("1", 30), set(2, 50), same("2", 70)];
    assert_eq!(broken(&operations), [Promise::Unique]);
}

#[test]
fn appends_stand_in_their_order() {
    let operations = [set(1, 10), append(2, 30), append(3, 50), get(70, "1+3+2")];
    assert_eq!(broken(&operations), [Promise::Atomic]);
    assert_eq!(broken(&[set(1, 10), append(2, 30), append(3, 35), get(70, "1+3+2")]), []);
}

#[test]
fn increments_are_counted() {
    let number = |number: u64, start| {
        on(1, operation(1000 + start, start, Kind::Get, Outcome::Value(number.to_string(), 1)))
    };
    let first = || count(1, 10, Outcome::Number(1));
    let second = |number| on(1, count(2, 30, Outcome::Number(number)));
    let unknown = || count(3, 50, Outcome::Unknown);
    for (operations, promises, name) in [
        (vec![first(), second(2), number(2, 50)], &[][..], "all"),
        (vec![first(), second(1)], &[Promise::Atomic; 2][..], "the same number twice, too small"),
        (vec![first(), second(3)], &[Promise::IsWritten], "one too many"),
        (vec![first(), second(2), unknown(), number(3, 70)], &[], "the unknown one was done"),
        (vec![first(), second(2), unknown(), number(2, 70)], &[], "it was not"),
        (vec![first(), second(2), unknown(), number(4, 70)], &[Promise::IsWritten], "done twice"),
        (
            vec![first(), second(2), unknown(), number(2, 70), number(3, 90), number(2, 9000)],
            &[],
            "a number is not that of an operation",
        ),
        (vec![first(), number(0, 2000)], &[], "the reader may be late"),
        (vec![first(), number(0, 3050)], &[Promise::Fresh], "it may not be so late"),
        (vec![first(), number(0, 90_000)], &[Promise::Kept], "it was lost"),
        (vec![first(), miss(30)], &[Promise::Kept], "the item was lost"),
        (vec![first(), get(30, "x")], &[Promise::IsWritten], "no number"),
    ] {
        assert_eq!(broken(&operations), promises, "{name}");
    }
}

#[test]
fn a_server_that_loses_its_data_may_lose_writes_but_serves_nothing_old() {
    let limits = Limits { server_loses: true, ..Limits::default() };
    let broken =
        |read| broken_with(&[set(1, 10), loss(9, millis(30), millis(40)), read], &[], &limits);
    assert_eq!(broken(miss(50)), []);
    assert_eq!(broken(get(3000, "1")), []);
    assert_eq!(broken(get(3050, "1")), [Promise::Fresh]);
    assert_eq!(broken_with(&[set(1, 10), miss(50)], &[], &limits), []);
}
