//! The master changes under Sentinels, and the Sentinels go away or disagree.

use std::sync::atomic::Ordering;

use kirin_origin::{OriginState, Written};
use kirin_store::Invalidation;
use kirin_tests::{
    LeasedPort, MASTER_NAME, RedisSentinels, RedisServer, sentinel_lines, start_sentinel, wait_for,
};

use crate::certificates::Certificates;
use crate::machine::{Item, Machine};

/// Returns whether a machine is connected to a server.
fn is_at(machine: &Machine, server: &RedisServer) -> bool {
    let OriginState::Connected { server: facts } = machine.origin.state() else { return false };
    let info = server.command(&["INFO", "server"]);
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    assert!(run.is_some(), "{info}");
    facts.run.as_deref() == run
}

fn wait_until_at(machine: &Machine, server: &RedisServer) {
    let missing = std::fmt::from_fn(|output| {
        write!(output, "the server {}: {:?}", server.address(), machine.origin.state())
    });
    wait_for(&missing, || is_at(machine, server).then_some(()));
}

/// Writes until the server takes it. A master that is being replaced may refuse.
fn set(machine: &Machine, item: &Item<'_>) {
    let missing = std::fmt::from_fn(|output| write!(output, "{:?}", machine.origin.state()));
    wait_for(&missing, || (machine.write(item) == Ok(Written::Done)).then_some(()));
}

#[test]
fn machines_follow_a_failover_and_keep_no_copy_from_before_it() {
    let redis = RedisSentinels::start();
    // The copies would live for a minute.
    let machines = [(); 2].map(|()| Machine::at(&redis.address(), 60));
    for machine in &machines {
        wait_until_at(machine, &redis.servers[0]);
    }
    let [first, second] = &machines;
    set(first, &Item::new("key", "old"));
    set(first, &Item::new("other", "old"));
    assert_eq!(second.read("key").as_deref(), Some("old"));
    assert_eq!(second.read("other").as_deref(), Some("old"));
    redis.fail_over();
    wait_until_at(first, &redis.servers[1]);
    wait_until_at(second, &redis.servers[1]);
    assert_eq!((second.copy("key"), second.copy("other")), (None, None));
    set(first, &Item::new("key", "new"));
    assert_eq!(second.read("key").as_deref(), Some("new"));
    assert_eq!(second.read("other"), None);
}

#[test]
fn a_replica_that_takes_over_begins_without_the_items_of_its_master() {
    let mut redis = RedisSentinels::start();
    let machine = Machine::at(&redis.address(), 60);
    wait_until_at(&machine, &redis.servers[0]);
    set(&machine, &Item::new("key", "value").tagged(&["tag"]));
    assert_eq!(machine.read("key").as_deref(), Some("value"));
    let has_item = |redis: &RedisSentinels| redis.servers[1].command(&["EXISTS", "kirin:i:key"]);
    wait_for("the item at the replica", || (has_item(&redis) == "1").then_some(()));
    // The replica does not hear of the purge.
    let master = &redis.servers[0];
    assert_eq!(master.command(&["ACL", "SETUSER", "default", "-psync", "-sync"]), "OK");
    master.command(&["CLIENT", "KILL", "TYPE", "replica"]);
    machine.purge(&[], &["tag"], &[], Invalidation::Hard);
    assert_eq!(machine.loaded_value("key"), None);
    redis.servers[0].kill();
    wait_until_at(&machine, &redis.servers[1]);
    assert_eq!(has_item(&redis), "1", "the replica has not lost anything else");
    assert_eq!(machine.loaded_value("key"), None);
    set(&machine, &Item::new("key", "new").tagged(&["tag"]));
    assert_eq!(machine.read("key").as_deref(), Some("new"));
    // The old master comes back as one, until the Sentinels say something else to it.
    redis.servers[0].restart();
    let other = Machine::at(&redis.address(), 60);
    wait_until_at(&other, &redis.servers[1]);
    assert_eq!(other.read("key").as_deref(), Some("new"));
}

