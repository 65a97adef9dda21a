//! Statuses in JSON, and the text for people.

use serde_json::json;

use super::*;

/// Returns a status with everything in it.
fn busy_site() -> Value {
    json!({
        "version": "0.1.0", "pid": 4711, "uptime_seconds": 273_900,
        "serving": {
            "config": "/srv/shop/kirin.toml", "directories": ["/srv/shop"],
            "urls": ["http://0.0.0.0:80/", "https://0.0.0.0:443/"],
        },
        "connections": 1234,
        "clients": {
            "memory_bytes": 1_258_291, "memory_limit_bytes": 256 << 20, "memory_refused": 0,
            "disk_bytes": 0, "disk_limit_bytes": 4u64 << 30, "disk_refused": 0,
            "connections_cut": 0, "listeners": {},
        },
        "panics": 0, "log_lines_lost": 0, "access_log_lines_lost": 0,
        "store": {
            "items": 5678, "bytes": 12 << 20, "limit_bytes": 64 << 20, "tags": 3,
            "get_hits": 9800, "get_misses": 200, "sets": 70, "deletes": 2, "evictions": 0,
        },
        "apps": [
            {
                "name": "web", "state": "ready", "workers": [1, 2, 3, 4, 5], "idle_workers": 3,
                "waiting_requests": 0,
                "rings": [{
                    "generation": 3, "workers": 5, "requests": 2, "slots": 84,
                    "memory_bytes": 320 << 10, "max_memory_bytes": 5 << 20,
                }],
                "counters": {
                    "requests": 12345, "refused_full": 1, "refused_waited": 2, "failed": 4,
                    "overdue": 0, "workers_ended": 6,
                },
            },
            {
                "name": "api-of-partners", "state": "failed", "workers": [], "idle_workers": 0,
                "waiting_requests": 0, "counters": {"requests": 7},
            },
        ],
        "upstreams": {
            "search": {
                "servers": [
                    {
                        "server": "10.0.0.1:9200", "availability": "available", "in_flight": 2,
                        "max_in_flight": 10, "requests": 5000, "failures": 1, "ejections": 0,
                        "failures_in_a_row": 0, "ejected_ms": 0, "latency_ms": 12.345,
                    },
                    {
                        "server": "10.0.0.2:9200", "availability": "ejected", "in_flight": 0,
                        "max_in_flight": 10, "requests": 0, "failures": 9, "ejections": 2,
                        "failures_in_a_row": 3, "ejected_ms": 7200, "latency_ms": 0.0,
                    },
                ],
                "retries": 3, "queued": 1, "waited": 40, "wait_ms_average": 1.5,
                "wait_ms_longest": 20.0, "queue_full": 0, "queue_timeouts": 1,
                "queue_clients_gone": 0,
            },
        },
        "cache": {
            "hits": 80, "stale_hits": 5, "collapsed": 5, "misses": 8, "validations": 1,
            "not_modified": 1, "stale_if_error": 0, "passed": 1, "bypassed": 30, "stored": 9,
            "not_stored": 1,
        },
    })
}

const BUSY_SITE: &str = "\
kirin 0.1.0, process 4711, up 3 days 4 h
serves        /srv/shop/kirin.toml
listens on    http://0.0.0.0:80/
              https://0.0.0.0:443/

! application api-of-partners has failed: its log says why; HUP loads it again
! upstream search: 10.0.0.2:9200 is ejected after failures, it is tried again in 8 s

clients       1,234 connections, 1.2 MB of 256 MB memory, 0 B of 4 GB disk
store         5,678 items, 12 MB of 64 MB (18.8 %), 0 evictions
              98.0 % of 10,000 reads found an item, 70 writes, 2 deletes
cache         90.0 % of 100 requests answered from it, 30 past it
              9 responses stored, 1 not stored, 1 revalidated

application      state   busy  idle  waiting  requests  refused  failed  overdue  workers ended  hand-over
web              ready      2     3        0    12,345        3       4        0              6  ring
api-of-partners  failed     0     0        0         7        0
ring of web: 320 KB of 5 MB, 2 of 84 slots

upstream  server         state      in flight  latency  requests  failures
search    10.0.0.1:9200  available    2 of 10  12.3 ms     5,000         1
          10.0.0.2:9200  ejected      0 of 10                  0         9
queue of search: 1 request waiting, 40 waited, 1.50 ms on average, 20.0 ms at most, 1 refused, 3 retried
";

#[test]
fn the_status_of_a_full_site_fits_one_screen_with_warnings_first() {
    let text = render(&busy_site(), Colours::Off);
    assert_eq!(text, BUSY_SITE);
    assert!(text.lines().count() <= 24 && text.lines().all(|line| line.len() <= 110), "{text}");
}

