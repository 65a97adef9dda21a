//! Reports of small logs, in all forms.

use crate::input::{LogOptions, read_log};
use crate::report::{Order, ReportFormat, Sort, Uncounted, compare, report};
use crate::summary::Summary;

const LOG: &str = r#"::1 - - [1] "GET /memo/1 HTTP/1.1" 200 1000 "-" "-" app:web 0.100000
::1 - - [1] "GET /memo/2 HTTP/1.1" 200 3000 "-" "-" store 0.000100
::1 - - [1] "GET /memo/3 HTTP/1.1" 404 0 "-" "-" app:web 0.300000 cut
::1 - - [1] "POST /memo HTTP/1.1" 303 0 "-" "-" app:web 1.500000
::1 - - [1] "GET /a|b,"c HTTP/1.1" 200 0 "-" "-" store 0.000001
"#;

const ORDER: Order = Order { sort: Sort::Sum, is_reversed: false, limit: usize::MAX };

fn summary(logs: &[&str]) -> Summary {
    let mut summary = Summary::new(Vec::new(), logs.len());
    for (side, log) in logs.iter().enumerate() {
        read_log(log.as_bytes(), &LogOptions::default(), |record| summary.add(side, "", record))
            .expect("reads");
    }
    summary
}

#[test]
fn a_text_table_is_aligned_and_sorted_by_sum() {
    // `"c` is not escaped, so that line is cut short there and malformed.
    let text = report(&summary(&[LOG]), Uncounted::default(), ORDER, ReportFormat::Text);
    let expected = "\
COUNT  2XX  3XX  4XX  5XX    SUM  SHARE     AVG     MIN     P50    P95    P99    MAX   BYTES  AVG BYTES  CUT    HIT  PLACE          METHOD  PATTERN
    1    0    1    0    0  1.50s  78.9%   1.50s   1.50s   1.50s  1.50s  1.50s  1.50s      0B         0B    0   0.0%  app:web        POST    /memo
    3    2    0    1    0  400ms  21.1%   133ms   100µs  99.3ms  300ms  300ms  300ms  3.91KB     1.30KB    1  33.3%  app:web 66.7%  GET     /memo/{id}
    4    2    1    1    0  1.90s   100%   475ms   100µs  99.3ms  1.50s  1.50s  1.50s  3.91KB     1000B    1  25.0%  app:web 75.0%          total
";
    assert_eq!(squeezed(&text), squeezed(expected), "{text}");
    let widths: Vec<_> = text.lines().map(|line| line.find("/memo")).collect();
    assert_eq!(widths[1].is_some(), widths[2].is_some(), "{text}");
}

/// Returns the text with single spaces, because `µ` has two bytes.
fn squeezed(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn a_report_names_its_limit_and_its_order_can_be_reversed() {
    let order = Order { sort: Sort::Pattern, is_reversed: true, limit: 1 };
    let text = report(&summary(&[LOG]), Uncounted::default(), order, ReportFormat::Text);
    assert!(text.contains("/memo/{id}") && !text.contains("POST"), "{text}");
    assert!(text.ends_with("1 of 2 rows; the total is that of all\n"), "{text}");
}

#[test]
fn rows_can_be_sorted_by_every_figure() {
    for (sort, first) in [
        (Sort::Sum, "POST"),
        (Sort::Count, "GET"),
        (Sort::Average, "POST"),
        (Sort::P50, "POST"),
        (Sort::P95, "POST"),
        (Sort::P99, "POST"),
        (Sort::Max, "POST"),
        (Sort::Bytes, "GET"),
        (Sort::Pattern, "POST"),
    ] {
        let csv = report(
            &summary(&[LOG]),
            Uncounted::default(),
            Order { sort, ..ORDER },
            ReportFormat::Csv,
        );
        let row = csv.lines().nth(1).expect("a row");
        assert!(row.contains(first), "{sort:?}: {row}");
    }
}

#[test]
fn markdown_has_no_markup_of_strangers() {
    let log = r#"::1 - - [1] "GET /a|b<script>`*x HTTP/1.1" 200 1"#;
    let text = report(&summary(&[log]), Uncounted::default(), ORDER, ReportFormat::Markdown);
    assert_eq!(
        text,
        "| COUNT | 2XX | 3XX | 4XX | 5XX | BYTES | AVG BYTES | METHOD | PATTERN |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |\n\
         | 1 | 1 | 0 | 0 | 0 | 1B | 1B | GET | /a\\|b\\<script\\>\\`\\*x |\n\
         | 1 | 1 | 0 | 0 | 0 | 1B | 1B |  | total |\n"
    );
}

#[test]
fn csv_has_seconds_and_quotes_where_they_are_needed() {
    let log = "{\"method\":\"GET\",\"uri\":\"/a,\\\"b\",\"status\":200,\"size\":5,\"reqtime\":0.25}\n\
               {\"method\":\"GET\",\"uri\":\"/c\",\"status\":101}\n";
    let text = report(&summary(&[log]), Uncounted::default(), ORDER, ReportFormat::Csv);
    assert_eq!(
        text,
        "count,1xx,2xx,3xx,4xx,5xx,sum,avg,min,p50,p95,p99,max,bytes,avg_bytes,cut,hit_ratio,place,method,pattern\r\n\
         1,0,1,0,0,0,0.250000,0.250000,0.250000,0.250000,0.250000,0.250000,0.250000,5,5,0,,,GET,\"/a,\"\"b\"\r\n\
         1,1,0,0,0,0,,,,,,,,,,0,,,GET,/c\r\n"
    );
}

#[test]
fn json_has_all_figures() {
    let uncounted = Uncounted { left_out: 2, malformed: 1 };
    let text = report(&summary(&[LOG]), uncounted, ORDER, ReportFormat::Json);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&json["left_out"], &json["malformed"]), (&2.into(), &1.into()), "{text}");
    let row = &json["rows"][1];
    assert_eq!(
        *row,
        serde_json::json!({
            "method": "GET", "pattern": "/memo/{id}", "count": 3, "cut": 1,
            "status": {"1xx": 0, "2xx": 2, "3xx": 0, "4xx": 1, "5xx": 0},
            "seconds": {"sum": 0.4001, "avg": 0.133_367, "min": 0.0001, "p50": row["seconds"]["p50"],
                        "p95": 0.3, "p99": 0.3, "max": 0.3},
            "bytes": {"sum": 4000, "avg": 1333},
            "places": {"app:web": 2, "store": 1}, "hit_ratio": 1.0 / 3.0,
        }),
        "{text}"
    );
    let p50 = row["seconds"]["p50"].as_f64().expect("a number");
    assert!((p50 - 0.1).abs() < 0.0016, "{p50}");
    assert_eq!(json["total"]["count"], 4, "{text}");
}

