//! A cluster: names on several servers, a replica that takes over, and a slot that moves.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use kirin_origin::{Condition, Content, OriginError, Written};
use kirin_store::Invalidation;
use kirin_tests::{RedisCluster, RedisServer, SetAtEnd, wait_for};

use crate::machine::{Item, Machine};

/// Returns keys of items that are on all three masters.
fn spread_keys(cluster: &RedisCluster, count: usize) -> Vec<String> {
    let keys: Vec<String> = (0..count).map(|number| format!("key{number}")).collect();
    let masters: HashSet<usize> =
        keys.iter().map(|key| cluster.master_of(&format!("kirin:i:{key}"))).collect();
    assert_eq!(masters.len(), 3, "{keys:?}");
    keys
}

/// Returns a tag or a key that is on a master, without what its name begins with.
fn name_on(cluster: &RedisCluster, begin: &str, master: usize) -> String {
    let mut names = (0..1000).map(|number| format!("name{number}"));
    let is_there = |name: &String| cluster.master_of(&format!("{begin}{name}")) == master;
    names.find(is_there).expect("one of a thousand")
}

/// Returns the number of the last purge, which the server has.
fn last_number(server: &RedisServer) -> u64 {
    let text = server.command(&["GET", "{kirin:}n"]);
    let number = text.split(':').next().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{text}"))
}

/// Writes until the cluster takes it.
fn set(machine: &Machine, item: &Item<'_>) {
    let missing = std::fmt::from_fn(|output| {
        write!(output, "{:?}, {:?}", machine.write(item), machine.origin.state())
    });
    wait_for(&missing, || (machine.write(item) == Ok(Written::Done)).then_some(()));
}

/// Reads until the cluster answers.
fn load(machine: &Machine, key: &str) -> Option<String> {
    let loaded = wait_for("an answer", || machine.load(key).ok());
    loaded.item.map(|item| String::from_utf8(item.decoded.value.to_vec()).expect("text"))
}

#[test]
fn a_purge_reaches_names_on_all_masters() {
    let cluster = RedisCluster::start();
    let (first, second) = (Machine::of(&cluster), Machine::of(&cluster));
    let keys = spread_keys(&cluster, 12);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for (purged_keys, tags, prefixes) in [
        (&keys[..], &[][..], &[][..]),
        (&[][..], &keys[..], &[][..]),
        (&[][..], &[][..], &["key"][..]),
        (&keys[..6], &keys[6..], &["none"][..]),
    ] {
        for how in [Invalidation::Hard, Invalidation::Soft] {
            for key in &keys {
                // Each key is a tag, too.
                first.set(&Item::new(key, "value").tagged(&[key]));
                assert_eq!(second.read(key).as_deref(), Some("value"));
            }
            first.purge(purged_keys, tags, prefixes, how);
            for key in &keys {
                for machine in [&first, &second] {
                    let loaded = machine.load(key).expect("an answer").item;
                    let is_stale = loaded.map(|item| item.is_stale);
                    let wanted = (how == Invalidation::Soft).then_some(true);
                    assert_eq!(is_stale, wanted, "{key}: {purged_keys:?} {tags:?} {how:?}");
                }
                wait_for("the copy to go", || {
                    let now = kirin_store::Now::on_steady_clock();
                    let copy = second.store.get(key.as_bytes(), now);
                    copy.is_none_or(|copy| copy.is_stale()).then_some(())
                });
            }
        }
    }
}

#[test]
fn many_items_are_read_at_once() {
    let cluster = RedisCluster::start();
    let machine = Machine::of(&cluster);
    let keys = spread_keys(&cluster, 30);
    for key in &keys {
        machine.set(&Item::new(key, key).tagged(&["tag", key]));
    }
    let other = Machine::of(&cluster);
    assert_eq!(other.load_all(&keys), keys.iter().map(|key| Some(key.clone())).collect::<Vec<_>>());
}