#[test]
fn colours_change_no_character_of_the_text() {
    let coloured = render(&busy_site(), Colours::On);
    let mut without = coloured.clone();
    for sequence in ["\x1b[1m", "\x1b[1;31m", "\x1b[0m"] {
        assert!(coloured.contains(sequence), "{coloured}");
        without = without.replace(sequence, "");
    }
    assert_eq!(without, BUSY_SITE);
}

#[test]
fn values_that_another_version_does_not_send_are_left_out() {
    for (status, text) in [
        (json!({}), "\n\n"),
        (json!({"pid": 7, "new": {"key": [1]}}), "process 7\n\n"),
        (
            json!({"version": "9", "store": {"items": 3, "news": true}, "apps": [{}]}),
            "kirin 9\n\nstore         3 items\n\napplication  refused\n?                  0\n",
        ),
        (
            json!({"connections": 1, "clients": {"memory_bytes": 5}, "cache": {}}),
            "\n\nclients       1 connection, 5 B memory\ncache         not used yet\n",
        ),
        (json!({"upstreams": {"x": {}}, "serving": null, "apps": 5}), "\n\n"),
        (
            json!({"upstreams": {"x": {"servers": [{"server": "a:1", "in_flight": 1}]}}}),
            "\n\n\nupstream  server  in flight\nx         a:1             1\n",
        ),
    ] {
        assert_eq!(render(&status, Colours::Off), text, "{status}");
    }
}

#[test]
fn each_thing_that_is_wrong_has_a_warning() {
    for (path, value, warning) in [
        ("/panics", json!(2), "! 2 errors in Kirin itself"),
        ("/log_lines_lost", json!(1), "! 1 lines of the log were lost"),
        ("/access_log_lines_lost", json!(1000), "! 1,000 lines of access logs were lost"),
        ("/clients/connections_cut", json!(1), "! 1 connections were cut"),
        (
            "/clients/memory_refused",
            json!(1),
            "! 1 times there was no room in limits.client_memory",
        ),
        ("/clients/disk_refused", json!(1), "! 1 times there was no room in limits.client_disk"),
        ("/apps/0/state", json!("starting"), "! application web is starting"),
        (
            "/upstreams/search/servers/0/availability",
            json!("unhealthy"),
            "! upstream search: 10.0.0.1:9200 is unhealthy",
        ),
    ] {
        let mut status = busy_site();
        *status.pointer_mut(path).unwrap() = value;
        let text = render(&status, Colours::Off);
        assert!(text.lines().any(|line| line.starts_with(warning)), "{path}: {text}");
    }
    let mut status = busy_site();
    status["apps"][0]["idle_workers"] = 0.into();
    status["apps"][0]["waiting_requests"] = 1.into();
    let text = render(&status, Colours::Off);
    assert!(text.contains("! application web: all workers are busy, and 1 request wait"), "{text}");
}

#[test]
fn the_origin_of_the_store_is_shown_and_a_warning_if_it_is_away() {
    let mut status = busy_site();
    status["origin"] = json!({
        "address": "rediss://kirin@10.0.0.5:6379", "state": "connected", "server": "redis",
        "version": "7.2.4", "reads": 1200, "read_hits": 900, "writes": 70, "purges": 3,
        "invalidations": 41, "timeouts": 0, "failures": 2,
    });
    let text = render(&status, Colours::Off);
    let block = "\
origin        rediss://kirin@10.0.0.5:6379, connected to redis 7.2.4
              1,200 reads, 900 of them found an item, 70 writes, 3 purges
              41 invalidations, 0 timeouts, 2 failures
cache ";
    assert!(text.contains(block), "{text}");
    assert!(!text.contains("! the origin"), "{text}");
    status["origin"] =
        json!({"address": "redis://a:6379", "state": "away", "reason": "no\u{1b} answer"});
    let text = render(&status, Colours::Off);
    assert!(text.contains("\n! the origin redis://a:6379 is away: no\u{fffd} answer\n"), "{text}");
    assert!(text.contains("\norigin        redis://a:6379, away\ncache "), "{text}");
    status["origin"] = Value::Null;
    assert_eq!(render(&status, Colours::Off), BUSY_SITE);
}

#[test]
fn a_name_cannot_control_the_terminal() {
    let status = json!({"apps": [{"name": "a\u{1b}[2J", "state": "b\nc"}]});
    let text = render(&status, Colours::Off);
    assert!(!text.contains('\u{1b}') && text.contains("b\u{fffd}c"), "{text}");
}
