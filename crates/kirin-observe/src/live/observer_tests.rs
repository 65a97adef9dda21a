//! Tests of the sample.

use std::time::Duration;

use http::{Method, StatusCode};
use kirin_http::{AnsweredBy, RouteNote};

use super::*;
use crate::live::counts::Times;
use crate::live::report;

fn end(observer: &LiveObserver, at: Duration, target: &str) {
    let request = EndedRequest {
        id: &Default::default(),
        trace: None,
        host: "",
        method: &Method::GET,
        target,
        route: RouteNote::default(),
        cache_result: None,
        steps: None,
        status: StatusCode::OK,
        answered_by: AnsweredBy::new("files"),
        body_bytes: 10,
        received_bytes: 0,
        is_cut: false,
        started: observer.live.started,
        took: at,
    };
    observer.request_ended(&request);
}

fn observer() -> LiveObserver {
    LiveObserver::new(Arc::new(LiveLoop::new(Instant::now(), Vec::new(), Arc::default())))
}

#[test]
fn all_of_few_answers_are_counted_and_many_are_sampled() {
    let observer = observer();
    let weights: Vec<u32> = (0..EXACT_A_SECOND).map(|_| observer.weight(false)).collect();
    assert!(weights.iter().all(|weight| *weight == 1));
    let sampled: u64 = (0..160_000).map(|_| u64::from(observer.weight(false))).sum();
    assert!((150_000..170_000).contains(&sampled), "160,000 answers count as {sampled}");
    assert_eq!(observer.live.requests(), 161_000);
}

#[test]
fn a_request_that_waits_is_always_counted() {
    let observer = observer();
    for _ in 0..10 * EXACT_A_SECOND {
        observer.weight(false);
        assert_eq!(observer.weight(true), 1);
    }
}

#[test]
fn each_second_begins_with_exact_counts() {
    let observer = observer();
    while observer.exact_left.get() > 0 {
        observer.weight(false);
    }
    end(&observer, Duration::from_millis(900), "/a");
    assert_eq!(observer.exact_left.get(), 0);
    // The next answer that is counted tells that a second has begun.
    for _ in 0..2 * WEIGHT {
        end(&observer, Duration::from_millis(1100), "/a");
    }
    assert!(observer.exact_left.get() >= EXACT_A_SECOND - 2 * WEIGHT);
}

#[test]
fn a_report_adds_up_all_loops() {
    let started = Instant::now();
    let new_loop = |_| Arc::new(LiveLoop::new(started, Vec::new(), Arc::default()));
    let loops: Vec<_> = (0..2).map(new_loop).collect();
    for (live, target) in loops.iter().zip(["/memo/1", "/memo/2"]) {
        let observer = LiveObserver::new(Arc::clone(live));
        end(&observer, Duration::from_millis(8), target);
        end(&observer, Duration::from_millis(2), "/");
    }
    let report = report::read(&loops, started + Duration::from_secs(65), Times::LeftOut);
    assert_eq!((report.requests, report.recent_seconds), (4, 55.0));
    let rows: Vec<_> = report
        .urls
        .iter()
        .map(|url| {
            (url.pattern.as_str(), url.total.requests, url.total.time_ms, url.recent.requests)
        })
        .collect();
    // The parts of the first ten seconds are not in the last minute any more.
    assert_eq!(rows, [("/memo/{id}", 2, 16.0, 0), ("/", 2, 4.0, 0)]);
    assert_eq!(report.urls[0].places, [("files".to_owned(), 2)]);
    assert_eq!(report.total.requests, 4);
    let report = report::read(&loops, started + Duration::from_secs(9), Times::LeftOut);
    assert_eq!((report.recent_seconds, report.recent.requests), (9.0, 4));
}

#[test]
fn a_url_that_another_loop_has_merged_is_one_row() {
    let started = Instant::now();
    let new_loop = |_| Arc::new(LiveLoop::new(started, Vec::new(), Arc::default()));
    let loops: Vec<_> = (0..3).map(new_loop).collect();
    let observers: Vec<_> = loops.iter().map(|live| LiveObserver::new(Arc::clone(live))).collect();
    let get = |at: usize, target: &str| end(&observers[at], Duration::from_millis(1), target);
    // The first loop has few words, and the second one many. The third one has seen nothing else.
    for number in 0..50 {
        get(1, &format!("/w{number}x.php"));
        get(1, &format!("/w{number}x/Special:Version"));
    }
    for at in 0..3 {
        get(at, "/index.php");
        get(at, "/wiki/Special:Version");
        get(at, "/{name}.css");
    }
    get(0, "/index.html");
    let report = report::read(&loops, started, Times::LeftOut);
    let mut rows: Vec<_> =
        report.urls.iter().map(|url| format!("{} {}", url.pattern, url.total.requests)).collect();
    rows.sort();
    let expected =
        ["/index.html 1", "/{name}.css 3", "/{name}.php 53", "/{name}/Special:Version 53"];
    assert_eq!(rows, expected);
    assert_eq!((report.total.requests, report.requests), (110, 110));
}
