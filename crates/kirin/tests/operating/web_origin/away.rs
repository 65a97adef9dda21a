//! The server is killed, or hangs, or is not there at the start: the sites go on.

use std::time::{Duration, Instant};

use kirin_tests::{RedisServer, run_kirin, wait_for};

use super::{Machine, address_of, within};

/// Short limits, as a test can wait for them.
const HASTY: &str = "origin_timeout = \"500ms\"\nstale_limit = \"2s\"\n";

/// Copies stay for longer than a test takes.
const LASTING: &str = "origin_timeout = \"500ms\"\nstale_limit = \"60s\"\n";

/// How long a machine with the limits of `HASTY` may serve copies. Clocks have full seconds.
pub const STALE_LIMIT: Duration = Duration::from_secs(3);

/// No response may take longer: a few times `origin_timeout`.
const LIMIT: Duration = Duration::from_secs(3);

fn machine(name: &str, redis: &RedisServer, limits: &str) -> Machine {
    Machine::with_origin(name, &address_of(redis), limits).connected(1)
}

/// Writes items that `is_old` finds as long as there are copies of them.
pub fn write_old(machine: &Machine) {
    let mut memcached = machine.memcached();
    memcached.set("/only/copy", b"text/plain\r\nold");
    memcached.set("/only/parts", b"text/html\r\n<!--# include part -->");
    memcached.set("part", b"old");
    memcached.set(ID, br#"{"name":"old"}"#);
}

/// A session.
const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// Reads an item. Returns whether it is as it was written first.
pub type Reader = fn(&Machine) -> bool;

/// The ways to read an item.
pub const READERS: [(&str, Reader); 4] = [
    ("a page", |machine| machine.get("/only/copy") == "old"),
    ("a part of a page", |machine| machine.get("/only/parts") == "old"),
    ("a part of a response", |machine| {
        let fields = "X-Value: <!--# include part -->\r\n";
        machine.ask("GET", "/ssi/parts", fields).text() == "old"
    }),
    ("a session", |machine| {
        let bar = "X-Value: <!--# echo var=\"session.name\" -->\r\n";
        let fields = format!("Cookie: sid={ID}\r\n{bar}");
        machine.ask("GET", "/ssi/bar", &fields).text() == "old"
    }),
];

/// Replaces all that `write_old` has written.
pub fn write_new(machine: &Machine) {
    let mut memcached = machine.memcached();
    memcached.set("/only/copy", b"text/plain\r\nnew");
    memcached.set("part", b"new");
    memcached.set(ID, br#"{"name":"new"}"#);
}

/// Sends a request of each kind, and checks that none takes long. `number` makes their names new.
fn serve_everything(machine: &Machine, number: usize) {
    let is_of_app = |text: &str| text.starts_with("a ");
    within(LIMIT, "a page that is nowhere", || {
        let text = machine.get(&format!("/none/{number}"));
        assert!(is_of_app(&text), "{text}");
    });
    within(LIMIT, "a page that only the server could have", || {
        assert_eq!(machine.reply(&format!("/only/none/{number}")).status, 404);
    });
    within(LIMIT, "a pushed page", || {
        machine.push(&format!("/push/{number}"), "pushed", "ttl=300, tags=\"t\"");
    });
    within(LIMIT, "a pushed stream", || {
        let target = format!("/stream/push/{number}");
        let text = machine.get_with(&target, "Kirin-Store: ttl=300");
        assert!(is_of_app(&text) && text.ends_with(" xxxxxxxxxx"), "{text}");
    });
    within(LIMIT, "a page with parts and a session", || {
        let page = "X-Value: 1<!--# include none-NUMBER --><!--# include none2-NUMBER -->\
                    <!--# echo var=\"session.name\" default=\"2\" -->3\r\nCookie: sid=ID\r\n";
        let id = format!("{number:040x}");
        let fields = page.replace("NUMBER", &number.to_string()).replace("ID", &id);
        let text = machine.ask("GET", "/ssi/page", &fields).text();
        assert!(text.starts_with('1') && text.ends_with("23"), "{text}");
    });
    within(LIMIT, "a response that the cache may keep", || {
        let fields = "X-Fields: Cache-Control: max-age=300|Surrogate-Key: t\r\n";
        let reply = machine.ask("GET", &format!("/cached/{number}"), fields);
        assert!(is_of_app(&reply.text()), "{}", reply.head);
    });
    within(LIMIT, "an unsafe request", || {
        let reply = machine.ask("POST", "/cached/unsafe", "Content-Length: 0\r\n");
        assert!(is_of_app(&reply.text()), "{}", reply.head);
    });
    within(LIMIT, "a response that purges", || {
        let reply = machine.purge("tags=\"t\", keys=\"/x\", prefixes=\"/y/\"");
        assert!(is_of_app(&reply.text()), "{}", reply.head);
    });
    within(LIMIT, "PURGE", || {
        let reply = machine.ask("PURGE", "/x", "");
        assert!(reply.status >= 500, "{}\n{}", reply.head, reply.text());
    });
    within(LIMIT, "an application that looks at the session", || {
        let cookie = format!("Cookie: sid={number:040x}\r\n");
        let reply = machine.ask("GET", "/direct/session/look", &cookie);
        assert_eq!((reply.status, reply.text().as_str()), (200, "a stranger"), "{}", reply.head);
    });
    // What was pushed meanwhile was not stored.
    within(LIMIT, "the pushed page again", || {
        let text = machine.get(&format!("/push/{number}"));
        assert!(is_of_app(&text), "{text}");
    });
}

#[test]
fn a_killed_server_delays_nobody_and_is_named_once() {
    let mut redis = RedisServer::start();
    let a = machine("a", &redis, LASTING);
    write_old(&a);
    assert!(READERS.iter().all(|(_, is_old)| is_old(&a)));
    redis.kill();
    for number in 0..3 {
        serve_everything(&a, number);
        for (title, is_old) in READERS {
            assert!(within(LIMIT, title, || is_old(&a)), "{title} has a copy");
        }
    }
    a.kirin.wait_for_log("origin is away");
    serve_everything(&a, 3);
    // The connection has ended, and no new one can be made: each reason once.
    let log = a.kirin.log();
    let lines = log.lines().filter_map(|line| line.split_once("WARN origin is away reason="));
    let mut reasons: Vec<_> = lines.map(|(_, reason)| reason).collect();
    let count = reasons.len();
    reasons.dedup();
    assert!((1..=2).contains(&count) && reasons.len() == count, "{log}");
    redis.restart();
    a.wait_for_connections(2);
    a.push("/push/0", "stored", "ttl=300");
    assert_eq!(a.get("/push/0"), "stored");
}

#[test]
fn a_server_that_hangs_delays_nobody_for_long() {
    let redis = RedisServer::start();
    let a = machine("a", &redis, HASTY);
    a.get("/warm");
    redis.pause();
    for number in 0..3 {
        serve_everything(&a, number);
    }
    a.kirin.wait_for_log("origin is away");
    serve_everything(&a, 3);
    redis.resume();
    a.wait_for_connections(2);
    a.push("/again", "stored", "ttl=300");
    assert_eq!(a.get("/again"), "stored");
}

#[test]
fn a_page_with_many_items_waits_once_for_a_server_that_hangs() {
    let redis = RedisServer::start();
    let a = machine("a", &redis, LASTING);
    a.get("/warm");
    redis.pause();
    let page: String = (0..300).map(|number| format!("<!--# include none-{number} -->")).collect();
    within(LIMIT, "a page with many items", || {
        let text = a.ask("GET", "/ssi/page", &format!("X-Value: <{page}>\r\n")).text();
        assert!(text.starts_with('<') && text.ends_with('>'), "{text}");
    });
    redis.resume();
}

#[test]
fn requests_that_wait_together_for_a_server_that_hangs_all_go_on() {
    let redis = RedisServer::start();
    let a = machine("a", &redis, LASTING);
    a.get("/warm");
    redis.pause();
    let mut clients: Vec<_> = (0..50).map(|_| a.connect()).collect();
    within(2 * LIMIT, "fifty requests", || {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("GET /none/{} HTTP/1.1\r\nHost: test\r\n\r\n", number % 10));
        }
        for client in &mut clients {
            let text = client.read_reply().text();
            assert!(text.starts_with("a "), "{text}");
        }
    });
    // A client that leaves meanwhile disturbs nobody.
    let mut client = a.connect();
    client.send("GET /none/left HTTP/1.1\r\nHost: test\r\n\r\n");
    client.reset();
    within(LIMIT, "another request", || assert!(a.get("/none/other").starts_with("a ")));
    redis.resume();
}

