//! Machines that announce themselves.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use kirin_tests::wait_for;

use crate::machine::{Engine, Machine, on_each_engine};

on_each_engine! {
    machines_know_each_other_until_they_leave
    a_machine_that_has_died_is_forgotten
    announcing_is_reported_to_nobody_who_has_not_looked
}

/// Longer than a test.
const LONG: Duration = Duration::from_secs(1000);

fn announce(machine: &Machine, card: &str, lasting: Duration) {
    machine.call(machine.origin.announce_machine(card.as_bytes(), lasting)).expect("an answer");
}

fn known(machine: &Machine) -> Vec<Bytes> {
    let mut cards = machine.call(machine.origin.machines(10)).expect("an answer");
    cards.sort();
    cards
}

fn machines_know_each_other_until_they_leave<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    assert_eq!(known(&a), [""; 0]);
    announce(&a, "a", LONG);
    announce(&b, "b", LONG);
    announce(&a, "a", LONG);
    assert_eq!(known(&a), ["a", "b"]);
    assert_eq!(known(&b), ["a", "b"]);
    assert_eq!(b.call(b.origin.count_machines()), Ok(2));
    assert_eq!(a.call(a.origin.machines(1)).expect("an answer").len(), 1);
    a.call(a.origin.withdraw_machine(b"a")).expect("an answer");
    assert_eq!(known(&b), ["b"]);
    assert_eq!(b.call(b.origin.count_machines()), Ok(1));
}

fn a_machine_that_has_died_is_forgotten<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    announce(&a, "a", LONG);
    announce(&b, "b", Duration::from_millis(1));
    announce(&a, "a", LONG);
    wait_for("the end of a machine", || (known(&a) == ["a"]).then_some(()));
    announce(&a, "a", Duration::from_millis(1));
    let name = "{kirin:}m";
    wait_for("the end of the last machine", || {
        (server.server_of(name).command(&["EXISTS", name]) == "0").then_some(())
    });
    assert_eq!(known(&a), [""; 0]);
}

fn announcing_is_reported_to_nobody_who_has_not_looked<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    let reports = || {
        // What was reported before comes before this answer.
        announce(&a, "a", LONG);
        a.origin.counters().invalidations.load(Ordering::Relaxed)
    };
    let before = reports();
    announce(&b, "b", LONG);
    announce(&b, "b", LONG);
    b.call(b.origin.withdraw_machine(b"b")).expect("an answer");
    assert_eq!(reports(), before);
}