/// Changes of the same items from two machines, each of which is made of what was read before.
#[test]
fn what_is_made_of_a_purged_item_does_not_outlive_the_purge() {
    let cluster = RedisCluster::start();
    let (first, second) = (Machine::of(&cluster), Machine::of(&cluster));
    // The tag and the item are on other servers than the numbers.
    let numbers = cluster.master_of("{kirin:}n");
    let tag = name_on(&cluster, "kirin:t:", (numbers + 1) % 3);
    let key = name_on(&cluster, "kirin:i:", (numbers + 2) % 3);
    for round in 0..30 {
        first.set(&Item::new(&key, "old").tagged(&[&tag]));
        let is_purged = AtomicBool::new(false);
        let tags = [tag.as_str()];
        std::thread::scope(|scope| {
            let _done = SetAtEnd(&is_purged);
            scope.spawn(|| {
                while !is_purged.load(Ordering::Relaxed) {
                    let loaded = second.load(&key).expect("an answer");
                    let Some(item) = &loaded.item else { continue };
                    let value = String::from_utf8(item.decoded.value.to_vec()).expect("text");
                    let item = Item::new(&key, &value).tagged(&tags).unchanged_since(&loaded);
                    second.write(&item).expect("an answer");
                }
            });
            first.purge(&[], &[&tag], &[], Invalidation::Hard);
            is_purged.store(true, Ordering::Relaxed);
        });
        assert_eq!(first.loaded_value(&key), None, "round {round}");
        assert_eq!(second.loaded_value(&key), None, "round {round}");
    }
}

#[test]
fn the_number_of_a_purge_is_shown_when_all_names_are_purged() {
    let cluster = RedisCluster::start();
    let machine = Machine::hurried_at(&cluster.address());
    machine.wait_until_connected();
    let numbers = cluster.master_of("{kirin:}n");
    let other = (numbers + 1) % 3;
    let tag = name_on(&cluster, "kirin:t:", other);
    let before = last_number(&cluster.masters[numbers]);
    cluster.masters[other].pause();
    let purged = machine.try_purge_tag(&tag);
    let after = last_number(&cluster.masters[numbers]);
    cluster.masters[other].resume();
    assert!(purged.is_err(), "{purged:?}");
    assert_eq!(after, before);
}

#[test]
fn a_change_begins_under_a_number_that_all_servers_have_passed() {
    let cluster = RedisCluster::start();
    let first = Machine::hurried_at(&cluster.address());
    let second = Machine::of(&cluster);
    first.wait_until_connected();
    let numbers = cluster.master_of("{kirin:}n");
    let [near, silent] = [1, 2].map(|step| (numbers + step) % 3);
    let tag = name_on(&cluster, "kirin:t:", near);
    let key = name_on(&cluster, "kirin:i:", near);
    cluster.masters[silent].pause();
    let purged = first.try_purge_tag(&tag);
    let (number, loaded) = (last_number(&cluster.masters[numbers]), second.load(&key));
    let begun = second.origin.begin_page();
    cluster.masters[silent].resume();
    assert!(purged.is_ok(), "{purged:?}");
    let made = loaded.expect("an answer").made;
    assert!(made < number && begun.number < number, "{made}, {begun:?}, {number}");
    // All have passed it soon.
    wait_for("the number", || (second.load(&key).ok()?.made >= number).then_some(()));
    assert!(second.origin.begin_page().number >= number);
}

#[test]
fn a_tag_whose_purge_has_not_ended_is_used_again() {
    let cluster = RedisCluster::start();
    let machine = Machine::of(&cluster);
    machine.set(&Item::new("key", "old").tagged(&["tag"]));
    // A Kirin has ended inside its purge: the tag has a number that the numbers do not show.
    let tag = &cluster.masters[cluster.master_of("kirin:t:tag")];
    let later = "4000000000000000:0";
    assert_eq!(tag.command(&["SET", "kirin:t:tag", later]), "OK");
    assert_eq!(machine.loaded_value("key"), None);
    machine.set(&Item::new("key", "new").tagged(&["tag"]));
    assert_eq!(machine.loaded_value("key").as_deref(), Some("new"));
    machine.purge(&[], &["tag"], &[], Invalidation::Hard);
    assert_eq!(machine.loaded_value("key"), None);
    machine.set(&Item::new("key", "new").tagged(&["tag"]));
    assert_eq!(machine.loaded_value("key").as_deref(), Some("new"));
}

