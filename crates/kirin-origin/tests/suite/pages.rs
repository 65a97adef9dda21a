//! Pages that take a while to make, and what only one machine has.

use kirin_origin::{Look, NotStored};
use kirin_store::{Invalidation, NewItem, Now};
use kirin_tests::wait_for;

use crate::machine::{Engine, Item, Machine, on_each_engine};

on_each_engine! {
    a_page_is_read_by_other_machines_and_kept_there
    a_page_that_was_begun_before_a_purge_is_stored_on_no_machine
    a_page_does_not_replace_a_newer_item
    a_purge_reaches_what_only_another_machine_has
    an_item_whose_copy_is_not_kept_is_read_all_the_same
}

fn a_page_is_read_by_other_machines_and_kept_there<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    assert_eq!(b.seen("/"), None);
    a.store_page("/", &a.near().begin(), &["news"]).expect("it is stored");
    wait_for("the page", || b.seen("/"));
    assert!(matches!(b.near().look(b"/", Now::on_steady_clock()), Look::Item(_)), "a copy");
    // What is known to be absent is not asked for again.
    assert_eq!(b.seen("/none"), None);
    assert!(matches!(b.near().look(b"/none", Now::on_steady_clock()), Look::Nothing));
}

fn a_page_that_was_begun_before_a_purge_is_stored_on_no_machine<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    // The tag is there from now on. An absent one may have been purged, for a machine that does not
    // know whether the server evicts tags, as after a reply that came too late.
    a.store_page("/before", &a.near().begin(), &["t"]).expect("it is stored");
    for (key, keys, tags, prefixes, reason) in [
        // A purge of a key leaves something under it that is newer than the page.
        ("/a", &["/a"][..], &[][..], &[][..], NotStored::Newer),
        ("/b", &[], &["t"], &[], NotStored::Purged),
        ("/c", &[], &[], &["/c"], NotStored::Purged),
        ("/d", &[], &[], &[""], NotStored::Purged),
    ] {
        for how in [Invalidation::Hard, Invalidation::Soft] {
            let (here, there) = (a.near().begin(), b.near().begin());
            a.purge(keys, tags, prefixes, how);
            assert_eq!(a.store_page(key, &here, &["t"]), Err(reason.clone()), "{how:?}");
            assert_eq!(b.store_page(key, &there, &["t"]), Err(reason.clone()), "{how:?}");
            assert_eq!((a.seen(key), b.seen(key)), (None, None));
        }
        // The page that is begun after the purge is stored at once on the machine of the purge.
        assert_eq!(a.store_page(key, &a.near().begin(), &["t"]), Ok(()));
        wait_for("the page", || b.seen(key));
        // A purge of another tag and prefix does not concern it.
        let there = b.near().begin();
        a.purge(&[], &["other"], &["/other"], Invalidation::Hard);
        assert_eq!(b.store_page(key, &there, &["t"]), Ok(()));
    }
}

fn a_page_does_not_replace_a_newer_item<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    let (here, there) = (a.near().begin(), b.near().begin());
    a.set(&Item::new("k", "newer"));
    assert_eq!(a.store_page("k", &here, &[]), Err(NotStored::Newer));
    assert_eq!(b.store_page("k", &there, &[]), Err(NotStored::Newer));
    assert_eq!(a.seen("k").as_deref(), Some("newer"));
    // What a machine has written or read itself is older than what it begins then.
    for _ in 0..100 {
        assert_eq!(a.store_page("k", &a.near().begin(), &[]), Ok(()));
        assert_eq!(b.seen("k").as_deref(), Some("page"));
        b.set(&Item::new("k", "item"));
        b.load("k").expect("an answer");
        assert_eq!(b.store_page("k", &b.near().begin(), &[]), Ok(()));
        a.load("k").expect("an answer");
    }
}

fn a_purge_reaches_what_only_another_machine_has<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    for how in [Invalidation::Hard, Invalidation::Soft] {
        let begun = b.near().begin();
        assert!(b.watch(&["local"], &begun));
        let now = Now::on_steady_clock();
        assert!(b.store.set(b"\0c/", NewItem::new(b"x").tags(&[b"local"]), now).is_stored());
        a.purge(&[], &["local"], &[], how);
        wait_for("the purge", || b.copy("\0c/").is_none().then_some(()));
        // It was begun before the purge.
        assert!(!b.watch(&["local"], &begun));
        assert!(b.watch(&["other"], &begun));
    }
    let begun = b.near().begin();
    a.purge(&[], &[], &["\0c/x"], Invalidation::Hard);
    b.watch(&["local"], &begun);
    wait_for("the prefix", || b.store.change_since(&begun.moment, b"\0c/x/y", &[]));
}

fn an_item_whose_copy_is_not_kept_is_read_all_the_same<E: Engine>() {
    let server = E::start();
    let a = Machine::of(&server);
    // The store of this machine takes no item of this size.
    let value = "x".repeat(1_100_000);
    a.set(&Item::new("large", &value));
    assert_eq!(a.seen("large").map(|value| value.len()), Some(value.len()));
    assert_eq!(a.copy("large"), None);
    assert_eq!(a.seen("large").map(|value| value.len()), Some(value.len()));
}
