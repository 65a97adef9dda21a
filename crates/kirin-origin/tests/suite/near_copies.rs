//! Two machines with one server: each keeps copies, and none that is older than it may be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use kirin_origin::{Condition, Content, Look, Written};
use kirin_store::{Invalidation, Now};
use kirin_tests::{SetAtEnd, wait_for, wait_limit};

use crate::machine::{Engine, Item, Machine, on_each_engine};

on_each_engine! {
    a_read_keeps_a_copy_and_a_write_elsewhere_drops_it
    a_machine_reads_its_own_writes
    an_absent_key_is_asked_for_once_until_somebody_writes_it
    a_write_with_a_condition_is_refused_if_something_has_changed
    a_touch_changes_the_expiry_everywhere
    a_purge_reaches_every_copy_and_every_item
    a_soft_purge_leaves_stale_items
    a_server_that_is_emptied_empties_the_copies
    an_item_of_a_newer_kirin_is_neither_read_nor_replaced_with_a_condition
    copies_are_those_of_the_server_after_any_race
    a_purge_of_a_long_prefix_drops_the_copies
    a_purged_item_is_not_asked_for_until_it_is_written_again
}

fn two_machines<E: Engine>() -> (E, Machine, Machine) {
    let engine = E::start();
    let (first, second) = (Machine::of(&engine), Machine::of(&engine));
    (engine, first, second)
}

fn wait_until_dropped(machine: &Machine, key: &str) {
    wait_for(&format!("the copy of {key} to go"), || machine.copy(key).is_none().then_some(()));
}

fn a_read_keeps_a_copy_and_a_write_elsewhere_drops_it<E: Engine>() {
    let (_server, first, second) = two_machines::<E>();
    first.set(&Item::new("key", "old").tagged(&["tag"]));
    assert_eq!(second.copy("key"), None);
    assert_eq!(second.loaded_value("key").as_deref(), Some("old"));
    let copy = second.store.peek(b"key", kirin_store::Now::on_steady_clock()).expect("a copy");
    assert_eq!((copy.flags(), copy.tags().collect::<Vec<_>>()), (7, vec![&b"tag"[..]]));
    let loaded = second.load("key").expect("an answer");
    assert_eq!(copy.cas(), loaded.version, "the CAS unique is the same everywhere");
    first.set(&Item::new("key", "new"));
    wait_until_dropped(&second, "key");
    assert_eq!(second.read("key").as_deref(), Some("new"));
}

fn a_machine_reads_its_own_writes<E: Engine>() {
    let (_server, first, _) = two_machines::<E>();
    for number in 0..200 {
        let value = number.to_string();
        first.set(&Item::new("key", &value));
        assert_eq!(first.read("key"), Some(value));
    }
}

fn an_absent_key_is_asked_for_once_until_somebody_writes_it<E: Engine>() {
    let (_server, first, second) = two_machines::<E>();
    assert_eq!(second.loaded_value("key"), None);
    assert!(second.origin.is_absent(b"key"));
    first.set(&Item::new("key", "value"));
    wait_for("the key to be unknown", || (!second.origin.is_absent(b"key")).then_some(()));
    assert_eq!(second.loaded_value("key").as_deref(), Some("value"));
    let content = Content::Nothing;
    assert_eq!(first.write_content("key", content, Condition::Any), Ok(Written::Done));
    wait_until_dropped(&second, "key");
    assert_eq!(second.loaded_value("key"), None);
}