/// Checks that `a` serves copies after `hang_up`, but not for long.
fn check_stale_limit(redis: &mut RedisServer, hang_up: fn(&mut RedisServer)) {
    let a = machine("a", redis, HASTY);
    write_old(&a);
    assert!(READERS.iter().all(|(_, is_old)| is_old(&a)));
    hang_up(redis);
    let gone = Instant::now();
    let mut served = [0; READERS.len()];
    let late = |begun: Instant| begun.duration_since(gone) > STALE_LIMIT;
    wait_for("the copies to be forgotten", || {
        let mut are_old = false;
        for ((title, is_old), served) in READERS.iter().zip(&mut served) {
            let begun = Instant::now();
            if is_old(&a) {
                are_old = true;
                *served += 1;
                assert!(!late(begun), "{title} after {:?}", begun.duration_since(gone));
            } else if begun.duration_since(gone) < Duration::from_millis(500) {
                panic!("{title} has no copy any more after {:?}", begun.duration_since(gone));
            }
        }
        (!are_old).then_some(())
    });
    for (title, is_old) in READERS {
        assert!(!is_old(&a), "{title} is served again");
    }
    assert!(served.iter().any(|count| *count > 0), "no copy was served");
}

#[test]
fn copies_are_served_for_at_most_the_stale_limit() {
    let mut redis = RedisServer::start();
    check_stale_limit(&mut redis, RedisServer::kill);
    redis.restart();
    check_stale_limit(&mut redis, |redis| redis.pause());
    redis.resume();
}

