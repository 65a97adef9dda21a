//! The server goes away, hangs or comes back.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kirin_origin::{Condition, Content, OriginError, OriginState, Written};
use kirin_store::Invalidation;
use kirin_tests::{LeasedPort, RedisServer, wait_for};

use crate::certificates::Certificates;
use crate::machine::{Item, Machine};

#[test]
fn copies_outlive_their_server_for_a_while_and_what_comes_back_is_read_anew() {
    let mut server = RedisServer::start();
    let address = format!("redis://{}", server.address());
    // The copies of one machine live for a day, those of the other for a second.
    let machine = Machine::at(&address, 86_400);
    machine.wait_until_connected();
    // If both connected at once, both would purge all items of the new server, and a report of that
    // could drop a copy.
    let forgetful = Machine::at(&address, 1);
    forgetful.wait_until_connected();
    machine.set(&Item::new("key", "old"));
    for machine in [&machine, &forgetful] {
        assert_eq!(machine.read("key").as_deref(), Some("old"));
    }
    assert_eq!(forgetful.loaded_value("nothing"), None);
    server.kill();
    machine.wait_until_away();
    forgetful.wait_until_away();
    assert!(matches!(machine.load("key"), Err(OriginError::Away(_))));
    assert!(matches!(machine.write(&Item::new("key", "new")), Err(OriginError::Away(_))));
    wait_for("the copy to be forgotten", || forgetful.copy("key").is_none().then_some(()));
    assert_eq!(machine.copy("key").as_deref(), Some("old"));
    assert!(!forgetful.origin.is_absent(b"nothing"), "nobody proves that any more");
    server.restart();
    machine.wait_until_connected();
    assert_eq!(machine.read("key"), None);
    // Whoever connects purges all items of a new server.
    forgetful.wait_until_connected();
    machine.set(&Item::new("key", "new"));
    assert_eq!(machine.read("key").as_deref(), Some("new"));
}

#[test]
fn a_new_connection_begins_without_copies() {
    let server = RedisServer::start();
    // The copies would live for a day.
    let machine = Machine::at(&format!("redis://{}", server.address()), 86_400);
    machine.wait_until_connected();
    let other = Machine::of(&server);
    machine.set(&Item::new("key", "old"));
    machine.read("key");
    let connections = &machine.origin.counters().connections;
    let before = connections.load(Ordering::Relaxed);
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    wait_for("another connection", || (connections.load(Ordering::Relaxed) > before).then_some(()));
    assert_eq!(machine.copy("key"), None);
    other.wait_until_connected();
    other.set(&Item::new("key", "new"));
    assert_eq!(machine.read("key").as_deref(), Some("new"));
}

#[test]
fn a_server_that_hangs_delays_nobody_for_longer_than_the_limit() {
    let server = RedisServer::start();
    let machine = Machine::hurried(&server);
    machine.wait_until_connected();
    machine.set(&Item::new("key", "value"));
    server.pause();
    let begun = Instant::now();
    let written = machine.write(&Item::new("key", "new"));
    let took = begun.elapsed();
    let limit = machine.origin.config().timeout;
    assert!(took < limit + Duration::from_secs(5), "{took:?}");
    // The connection may be given up while the command waits.
    assert!(
        matches!(written, Err(OriginError::TimedOut(_) | OriginError::Interrupted(_))),
        "{written:?}"
    );
    machine.wait_until_away();
    server.resume();
    machine.wait_until_connected();
    machine.set(&Item::new("key", "newer"));
    assert_eq!(machine.read("key").as_deref(), Some("newer"));
}

#[test]
fn a_start_without_the_server_says_why_and_connects_later() {
    let mut server = RedisServer::start();
    server.kill();
    let machine = Machine::at(&format!("redis://{}", server.address()), 60);
    let reason = wait_for("a reason", || match machine.load("key") {
        Err(OriginError::Away(reason)) if reason.contains("Connection refused") => Some(reason),
        _ => None,
    });
    assert!(reason.contains(&format!("redis://{}", server.address())), "{reason}");
    server.restart();
    machine.wait_until_connected();
    assert_eq!(machine.write(&Item::new("key", "value")), Ok(Written::Done));
}