fn a_write_with_a_condition_is_refused_if_something_has_changed<E: Engine>() {
    let (_server, first, second) = two_machines::<E>();
    let nothing = first.load("key").expect("an answer");
    assert_eq!(nothing.version, 0);
    let first_write = Item::new("key", "1").tagged(&["tag"]).unchanged_since(&nothing);
    assert_eq!(first.write(&first_write), Ok(Written::Done));
    let again = first.write(&first_write).expect("an answer");
    assert!(matches!(again, Written::Conflict { version } if version > 0), "{again:?}");
    let loaded = second.load("key").expect("an answer");
    second.purge(&[], &["tag"], &[], Invalidation::Soft);
    let late = Item::new("key", "2").tagged(&["tag"]).unchanged_since(&loaded);
    assert!(matches!(second.write(&late), Ok(Written::Purged { .. })), "a tag was purged");
    let loaded = second.load("key").expect("an answer");
    assert!(loaded.item.as_ref().expect("an item").is_stale);
    second.purge(&[], &[], &["other"], Invalidation::Hard);
    let late = Item::new("key", "2").tagged(&["tag"]).unchanged_since(&loaded);
    assert!(matches!(second.write(&late), Ok(Written::Purged { .. })), "a prefix was purged");
    // In a cluster a machine may have to hear from all servers first.
    wait_for("the write", || {
        let loaded = second.load("key").expect("an answer");
        let write = Item::new("key", "2").tagged(&["tag"]).unchanged_since(&loaded);
        (second.write(&write) == Ok(Written::Done)).then_some(())
    });
    assert_eq!(first.loaded_value("key").as_deref(), Some("2"));
}

fn a_touch_changes_the_expiry_everywhere<E: Engine>() {
    let (_server, first, second) = two_machines::<E>();
    first.set(&Item::new("key", "value").tagged(&["tag"]));
    let loaded = second.load("key").expect("an answer");
    assert!(first.touch(&loaded, 100));
    wait_until_dropped(&second, "key");
    let touched = second.load("key").expect("an answer");
    let now = kirin_store::Now::on_steady_clock();
    let left = touched.item.as_ref().expect("an item").expires.seconds_left(now);
    assert!(left.is_some_and(|left| (98..=100).contains(&left)), "{left:?}");
    first.set(&Item::new("key", "other"));
    assert!(!first.touch(&loaded, 100), "something else is there");
}

fn a_purge_reaches_every_copy_and_every_item<E: Engine>() {
    type Names = [&'static [&'static str]; 3];
    let purges: [Names; 4] = [
        [&["shop:key"], &[], &[]],
        [&[], &["tag"], &[]],
        [&[], &[], &["shop:"]],
        [&[], &[], &[""]],
    ];
    for [keys, tags, prefixes] in purges {
        let what = format!("{keys:?} {tags:?} {prefixes:?}");
        let (_server, first, second) = two_machines::<E>();
        first.set(&Item::new("shop:key", "value").tagged(&["other", "tag"]));
        first.set(&Item::new("other", "value").tagged(&["other"]));
        for machine in [&first, &second] {
            assert!(machine.read("shop:key").is_some() && machine.read("other").is_some());
        }
        first.purge(keys, tags, prefixes, Invalidation::Hard);
        assert_eq!(first.copy("shop:key"), None, "{what}");
        wait_until_dropped(&second, "shop:key");
        assert_eq!(second.loaded_value("shop:key"), None, "{what}");
        let is_all = prefixes == [""];
        assert_eq!(second.read("other").is_some(), !is_all, "{what}");
        first.set(&Item::new("shop:key", "new").tagged(&["tag"]));
        assert_eq!(second.loaded_value("shop:key").as_deref(), Some("new"), "{what}");
    }
}

fn a_soft_purge_leaves_stale_items<E: Engine>() {
    for names in [[&["key"][..], &[], &[]], [&[], &["tag"], &[]], [&[], &[], &["k"]]] {
        let [keys, tags, prefixes] = names;
        let (_server, first, second) = two_machines::<E>();
        first.set(&Item::new("key", "value").tagged(&["tag"]));
        second.read("key");
        let before = second.load("key").expect("an answer").item.expect("an item").cas;
        first.purge(keys, tags, prefixes, Invalidation::Soft);
        wait_until_dropped(&second, "key");
        let item = second.load("key").expect("an answer").item.expect("an item");
        assert!(item.is_stale && !item.is_won && item.cas > before, "{names:?}");
        let everywhere = first.load("key").expect("an answer").item.expect("an item").cas;
        assert_eq!(item.cas, everywhere, "{names:?}");
        let copy = second.store.get(b"key", kirin_store::Now::on_steady_clock()).expect("a copy");
        assert!(copy.is_stale(), "{names:?}");
    }
}

