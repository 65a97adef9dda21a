//! Queues that clients share. No client can have a complete queue for itself.

use std::sync::{Arc, Condvar, Mutex};

use kirin_tests::{ADMIN, Backend, Client, Kirin, Site, kirin_command, wait_for, wait_limit};

/// An application and an upstream, each with one request at a time and three that wait.
const CONFIG: &str = r#"
threads = 1
[[listener]]
address = "127.0.0.1:0"
trusted = ["127.0.0.1"]
[[app]]
name = "web"
load = "app.psgi"
workers = 1
queue = 3
[[upstream]]
name = "api"
servers = ["BACKEND"]
max_in_flight = 1
queue = 3
[[route]]
path = "/app"
try = ["app:web"]
[[route]]
path = "/api"
try = ["proxy:api"]
"#;

const APP: &str = r#"
sub {
    my $env = shift;
    open my $begun, '>', "begun.$env->{QUERY_STRING}";
    select undef, undef, undef, 0.01 until unlink 'go';
    [200, [], [$env->{QUERY_STRING}]];
};
"#;

/// Releases requests of the upstream, one by one.
type Gate = Arc<(Mutex<usize>, Condvar)>;

fn serve() -> (Site, Kirin, Backend, Gate) {
    let gate = Gate::default();
    let passes = Arc::clone(&gate);
    let backend = Backend::start(move |mut connection| {
        while let Some(asked) = connection.read_request() {
            let (left, changed) = &*passes;
            let left = left.lock().expect("the gate");
            let (mut left, _) = changed
                .wait_timeout_while(left, wait_limit(), |left| *left == 0)
                .expect("the gate");
            *left = left.saturating_sub(1);
            let name = asked.target().split('?').next_back().unwrap_or_default().to_owned();
            connection
                .send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len()));
        }
    });
    let site = Site::new().with("app.psgi", APP);
    let config = CONFIG.replace("BACKEND", &backend.address().to_string()) + ADMIN;
    let kirin = Kirin::start(&site, &config);
    (site, kirin, backend, gate)
}

/// Sends a request from an address that a trusted proxy reports.
fn ask(kirin: &Kirin, address: &str, target: &str) -> Client {
    let mut client = kirin.connect();
    client
        .send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: {address}\r\n\r\n"));
    client
}

/// Checks that a new client gets its turn while another client floods a queue. It waits for one
/// request of the flood and replaces the newest. `is_busy` reports whether a request is being
/// answered, `waiting` is the number of waiting requests, and `release` lets one request be
/// answered.
fn another_client_has_its_turn(
    kirin: &Kirin,
    path: &str,
    is_busy: impl Fn() -> bool,
    waiting: impl Fn() -> u64,
    release: impl Fn(),
) {
    let wait_until =
        |count| wait_for("requests in the queue", || (waiting() == count).then_some(()));
    let mut flood = vec![ask(kirin, "192.0.2.1", &format!("{path}?flood0"))];
    wait_for("the first to be at work", || is_busy().then_some(()));
    for number in 1..=3 {
        flood.push(ask(kirin, "192.0.2.1", &format!("{path}?flood{number}")));
        wait_until(number);
    }
    assert_eq!(ask(kirin, "192.0.2.1", path).read_reply().status, 503, "no room for the flood");
    let mut other = ask(kirin, "192.0.2.2", &format!("{path}?other"));
    assert_eq!(flood.pop().expect("the newest").read_reply().status, 503);
    for (turn, client) in [flood.remove(0), flood.remove(0)].iter_mut().enumerate() {
        release();
        assert_eq!(client.read_reply().text(), format!("flood{turn}"));
    }
    release();
    assert_eq!(other.read_reply().text(), "other");
    release();
    assert_eq!(flood[0].read_reply().text(), "flood2");
}

#[test]
fn a_client_that_floods_an_application_blocks_no_other() {
    let (site, kirin, _backend, _gate) = serve();
    let waiting = || kirin.status()["apps"][0]["waiting_requests"].as_u64().unwrap_or_default();
    let release = || std::fs::write(site.path("go"), "").expect("write");
    let is_busy = || site.path("begun.flood0").exists();
    another_client_has_its_turn(&kirin, "/app", is_busy, waiting, release);
}

#[test]
fn a_client_that_floods_an_upstream_blocks_no_other() {
    let (_site, kirin, _backend, gate) = serve();
    let waiting = || kirin.status()["upstreams"]["api"]["queued"].as_u64().unwrap_or_default();
    let release = || {
        *gate.0.lock().expect("the gate") += 1;
        gate.1.notify_all();
    };
    let is_busy = || kirin.count_of_servers("api", "in_flight") == 1;
    another_client_has_its_turn(&kirin, "/api", is_busy, waiting, release);
}