#[test]
fn a_machine_leaves_a_master_that_does_not_know_of_its_end() {
    let redis = RedisSentinels::start();
    let [old, new] = &redis.servers;
    let machine = Machine::at(&redis.address(), 3);
    wait_until_at(&machine, old);
    set(&machine, &Item::new("key", "old"));
    assert_eq!(machine.read("key").as_deref(), Some("old"));
    redis.cut_off(0);
    redis.wait_for_master(1);
    wait_until_at(&machine, new);
    let role = old.command(&["ROLE"]);
    assert!(role.starts_with("master"), "{role}");
    assert_eq!(machine.read("key"), None);
    set(&machine, &Item::new("key", "new"));
    for (server, value) in [(old, "old"), (new, "new")] {
        let item = server.command(&["GET", "kirin:i:key"]);
        assert!(item.ends_with(value), "{value}: {item:?}");
    }
}

#[test]
fn a_sentinel_that_has_missed_failovers_does_not_move_a_machine() {
    let other = RedisServer::start();
    let outdated = start_sentinel(&sentinel_lines(other.port(), 1));
    let redis = RedisSentinels::start_with(&format!("sentinel config-epoch {MASTER_NAME} 7\n"));
    let address = redis.address().replace("://", &format!("://{},", outdated.address()));
    // The outdated one is asked first. A machine looks at all of them when it has connected, and
    // then each two seconds.
    let machine = Machine::at(&address, 2);
    wait_until_at(&machine, &redis.servers[0]);
    let connections = || machine.origin.counters().connections.load(Ordering::Relaxed);
    let (before, asked_before) = (connections(), connections_to(&outdated));
    let mut own = 0;
    wait_for("two looks", || {
        own += 1;
        (connections_to(&outdated) >= asked_before + own + 2).then_some(())
    });
    assert!(is_at(&machine, &redis.servers[0]), "{:?}", machine.origin.state());
    assert_eq!(connections(), before);
}

#[test]
fn a_sentinel_that_names_a_server_without_an_answer_is_asked_last() {
    let (mut gone, server) = (RedisServer::start(), RedisServer::start());
    let outdated = start_sentinel(&sentinel_lines(gone.port(), 2));
    gone.kill();
    let epoch = format!("sentinel config-epoch {MASTER_NAME} 1\n");
    let sentinel = start_sentinel(&(sentinel_lines(server.port(), 2) + &epoch));
    let addresses = format!("{},{}", outdated.address(), sentinel.address());
    let machine = Machine::at(&format!("redis-sentinel://{addresses}/{MASTER_NAME}"), 60);
    wait_until_at(&machine, &server);
}

#[test]
fn a_server_that_is_the_master_again_begins_without_its_items() {
    let server = RedisServer::start();
    let sentinel = start_sentinel(&sentinel_lines(server.port(), 2));
    let machine = Machine::at(&format!("redis-sentinel://{}/main", sentinel.address()), 2);
    machine.wait_until_connected();
    set(&machine, &Item::new("key", "value"));
    assert_eq!(machine.read("key").as_deref(), Some("value"));
    let connections = || machine.origin.counters().connections.load(Ordering::Relaxed);
    let before = connections();
    // The first Sentinel hears of later failovers from this one.
    let epoch = format!("sentinel config-epoch {MASTER_NAME} 2\n");
    let _later = start_sentinel(&(sentinel_lines(server.port(), 2) + &epoch));
    wait_for("another connection", || (connections() > before).then_some(()));
    machine.wait_until_connected();
    assert_eq!(machine.read("key"), None);
}

/// Returns how many connections a server has accepted.
fn connections_to(server: &RedisServer) -> usize {
    let info = server.command(&["INFO", "stats"]);
    let count = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{info}"))
}