fn a_server_that_is_emptied_empties_the_copies<E: Engine>() {
    let (server, first, second) = two_machines::<E>();
    first.set(&Item::new("key", "value").tagged(&["tag"]));
    second.read("key");
    for server in server.servers() {
        assert_eq!(server.command(&["FLUSHALL"]), "OK");
    }
    wait_until_dropped(&second, "key");
    assert_eq!(second.loaded_value("key"), None);
    first.set(&Item::new("key", "new").tagged(&["tag"]));
    assert_eq!(second.loaded_value("key").as_deref(), Some("new"));
}

fn an_item_of_a_newer_kirin_is_neither_read_nor_replaced_with_a_condition<E: Engine>() {
    let (server, first, _) = two_machines::<E>();
    first.set(&Item::new("other", "value"));
    let name = "kirin:i:key";
    server.server_of(name).command(&["SET", name, "\u{2}what a later version writes"]);
    let loaded = first.load("key").expect("an answer");
    assert!(loaded.item.is_none());
    let conditional = Item::new("key", "value").unchanged_since(&loaded);
    assert!(matches!(first.write(&conditional), Ok(Written::Conflict { .. })));
    first.set(&Item::new("key", "value"));
    assert_eq!(first.loaded_value("key").as_deref(), Some("value"));
}

fn copies_are_those_of_the_server_after_any_race<E: Engine>() {
    let (_server, first, second) = two_machines::<E>();
    let refused = || second.origin.counters().copies_refused.load(Ordering::Relaxed);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done = SetAtEnd(&is_done);
        scope.spawn(|| {
            let begun = Instant::now();
            // Until some reports have crossed replies: otherwise the test shows nothing.
            for number in 0.. {
                let key = format!("key{}", number % 3);
                first.set(&Item::new(&key, &number.to_string()).tagged(&["tag"]));
                if number % 100 == 50 {
                    first.purge(&[], &["tag"], &[], Invalidation::Hard);
                }
                if number > 1_000 && refused() > 10 {
                    break;
                }
                assert!(begun.elapsed() < wait_limit(), "no report has crossed a reply");
            }
            is_done.store(true, Ordering::Relaxed);
        });
        for number in 0.. {
            second.load(&format!("key{}", number % 3)).expect("an answer");
            if is_done.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    // The last reports may be on their way.
    for key in ["key0", "key1", "key2"] {
        let original = first.loaded_value(key);
        wait_for(&format!("a true copy of {key}"), || {
            second.copy(key).is_none_or(|copy| Some(copy) == original).then_some(())
        });
    }
}

fn a_purge_of_a_long_prefix_drops_the_copies<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    let key = "k".repeat(300);
    a.set(&Item::new(&key, "old"));
    for machine in [&a, &b] {
        assert_eq!(machine.seen(&key).as_deref(), Some("old"));
    }
    a.purge(&[], &[], &[&key[..280]], Invalidation::Hard);
    assert_eq!(a.copy(&key), None);
    wait_for("the purge", || b.copy(&key).is_none().then_some(()));
}

fn a_purged_item_is_not_asked_for_until_it_is_written_again<E: Engine>() {
    let server = E::start();
    let (a, b) = (Machine::of(&server), Machine::of(&server));
    let is_unknown =
        |key: &str| matches!(b.near().look(key.as_bytes(), Now::on_steady_clock()), Look::Unknown);
    for (key, tags, prefixes) in
        [("tagged", &["t"][..], &[][..]), ("named", &[], &["na"]), ("any", &[], &[""])]
    {
        a.set(&Item::new(key, "old").tagged(&["t"]));
        a.purge(&[], tags, prefixes, Invalidation::Hard);
        // What is seen before the report of the purge proves nothing.
        wait_for("the purge", || (b.seen(key).is_none() && !is_unknown(key)).then_some(()));
        a.set(&Item::new(key, "new").tagged(&["t"]));
        wait_for("the new item", || b.seen(key));
        assert_eq!(b.seen(key).as_deref(), Some("new"), "{key}");
    }
}
