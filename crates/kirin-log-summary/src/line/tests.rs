//! Lines of many servers, and lines that are wrong.

use std::sync::Arc;

use proptest::prelude::*;

use crate::line::{LineFormat, LineTemplate, LogRecord, TemplateLanguage, TimeUnit};

/// Parses a line in the format that it seems to have, and writes what was found in one line.
fn read(line: &str) -> String {
    let Some(format) = LineFormat::guess(line.as_bytes()) else { return "unknown".into() };
    match format.parse(line.as_bytes(), TimeUnit::Seconds) {
        Ok(record) => show(&record),
        Err(error) => error.to_string(),
    }
}

fn show(record: &LogRecord<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut shown = format!("{} {} {}", text(&record.method), text(&record.target), record.status);
    let numbers = [("bytes", record.bytes), ("micros", record.micros)];
    for (name, number) in numbers {
        if let Some(number) = number {
            shown += &format!(" {name}={number}");
        }
    }
    let texts = [
        ("place", &record.place),
        ("cache", &record.cache),
        ("time", &record.time.clone().map(|time| time.text)),
        ("host", &record.host),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            shown += &format!(" {name}={}", text(value));
        }
    }
    shown + if record.is_cut { " cut" } else { "" }
}

#[test]
fn lines_of_many_servers_are_read() {
    for (line, expected) in [
        // Kirin.
        (
            r#"127.0.0.1 - bob [06/Nov/1994:08:49:37 +0000] "GET /a?b=c HTTP/1.1" 200 5 "-" "curl" store 0.000123"#,
            "GET /a?b=c 200 bytes=5 micros=123 place=store time=06/Nov/1994:08:49:37 +0000",
        ),
        (
            r#"unix: - - [06/Nov/1994:08:49:37 +0000] "POST /a HTTP/2.0" 499 0 "http://x/" "Moz (a; b)" app:web 1.5 cut"#,
            "POST /a 499 bytes=0 micros=1500000 place=app:web time=06/Nov/1994:08:49:37 +0000 cut",
        ),
        // A user name that looks like the time, and a request that is none.
        (
            r#"::1 - a [x] [1] "-" 400 0 "-" "-" kirin 0.000001"#,
            "- - 400 bytes=0 micros=1 place=kirin time=1",
        ),
        (
            r#"::1 - - [1] "\x16\x03\x01 \x00" 400 0 "-" "-""#,
            "- \u{16}\u{3}\u{1} \0 400 bytes=0 time=1",
        ),
        // nginx and Apache, common and combined, with what many append.
        (r#"::1 - - [1] "GET / HTTP/1.0" 304 -"#, "GET / 304 time=1"),
        (r#"::1 - - [1] "GET /" 200 7"#, "GET / 200 bytes=7 time=1"),
        (r#"::1 - - [1] "GET /a b HTTP/1.1" 200 7"#, "GET /a b 200 bytes=7 time=1"),
        (r#"::1 - - [1] "GET /\"a\\ HTTP/1.1" 200 7"#, "GET /\"a\\ 200 bytes=7 time=1"),
        (
            r#"::1 - - [1] "GET /\"a HTTP/1.1" 200 7 "-" "\\" 0.5"#,
            "GET /\"a 200 bytes=7 micros=500000 time=1",
        ),
        (
            r#"::1 - - [1] "GET / HTTP/1.1" 200 7 "-" "a" 0.057 0.050"#,
            "GET / 200 bytes=7 micros=57000 time=1",
        ),
        (
            r#"::1 - - [1] "GET / HTTP/1.1" 200 7 "-" "a" "-" 0.057"#,
            "GET / 200 bytes=7 micros=57000 time=1",
        ),
        (
            r#"::1 - - [1] "GET / HTTP/1.1" 200 7 "-" "a" rt=0.057 uct="-""#,
            "GET / 200 bytes=7 micros=57000 time=1",
        ),
        (
            r#"::1 - - [1] "GET / HTTP/1.1" 200 7 "-" "a" - 0.057"#,
            "GET / 200 bytes=7 micros=57000 time=1",
        ),
        (r#"h "GET / HTTP/1.1" 200 7"#, "GET / 200 bytes=7"),
        // Apache's vhost_combined, and what is not.
        (r#"a.org:80 ::1 - - [1] "GET /" 200 7"#, "GET / 200 bytes=7 time=1 host=a.org"),
        (r#"[::1]:80 ::1 - - [1] "GET /" 200 7"#, "GET / 200 bytes=7 time=1 host=[::1]"),
        (r#"fe80::1 - a b [1] "GET /" 200 7"#, "GET / 200 bytes=7 time=1"),
        (r#"a.org:80 - - [1] "GET /" 200 7"#, "GET / 200 bytes=7 time=1"),
        // LTSV.
        (
            "time:2026-11-22T18:40:01.123+00:00\thost:::1\tuser:-\tmethod:GET\turi:/memo/7?x=1\tprotocol:HTTP/1.1\tstatus:200\tsize:12\treqtime:0.001234\tplace:app:web\tcache:-\tend:cut",
            "GET /memo/7?x=1 200 bytes=12 micros=1234 place=app:web time=2026-11-22T18:40:01.123+00:00 cut",
        ),
        (
            "time:1\treq:POST /x HTTP/1.1\tstatus:302\tsize:-\tapptime:0.5\treqtime_microsec:600000",
            "POST /x 302 micros=600000 time=1",
        ),
        (
            "time:1\tmethod:GET\turi:/\tstatus:200\tbody_bytes:9\tapptime:0.1\treqtime:0.2\tupstream_response_time:0.05",
            "GET / 200 bytes=9 micros=200000 time=1",
        ),
        (
            "time:1\tcache:HIT\tpath:/p\turi:/p?q\tmethod:GET\tstatus:200\tnolabel\t:x",
            "GET /p?q 200 cache=HIT time=1",
        ),
        ("uri:/\tstatus:200\tupstream_response_time:0.1, - : 0.2", "- / 200 micros=300000"),
        ("uri:/\\x22\tstatus:200", "- /\" 200"),
        (
            "18:40:01 200 GET /a  1.5 KB  3.41 ms  files",
            "GET /a 200 bytes=1536 micros=3410 place=files time=18:40:01",
        ),
        ("vhost:-\tserver_name:b\turi:/\tstatus:200", "- / 200 host=b"),
        ("http_host:b:80\tvhost:a\turi:/\tstatus:200", "- / 200 host=a"),
        // JSON.
        (
            r#"{"time":"T","host":"::1","method":"GET","uri":"/memo/7","status":200,"size":12,"reqtime":0.001234,"place":"store","cache":"HIT","end":"whole"}"#,
            "GET /memo/7 200 bytes=12 micros=1234 place=store cache=HIT time=T",
        ),
        (r#" {"uri":"/","status":1}"#, "- / 1"),
        (
            r#"{"time":"T","method":"POST","uri":"/a\"b\u0041","status":"200","body_bytes":"12","response_time":"0.057","x":{"y":[1,{"z":null}]},"cache":null,"place":false}"#,
            "POST /a\"bA 200 bytes=12 micros=57000 time=T",
        ),
        (
            r#"{"level":"info","ts":1700000000.5,"request":{"method":"GET","host":"a","uri":"/x","headers":{"A":["b"]}},"duration":1.2e-05,"size":3,"status":404}"#,
            "GET /x 404 bytes=3 micros=12 time=1700000000.5",
        ),
        (
            r#"{"request":"GET /r HTTP/1.1","status":200,"request_time":2,"time":5}"#,
            "GET /r 200 micros=2000000 time=5",
        ),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

#[test]
fn the_label_further_left_in_the_documentation_counts() {
    for row in [
        "method request_method req_method",
        "uri request_uri target url path request_path",
        "req request request_line",
        "status status_code",
        "size body_bytes body_bytes_sent bodysize bytes_sent bytes",
        "reqtime request_time reqtime_microsec response_time duration taken apptime latency runtime \
         upstream_response_time",
        "vhost http_host server_name",
        "time time_local time_iso8601 @timestamp timestamp ts",
        "cache cache_status upstream_cache_status",
    ] {
        let labels: Vec<&str> = row.split_whitespace().collect();
        // A request line is read only if the method or the target is missing.
        let others: &[_] = match labels[0] {
            "req" => &[("status", "200")],
            _ => &[("method", "GET"), ("uri", "/"), ("status", "200")],
        };
        let others: String = others
            .iter()
            .filter(|(label, _)| !labels.contains(label))
            .map(|(label, value)| format!("{label}:{value}\t"))
            .collect();
        for pair in labels.windows(2) {
            let (left, right) = (format!("{}:201", pair[0]), format!("{}:301", pair[1]));
            let expected = read(&format!("x:y\t{others}{left}"));
            assert_ne!(expected, read(&format!("x:y\t{others}{right}")), "{pair:?}");
            for line in [format!("{left}\t{right}"), format!("{right}\t{left}")] {
                assert_eq!(read(&format!("x:y\t{others}{line}")), expected, "{line}");
            }
        }
    }
}

#[test]
fn a_wrong_line_says_what_is_wrong() {
    for (line, expected) in [
        ("", "unknown"),
        ("nothing", "unknown"),
        (r#"a "b"#, "no request in quotation marks"),
        (r#"a "b\"#, "no request in quotation marks"),
        (r#"a "b\""#, "no request in quotation marks"),
        (r#"a "GET / HTTP/1.1""#, "no status"),
        (r#"a "GET / HTTP/1.1" "x""#, "no status"),
        (r#"a "GET / HTTP/1.1" 20x 1"#, "the status is not a number"),
        (r#"a "GET / HTTP/1.1" 2000 1"#, "the status is not a number"),
        (r#"a "GET / HTTP/1.1" 200"#, "no size"),
        (r#"a "GET / HTTP/1.1" 200 x"#, "the size is not a number"),
        ("a:1\tb:2", "no status"),
        ("a:1\tstatus:200", "no uri"),
        ("a:1\tstatus:abc\turi:/", "the status is not a number"),
        ("a:1\tstatus:200\turi:/\treqtime:x", "the duration of the request is not a number"),
        (r#"{"uri":"/"}"#, "no status"),
        (r#"{"status":200}"#, "no uri"),
        (r#"{"status":200.5,"uri":"/"}"#, "the status is not a number"),
        (r#"{"status":70000,"uri":"/"}"#, "the status is not a number"),
        (
            r#"{"status":200,"uri":"/","reqtime":1e300}"#,
            "the duration of the request is not a number",
        ),
        (r"{", "not a JSON object: EOF while parsing an object at line 1 column 1"),
        (r#"{"a":1} x"#, "not a JSON object: trailing characters at line 1 column 9"),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_read_where_a_client_sends_them() {
    let line = b"{\"uri\":\"/\xff\",\"status\":200,\"ua\":\"\xfe\"}";
    let record = LineFormat::Json.parse(line, TimeUnit::Seconds).expect("a record");
    assert_eq!(&*record.target, b"/\xff");
    let line = b"::1 - - [1] \"GET /\xff HTTP/1.1\" 200 1 \"\xfe\" \"-\"";
    let record = LineFormat::Combined.parse(line, TimeUnit::Seconds).expect("a record");
    assert_eq!(&*record.target, b"/\xff");
}

#[test]
fn a_duration_has_the_unit_of_the_log() {
    let line = br#"::1 - - [1] "GET / HTTP/1.1" 200 7 "-" "a" 1234"#;
    for (unit, micros) in [
        (TimeUnit::Seconds, 1_234_000_000),
        (TimeUnit::Milliseconds, 1_234_000),
        (TimeUnit::Microseconds, 1234),
    ] {
        assert_eq!(LineFormat::Combined.parse(line, unit).expect("a record").micros, Some(micros));
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in [LineFormat::Combined, LineFormat::Ltsv, LineFormat::Json] {
            let _ = format.parse(&line, TimeUnit::Milliseconds);
        }
        for format in ["%h %t %r %s %D", "%U%q \"%{A}i\" %s"] {
            let template = LineTemplate::parse(format, TemplateLanguage::Kirin).expect(format);
            let _ = LineFormat::Template(Arc::new(template)).parse(&line, TimeUnit::Seconds);
        }
        let _ = LineFormat::guess(&line);
    }

    #[test]
    fn what_kirin_writes_is_read_back(
        target in "/[!#-\\[\\]-~]{0,40}",
        user in "[ !#-\\[\\]-~]{1,10}",
        agent in "[ !#-\\[\\]-~]{0,40}",
        status in 100_u16..600,
        bytes in any::<u64>(),
        micros in 0_u64..1_000_000_000,
    ) {
        let seconds = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let line = format!(
            "::1 - {user} [06/Nov/1994:08:49:37 +0000] \"GET {target} HTTP/1.1\" {status} {bytes} \
             \"-\" \"{agent}\" app:web {seconds} cut"
        );
        let record = LineFormat::Combined.parse(line.as_bytes(), TimeUnit::Seconds).expect("a record");
        prop_assert_eq!(&*record.target, target.as_bytes());
        prop_assert_eq!((record.status, record.bytes), (status, Some(bytes)));
        prop_assert_eq!(record.micros, Some(micros));
        prop_assert_eq!(record.place.as_deref(), Some(&b"app:web"[..]));
        prop_assert_eq!(record.time.as_ref().map(|time| &*time.text), Some(&b"06/Nov/1994:08:49:37 +0000"[..]));
        prop_assert!(record.is_cut);
        let json = serde_json::json!({
            "method": "GET", "uri": target, "status": status, "size": bytes, "ua": agent,
            "reqtime": micros as f64 / 1e6,
        })
        .to_string();
        let record = LineFormat::Json.parse(json.as_bytes(), TimeUnit::Seconds).expect("a record");
        prop_assert_eq!(&*record.target, target.as_bytes());
        prop_assert_eq!((record.micros, record.bytes), (Some(micros), Some(bytes)));
        let ltsv = format!("ua:{agent}\tmethod:GET\turi:{target}\tstatus:{status}\treqtime:{seconds}");
        let record = LineFormat::Ltsv.parse(ltsv.as_bytes(), TimeUnit::Seconds).expect("a record");
        prop_assert_eq!(&*record.target, target.as_bytes());
        prop_assert_eq!(record.micros, Some(micros));
    }
}