#[test]
fn a_comparison_is_sorted_by_the_change_of_the_sum() {
    let after = r#"::1 - - [1] "GET /memo/1 HTTP/1.1" 200 1000 "-" "-" app:web 0.200000
::1 - - [1] "GET /new/1 HTTP/1.1" 200 1000 "-" "-" app:web 0.010000
"#;
    let summary = summary(&[LOG, after]);
    let text = compare(&summary, [Uncounted::default(); 2], ORDER, ReportFormat::Text);
    let expected = "\
SUM BEFORE AFTER CHANGE % COUNT BEFORE AFTER CHANGE % AVG BEFORE AFTER CHANGE % P95 BEFORE AFTER BYTES BEFORE AFTER METHOD PATTERN
1.50s -1.50s gone 1 -1 gone 1.50s gone 1.50s 0B POST /memo
400ms 200ms -200ms -50.0% 3 1 -2 -66.7% 133ms 200ms +66.6ms +50.0% 300ms 200ms 3.91KB 1000B GET /memo/{id}
10.0ms +10.0ms new 1 +1 new 10.0ms new 10.0ms 1000B GET /new/{id}
1.90s 210ms -1.69s -88.9% 4 2 -2 -50.0% 475ms 105ms -370ms -77.9% 1.50s 200ms 3.91KB 1.95KB total
";
    assert_eq!(squeezed(&text), squeezed(expected), "{text}");
    let csv = compare(&summary, [Uncounted::default(); 2], ORDER, ReportFormat::Csv);
    assert!(
        csv.starts_with(
            "sum_before,sum_after,sum_change,count_before,count_after,count_change,avg_before,\
             avg_after,avg_change,p95_before,p95_after,bytes_before,bytes_after,method,pattern\r\n"
        ),
        "{csv}"
    );
    assert!(
        csv.contains("\r\n1.500000,,-1.500000,1,,-1,1.500000,,,1.500000,,0,,POST,/memo\r\n"),
        "{csv}"
    );
    let json = compare(&summary, [Uncounted::default(); 2], ORDER, ReportFormat::Json);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["rows"][2]["before"], serde_json::Value::Null, "{json}");
    assert_eq!(json["rows"][1]["after"]["count"], 1, "{json}");
    assert_eq!(json["before"]["total"]["count"], 4, "{json}");
}

#[test]
fn logs_without_durations_are_sorted_by_count() {
    let log =
        "h \"GET /a HTTP/1.1\" 200 1\nh \"GET /b HTTP/1.1\" 200 1\nh \"GET /b HTTP/1.1\" 200 1\n";
    let summary = summary(&[log, log]);
    let text = compare(&summary, [Uncounted::default(); 2], ORDER, ReportFormat::Text);
    assert!(text.starts_with("COUNT BEFORE  AFTER  CHANGE"), "{text}");
}
