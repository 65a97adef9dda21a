//! Many clients with a few workers. Every request is served, whatever other clients do and however
//! often the application is replaced.
//!
//! The full size (1,000 clients, 500 slow readers, 100,000 requests over restarts) is
//! `bench/compare.py crowd` and `restart`. Reloads under a few busy kept connections are in
//! `lifecycle.rs`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kirin_floor::crowd::{self, Crowd, Outcome};
use kirin_tests::{Kirin, Site, wait_for, wait_limit};
use rustix::process::Signal;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 5\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

const APP: &str = r"
use v5.16; use warnings;
my $large = 'x' x (256 * 1024);
sub {
    my $body = $_[0]{PATH_INFO} eq '/large' ? $large : 'hello';
    [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $body], [$body]];
};
";

fn crowd(address: SocketAddr) -> Crowd {
    Crowd {
        address,
        visitors: 200,
        requests: 50,
        path: "/".to_owned(),
        keep_alive: true,
        pause: Duration::ZERO,
        timeout: wait_limit(),
        limit: wait_limit() * 3,
        slow_readers: 0,
        slow_path: "/large".to_owned(),
    }
}

fn assert_all_answered(mut outcome: Outcome, requests: usize, kirin: &Kirin) {
    let report = outcome.report();
    assert_eq!(outcome.latencies.len(), requests, "{report:?}\n{}", kirin.log());
    assert_eq!((outcome.failed(), outcome.left_over), (0, 0), "{report:?}\n{}", kirin.log());
}

#[test]
fn many_kept_connections_share_few_workers_and_no_request_fails() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let outcome = crowd::run(Crowd { slow_readers: 100, ..crowd(kirin.address()) }).expect("a run");
    assert_eq!((outcome.slow_served, outcome.slow_open), (100, 100), "{}", kirin.log());
    assert_eq!(outcome.reconnects, 0, "kept connections were ended");
    assert_all_answered(outcome, 200 * 50, &kirin);
}

#[test]
fn no_new_connection_fails_while_generations_come_and_go() {
    const REQUESTS: usize = 10_000;
    const RELOADS: usize = 4;
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let (reloads, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (outcome, requests) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut outcome = Outcome::default();
            let mut requests = 0;
            while outcome.failed() == 0
                && (requests < REQUESTS || reloads.load(Ordering::Relaxed) < RELOADS)
            {
                let new_connections = Crowd {
                    visitors: 20,
                    requests: 100,
                    keep_alive: false,
                    ..crowd(kirin.address())
                };
                outcome.append(crowd::run(new_connections).expect("a run"));
                requests += 20 * 100;
            }
            enough.store(true, Ordering::Relaxed);
            (outcome, requests)
        });
        while !enough.load(Ordering::Relaxed) && !load.is_finished() {
            kirin.signal(Signal::HUP);
            wait_for("the next generation", || {
                let takeovers = kirin.log().matches("new generation serves").count();
                (takeovers > reloads.load(Ordering::Relaxed) || load.is_finished()).then_some(())
            });
            reloads.fetch_add(1, Ordering::Relaxed);
        }
        load.join().expect("no panic")
    });
    assert_all_answered(outcome, requests, &kirin);
    assert!(!kirin.log().contains("request failed"), "{}", kirin.log());
}
