//! Workers are killed at random while they serve through the ring. The application is
//! `adapters/ring/t/echo_app.c`, since processes of a small program are forked fast.
//!
//! `KIRIN_KILLS` says how many workers are killed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Client, Site, eventually, patient};

/// The workers of the application.
const WORKERS: usize = 6;

/// The clients, each with one request at a time.
const CLIENTS: u64 = 16;

/// The workers that are killed, unless `KIRIN_KILLS` says something else.
const KILLS: u64 = 3_000;

/// Compiles the application. Returns the program.
fn echo_app() -> PathBuf {
    let ring = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/ring");
    let program =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("echo-{}", std::process::id()));
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(&ring)
        .args([ring.join("t/echo_app.c"), ring.join("kirin_ring.c")])
        .arg("-o")
        .arg(&program)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{status}");
    program
}

/// A generator of numbers that look random (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (number ^ (number >> 31)) % limit
    }
}

/// What the clients have got.
#[derive(Default)]
struct Replies {
    good: AtomicU64,
    bad_gateway: AtomicU64,
}

/// Sends one request and checks that the response is its own.
fn ask(client: &mut Client, number: u64, kind: u64, replies: &Replies) {
    let (method, ending) = match kind {
        0 => ("GET", "/connection"),
        1 => ("GET", "/long"),
        2 => ("POST", "/cleanup"),
        3 => ("POST", "/connection"),
        4..8 => ("POST", ""),
        _ => ("GET", ""),
    };
    // A large body comes over the connection.
    let body = if kind == 4 { vec![b'x'; 20_000] } else { Vec::new() };
    let length = body.len();
    let head = format!(
        "{method} /{number}{ending} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n"
    );
    client.send([head.as_bytes(), &body].concat());
    let reply = client.reply();
    match reply.status {
        200 => {
            let text = reply.text();
            let own = text.trim_end_matches('x');
            assert_eq!(own, number.to_string(), "{method} /{number}{ending}");
            assert_eq!(text.len() > 1000, ending == "/long", "{method} /{number}{ending}");
            replies.good.fetch_add(1, Ordering::Relaxed);
        }
        502 => {
            replies.bad_gateway.fetch_add(1, Ordering::Relaxed);
        }
        status => panic!("{status} to {method} /{number}{ending}"),
    }
}

#[test]
fn workers_killed_at_random_lose_no_request_and_no_slot() {
    let program = echo_app();
    let kills: u64 = std::env::var("KIRIN_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let site = Site::start_with("", |config| {
        config.interpreter = Some(program.clone());
        config.workers = WORKERS;
        config.queue_wait = patient(Duration::from_secs(60));
    })
    .unwrap();
    let (is_over, replies) = (AtomicBool::new(false), Replies::default());
    let next = AtomicU64::new(1);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (site, is_over, replies, next) = (&site, &is_over, &replies, &next);
            scope.spawn(move || {
                let mut numbers = Numbers(client);
                let mut connection = site.connect();
                while !is_over.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    ask(&mut connection, number, numbers.below(40), replies);
                }
            });
        }
        let mut numbers = Numbers(4711);
        let mut killed = 0;
        while killed < kills {
            let pids = site.app.worker_pids();
            if pids.is_empty() {
                std::thread::yield_now();
                continue;
            }
            let pid = pids[numbers.below(pids.len() as u64) as usize];
            let process = Pid::from_raw(pid.cast_signed()).unwrap();
            if kill_process(process, Signal::KILL).is_ok() {
                killed += 1;
            }
            // A worker is hit at any moment of its life: at once, or after some requests.
            if numbers.below(4) > 0 {
                std::thread::sleep(Duration::from_micros(numbers.below(2_000)));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (good, bad) = (replies.good.into_inner(), replies.bad_gateway.into_inner());
    println!("{kills} workers killed, {good} requests answered, {bad} with 502");
    assert!(good > 10 * bad, "{good} good, {bad} bad");

    eventually("all workers are there", || site.app.idle_workers() == WORKERS);
    eventually("all slots are free", || {
        site.app.ring_status().iter().all(|ring| ring.requests == 0)
    });
    // Every worker takes part, and nothing that is left over gets in the way.
    let mut connection = site.connect();
    let replies = Replies::default();
    for number in 0..2_000 {
        ask(&mut connection, number + 1_000_000_000, number % 10, &replies);
    }
    assert_eq!(replies.good.into_inner(), 2_000);

    // A request that may be repeated was seen at most twice, any other one once.
    let seen = std::fs::read_to_string(site.directory.path().join("app.psgi")).unwrap();
    let mut count = HashMap::<&str, u32>::new();
    seen.lines().for_each(|line| *count.entry(line).or_default() += 1);
    let too_often: Vec<_> = count
        .into_iter()
        .filter(|(line, count)| *count > if line.starts_with("GET") { 2 } else { 1 })
        .collect();
    assert!(too_often.is_empty(), "{too_often:?}");
    std::fs::remove_file(program).unwrap();
}