#[test]
fn a_server_that_cannot_be_an_origin_is_named() {
    let server = RedisServer::start();
    let replica =
        RedisServer::start_with(&["--replicaof", "127.0.0.1", &server.port().to_string()]);
    let machine = Machine::at(&format!("redis://{}", replica.address()), 60);
    wait_for("the reason", || machine.wait_until_away().contains("is a replica").then_some(()));
    let locked = RedisServer::start_with(&["--requirepass", "secret word"]);
    let machine = Machine::at(&format!("redis://:wrong@{}", locked.address()), 60);
    let reason = wait_for("the reason", || {
        Some(machine.wait_until_away()).filter(|reason| reason.contains("WRONGPASS"))
    });
    assert!(!reason.contains("wrong@"), "{reason}");
    let machine = Machine::at(&format!("redis://:secret%20word@{}", locked.address()), 60);
    machine.wait_until_connected();
}

#[test]
fn scripts_that_the_server_has_forgotten_are_loaded_again() {
    let server = RedisServer::start();
    let machine = Machine::of(&server);
    machine.set(&Item::new("key", "old"));
    assert_eq!(server.command(&["SCRIPT", "FLUSH"]), "OK");
    machine.set(&Item::new("key", "new"));
    assert_eq!(machine.read("key").as_deref(), Some("new"));
}

#[test]
fn a_machine_that_reaches_its_server_over_a_socket_works_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("redis.sock");
    let path = socket.to_str().expect("text");
    let _server = RedisServer::start_with(&["--unixsocket", path]);
    let machine = Machine::at(&format!("redis+unix://{path}"), 60);
    machine.wait_until_connected();
    machine.set(&Item::new("key", "value"));
    assert_eq!(machine.read("key").as_deref(), Some("value"));
}

#[test]
fn a_server_with_tls_must_have_a_certificate_that_is_trusted() {
    let certificates = Certificates::issue(&["localhost"]);
    let lease = LeasedPort::lease();
    let port = lease.number();
    let _server = certificates.start_redis(port);
    let address = format!("rediss://localhost:{port}");
    let machine = Machine::trusting(&address, 60, Some(certificates.authority()));
    machine.wait_until_connected();
    let value = "x".repeat(300_000);
    machine.set(&Item::new("key", &value));
    assert_eq!(machine.read("key"), Some(value));
    let machine = Machine::trusting(&address, 60, Some(certificates.other_authority()));
    wait_for("the reason", || machine.wait_until_away().contains("UnknownIssuer").then_some(()));
    let machine = Machine::trusting(
        &format!("rediss://127.0.0.1:{port}"),
        60,
        Some(certificates.authority()),
    );
    wait_for("the reason", || {
        machine.wait_until_away().contains("not valid for name").then_some(())
    });
}

#[test]
fn a_user_needs_only_the_commands_that_the_documentation_names() {
    let documented = include_str!("../../../../docs/memcached.md").replace('\n', " ");
    let section = documented.split("Kirin needs the commands").nth(1).expect("the list");
    let list = section.split(". All").next().expect("its end");
    let commands = list
        .split(['`', ' ', ','])
        .filter(|word| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_uppercase()));
    let commands: Vec<String> = commands.map(|word| format!("+{}", word.to_lowercase())).collect();
    assert!(commands.len() > 20, "{commands:?}");
    let server = RedisServer::start();
    let rules =
        ["ACL", "SETUSER", "kirin", "on", ">a@b", "~kirin:*", "~{kirin:}*", "resetchannels"];
    let rules: Vec<&str> = rules.into_iter().chain(commands.iter().map(String::as_str)).collect();
    assert_eq!(server.command(&rules), "OK");
    let machine = Machine::at(&format!("redis://kirin:a%40b@{}", server.address()), 60);
    machine.wait_until_connected();
    machine.set(&Item::new("key", "value").tagged(&["tag"]));
    assert_eq!(machine.read("key").as_deref(), Some("value"));
    let loaded = machine.load("key").expect("an answer");
    assert!(machine.touch(&loaded, 100));
    machine.purge(&["key"], &["tag"], &["prefix"], Invalidation::Soft);
    for number in 0..1_100 {
        machine.purge(&[], &[], &[&format!("prefix{number}")], Invalidation::Hard);
    }
    machine.set(&Item::new("key", "new").tagged(&["tag"]));
    assert_eq!(machine.read("key").as_deref(), Some("new"));
    match machine.origin.state() {
        OriginState::Connected { server, .. } => assert!(!server.evicts, "INFO is allowed"),
        OriginState::Away { reason, .. } => panic!("{reason}"),
    }
}

