//! Limits on rates that several machines count together.
//!
//! One request becomes possible in an hour, so the buckets do not become fuller during a test.

use kirin_tests::{RedisCluster, RedisServer, wait_for};

use super::{CALM, address_of};
use crate::reload::Served;

const BURST: usize = 8;

const HOUR_IN_MILLISECONDS: usize = 60 * 60 * 1000;

fn config(address: &str, limit: &str) -> String {
    format!(
        "threads = 2\n[admin]\naddress = \"unix:admin.sock\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\n[store]\norigin = {address:?}\n{CALM}\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
         rate_limit = [{{ key = \"header:x-visitor\", {limit}, shared = true }}]\n"
    )
}

fn limit() -> String {
    format!("rate = \"1/h\", burst = {BURST}")
}

/// Starts a machine, and waits until it has connected.
fn machine(address: &str, limit: &str) -> Served {
    let site = kirin_tests::Site::new().with("public/index.html", "index");
    let machine = Served::start(site, &config(address, limit));
    wait_for_connections(&machine, 1);
    machine
}

fn wait_for_connections(machine: &Served, times: usize) {
    wait_for("a connection to the origin", || {
        (machine.kirin.log().matches("origin connected").count() >= times).then_some(())
    });
}

/// Returns the status of a request of a visitor.
fn status(machine: &Served, visitor: &str) -> u16 {
    machine.kirin.connect().request("GET", "/", &format!("X-Visitor: {visitor}\r\n")).status
}

/// The beginnings of the SHA-256 of a byte 0 and the names of visitors.
const DIGEST_OF_A: &str = "022a6979";
const DIGEST_OF_SECOND: &str = "a94dd4d3";

/// Returns how many requests the origin has counted for the visitor with this digest, in the only
/// limit.
fn counted_of(servers: &[&RedisServer], digest: &str) -> usize {
    let pattern = format!("kirin:c:{{*}}{digest}*");
    let keys = servers.iter().flat_map(|server| {
        let keys = server.command(&["KEYS", &pattern]);
        keys.lines().map(|key| server.command(&["PTTL", key])).collect::<Vec<_>>()
    });
    let left: Vec<usize> = keys.map(|left| left.parse().expect("milliseconds")).collect();
    assert!(left.len() <= 1, "{left:?}");
    left.first().map_or(0, |left| left.div_ceil(HOUR_IN_MILLISECONDS))
}

/// Returns how many requests the origin has counted for the visitor `a`.
fn counted(servers: &[&RedisServer]) -> usize {
    counted_of(servers, DIGEST_OF_A)
}

/// Sends requests of the visitor `a` until one is refused, at most `most`. After each that passes
/// it waits until the origin has counted it. Returns how many have passed.
fn spend(machine: &Served, servers: &[&RedisServer], most: usize) -> usize {
    for passed in 0..most {
        let before = counted(servers);
        match status(machine, "a") {
            200 => {
                let missing = format!("request {passed} behind {before}");
                wait_for(&missing, || (counted(servers) == before + 1).then_some(()));
            }
            429 => return passed,
            status => panic!("{status}"),
        }
    }
    most
}

/// Spends a visitor's requests on three machines.
fn spend_on_three(machines: &[Served; 3], servers: &[&RedisServer]) {
    let [a, b, c] = machines;
    assert_eq!(spend(a, servers, 3), 3);
    // The first request tells `b` of those before. Its answer may come behind the second.
    assert_eq!(spend(b, servers, BURST), BURST - 3);
    for machine in [a, c] {
        let passed = spend(machine, servers, BURST);
        assert!((1..=2).contains(&passed), "{passed} have passed");
    }
    for machine in machines {
        assert_eq!(status(machine, "a"), 429);
    }
}

#[test]
fn a_visitor_who_spreads_over_machines_gets_the_limit_of_one() {
    let redis = RedisServer::start();
    let machines = [(); 3].map(|()| machine(&address_of(&redis), &limit()));
    spend_on_three(&machines, &[&redis]);
    assert_eq!(status(&machines[2], "another"), 200);
    let keys = wait_for("the key of another visitor", || {
        let keys = redis.command(&["KEYS", "kirin:c:*"]);
        (keys.lines().count() == 2).then_some(keys)
    });
    assert!(!keys.contains("another"), "the keys name no visitor: {keys}");
}

#[test]
fn a_visitor_who_spreads_over_machines_of_a_cluster_gets_the_limit_of_one() {
    let cluster = RedisCluster::start();
    let machines = [(); 3].map(|()| machine(&cluster.address(), &limit()));
    let servers: Vec<&RedisServer> = cluster.masters.iter().collect();
    spend_on_three(&machines, &servers);
}

#[test]
fn a_visitor_who_pauses_is_served_again_by_all_machines() {
    let redis = RedisServer::start();
    let machines = [(); 2].map(|()| machine(&address_of(&redis), "rate = \"30/m\", burst = 1"));
    for machine in &machines {
        wait_for("a refusal", || (status(machine, "a") == 429).then_some(()));
    }
    for machine in &machines {
        wait_for("a request that passes", || (status(machine, "a") == 200).then_some(()));
    }
    wait_for("the end of the bucket", || {
        redis.command(&["KEYS", "kirin:c:*"]).is_empty().then_some(())
    });
}

#[test]
fn without_the_origin_each_machine_limits_alone() {
    let mut redis = RedisServer::start();
    let machines = [(); 2].map(|()| machine(&address_of(&redis), &limit()));
    let statuses =
        |machine, visitor| (0..=BURST).map(|_| status(machine, visitor)).collect::<Vec<u16>>();
    let mut alone = [200; BURST + 1];
    alone[BURST] = 429;
    redis.kill();
    // Those that are on their way when the server dies are decided here, too.
    for machine in &machines {
        assert_eq!(statuses(machine, "first"), alone);
    }
    for machine in &machines {
        wait_for("the end of the connection", || {
            machine.kirin.log().contains("origin is away").then_some(())
        });
        assert_eq!(statuses(machine, "second"), alone);
    }
    redis.restart();
    machines.iter().for_each(|machine| wait_for_connections(machine, 2));
    assert_eq!(spend(&machines[0], &[&redis], 3), 3);
    assert_eq!(spend(&machines[1], &[&redis], BURST), BURST - 3);
    for machine in &machines {
        assert_eq!(status(machine, "second"), 429, "a machine remembers what it has counted");
    }
    assert_eq!(counted_of(&[&redis], DIGEST_OF_SECOND), 0, "what was counted alone is not sent");
}

#[test]
fn a_reload_keeps_what_all_machines_have_counted() {
    let redis = RedisServer::start();
    let address = address_of(&redis);
    let [a, b] = [(); 2].map(|()| machine(&address, &limit()));
    assert_eq!(spend(&a, &[&redis], BURST), BURST);
    a.reload(&format!(
        "{}[[route]]\npath = \"/z\"\nredirect = \"/\"\n",
        config(&address, &limit())
    ));
    assert_eq!(status(&a, "a"), 429);
    let keys = || redis.command(&["KEYS", "kirin:c:*"]).lines().map(str::to_owned).collect();
    let kept: Vec<String> = keys();
    a.reload(&config(&address, "rate = \"1/h\", burst = 2"));
    assert_eq!(status(&a, "a"), 200, "it is another limit");
    let others = wait_for("the key of the other limit", || {
        let keys: Vec<String> = keys();
        (keys.len() == 2).then_some(keys)
    });
    for other in others.iter().filter(|key| !kept.contains(key)) {
        redis.command(&["DEL", other]);
    }
    // The first limit is back, without buckets. It learns from the origin.
    a.reload(&config(&address, &limit()));
    for machine in [&a, &b] {
        let passed = spend(machine, &[&redis], BURST);
        assert!((1..=2).contains(&passed), "{passed} have passed");
    }
}

#[test]
fn a_dry_run_refuses_nobody_and_counts() {
    let redis = RedisServer::start();
    let limit = format!("{}, dry_run = true", limit());
    let [a, b] = [(); 2].map(|()| machine(&address_of(&redis), &limit));
    assert_eq!(spend(&a, &[&redis], BURST), BURST);
    assert_eq!(status(&b, "a"), 200);
    wait_for("the dry run on the other machine", || {
        assert_eq!(status(&b, "a"), 200);
        let log = b.kirin.log();
        let line = "at once for each value of header `x-visitor`, on all machines together";
        (log.contains("dry run") && log.contains(line)).then_some(())
    });
}
