//! Tests of the tables, and a snapshot for other tests.

use serde_json::json;

use super::*;
use crate::live::report::LiveReport;

/// Returns counts of so many requests that took so many milliseconds each.
fn counts(requests: u64, each_ms: f64, hits: u64) -> CountsReport {
    CountsReport {
        requests,
        time_ms: requests as f64 * each_ms,
        bytes: requests * 1000,
        hits,
        by_class: [0, requests, 0, 0, 0],
        p50_ms: each_ms,
        p95_ms: 2.0 * each_ms,
        p99_ms: 3.0 * each_ms,
    }
}

fn url(method: &str, pattern: &str, place: &str, recent: CountsReport) -> UrlReport {
    UrlReport {
        site: String::new(),
        method: method.into(),
        pattern: pattern.into(),
        places: vec![(place.into(), recent.requests)],
        total: counts(2 * recent.requests, recent.p50_ms, recent.hits),
        recent,
    }
}

/// Returns the snapshot of a small site.
pub fn snapshot() -> Snapshot {
    let worker = |pid: u32, path: &str| WorkerReport {
        app: "web".into(),
        pid,
        generation: 1,
        state: if path.is_empty() { "idle" } else { "busy" }.into(),
        method: if path.is_empty() { "" } else { "POST" }.into(),
        path: path.into(),
        running_ms: if path.is_empty() { 0 } else { 1500 },
        requests: 70,
        age_seconds: 3700,
        resident_bytes: 30 << 20,
    };
    Snapshot {
        uptime_ms: 3_700_000,
        live: LiveReport {
            requests: 1000,
            recent_seconds: 50.0,
            total: counts(1200, 1.0, 900),
            recent: counts(600, 1.0, 450),
            urls: vec![
                url("GET", "/memo/{id}", "app:web", counts(50, 30.0, 0)),
                url("GET", "/<script>alert(1)</script>", "store", counts(450, 0.02, 450)),
                url("POST", "/signin", "app:web", counts(0, 0.0, 0)),
            ],
        },
        workers: vec![worker(101, ""), worker(102, "/memo/<b>")],
        status: json!({
            "version": "0.1.0", "pid": 100, "connections": 7,
            "clients": {"memory_bytes": 1024, "disk_bytes": 0},
            "store": {"items": 5, "bytes": 512, "limit_bytes": 1024, "get_hits": 3, "get_misses": 1},
            "cache": {"hits": 4, "stale_hits": 1},
            "apps": [{
                "name": "web", "state": "ready", "workers": [101, 102], "idle_workers": 1,
                "waiting_requests": 3, "counters": {"requests": 140, "failed": 2},
                "slow_requests": [{
                    "time": 1_700_000_000, "method": "GET", "host": "wiki.test",
                    "path": "/slow", "query": null, "elapsed_ms": 1200,
                    "pid": 102, "stack": ["Memo::slow lib/Memo.pm:42", "main app.psgi:7"],
                }],
            }],
            "upstreams": {"api": {"queued": 2, "servers": [{
                "server": "10.0.0.1:80", "availability": "available", "in_flight": 1,
                "requests": 9, "failures": 0, "ejections": 0, "latency_ms": 2.5,
            }]}},
        }),
    }
}

fn rows(table: &Table) -> Vec<String> {
    let line =
        |row: &Vec<Cell>| row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("|");
    table.rows.iter().map(line).collect()
}

#[test]
fn tables_show_the_numbers_of_the_snapshot() {
    let snapshot = snapshot();
    for (table, expected) in [
        (
            urls(&snapshot, Span::LastMinute),
            &[
                "1.5s|50|30ms|30ms|60ms|90ms|48.8K|0%|0|0|app:web|GET /memo/{id}",
                "9.0ms|450|0.02ms|0.02ms|0.04ms|0.06ms|439K|100%|0|0|store|GET /<script>alert(1)</script>",
            ][..],
        ),
        (
            workers(&snapshot),
            &["web|101|idle||70|1h01m|30M|1|", "web|102|busy|1.5s|70|1h01m|30M|1|POST /memo/<b>"],
        ),
        (apps(&snapshot), &["web|ready|2|1|3|140|0|0|2|0|0"]),
        (upstreams(&snapshot), &["api|10.0.0.1:80|available|1|2|9|0|0|2.5ms"]),
        (cache(&snapshot), &["hits|4", "stale hits|1"]),
        (slow(&snapshot), &["22:13:20Z|1.2s|web|102|GET /slow|Memo::slow lib/Memo.pm:42"]),
    ] {
        assert_eq!(rows(&table), expected, "{}", table.title);
    }
    assert_eq!(rows(&store(&snapshot))[3], "full|50%");
    assert_eq!(urls(&snapshot, Span::SinceStart).rows.len(), 2);
}

#[test]
fn each_row_has_a_cell_for_each_column() {
    for snapshot in [snapshot(), Snapshot::default()] {
        for table in all(&snapshot, Span::LastMinute) {
            let columns = table.columns.len();
            assert!(table.rows.iter().all(|row| row.len() == columns), "{}", table.title);
        }
    }
}

#[test]
fn slow_requests_have_their_query_and_with_sites_their_host() {
    let mut snapshot = snapshot();
    let request = &mut snapshot.status["apps"][0]["slow_requests"][0];
    request["query"] = "id=7\u{1b}[2J".into();
    snapshot.live.urls[0].site = "wiki".into();
    let expected =
        ["22:13:20Z|1.2s|web|102|wiki.test|GET /slow?id=7?[2J|Memo::slow lib/Memo.pm:42"];
    assert_eq!(rows(&slow(&snapshot)), expected);
    snapshot.leave_out_queries();
    assert_eq!(rows(&slow(&snapshot)), [expected[0].replace("?id=7?[2J", "")]);
}