#[test]
fn after_a_server_has_lost_its_data_nothing_from_before_is_served() {
    let mut redis = RedisServer::start();
    let machines = ["a", "b"].map(|name| machine(name, &redis, LASTING));
    let [a, b] = &machines;
    write_old(a);
    a.push("/page", "old", "ttl=300");
    for machine in &machines {
        assert!(READERS.iter().all(|(_, is_old)| is_old(machine)));
        assert_eq!(machine.get("/page"), "old");
    }
    redis.restart();
    for machine in &machines {
        machine.wait_for_connections(2);
        for (title, is_old) in READERS {
            assert!(!is_old(machine), "{title}");
        }
        assert_ne!(machine.get("/page"), "old");
    }
    write_old(b);
    for (title, is_old) in READERS {
        wait_for(title, || is_old(a).then_some(()));
    }
}

#[test]
fn a_kirin_that_starts_without_its_server_serves() {
    let mut redis = RedisServer::start();
    redis.kill();
    let machines = ["a", "b"].map(|name| Machine::with_origin(name, &address_of(&redis), LASTING));
    let [a, b] = &machines;
    serve_everything(a, 0);
    a.kirin.wait_for_log("origin is away");
    redis.restart();
    machines.iter().for_each(|machine| machine.wait_for_connections(1));
    a.push("/page", "stored", "ttl=300");
    assert_eq!(b.get("/page"), "stored");
}

#[test]
fn a_purge_that_the_server_does_not_get_is_refused_with_the_reason() {
    let mut redis = RedisServer::start();
    let a = machine("a", &redis, LASTING);
    redis.kill();
    a.kirin.wait_for_log("origin is away");
    let reply = a.ask("PURGE", "/page", "");
    assert!(reply.status >= 500 && reply.text().contains("origin"), "{}", reply.text());
    let output = run_kirin(&a.site, &["purge", "--key", "/page"]);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("origin"), "{said}");
    let said = a.perl("purge", "keys /page", "");
    assert!(said.starts_with("error: ") && said.contains("the origin is away"), "{said}");
    assert!(!a.kirin.log().contains("Kirin-Purge"));
    assert_eq!(a.purge("keys=\"/page\"").text(), "a 2", "the client gets its response");
    a.kirin.wait_for_log("Kirin-Purge");
    a.push("/page", "pushed", "ttl=300");
    a.kirin.wait_for_log("a response is not stored");
}

#[test]
fn requests_without_the_server_do_not_fill_the_log() {
    let mut redis = RedisServer::start();
    let a = machine("a", &redis, LASTING);
    redis.kill();
    a.kirin.wait_for_log("cannot connect");
    let lines = || a.kirin.log().lines().count();
    type Request = fn(&Machine, usize);
    let kinds: [(&str, Request); 4] = [
        ("pushed pages", |a, number| a.push(&format!("/push/{number}"), "pushed", "ttl=300")),
        ("purges", |a, _| assert_eq!(a.purge("tags=\"t\"").status, 200)),
        ("pages that only the server could have", |a, number| {
            assert_eq!(a.reply(&format!("/only/none/{number}")).status, 404);
        }),
        ("unsafe requests", |a, _| {
            let reply = a.ask("POST", "/cached/page", "Content-Length: 0\r\n");
            assert_eq!(reply.status, 200);
        }),
    ];
    let mut loud = Vec::new();
    for (title, ask) in kinds {
        let before = lines();
        (0..50).for_each(|number| ask(&a, number));
        // One line for each event loop, now and then, and those of the connection.
        if lines() - before > 10 {
            loud.push(format!("{title}: {} lines", lines() - before));
        }
    }
    assert!(loud.is_empty(), "{loud:?} in\n{}", a.kirin.log());
}
