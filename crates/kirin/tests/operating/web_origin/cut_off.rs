//! A machine that is cut off from the server while another one changes things.

use std::time::Instant;

use kirin_tests::{RedisServer, wait_for};

use super::away::{READERS, STALE_LIMIT, write_new, write_old};
use super::{Machine, address_of};
use crate::origin_chaos::proxy::{Mode, Proxy};

const LIMITS: &str = "origin_timeout = \"500ms\"\nstale_limit = \"2s\"\n";

/// A machine that reaches the server, and one with a proxy before it.
struct CutOff {
    redis: RedisServer,
    proxy: Proxy,
    a: Machine,
    b: Machine,
}

impl CutOff {
    fn start() -> Self {
        let redis = RedisServer::start();
        let proxy = Proxy::start(redis.address());
        let a = Machine::with_origin("a", &address_of(&redis), LIMITS).connected(1);
        let address = format!("redis://{}", proxy.address());
        let b = Machine::with_origin("b", &address, LIMITS).connected(1);
        Self { redis, proxy, a, b }
    }

    /// Lets the machine connect again.
    fn come_back(&self) {
        let connections = self.b.count_in_log("origin connected");
        self.proxy.set(Mode::Pass);
        self.b.wait_for_connections(connections + 1);
    }
}

/// The pages that are purged, and the purge of each.
const PURGED: [(&str, &str); 3] = [
    ("/by/key", "keys=\"/by/key\""),
    ("/by/tag", "tags=\"tag\""),
    ("/by/prefix", "prefixes=\"/by/p\""),
];

/// Returns the body of a response that the cache keeps.
fn cached(machine: &Machine) -> String {
    let fields = "X-Fields: Cache-Control: max-age=300|Surrogate-Key: tag\r\n";
    machine.ask("GET", "/cached/page", fields).text()
}

/// Cuts `b` off by `mode` while `a` changes everything, and checks that nothing old is served by
/// `b` later than the stale limit, or after its return. `is_long`: longer than copies are served.
fn check_cut(mode: Mode, is_long: bool) {
    let cut_off = CutOff::start();
    let (a, b) = (&cut_off.a, &cut_off.b);
    let what = format!("{mode:?}, {}", if is_long { "long" } else { "short" });
    write_old(a);
    for (page, _) in PURGED {
        a.push(page, "old", "ttl=300, tags=\"tag\"");
    }
    assert!(READERS.iter().all(|(_, is_old)| is_old(b)), "{what}");
    assert!(PURGED.iter().all(|(page, _)| b.get(page) == "old"), "{what}");
    cached(b);
    let kept = cached(b);
    cut_off.proxy.set(mode);
    let cut = Instant::now();
    write_new(a);
    for (page, names) in PURGED {
        assert_eq!(a.purge(names).status, 200, "{what}");
        assert_ne!(a.get(page), "old", "{what}");
    }
    if is_long {
        wait_for("the copies to be forgotten", || {
            let begun = Instant::now();
            let is_any_old = READERS.iter().any(|(_, is_old)| is_old(b))
                | PURGED.iter().any(|(page, _)| b.get(page) == "old");
            let elapsed = begun.duration_since(cut);
            assert!(!is_any_old || elapsed < STALE_LIMIT, "{what}, {elapsed:?}");
            (elapsed > STALE_LIMIT && !is_any_old).then_some(())
        });
    }
    cut_off.come_back();
    for (title, is_old) in READERS {
        assert!(!is_old(b), "{what}: {title}");
    }
    for (page, _) in PURGED {
        assert_ne!(b.get(page), "old", "{what}: {page}");
    }
    assert_ne!(cached(b), kept, "{what}: a cached response");
    b.wait_for_text("/only/copy", "new");
    assert_eq!(b.get("/only/parts"), "new", "{what}");
}

#[test]
fn what_changes_while_a_machine_is_cut_off_is_not_served_after_its_return() {
    check_cut(Mode::Cut, false);
    std::thread::scope(|scope| {
        for mode in [Mode::Cut, Mode::BlackHole, Mode::Hold] {
            scope.spawn(move || check_cut(mode, true));
        }
    });
}

#[test]
fn a_page_that_a_machine_pushes_while_it_is_cut_off_is_stored_on_no_machine() {
    let cut_off = CutOff::start();
    let (a, b) = (&cut_off.a, &cut_off.b);
    for mode in [Mode::Cut, Mode::BlackHole] {
        cut_off.proxy.set(mode);
        b.push("/page", "pushed", "ttl=300");
        assert!(b.get_with("/stream/page", "Kirin-Store: ttl=300").starts_with("b "), "{mode:?}");
        b.kirin.wait_for_log("a response is not stored");
        cut_off.come_back();
        for target in ["/page", "/stream/page"] {
            for machine in [a, b] {
                assert_eq!(machine.memcached().get(target), None, "{mode:?} {target}");
            }
        }
    }
    b.push("/page", "pushed", "ttl=300");
    a.wait_for_text("/page", "pushed");
}

/// Lets the application of `b` begin a page, carries out `meanwhile`, and checks that the page is
/// stored on no machine.
fn check_begun_page(cut_off: &mut CutOff, target: &str, meanwhile: impl FnOnce(&mut CutOff)) {
    for name in ["begun", "go"] {
        drop(std::fs::remove_file(cut_off.b.site.path(name)));
    }
    let mut slow = cut_off.b.connect();
    let fields = "X-Value: slow\r\nX-Fields: Kirin-Store: ttl=300, tags=\"tag\"\r\n";
    slow.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
    cut_off.b.wait_until_begun();
    meanwhile(cut_off);
    cut_off.b.go();
    assert!(slow.read_reply().text().starts_with("slow"));
    for machine in [&cut_off.a, &cut_off.b] {
        assert_eq!(machine.memcached().get(target), None, "{target}");
    }
}

#[test]
fn a_page_that_was_begun_before_a_cut_is_stored_on_no_machine_after_a_purge() {
    let mut cut_off = CutOff::start();
    for target in ["/slow/wait", "/slow/stream/waiting"] {
        for (number, names) in ["tags=\"tag\"", "prefixes=\"/slow/\""].into_iter().enumerate() {
            check_begun_page(&mut cut_off, &format!("{target}?{number}"), |cut_off| {
                cut_off.proxy.set(Mode::Cut);
                assert_eq!(cut_off.a.purge(names).status, 200);
                cut_off.come_back();
            });
        }
        let key = format!("{target}?key");
        check_begun_page(&mut cut_off, &key, |cut_off| {
            cut_off.proxy.set(Mode::Cut);
            assert_eq!(cut_off.a.purge(&format!("keys=\"{key}\"")).status, 200);
            cut_off.come_back();
        });
    }
}

#[test]
fn a_page_that_was_begun_before_the_server_lost_a_purge_is_stored_on_no_machine() {
    let mut cut_off = CutOff::start();
    check_begun_page(&mut cut_off, "/slow/wait", |cut_off| {
        assert_eq!(cut_off.a.purge("tags=\"tag\"").status, 200);
        let connections =
            [&cut_off.a, &cut_off.b].map(|machine| machine.count_in_log("origin connected"));
        cut_off.redis.restart();
        for (machine, connections) in [&cut_off.a, &cut_off.b].into_iter().zip(connections) {
            machine.wait_for_connections(connections + 1);
        }
    });
}
