//! `kirin log sum`, through the built program, on logs of all kinds.

mod formats;

use std::io::Write;
use std::process::{Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use kirin_tests::{Kirin, Site, kirin_command, run_kirin};
use rustix::process::Signal;
use serde_json::Value;

const COMBINED: &str = r#"127.0.0.1 - - [22/Nov/2026:18:40:01 +0000] "GET /memo/1?x=1 HTTP/1.1" 200 1000 "-" "curl" app:web 0.100000
127.0.0.1 - - [22/Nov/2026:18:40:02 +0000] "GET /memo/2 HTTP/1.1" 200 3000 "-" "curl" store 0.000100
127.0.0.1 - - [22/Nov/2026:18:40:03 +0000] "GET /memo/3 HTTP/2.0" 404 0 "-" "curl" app:web 0.300000 cut
127.0.0.1 - - [22/Nov/2026:18:40:04 +0000] "POST /memo HTTP/1.1" 303 0 "-" "curl" app:web 1.500000
"#;

/// Returns a line of an LTSV log with the keys that alp expects.
fn ltsv(method: &str, uri: &str, status: u16, seconds: &str) -> String {
    format!(
        "time:2026-11-22T18:40:01+00:00\tmethod:{method}\turi:{uri}\tstatus:{status}\tsize:10\tapptime:{seconds}\n"
    )
}

/// Returns a line of a JSON log with the keys that Kirin writes.
fn json(method: &str, uri: &str, status: u16, seconds: f64) -> String {
    let line = serde_json::json!({
        "time": "2026-11-22T18:40:01.123+00:00", "host": "::1", "method": method, "uri": uri,
        "status": status, "size": 10, "reqtime": seconds, "place": "store", "cache": "HIT",
        "end": "whole",
    });
    format!("{line}\n")
}

fn gzip(log: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(log.as_bytes()).expect("compresses");
    encoder.finish().expect("ends")
}

fn sum(site: &Site, arguments: &[&str]) -> Output {
    run_kirin(site, &[&["log", "sum"], arguments].concat())
}

/// Returns what the command prints. It must succeed.
fn printed(site: &Site, arguments: &[&str]) -> String {
    let output = sum(site, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the JSON report.
fn report(site: &Site, arguments: &[&str]) -> Value {
    let text = printed(site, &[&["--output", "json"], arguments].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns method, pattern, count and sum of the rows.
fn rows(report: &Value) -> Vec<String> {
    let rows = report["rows"].as_array().expect("rows");
    rows.iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().expect("a text").to_owned();
            let (method, pattern) = (text("method"), text("pattern"));
            format!("{method} {pattern} {} {}", row["count"], row["seconds"]["sum"])
        })
        .collect()
}

#[test]
fn a_log_is_summed_up_by_method_and_pattern() {
    let site = Site::new().with("access.log", COMBINED);
    let report = report(&site, &["access.log"]);
    assert_eq!(rows(&report), ["POST /memo 1 1.5", "GET /memo/{id} 3 0.4001"], "{report}");
    let row = &report["rows"][1];
    assert_eq!((&row["status"]["2xx"], &row["status"]["4xx"]), (&2.into(), &1.into()), "{row}");
    assert_eq!((&row["bytes"]["sum"], &row["cut"]), (&4000.into(), &1.into()), "{row}");
    assert_eq!(row["places"], serde_json::json!({"app:web": 2, "store": 1}), "{row}");
    assert_eq!(row["seconds"]["max"], 0.3, "{row}");
    assert_eq!(report["total"]["count"], 4, "{report}");
}

#[test]
fn every_format_and_compression_gives_the_same_rows() {
    let json = json("GET", "/memo/1", 200, 0.25) + &json("GET", "/memo/2?x", 500, 0.25);
    let ltsv = ltsv("GET", "/memo/1", 200, "0.25") + &ltsv("GET", "/memo/2?x", 500, "0.250");
    let line = |uri: &str, status: u16| {
        format!("::1 - - [1] \"GET {uri} HTTP/1.1\" {status} 10 \"-\" \"-\" \"-\" 0.250\n")
    };
    let combined = line("/memo/1", 200) + &line("/memo/2?x", 500);
    for (kind, log) in [("json", json), ("ltsv", ltsv), ("combined", combined)] {
        let compressed = zstd::encode_all(log.as_bytes(), 1).expect("compresses");
        let site =
            Site::new().with("plain", &log).with("log.gz", gzip(&log)).with("log.zst", compressed);
        for file in ["plain", "log.gz", "log.zst"] {
            let found = report(&site, &[file]);
            assert_eq!(rows(&found), ["GET /memo/{id} 2 0.5"], "{kind} {file}");
            assert_eq!(found["rows"][0]["bytes"]["avg"], 10, "{kind} {file}");
        }
        let all = report(&site, &["plain", "log.gz", "log.zst"]);
        assert_eq!(rows(&all), ["GET /memo/{id} 6 1.5"], "{kind}");
        let given = report(&site, &["plain", "--format", kind]);
        assert_eq!(rows(&given), ["GET /memo/{id} 2 0.5"], "{kind}");
    }
}

#[test]
fn the_log_that_kirin_writes_is_read() {
    let site = Site::new().with("public/a.txt", "hello").with("public/b.txt", "hello");
    let config = r#"
[[listener]]
address = "127.0.0.1:0"
access_log = "access.log"
[[route]]
path = "/"
try = ["files:public"]
"#;
    let mut kirin = Kirin::start(&site, config);
    for path in ["/a.txt", "/a.txt?x", "/b.txt", "/none"] {
        kirin.get(path);
    }
    kirin.signal(Signal::TERM);
    assert!(kirin.wait().success(), "{}", kirin.log());
    let report = report(&site, &["access.log", "--sort", "pattern"]);
    let places: Vec<_> =
        report["rows"].as_array().expect("rows").iter().map(|row| &row["places"]).collect();
    let patterns: Vec<_> =
        rows(&report).iter().map(|row| row.split(' ').nth(1).map(str::to_owned)).collect();
    let expected = ["/a.txt", "/b.txt", "/none"].map(|path| Some(path.to_owned()));
    assert_eq!(patterns, expected, "{report}");
    assert_eq!(*places[0], serde_json::json!({"files": 2}), "{report}");
    assert_eq!(report["total"]["bytes"]["sum"].as_u64().map(|sum| sum >= 15), Some(true));
}

#[test]
fn standard_input_is_read() {
    let site = Site::new();
    for log in [COMBINED.as_bytes().to_vec(), gzip(COMBINED)] {
        let mut child = kirin_command(&site)
            .args(["log", "sum", "-", "--output", "csv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kirin starts");
        child.stdin.take().expect("stdin").write_all(&log).expect("writes");
        let output = child.wait_with_output().expect("kirin ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.lines().count() == 3, "{output:?}");
        assert!(text.ends_with("app:web,GET,/memo/{id}\r\n"), "{text}");
    }
}

#[test]
fn every_output_has_the_rows() {
    let site = Site::new().with("access.log", COMBINED);
    let text = printed(&site, &["access.log"]);
    assert!(text.starts_with("COUNT  2XX") && text.contains("GET     /memo/{id}\n"), "{text}");
    assert!(text.ends_with("total\n"), "{text}");
    let markdown = printed(&site, &["access.log", "--output", "markdown", "--limit", "1"]);
    assert!(markdown.starts_with("| COUNT | 2XX ") && markdown.contains("| POST | /memo |\n"));
    assert!(!markdown.contains("{id}"), "{markdown}");
    let csv = printed(&site, &["access.log", "--output", "csv", "--sort", "count", "--reverse"]);
    assert!(csv.lines().nth(1).is_some_and(|row| row.ends_with("POST,/memo")), "{csv}");
}

#[test]
fn own_patterns_come_first_and_filters_leave_out() {
    let site = Site::new().with("access.log", COMBINED);
    let arguments = ["access.log", "--pattern", "/memo/1", "--pattern", "/memo/{number}"];
    let found = rows(&report(&site, &arguments));
    assert_eq!(found, ["POST /memo 1 1.5", "GET /memo/{number} 2 0.3001", "GET /memo/1 1 0.1"]);
    for (filter, counted) in [
        (&["--status", "404"][..], 1),
        (&["--status", "4xx", "--status", "303"], 2),
        (&["--method", "POST"], 1),
        (&["--since", "2026-11-22T18:40:02"], 3),
        (&["--until", "2026-11-22T19:40:02+01:00"], 1),
        (&["--since", "2026-11-22T18:40:02", "--status", "2xx"], 1),
    ] {
        let found = report(&site, &[&["access.log"], filter].concat());
        assert_eq!(found["total"]["count"], counted, "{filter:?}");
        assert_eq!(found["left_out"], 4 - counted, "{filter:?}");
    }
}

#[test]
fn two_logs_are_compared_by_the_change_of_the_sum() {
    let before = json("GET", "/a", 200, 1.0) + &json("GET", "/memo/1", 200, 0.5);
    let after = json("GET", "/a", 200, 1.1)
        + &json("GET", "/memo/2", 200, 2.5)
        + &json("GET", "/new/1", 200, 0.3);
    let site = Site::new().with("before.log", before).with("after.log.gz", gzip(&after));
    let text = printed(&site, &["--compare", "before.log", "after.log.gz"]);
    let patterns: Vec<_> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(patterns, ["/memo/{id}", "/new/{id}", "/a", "total"], "{text}");
    assert!(text.contains("+2.00s") && text.contains("+400.0%") && text.contains("new"), "{text}");
    let report = report(&site, &["--compare", "before.log", "after.log.gz"]);
    assert_eq!(report["rows"][0]["before"]["seconds"]["sum"], 0.5, "{report}");
    assert_eq!(report["rows"][0]["after"]["seconds"]["sum"], 2.5, "{report}");
    assert_eq!(report["rows"][1]["before"], Value::Null, "{report}");
    let csv = printed(&site, &["--compare", "before.log", "after.log.gz", "--output", "csv"]);
    assert!(csv.starts_with("sum_before,sum_after,sum_change,"), "{csv}");
    let refused = sum(&site, &["--compare", "before.log"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("--compare takes two files, not 1"), "{said}");
}

#[test]
fn malformed_lines_are_counted_and_the_first_is_named() {
    let log = format!("{COMBINED}\u{0}\u{1b}[2Jnoise\n\"\n{}\n", "x".repeat(2 << 20));
    let site = Site::new()
        .with("access.log", log)
        .with("noise.log", "noise\nnoise\n")
        .with("empty.log", "");
    let output = sum(&site, &["access.log", "--output", "json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        said,
        "kirin: access.log: 3 of 7 lines are malformed; the first is line 5: no request in \
         quotation marks\n"
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["malformed"], &report["total"]["count"]), (&3.into(), &4.into()));
    for (file, part) in [
        ("noise.log", "noise.log: none of the first 2 lines can be read; line 1: "),
        ("missing.log", "missing.log: No such file"),
    ] {
        let refused = sum(&site, &[file]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && said.contains(part), "{file}: {said}");
    }
    assert!(printed(&site, &["empty.log"]).starts_with("COUNT"));
}

#[test]
fn wrong_arguments_are_named() {
    let site = Site::new().with("access.log", COMBINED);
    for (arguments, part) in [
        (&[][..], "name a FILE, or the --config"),
        (&["access.log", "--pattern", "memo"], "pattern \"memo\" must begin with \"/\""),
        (&["access.log", "--status", "9xx"], "expected a status such as 404"),
        (&["access.log", "--since", "yesterday"], "expected a time such as 2026-11-22"),
        (&["access.log", "--sort", "size"], "[possible values: sum, count,"),
        (
            &["access.log", "--format", "xml"],
            "allowed are combined, common, ltsv, json, terminal, vhost_combined, combinedio,",
        ),
    ] {
        let refused = sum(&site, arguments);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_log_in_a_format_of_the_configuration_is_read() {
    let config = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         access_log = { path = \"own.log\", format = '%{%Y-%m-%d %T}t|%s|%{reqtime}k|%{place}k|%r' }\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";
    let site = Site::new().with("public/a", "a").with("kirin.toml", config);
    let kirin = Kirin::start(&site, config);
    for (target, status) in [("/a", 200), ("/a?x=y", 200), ("/b", 404)] {
        assert_eq!(kirin.get(target).status, status);
    }
    kirin_tests::wait_for("three lines", || {
        let log = std::fs::read_to_string(site.path("own.log")).ok()?;
        (log.lines().count() == 3).then_some(())
    });
    std::fs::copy(site.path("own.log"), site.path("own.log.1")).expect("a rotated log");
    let format = "%{%Y-%m-%d %T}t|%s|%{reqtime}k|%{place}k|%r";
    for arguments in [
        &["log", "sum", "own.log", "--output", "json", "--config", "kirin.toml"][..],
        &["log", "sum", "own.log.1", "--output", "json", "--config", "kirin.toml"],
        &["log", "sum", "own.log", "--output", "json", "--format", format],
    ] {
        let output = run_kirin(&site, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = report.to_string();
        assert!(text.contains("\"/a\"") && text.contains("files"), "{arguments:?}: {text}");
        assert_eq!(report["total"]["count"], 3, "{arguments:?}: {text}");
    }
    let output = run_kirin(&site, &["log", "sum", "own.log", "--format", "%r %{A}i %s"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the end of `%{A}i`"), "{said}");
}

/// Returns a line of a JSON log of a host.
fn json_of(host: &str, uri: &str) -> String {
    let line = serde_json::json!({
        "vhost": host, "method": "GET", "uri": uri, "status": 200, "reqtime": 0.5,
    });
    format!("{line}\n")
}

/// Returns site, pattern and count of the rows, sorted.
fn site_rows(report: &Value) -> Vec<String> {
    let rows = report["rows"].as_array().expect("rows");
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let site = row["site"].as_str().unwrap_or("-");
            format!("{site} {} {}", row["pattern"].as_str().expect("a pattern"), row["count"])
        })
        .collect();
    rows.sort();
    rows
}

const SITES: &str = r#"
    [[listener]]
    access_log = { path = "access.log", format = "json" }
    [[site]]
    name = "wiki"
    hosts = ["wiki.test", "www.wiki.test"]
    [[site]]
    hosts = ["*.blog.test"]
    [[site]]
    hosts = ["git.test"]
    access_log = "git.log"
"#;

#[test]
fn sites_of_the_configuration_have_rows_of_their_own() {
    let log: String = [
        ("wiki.test", "/"),
        ("WWW.wiki.test:8080", "/"),
        ("a.blog.test", "/"),
        ("git.test", "/"),
        ("strange.test", "/"),
    ]
    .map(|(host, uri)| json_of(host, uri))
    .concat();
    let git = COMBINED.lines().next().expect("a line").replace("/memo/1?x=1", "/");
    let site = Site::new()
        .with("access.log", &log)
        .with("git.log", &git)
        .with("sites.toml", SITES)
        .with("plain.toml", "[[listener]]\naccess_log = \"access.log\"\n");
    let config = ["--config", "sites.toml"];
    let all = report(&site, &[&config[..], &["access.log", "git.log"]].concat());
    let expected = ["*.blog.test / 1", "- / 1", "git.test / 2", "wiki / 2"];
    assert_eq!(site_rows(&all), expected, "{all}");
    for (wanted, expected) in [
        (&["--site", "wiki"][..], &["wiki / 2"][..]),
        (&["--site", "www.WIKI.test"], &["wiki / 2"]),
        (&["--site", "git.test", "--site", "-"], &["- / 1", "git.test / 2"]),
        (&["--site", "other.blog.test"], &["*.blog.test / 1"]),
    ] {
        let report = report(&site, &[&config[..], wanted, &["access.log", "git.log"]].concat());
        assert_eq!(site_rows(&report), expected, "{wanted:?}: {report}");
        let counted = report["total"]["count"].as_u64().zip(report["left_out"].as_u64());
        assert_eq!(counted.map(|(counted, left_out)| counted + left_out), Some(6), "{report}");
    }
    let wrong = sum(&site, &[&config[..], &["--site", "nowhere", "access.log"]].concat());
    let message = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(message.contains("it has wiki, *.blog.test, git.test"), "{message}");
    let text = printed(&site, &[&config[..], &["access.log"]].concat());
    assert!(text.lines().next().expect("titles").contains("SITE         METHOD"), "{text}");
    let compared = [&config[..], &["--compare", "access.log", "git.log"]].concat();
    let text = printed(&site, &compared);
    let row = |line: &str| {
        line.split_whitespace().collect::<Vec<_>>().ends_with(&["git.test", "GET", "/"])
    };
    assert!(text.lines().any(row), "{text}");
    // Without a site nothing changes, though the log has hosts.
    for arguments in [&["access.log"][..], &["access.log", "--config", "plain.toml"]] {
        let text = printed(&site, arguments);
        assert!(!text.contains("SITE") && text.lines().count() == 3, "{text}");
        let csv = printed(&site, &[arguments, &["--output", "csv"]].concat());
        assert!(!csv.contains("site"), "{csv}");
    }
}

#[test]
fn hosts_are_sites_without_a_configuration() {
    let ltsv = "vhost:a.test:80\tmethod:GET\turi:/\tstatus:200\n";
    let apache =
        "B.test:80 ::1 - - [06/Nov/1994:08:49:37 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n";
    let site = Site::new()
        .with("a.json", json_of("a.test", "/") + &json_of("b.test", "/"))
        .with("a.ltsv", ltsv)
        .with("apache.log", apache)
        .with("own.log", "b.test GET / HTTP/1.1 200\n")
        .with("combined.log", COMBINED);
    let read = report(&site, &["a.json", "a.ltsv", "apache.log", "--by-site"]);
    assert_eq!(site_rows(&read), ["a.test / 2", "b.test / 2"], "{read}");
    let read = report(&site, &["own.log", "--format", "%v %r %s", "--site", "b.test"]);
    assert_eq!(site_rows(&read), ["b.test / 1"], "{read}");
    let read = report(&site, &["a.json", "--site", "A.test"]);
    assert_eq!(site_rows(&read), ["a.test / 1"], "{read}");
    let output = sum(&site, &["combined.log", "--by-site"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("no line has a host"), "{said}");
}

#[test]
fn a_pattern_may_name_the_parameters_that_matter() {
    let log: String = [
        "/gitweb?p=a;a=blob",
        "/gitweb?a=blob&p=b",
        "/gitweb?a=tree",
        "/gitweb?p=a",
        "/doku.php?id=start&do=edit",
        "/doku.php?id=start",
    ]
    .map(|uri| json("GET", uri, 200, 0.5))
    .concat();
    let site = Site::new().with("access.log", log);
    let patterns = ["--pattern", "/gitweb?a", "--pattern", "/doku.php?id={id}&do", "access.log"];
    let report = report(&site, &patterns);
    let mut rows = rows(&report);
    rows.sort();
    let expected = [
        "GET /doku.php?id={id} 1 0.5",
        "GET /doku.php?id={id}&do=edit 1 0.5",
        "GET /gitweb 1 0.5",
        "GET /gitweb?a=blob 2 1.0",
        "GET /gitweb?a=tree 1 0.5",
    ];
    assert_eq!(rows, expected, "{report}");
    let output = sum(&site, &["--pattern", "/a?b&b", "access.log"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("names the parameter \"b\" twice"), "{said}");
}
