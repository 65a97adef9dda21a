//! `kirin block --all`: an operator closes out an address on all machines.

use kirin_tests::{RedisServer, Site, wait_for};

use super::{CALM, address_of};
use crate::reload::{Served, printed};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST_GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Starts a machine. `store` has lines of `[store]`.
fn serve(store: &str) -> Served {
    let config = format!(
        "threads = 2\n[admin]\naddress = \"unix:admin.sock\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\n[store]\n{store}\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
    );
    Served::start(Site::new().with("public/index.html", "index"), &config)
}

/// Starts a machine with an origin, and waits until it has connected.
fn machine(redis: &RedisServer) -> Served {
    let machine = serve(&format!("origin = {:?}\n{CALM}", address_of(redis)));
    wait_for("a connection to the origin", || {
        machine.kirin.log().contains("origin connected").then_some(())
    });
    machine
}

/// Returns whether a machine closes the connections of this client at once.
fn is_blocked(machine: &Served) -> bool {
    machine.kirin.connect().try_send(LAST_GET).read_to_end().is_empty()
}

fn wait_until(machine: &Served, blocked: bool) {
    wait_for(&format!("blocked = {blocked}"), || (is_blocked(machine) == blocked).then_some(()));
}

/// Returns why a command fails.
fn refused(machine: &Served, words: &[&str]) -> String {
    let output = machine.command(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{words:?}: {said}");
    said
}

#[test]
fn an_address_is_blocked_and_unblocked_on_all_machines() {
    let redis = RedisServer::start();
    let [a, b] = [(); 2].map(|()| machine(&redis));
    let mut kept = b.kirin.connect();
    assert_eq!(kept.send(GET).read_reply().status, 200);
    assert_eq!(
        printed(&a.command(&["block", "127.0.0.1", "--for", "10m", "--all"])),
        "127.0.0.1 is blocked for 10m on all machines\n"
    );
    assert!(is_blocked(&a), "it holds at once where the command was");
    wait_until(&b, true);
    assert_eq!(kept.send(GET).read_reply().status, 403);
    for machine in [&a, &b] {
        let status = printed(&machine.command(&["status"]));
        let line = "! blocked by an operator: 127.0.0.1 for ";
        assert!(status.contains(line) && status.contains(" on all machines"), "{status}");
        let said = refused(machine, &["unblock", "127.0.0.1"]);
        assert!(said.contains("`kirin unblock 127.0.0.1 --all`"), "{said}");
    }
    let late = machine(&redis);
    wait_until(&late, true);
    assert_eq!(
        printed(&b.command(&["unblock", "127.0.0.1", "--all"])),
        "127.0.0.1 is no longer blocked on all machines\n"
    );
    assert!(!is_blocked(&b));
    for machine in [&a, &late] {
        wait_until(machine, false);
        assert!(!printed(&machine.command(&["status"])).contains("blocked"));
    }
    assert_eq!(redis.command(&["EXISTS", "kirin:r:blocks"]), "0");
    let said = refused(&a, &["unblock", "127.0.0.1", "--all"]);
    assert!(said.contains("127.0.0.1 is not blocked on all machines"), "{said}");
}

#[test]
fn a_block_of_all_machines_ends_by_itself() {
    let redis = RedisServer::start();
    let [a, b] = [(); 2].map(|()| machine(&redis));
    printed(&a.command(&["block", "127.0.0.1", "--for", "1s", "--all"]));
    for machine in [&a, &b] {
        wait_until(machine, false);
    }
    wait_for("the end of the record", || {
        (redis.command(&["EXISTS", "kirin:r:blocks"]) == "0").then_some(())
    });
}

#[test]
fn the_blocks_of_one_machine_are_its_own() {
    let redis = RedisServer::start();
    let [a, b] = [(); 2].map(|()| machine(&redis));
    printed(&a.command(&["block", "127.0.0.1"]));
    printed(&a.command(&["block", "127.0.0.1", "--all"]));
    wait_until(&b, true);
    assert_eq!(
        printed(&a.command(&["unblock", "127.0.0.1", "--all"])),
        "127.0.0.1 is no longer blocked on all machines; this machine still blocks it for itself\n"
    );
    wait_until(&b, false);
    assert!(is_blocked(&a));
    printed(&a.command(&["block", "127.0.0.0/8", "--all"]));
    wait_until(&b, true);
    printed(&a.command(&["unblock", "127.0.0.1"]));
    assert!(is_blocked(&a) && is_blocked(&b));
}

#[test]
fn machines_that_block_at_the_same_moment_lose_no_block() {
    let redis = RedisServer::start();
    let machines = [(); 2].map(|()| machine(&redis));
    std::thread::scope(|scope| {
        for (index, machine) in machines.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..6 {
                    let address = format!("192.0.2.{}", 10 * index + number);
                    printed(&machine.command(&["block", &address, "--all"]));
                }
            });
        }
    });
    for machine in &machines {
        wait_for("all blocks", || {
            let status = printed(&machine.command(&["status", "--json"]));
            (status.matches("192.0.2.").count() == 12).then_some(())
        });
    }
}

#[test]
fn a_block_needs_the_origin_and_then_holds_without_it() {
    let mut redis = RedisServer::start();
    let [a, b] = [(); 2].map(|()| machine(&redis));
    printed(&a.command(&["block", "127.0.0.1", "--all"]));
    wait_until(&b, true);
    redis.kill();
    for machine in [&a, &b] {
        wait_for("the end of the connection", || {
            machine.kirin.log().contains("origin is away").then_some(())
        });
        for words in [["block", "192.0.2.7", "--all"], ["unblock", "127.0.0.1", "--all"]] {
            let said = refused(machine, &words);
            assert!(said.contains("the origin is away"), "{said}");
        }
        assert!(is_blocked(machine));
        assert!(!printed(&machine.command(&["status"])).contains("192.0.2.7"));
    }
    let alone = serve("");
    let said = refused(&alone, &["block", "192.0.2.7", "--all"]);
    assert!(said.contains("`--all` needs `store.origin`"), "{said}");
}
