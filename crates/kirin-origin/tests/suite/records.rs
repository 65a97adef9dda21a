//! Records that machines share.

use std::time::Duration;

use bytes::Bytes;
use kirin_origin::{OriginError, RECORD_LIMIT_BYTES};
use kirin_tests::{RedisServer, wait_for};

use crate::machine::{Engine, Machine, on_each_engine};

on_each_engine! {
    a_record_is_read_by_other_machines
    of_two_machines_that_replace_a_record_one_does
    a_machine_that_has_read_a_record_hears_of_its_next_change
}

fn text(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

fn a_record_is_read_by_other_machines<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    assert_eq!(b.record("name"), None);
    a.write_record("name", "value", None);
    assert_eq!(b.record("name"), text("value"));
    let names: [&[u8]; 3] = [b"none", b"name", b"other"];
    a.write_record("other", "", None);
    let read = b.call(b.origin.read_records(&names)).expect("an answer");
    assert_eq!(read, [None, text("value"), text("")]);
    // One that expires goes by itself.
    a.write_record("name", "short", Some(Duration::from_millis(1)));
    wait_for("the end of the record", || b.record("name").is_none().then_some(()));
    // A purge does not reach records.
    a.purge(&[], &[], &[""], kirin_store::Invalidation::Hard);
    assert_eq!(b.record("other"), text(""));
    let long = vec![0; RECORD_LIMIT_BYTES + 1];
    let refused = a.call(a.origin.write_record(b"long", &long, None));
    assert_eq!(refused, Err(OriginError::RecordTooLong(long.len())));
}

fn of_two_machines_that_replace_a_record_one_does<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    let replaced = |machine: &Machine, old: Option<&[u8]>, new: Option<&[u8]>| {
        machine.call(machine.origin.replace_record(b"n", old, new, None)).expect("an answer")
    };
    assert!(!replaced(&a, Some(b""), Some(b"1")), "an empty record is not an absent one");
    assert!(replaced(&a, None, Some(b"1")));
    assert!(!replaced(&b, None, Some(b"2")));
    assert!(!replaced(&b, Some(b"0"), Some(b"2")));
    assert_eq!(b.record("n"), text("1"));
    assert!(replaced(&b, Some(b"1"), Some(b"2")));
    assert!(!replaced(&a, Some(b"1"), None));
    assert!(replaced(&a, Some(b"2"), None));
    assert_eq!(b.record("n"), None);
}

fn a_machine_that_has_read_a_record_hears_of_its_next_change<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    for value in ["one", "two"] {
        let mut changes = b.origin.watch_record(b"name");
        changes.mark_unchanged();
        let before = b.record("name");
        a.write_record("name", value, None);
        wait_for("a report", || changes.has_changed().expect("the sender lives").then_some(()));
        assert_ne!(b.record("name"), before);
    }
    let mut changes = b.origin.watch_record(b"name");
    changes.mark_unchanged();
    for server in server.servers() {
        server.command(&["FLUSHALL"]);
    }
    wait_for("a report", || changes.has_changed().expect("the sender lives").then_some(()));
    assert_eq!(b.record("name"), None);
}

#[test]
fn a_machine_that_connects_again_looks_again() {
    let mut server = RedisServer::start();
    let machine = Machine::of(&server);
    let mut changes = machine.origin.watch_record(b"name");
    changes.mark_unchanged();
    server.restart();
    wait_for("a report", || changes.has_changed().expect("the sender lives").then_some(()));
    assert!(machine.origin.is_connected());
}
