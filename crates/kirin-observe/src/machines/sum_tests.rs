//! Tests of the sum of snapshots.

use super::*;
use crate::live::rates::Rates;
use crate::live::views::tests::snapshot as sample;
use crate::live::views::{self, Span};
use crate::machines::card::MachineCard;

fn card(host: &str) -> MachineCard {
    MachineCard { id: host.into(), host: host.into(), ..MachineCard::default() }
}

fn report(change: impl Fn(&mut Snapshot)) -> Option<MachineReport> {
    let mut snapshot = sample();
    change(&mut snapshot);
    Some(MachineReport { snapshot, left_out: Vec::new() })
}

#[test]
fn rows_of_the_same_site_method_and_pattern_are_one() {
    let times = |micros: u64, requests: u32| CountsReport {
        requests: requests.into(),
        time_ms: micros as f64 / 1000.0 * f64::from(requests),
        by_class: [0, requests.into(), 0, 0, 0],
        times: vec![(micros, requests)],
        ..CountsReport::default()
    };
    let with = |site: &'static str, micros, requests| {
        report(move |snapshot| {
            let url = &mut snapshot.live.urls[0];
            url.site = site.into();
            (url.total, url.recent) = (times(micros, requests), times(micros, 1));
            url.places = vec![("app:web".into(), 1), (format!("files:{requests}"), 2)];
            snapshot.live.total = times(micros, requests);
        })
    };
    let answers = vec![
        (card("a"), with("", 1000, 90)),
        (card("b"), with("", 9000, 10)),
        (card("c"), with("wiki", 1000, 1)),
        (card("d"), None),
    ];
    let sum = snapshot(answers);
    let machines = sum.machines.as_ref().expect("machines");
    assert_eq!(
        (machines.answered.join(" "), machines.silent.join(" ")),
        ("a b c".into(), "d".into())
    );
    let rows: Vec<_> =
        sum.live.urls.iter().map(|url| (&*url.site, &*url.pattern, url.total.requests)).collect();
    assert!(rows.contains(&("", "/memo/{id}", 100)), "{rows:?}");
    assert!(rows.contains(&("wiki", "/memo/{id}", 1)), "{rows:?}");
    let url = sum.live.urls.iter().find(|url| url.total.requests == 100).expect("a row");
    assert_eq!((url.total.time_ms, url.recent.requests), (180.0, 2));
    assert_eq!(url.places[0], ("app:web".into(), 2));
    // 90 of 100 took about 1 ms, 10 about 9 ms. The buckets are at most 6 % off.
    for (percentile, expected) in [(url.total.p50_ms, 1.0), (url.total.p95_ms, 9.0)] {
        assert!((percentile / expected - 1.0).abs() < 0.07, "{percentile} for {expected}");
    }
    assert!(sum.live.total.p50_ms < 1.1 && sum.live.total.requests == 101, "{:?}", sum.live.total);
    assert!(sum.live.urls.iter().all(|url| url.total.times.is_empty()));
    assert_eq!(sum.live.requests, 3 * sample().live.requests);
}

#[test]
fn workers_and_slow_requests_have_their_machine() {
    let sum = snapshot(vec![(card("a"), report(|_| {})), (card("b"), report(|_| {}))]);
    let workers = views::workers(&sum);
    assert_eq!((workers.columns[0].name, workers.rows.len()), ("machine", 4));
    let machines: Vec<_> = workers.rows.iter().map(|row| row[0].text.as_str()).collect();
    assert_eq!(machines, ["a", "a", "b", "b"]);
    assert_eq!(workers.columns[workers.order.expect("an order")].name, "for");
    let slow = views::slow(&sum);
    let at = slow.columns.iter().position(|column| column.name == "machine").expect("a column");
    assert_eq!(slow.rows.iter().map(|row| &*row[at].text).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(views::apps(&sum).rows[0][2].text, "4");
    for table in views::all(&sum, Span::LastMinute) {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.title);
    }
}

#[test]
fn rates_are_those_of_the_same_machines() {
    let later = |seconds: u64, requests: u64| {
        report(move |snapshot| {
            snapshot.uptime_ms += seconds * 1000;
            snapshot.live.requests += requests;
        })
    };
    let before = snapshot(vec![(card("a"), later(0, 0)), (card("b"), later(10, 0))]);
    let now = snapshot(vec![(card("a"), later(2, 100)), (card("b"), later(12, 300))]);
    assert_eq!(Rates::between(Some(&before), &now).requests, 200.0);
    // A machine that has come is no burst of requests.
    let more = snapshot(vec![
        (card("a"), later(2, 0)),
        (card("b"), later(99, 0)),
        (card("c"), later(99, 0)),
    ]);
    let recent = Rates::between(None, &more).requests;
    assert_eq!(Rates::between(Some(&before), &more).requests, recent);
    assert_eq!(recent, 3.0 * Rates::between(None, &sample()).requests);
}

#[test]
fn versions_are_shown_together_and_rows_are_bounded() {
    let answers = vec![
        (card("a"), report(|snapshot| snapshot.status["version"] = "2".into())),
        (
            card("b"),
            report(|snapshot| {
                let url = |at: usize| UrlReport { pattern: format!("/{at}"), ..Default::default() };
                snapshot.live.urls = (0..MOST_URLS + 5).map(url).collect();
                snapshot.status["version"] = "1".into();
            }),
        ),
    ];
    let sum = snapshot(answers);
    assert_eq!(sum.status["version"], "1, 2");
    assert_eq!(sum.live.urls.len(), MAX_REPORTED);
    let left_out = sample().live.urls.len() + MOST_URLS + 5 - MAX_REPORTED;
    let expected = [format!("{left_out} rows of URLs, which are too much")];
    assert_eq!(sum.machines.expect("machines").left_out, expected);
    let none = snapshot(vec![(card("a"), None)]);
    assert_eq!((none.uptime_ms, none.status), (0, Value::Null));
}