/// An application with two workers, on two event loops.
const TWO_WORKERS: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
trusted = ["127.0.0.1"]
[[app]]
name = "web"
load = "app.psgi"
workers = 2
queue = 100
MEMORY
[[route]]
path = "/"
try = ["app:web"]
"#;

/// Answers `?fast` at once. Other requests note that they have begun, and end when they may.
const FAST_OR_HELD: &str = r#"
sub {
    my $name = $_[0]{QUERY_STRING};
    return [200, [], []] if $name eq 'fast';
    open my $begun, '>>', 'begun';
    syswrite $begun, "$name\n";
    select undef, undef, undef, 0.01 until unlink 'go';
    [200, [], []];
};
"#;

/// Requests of a flood and one of another client, to workers that were fast until now.
struct SlowFlood {
    site: Site,
    kirin: Kirin,
    clients: Vec<Client>,
}

impl SlowFlood {
    /// Lets workers answer fast requests. `memory` is a line of the application's configuration.
    fn serve(memory: &str) -> Self {
        let site = Site::new().with("app.psgi", FAST_OR_HELD).with("begun", "");
        let site = site.with("kirin.toml", TWO_WORKERS.replace("MEMORY", memory) + ADMIN);
        // The configuration alone says whether there is a ring.
        let mut command = kirin_command(&site);
        let kirin = Kirin::start_command(command.arg("serve").env_remove("KIRIN_RING"));
        let mut client = kirin.connect();
        for _ in 0..300 {
            client.send("GET /?fast HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n");
            assert_eq!(client.read_reply().status, 200);
        }
        Self { site, kirin, clients: Vec::new() }
    }

    /// Returns a count in the status of the application.
    fn count(&self, pointer: &str) -> u64 {
        let status = self.kirin.status();
        let count = status["apps"][0].pointer(pointer).expect("a field");
        count.as_u64().expect("a count")
    }

    fn ask(&mut self, address: &str, name: &str) {
        self.clients.push(ask(&self.kirin, address, &format!("/?{name}")));
    }

    /// Waits until `count` requests wait for a worker.
    fn wait_for_waiting(&self, count: u64) {
        wait_for(&format!("{count} waiting requests"), || {
            (self.count("/waiting_requests") == count).then_some(())
        });
    }

    /// Returns the names of the requests that have begun, when there are `count`.
    fn begun(&self, count: usize) -> Vec<String> {
        wait_for(&format!("{count} requests that have begun"), || {
            let text = std::fs::read_to_string(self.site.path("begun")).expect("a file");
            let names: Vec<_> = text.lines().map(str::to_owned).collect();
            (names.len() == count).then_some(names)
        })
    }

    /// Lets one request end.
    fn release(&self) {
        std::fs::write(self.site.path("go"), "").expect("a file");
        wait_for("the end of a request", || (!self.site.path("go").exists()).then_some(()));
    }

    /// Lets one request after the other end, of which `begun` have begun. Returns all in the order
    /// in which they have begun.
    fn release_all(&mut self, begun: usize) -> Vec<String> {
        let count = self.clients.len();
        for begun in begun + 1..=count {
            self.release();
            self.begun(begun);
        }
        let names = self.begun(count);
        (0..2).for_each(|_| self.release());
        self.clients.iter_mut().for_each(|client| assert_eq!(client.read_reply().status, 200));
        names
    }
}

#[test]
fn slow_requests_of_a_client_leave_the_ring_for_the_queue() {
    let mut flood = SlowFlood::serve("");
    for number in 0..12 {
        flood.ask("192.0.2.1", &format!("early{number}"));
    }
    flood.begun(2);
    flood.wait_for_waiting(10);
    wait_for("only those in the ring that workers have", || {
        (flood.count("/rings/0/requests") == 2).then_some(())
    });
    for number in 0..3 {
        flood.ask("192.0.2.1", &format!("late{number}"));
        flood.wait_for_waiting(11 + number);
    }
    flood.ask("192.0.2.2", "other");
    flood.wait_for_waiting(14);
    let names = flood.release_all(2);
    assert_eq!(names[3], "other", "behind one request of the flood: {names:?}");
    assert_eq!(names[13..], ["late0", "late1", "late2"], "each client in its order: {names:?}");
}

#[test]
fn a_flood_over_two_event_loops_delays_another_client_by_one_request() {
    let mut flood = SlowFlood::serve("shared_memory = \"0B\"");
    for number in 0..30 {
        flood.ask("192.0.2.1", &format!("flood{number}"));
    }
    flood.begun(2);
    flood.wait_for_waiting(28);
    // So some of one loop have overtaken others.
    for begun in 3..8 {
        flood.release();
        flood.begun(begun);
    }
    flood.ask("192.0.2.2", "other");
    // One of 28 for each that has begun since, and the other client's.
    flood.wait_for_waiting(24);
    let names = flood.release_all(7);
    // Seven had begun. One of the flood may come before it.
    assert!(names[..9].contains(&"other".to_owned()), "{names:?}");
}
