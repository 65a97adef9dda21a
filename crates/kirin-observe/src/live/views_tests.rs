//! Tests of the tables, and a snapshot for other tests.

use serde_json::json;

use super::*;

/// Returns the snapshot of a small site. The tests of `kirin top` use the same file.
pub fn snapshot() -> Snapshot {
    serde_json::from_str(include_str!("../../samples/snapshot.json")).expect("a snapshot")
}

fn rows(table: &ViewTable) -> Vec<String> {
    let line = |row: &Vec<ViewCell>| {
        row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("|")
    };
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
fn the_store_shows_whether_its_origin_is_there() {
    let mut snapshot = snapshot();
    let without = rows(&store(&snapshot));
    assert!(!without.iter().any(|row| row.contains("origin")), "{without:?}");
    snapshot.status["origin"] = json!({"state": "connected", "reads": 1500, "timeouts": 2});
    let with = rows(&store(&snapshot));
    assert_eq!(with[..without.len()], without);
    assert_eq!(with[without.len()..][..2], ["origin|connected", "origin reads|1.50k"]);
    assert!(with.contains(&"origin timeouts|2".into()), "{with:?}");
    snapshot.status["origin"] = json!({"state": "away", "reason": "no\u{1b} answer"});
    let away = rows(&store(&snapshot));
    assert_eq!(away[without.len()..][..2], ["origin|away", "no? answer|"]);
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