#[test]
fn a_server_without_memory_still_reads_removes_and_purges() {
    let server =
        RedisServer::start_with(&["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"]);
    let machine = Machine::of(&server);
    machine.set(&Item::new("key", "value").tagged(&["tag"]));
    machine.set(&Item::new("other", "value"));
    let value = "x".repeat(50_000);
    let refused = (0..200)
        .find_map(|number| machine.write(&Item::new(&format!("filler{number}"), &value)).err());
    let refused = refused.expect("the server is full");
    assert!(
        matches!(&refused, OriginError::Refused(reason) if reason.contains("OOM")),
        "{refused}"
    );
    machine.purge(&[], &[], &["nothing"], Invalidation::Hard);
    assert_eq!(machine.loaded_value("key").as_deref(), Some("value"));
    let removed = machine.write_content("other", Content::Nothing, Condition::Any);
    assert_eq!(removed, Ok(Written::Done));
    assert_eq!(machine.loaded_value("other"), None);
    let second = Machine::of(&server);
    assert_eq!(second.loaded_value("key").as_deref(), Some("value"));
    machine.purge(&[], &["tag"], &[], Invalidation::Hard);
    assert_eq!(second.loaded_value("key").is_some(), second.copy("key").is_some());
    assert_eq!(machine.loaded_value("key"), None);
}

#[test]
fn a_write_that_keeps_the_expiry_keeps_the_part_of_a_second() {
    let server = RedisServer::start();
    let machine = Machine::of(&server);
    machine.set(&Item::new("key", "1"));
    assert_eq!(server.command(&["PEXPIRE", "kirin:i:key", "90500"]), "1");
    for number in 0..20 {
        let loaded = machine.load("key").expect("an answer");
        let condition = Condition::Unchanged { version: loaded.version, made: loaded.made };
        let value = number.to_string();
        let content = Content::Item {
            value: value.as_bytes(),
            flags: 0,
            expires: None,
            tags: &[],
            chosen_cas: None,
            is_stale: false,
            is_won: false,
        };
        assert_eq!(machine.write_content("key", content, condition), Ok(Written::Done));
        let left: i64 = server.command(&["PTTL", "kirin:i:key"]).parse().expect("a number");
        assert!((1..=90_500).contains(&left), "{left}");
    }
}

#[test]
fn another_run_of_the_server_begins_without_the_items_of_the_last_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().to_str().expect("text");
    let mut server = RedisServer::start_with(&["--dir", file, "--dbfilename", "dump.rdb"]);
    let machine = Machine::of(&server);
    machine.set(&Item::new("key", "value").tagged(&["tag"]));
    assert_eq!(server.command(&["SAVE"]), "OK");
    // The dump does not have this purge.
    machine.purge(&[], &["tag"], &[], Invalidation::Hard);
    let connections = || machine.origin.counters().connections.load(Ordering::Relaxed);
    let before = connections();
    server.restart();
    wait_for("another connection", || (connections() > before).then_some(()));
    assert_ne!(server.command(&["EXISTS", "kirin:i:key"]), "0", "the server has lost nothing else");
    assert_eq!(machine.loaded_value("key"), None);
}
