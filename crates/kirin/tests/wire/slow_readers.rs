//! Clients that read the response of an application slowly. They take the front's memory and disk,
//! but never a worker.

use std::time::Duration;

use kirin_floor::crowd::{self, Crowd};
use kirin_tests::{Kirin, Site, wait_limit};
use rustix::process::Signal;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// Returns 12 MB of numbered lines. That is more than sockets and the front's memory hold, and no
/// two places are equal.
const APP: &str = r"
use v5.16; use warnings;
my $lines = join '', map { sprintf qq{%011d\n}, $_ } 1 .. 1_000_000;
sub {
    my $path = $_[0]{PATH_INFO};
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $lines], [$lines]] if $path eq '/sized';
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => 5], ['hello']] if $path ne '/stream';
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/plain']]);
        $writer->write(substr $lines, $_ * 120_000, 120_000) for 0 .. 99;
        $writer->close;
    };
};
";

fn serve() -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

fn assert_lines(body: &[u8]) {
    assert_eq!(body.len(), 12_000_000);
    for (number, line) in (1..).zip(body.chunks(12)) {
        assert_eq!(String::from_utf8_lossy(line), format!("{number:011}\n"));
    }
}

#[test]
fn workers_are_free_while_large_responses_wait_for_their_clients() {
    let (_site, kirin) = serve();
    for path in ["/sized", "/stream"] {
        let mut waiting: Vec<_> = (0..4).map(|_| kirin.connect()).collect();
        for client in &mut waiting {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        }
        let mut other = kirin.connect();
        for _ in 0..10 {
            assert_eq!(other.get("/").text(), "hello", "{path}");
        }
        for client in &mut waiting {
            assert_lines(&client.read_reply().body);
            // The connection is as good as before.
            assert_eq!(client.get("/").text(), "hello");
        }
        assert_lines(&other.get(path).body);
    }
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_crowd_is_served_beside_readers_of_one_byte_a_second() {
    let (_site, kirin) = serve();
    let crowd = Crowd {
        address: kirin.address(),
        visitors: 20,
        requests: 20,
        path: "/".to_owned(),
        keep_alive: true,
        pause: Duration::ZERO,
        timeout: wait_limit(),
        limit: wait_limit(),
        slow_readers: 20,
        slow_path: "/stream".to_owned(),
    };
    let mut outcome = crowd::run(crowd).expect("a run");
    let report = outcome.report();
    assert_eq!(
        (outcome.latencies.len(), outcome.slow_served, outcome.slow_open),
        (400, 20, 20),
        "{report:?}"
    );
}

#[test]
fn a_client_that_leaves_an_unread_response_leaves_nothing_behind() {
    let (_site, mut kirin) = serve();
    let mut gone = kirin.connect();
    gone.send("GET /sized HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(gone.read_head_reply().status, 200);
    drop(gone);
    let mut client = kirin.connect();
    for _ in 0..10 {
        assert_eq!(client.get("/").text(), "hello");
    }
    drop(client);
    kirin.signal(Signal::TERM);
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
}
