//! Workers that serve several requests at the same time. The adapter is a script of the tests.

use std::path::Path;
use std::time::{Duration, Instant};

use kirin_workers::{AppCode, AppConfig};

use crate::support::{Client, Site, eventually, is_alive, patient};

fn start(configure: impl FnOnce(&mut AppConfig)) -> Site {
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/event_loop_adapter");
    let started = Site::start_with("", |config| {
        config.code = AppCode::PythonFile { file: "app.psgi".into(), object: None };
        config.adapter = Some(adapter);
        configure(config);
    });
    started.expect("it starts")
}

/// Sends a GET without reading the response.
fn ask(site: &Site, path: &str) -> Client {
    let mut client = site.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

/// Begins a streamed response, which ends when the file is there.
fn begin_stream(site: &Site, file: &str) -> Client {
    let mut client = ask(site, &format!("/stream/{file}"));
    assert!(client.head().expect("a head").starts_with("HTTP/1.1 200"));
    assert_eq!(client.chunk(), Ok(Some(b"begun".to_vec())));
    client
}

fn end_streams(site: &Site, file: &str) {
    std::fs::write(site.directory.path().join(file), "").expect("write");
}

fn ends_whole(mut client: Client) -> bool {
    client.chunk() == Ok(Some(b"ended".to_vec())) && client.chunk() == Ok(None)
}

#[test]
fn one_worker_serves_many_requests_at_the_same_time() {
    let site = start(|_| {});
    // Each waits in the worker until all are there.
    let clients: Vec<_> = (0..12).map(|_| ask(&site, "/together/12")).collect();
    let pid = site.worker().to_string();
    for mut client in clients {
        assert_eq!(client.reply().text(), pid);
    }
    assert_eq!(site.app.idle_workers(), 1);
}

#[test]
fn more_requests_than_a_worker_takes_wait() {
    let site = start(|_| {});
    let mut held: Vec<_> = (0..16).map(|_| begin_stream(&site, "done")).collect();
    let mut late = ask(&site, "/pid");
    eventually("a request waits", || site.app.waiting_requests() == 1);
    end_streams(&site, "done");
    assert!(held.drain(..).all(ends_whole));
    assert_eq!(late.reply().text(), site.worker().to_string());
}

#[test]
fn a_request_goes_to_the_worker_with_the_fewest() {
    let site = start(|config| config.workers = 2);
    eventually("both workers are idle", || site.app.idle_workers() == 2);
    let held: Vec<_> = (0..8).map(|_| begin_stream(&site, "done")).collect();
    let status = site.app.worker_status(Instant::now());
    let mut running: Vec<_> =
        status.iter().map(|worker| (worker.request.is_some(), worker.more_requests)).collect();
    // When all connections of a worker are in use, the other one gets more until it has others.
    running.sort_unstable();
    assert_eq!(running.iter().map(|(_, more)| more + 1).sum::<usize>(), 8, "{status:?}");
    assert!(running.iter().all(|(has, more)| *has && *more >= 1), "{status:?}");
    end_streams(&site, "done");
    assert!(held.into_iter().all(ends_whole));
    eventually("both workers are idle", || site.app.idle_workers() == 2);
}

#[test]
fn an_overdue_request_ends_and_the_others_of_its_worker_go_on() {
    let site = start(|config| config.request_deadline = Duration::from_secs(1));
    let held = begin_stream(&site, "done");
    let pid = site.worker();
    // The last of them come when the worker has had its time to show that it hangs.
    for number in 0..6 {
        let mut overdue = ask(&site, &format!("/abandoned/given-up-{number}"));
        assert_eq!(overdue.reply().status, 504);
        let given_up = site.directory.path().join(format!("given-up-{number}"));
        eventually("the worker has noticed", || given_up.exists());
    }
    end_streams(&site, "done");
    assert!(ends_whole(held));
    assert_eq!(site.get("/pid").text(), pid.to_string());
}

#[test]
fn a_worker_that_hangs_is_killed_with_all_its_requests() {
    let site = start(|config| config.request_deadline = Duration::from_secs(1));
    let mut held = begin_stream(&site, "done");
    let pid = site.worker();
    let mut hanging = ask(&site, "/hang");
    assert_eq!(hanging.reply().status, 504);
    assert!(held.chunk().is_err(), "the response is cut");
    eventually("the worker has ended", || !is_alive(pid));
    assert_ne!(site.get("/pid").text(), pid.to_string());
}

#[test]
fn a_worker_that_leaves_finishes_its_requests_and_gets_no_others() {
    let site = start(|_| {});
    let held = begin_stream(&site, "done");
    let old = site.get("/leave").text();
    eventually("there is another worker", || {
        let reply = site.get("/pid");
        reply.status == 200 && reply.text() != old
    });
    end_streams(&site, "done");
    assert!(ends_whole(held));
    eventually("the worker has ended", || !is_alive(old.parse().expect("a pid")));
}

#[test]
fn a_reload_and_a_change_of_the_workers_lose_no_request() {
    let site = start(|config| {
        config.workers = 3;
        config.start_limit = patient(Duration::from_secs(60));
    });
    eventually("all workers are there", || site.app.idle_workers() == 3);
    let old = site.app.worker_pids();
    let held: Vec<_> = (0..6).map(|_| begin_stream(&site, "done")).collect();
    site.app.reload();
    eventually("the new workers serve", || {
        let status = site.app.worker_status(Instant::now());
        status.iter().filter(|worker| worker.generation == 2).count() == 3
    });
    for _ in 0..20 {
        let pid: u32 = site.get("/pid").text().parse().expect("a pid");
        assert!(!old.contains(&pid));
    }
    end_streams(&site, "done");
    assert!(held.into_iter().all(ends_whole));
    eventually("the old workers have ended", || !old.iter().any(|pid| is_alive(*pid)));
    eventually("all workers are idle", || site.app.idle_workers() == 3);
}

#[test]
fn a_worker_that_was_killed_gets_its_share_of_connections_again() {
    let site = start(|config| config.workers = 2);
    eventually("both workers are idle", || site.app.idle_workers() == 2);
    let killed = site.app.worker_pids()[0];
    crate::support::kill(killed, rustix::process::Signal::KILL);
    eventually("another one has taken its place", || {
        site.app.idle_workers() == 2 && !site.app.worker_pids().contains(&killed)
    });
}