#[test]
fn a_replica_that_takes_over_begins_without_the_items_of_its_master() {
    let mut cluster = RedisCluster::with_replicas();
    let machines = [(); 2].map(|()| Machine::of(&cluster));
    let [first, second] = &machines;
    let keys = spread_keys(&cluster, 12);
    for key in &keys {
        first.set(&Item::new(key, "old").tagged(&["tag"]));
        assert_eq!(second.read(key).as_deref(), Some("old"));
    }
    let master = cluster.master_of("kirin:i:key0");
    cluster.masters[master].kill();
    let connections =
        |machine: &Machine| machine.origin.counters().connections.load(Ordering::Relaxed);
    cluster.wait_for_failover(master);
    for machine in &machines {
        let state = std::fmt::from_fn(|output| write!(output, "{:?}", machine.origin.state()));
        wait_for(&state, || (connections(machine) > 1 && machine.is_connected()).then_some(()));
    }
    for key in &keys {
        assert_eq!(second.copy(key), None, "{key}");
        set(first, &Item::new(key, "new").tagged(&["tag"]));
        assert_eq!(load(second, key).as_deref(), Some("new"));
    }
}

#[test]
fn a_slot_that_moves_leaves_nothing_outdated() {
    let cluster = RedisCluster::start();
    // A look at the map each two seconds.
    let machines = [(); 2].map(|()| Machine::at(&cluster.address(), 2));
    machines.iter().for_each(Machine::wait_until_connected);
    let [first, second] = &machines;
    let name = "kirin:i:key";
    let (slot, from) = (cluster.slot_of(name), cluster.master_of(name));
    let to = (from + 1) % 3;
    let is_moved = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done = SetAtEnd(&is_moved);
        for machine in &machines {
            scope.spawn(|| {
                for number in 0.. {
                    let value = number.to_string();
                    for result in [
                        machine.write(&Item::new("key", &value).tagged(&["tag"])).err(),
                        machine.load("key").err(),
                    ] {
                        // Nothing that is not understood.
                        assert!(!matches!(result, Some(OriginError::Unexpected(_))), "{result:?}");
                    }
                    if is_moved.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        cluster.move_slot(slot, from, to);
        cluster.wait_for_owner(slot, &cluster.masters[to]);
        is_moved.store(true, Ordering::Relaxed);
    });
    let connections =
        |machine: &Machine| machine.origin.counters().connections.load(Ordering::Relaxed);
    for machine in &machines {
        wait_for("the new map", || (connections(machine) > 1).then_some(()));
    }
    set(first, &Item::new("key", "last").tagged(&["tag"]));
    wait_for("the last value", || (load(second, "key").as_deref() == Some("last")).then_some(()));
    assert_eq!(cluster.masters[to].command(&["EXISTS", name]), "1");
    set(second, &Item::new("key", "newer"));
    wait_for("the newer value", || (first.read("key").as_deref() == Some("newer")).then_some(()));
}

#[test]
fn a_machine_that_uses_nothing_notices_that_a_slot_has_moved() {
    let cluster = RedisCluster::start();
    let machine = Machine::at(&cluster.address(), 2);
    machine.wait_until_connected();
    let name = "kirin:i:key";
    let (slot, from) = (cluster.slot_of(name), cluster.master_of(name));
    assert_eq!(machine.loaded_value("key"), None);
    cluster.move_slot(slot, from, (from + 1) % 3);
    wait_for("what is known of the key to go", || {
        (!machine.origin.is_absent(b"key")).then_some(())
    });
    let count = || machine.origin.counters().connections.load(Ordering::Relaxed);
    wait_for("another connection", || (count() > 1).then_some(()));
}

#[test]
fn an_address_of_the_wrong_kind_is_refused_with_the_right_one() {
    let (server, cluster) = (RedisServer::start(), RedisCluster::start());
    let reason = |address: &str, part: &str| {
        let machine = Machine::at(address, 60);
        wait_for(part, || machine.wait_until_away().contains(part).then_some(()));
    };
    let node = cluster.masters[0].address();
    reason(&format!("redis://{node}"), "its address begins with redis-cluster://");
    reason(&format!("redis-cluster://{}", server.address()), "cluster support disabled");
}

#[test]
fn a_node_that_does_not_answer_is_passed_over() {
    let mut gone = RedisServer::start();
    let cluster = RedisCluster::start();
    gone.kill();
    let address = cluster.address().replace("://", &format!("://{},", gone.address()));
    let machine = Machine::at(&address, 60);
    machine.wait_until_connected();
    machine.set(&Item::new("key", "value"));
    assert_eq!(machine.read("key").as_deref(), Some("value"));
}

#[test]
fn a_user_needs_only_the_rules_that_the_documentation_names() {
    let documented = include_str!("../../../../docs/memcached.md").replace('\n', " ");
    let rules = documented.split("The user needs the rules").nth(1).expect("the rules");
    let rules = rules.split('`').nth(1).expect("the rules");
    let list = documented.split("Kirin needs the commands").nth(1).expect("the list");
    let list = list.split(". All").next().expect("its end");
    let commands = list
        .split(['`', ' ', ',', '\n'])
        .filter(|word| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_uppercase()));
    let commands: Vec<String> = commands.map(|word| format!("+{}", word.to_lowercase())).collect();
    let cluster = RedisCluster::start();
    for master in &cluster.masters {
        let own = ["ACL", "SETUSER", "kirin", "on", ">a@b", "~kirin:*", "~{kirin:}*"];
        let all: Vec<&str> = own
            .into_iter()
            .chain(commands.iter().map(String::as_str))
            .chain(rules.split(' '))
            .collect();
        assert_eq!(master.command(&all), "OK");
    }
    let address = cluster.address().replace("://", "://kirin:a%40b@");
    let machine = Machine::at(&address, 60);
    machine.wait_until_connected();
    let keys = spread_keys(&cluster, 12);
    for key in &keys {
        machine.set(&Item::new(key, "value").tagged(&[key]));
        let loaded = machine.load(key).expect("an answer");
        assert!(machine.touch(&loaded, 100));
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    machine.purge(&keys, &keys, &["prefix"], Invalidation::Soft);
    assert_eq!(machine.loaded_value("key0").as_deref(), Some("value"));
}

#[test]
fn a_cluster_without_memory_still_reads_removes_and_purges() {
    let cluster = RedisCluster::start();
    let machine = Machine::of(&cluster);
    let keys = spread_keys(&cluster, 12);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for key in &keys {
        machine.set(&Item::new(key, "value").tagged(&["tag", key]));
    }
    for master in &cluster.masters {
        assert_eq!(master.command(&["CONFIG", "SET", "maxmemory", "1"]), "OK");
    }
    for key in &keys {
        assert_eq!(machine.loaded_value(key).as_deref(), Some("value"));
        let refused = machine.write(&Item::new(key, "new"));
        let is_full =
            matches!(&refused, Err(OriginError::Refused(reason)) if reason.contains("OOM"));
        assert!(is_full, "{refused:?}");
    }
    machine.purge(&keys[..4], &[], &[], Invalidation::Soft);
    machine.purge(&[], &keys[4..8], &["none"], Invalidation::Hard);
    let removed = machine.write_content(keys[8], Content::Nothing, Condition::Any);
    assert_eq!(removed, Ok(Written::Done));
    for (index, key) in keys.iter().enumerate() {
        let item = machine.load(key).expect("an answer").item;
        let wanted = match index {
            0..4 => Some(true),
            4..9 => None,
            _ => Some(false),
        };
        assert_eq!(item.map(|item| item.is_stale), wanted, "{key}");
    }
}