#[test]
fn a_connection_outlives_the_sentinels_and_a_new_one_waits_for_them() {
    let server = RedisServer::start();
    let mut sentinels = [(); 2].map(|()| start_sentinel(&sentinel_lines(server.port(), 2)));
    let addresses: Vec<_> = sentinels.iter().map(RedisServer::address).collect();
    let address = format!("redis-sentinel://{},{}/{MASTER_NAME}", addresses[0], addresses[1]);
    let machine = Machine::at(&address, 60);
    wait_until_at(&machine, &server);
    sentinels.iter_mut().for_each(RedisServer::kill);
    machine.set(&Item::new("key", "value"));
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let reason = wait_for("the reason", || {
        Some(machine.wait_until_away()).filter(|reason| reason.contains("no Sentinel"))
    });
    for text in
        ["`main`", "Connection refused", &addresses[0].to_string(), &addresses[1].to_string()]
    {
        assert!(reason.contains(text), "{text}: {reason}");
    }
    sentinels[1].restart();
    wait_until_at(&machine, &server);
    assert_eq!(machine.read("key").as_deref(), Some("value"), "it is the same run of the server");
}

#[test]
fn a_sentinel_that_hangs_is_passed_over() {
    let server = RedisServer::start();
    let sentinels = [(); 2].map(|()| start_sentinel(&sentinel_lines(server.port(), 2)));
    sentinels[0].pause();
    let address = format!(
        "redis-sentinel://{},{}/{MASTER_NAME}",
        sentinels[0].address(),
        sentinels[1].address()
    );
    let machine = Machine::hurried_at(&address);
    wait_until_at(&machine, &server);
    sentinels[0].resume();
}

#[test]
fn a_name_that_no_sentinel_knows_is_in_the_reason() {
    let server = RedisServer::start();
    let sentinel = start_sentinel(&sentinel_lines(server.port(), 1));
    let machine = Machine::at(&format!("redis-sentinel://{}/primary", sentinel.address()), 60);
    let reason = wait_for("the reason", || {
        Some(machine.wait_until_away()).filter(|reason| reason.contains("no Sentinel"))
    });
    assert!(reason.contains("names the master `primary`"), "{reason}");
    assert!(reason.contains("knows no master of this name"), "{reason}");
}

#[test]
fn sentinels_have_a_user_and_a_password_of_their_own() {
    let server = RedisServer::start_with(&["--requirepass", "server word"]);
    // The documentation names what the user needs.
    let documented = include_str!("../../../../docs/memcached.md");
    let rules = documented.split("A user of a Sentinel needs").nth(1).expect("the rules");
    let rules = rules.split('`').nth(1).expect("the rules");
    let sentinel = start_sentinel(&format!(
        "{}sentinel auth-pass {MASTER_NAME} \"server word\"\n\
         requirepass other\n\
         user kirin on >a@b -@all {rules}\n",
        sentinel_lines(server.port(), 1)
    ));
    let address = format!("redis-sentinel://:server%20word@{}/{MASTER_NAME}", sentinel.address());
    let machine = Machine::at(&address, 60);
    wait_for("the reason", || machine.wait_until_away().contains("NOAUTH").then_some(()));
    let own = "sentinel_user=kirin&sentinel_password=a%40b&db=3";
    let machine = Machine::at(&format!("{address}?{own}"), 60);
    machine.wait_until_connected();
    set(&machine, &Item::new("key", "value"));
    assert_eq!(machine.read("key").as_deref(), Some("value"));
}

#[test]
fn sentinels_and_servers_with_tls_must_have_certificates_that_are_trusted() {
    // A Sentinel names servers by their IP addresses unless it is told to use names.
    let certificates = Certificates::issue(&["localhost", "127.0.0.1"]);
    let leases = [(); 2].map(|()| LeasedPort::lease());
    let [port, sentinel_port] = leases.each_ref().map(LeasedPort::number);
    let server = certificates.start_redis(port);
    let lines = certificates.settings(sentinel_port);
    let lines = lines.map(|(name, value)| format!("{name} {value}\n")).concat();
    let _sentinel = start_sentinel(&(lines + &sentinel_lines(port, 1)));
    let address = format!("rediss-sentinel://localhost:{sentinel_port}/{MASTER_NAME}");
    let machine = Machine::trusting(&address, 60, Some(certificates.authority()));
    wait_until_at(&machine, &server);
    machine.set(&Item::new("key", "value"));
    assert_eq!(machine.read("key").as_deref(), Some("value"));
    let machine = Machine::trusting(&address, 60, Some(certificates.other_authority()));
    wait_for("the reason", || machine.wait_until_away().contains("UnknownIssuer").then_some(()));
}
