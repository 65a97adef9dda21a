//! Tests of the table.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use kirin_http::{AnsweredBy, RequestId, RouteNote};

use super::*;
use crate::live::counts::Times;

/// Returns a request to `target` that took ten milliseconds.
fn request<'a>(method: &'a Method, target: &'a str) -> EndedRequest<'a> {
    EndedRequest {
        id: &RequestId::Made(0),
        trace: None,
        host: "",
        method,
        target,
        route: RouteNote::default(),
        cache_result: None,
        steps: None,
        status: StatusCode::OK,
        answered_by: AnsweredBy::new("store"),
        body_bytes: 100,
        received_bytes: 0,
        is_cut: false,
        started: Instant::now(),
        took: Duration::from_millis(10),
    }
}

fn new_table(patterns: &[&str], sites: &[&str]) -> UrlTable {
    let parse = |text: &&str| ConfiguredPattern::parse(text).unwrap();
    let sites = Arc::new(RouteSites::with_one_route_each(sites));
    UrlTable::new(patterns.iter().map(parse).collect(), sites)
}

fn requests_of(table: &UrlTable) -> u64 {
    let requests =
        |key| table.row(key).map_or(0, |(_, row)| row.total.report(Times::LeftOut).requests);
    table.keys().into_iter().map(requests).sum()
}

#[test]
fn requests_count_by_method_and_pattern() {
    let mut table = new_table(&["/@{user}"], &[]);
    for target in ["/memo/1?x", "/memo/2", "/@alice", "/@bob"] {
        table.add(&request(&Method::GET, target), 2, 0);
    }
    table.add(&request(&Method::POST, "/memo/7"), 1, 0);
    let mut rows: Vec<_> = table
        .keys()
        .into_iter()
        .filter_map(|key| Some((key.method.name(), table.row(key)?)))
        .map(|(method, (name, row))| (method, name, row.total.report(Times::LeftOut)))
        .collect();
    rows.sort_by_key(|(method, name, _)| (*method, name.clone()));
    let seen: Vec<_> =
        rows.iter().map(|(method, name, row)| (*method, name.as_str(), row.requests)).collect();
    assert_eq!(seen, [("GET", "/@{user}", 4), ("GET", "/memo/{id}", 4), ("POST", "/memo/{id}", 1)]);
    let (_, _, memo) = &rows[1];
    assert_eq!(
        (memo.hits, memo.bytes, memo.by_class, memo.time_ms),
        (4, 400, [0, 4, 0, 0, 0], 40.0)
    );
}

#[test]
fn the_last_minute_ends_after_a_minute() {
    let mut row = Row::default();
    for part in [0, 1, 5, 6] {
        row.add(&request(&Method::GET, "/"), 1, part);
    }
    let recent = |row: &Row, part| row.recent(part).report(Times::LeftOut).requests;
    // Part 0 was overwritten by part 6.
    assert_eq!([6, 7, 11, 12].map(|part| recent(&row, part)), [3, 2, 1, 0]);
    assert_eq!(row.total.report(Times::LeftOut).requests, 4);
}

#[test]
fn merged_rows_keep_the_counts_of_the_last_minute() {
    let (mut into, mut from) = (Row::default(), Row::default());
    into.add(&request(&Method::GET, "/a"), 1, 7);
    from.add(&request(&Method::GET, "/b"), 1, 1);
    from.add(&request(&Method::GET, "/b"), 1, 8);
    into.merge(&from);
    assert_eq!(into.recent(8).report(Times::LeftOut).requests, 2);
    assert_eq!(into.total.report(Times::LeftOut).requests, 3);
    let store = PlaceName { part: AnsweredBy::new("store"), name: None };
    assert_eq!(into.places, [(store, 3)]);
}

#[test]
fn strangers_cannot_make_the_table_grow() {
    let mut table = new_table(&[], &[]);
    let methods = ["GET", "POST", "PUT", "BREW", "MELT"]
        .map(|method| Method::from_bytes(method.as_bytes()).unwrap());
    let mut count = 0;
    for number in 0..20_000u32 {
        let depth = number % 13;
        let word = |level| format!("/w{:x}", number.wrapping_mul(2_654_435_761 ^ level));
        let target: String = (0..=depth).map(word).collect();
        table.add(&request(&methods[number as usize % methods.len()], &target), 1, 0);
        count += 1;
    }
    assert!(table.rows.len() <= UrlTable::max_rows(), "{} rows", table.rows.len());
    assert_eq!(requests_of(&table), count);
}

#[test]
fn each_site_has_rows_and_words_of_its_own() {
    let mut table = new_table(&[], &["wiki", "git"]);
    let mut add = |route: Option<u32>, target: &str| {
        let note = RouteNote { number: route, ..RouteNote::default() };
        table.add(&EndedRequest { route: note, ..request(&Method::GET, target) }, 1, 0);
    };
    for number in 0..50 {
        add(Some(0), &format!("/word{number}x"));
    }
    for route in [Some(0), Some(1), None] {
        add(route, "/");
        add(route, "/index.php");
    }
    let row = |key: RowKey| Some((table.sites.name(key.site), table.row(key)?));
    let mut rows: Vec<_> = table
        .keys()
        .into_iter()
        .filter_map(row)
        .map(|(site, (pattern, row))| {
            format!("{site} {pattern} {}", row.total.report(Times::LeftOut).requests)
        })
        .collect();
    rows.sort();
    let expected = [
        " / 1",
        " /index.php 1",
        "git / 1",
        "git /index.php 1",
        "wiki / 1",
        "wiki /{name} 50",
        "wiki /{name}.php 1",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn many_sites_cannot_make_the_table_grow() {
    let names: Vec<String> = (0..500).map(|number| format!("site{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = new_table(&[], &names);
    for number in 0..20_000 {
        let note = RouteNote { number: Some(number % 500), ..RouteNote::default() };
        let target = format!("/w{number}x/y{number}x");
        table.add(&EndedRequest { route: note, ..request(&Method::GET, &target) }, 1, 0);
    }
    assert!(table.rows.len() <= UrlTable::max_rows(), "{} rows", table.rows.len());
    assert_eq!(requests_of(&table), 20_000);
}
