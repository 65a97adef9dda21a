//! Queues that clients share. No client can have a complete queue for itself.

use std::sync::{Arc, Condvar, Mutex};

use kirin_tests::{ADMIN, Backend, Client, Kirin, Site, wait_for, wait_limit};

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
