//! Lines of many formats, and formats whose lines cannot be read.

use super::*;
use crate::line::{FormatTextError, LineFormat};

/// Reads a line, and writes what was found in one line.
fn read_text(format: &str, line: &str) -> String {
    let format = LineFormat::from_text(format).unwrap_or_else(|error| panic!("{format}: {error}"));
    match format.parse(line.as_bytes(), TimeUnit::Seconds) {
        Ok(record) => show(&record),
        Err(error) => error.to_string(),
    }
}

fn show(record: &LogRecord<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut shown = format!("{} {} {}", text(&record.method), text(&record.target), record.status);
    for (name, number) in [("bytes", record.bytes), ("micros", record.micros)] {
        shown += &number.map_or(String::new(), |number| format!(" {name}={number}"));
    }
    for (name, value) in
        [("host", &record.host), ("place", &record.place), ("cache", &record.cache)]
    {
        shown +=
            &value.as_deref().map_or(String::new(), |value| format!(" {name}={}", text(value)));
    }
    if let Some(time) = &record.time {
        shown += &time.moment().map_or(" time=?".into(), |moment| format!(" time={moment}"));
    }
    shown + if record.is_cut { " cut" } else { "" }
}

fn read(format: &str, line: &str) -> (String, String, u16, Option<u64>) {
    let template = LineTemplate::parse(format, TemplateLanguage::Kirin)
        .unwrap_or_else(|error| panic!("{format}: {error}"));
    let record = template.read(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    (text(&record.method), text(&record.target), record.status, record.micros)
}

#[test]
fn lines_of_any_format_of_the_configuration_are_read() {
    for (format, line, expected) in [
        ("%s %U%q %D", "200 /a?b=c 1500", ("-", "/a?b=c", 200, Some(1500))),
        (
            "%h %r %>s %{reqtime}k",
            "::1 GET /a HTTP/1.1 404 0.25",
            ("GET", "/a", 404, Some(250_000)),
        ),
        (
            "%t \"%r\" %s",
            "[06/Nov/1994:08:49:37 +0000] \"GET /a HTTP/1.1\" 200",
            ("GET", "/a", 200, None),
        ),
        ("%m|%{uri}k|%s|%{ms}T", "POST|/a?b|201|3", ("POST", "/a?b", 201, Some(3000))),
        (
            "%{%Y-%m-%d %T}t %m %{uri}k %s %T",
            "2026-11-25 04:00:00 GET /a 200 2",
            ("GET", "/a", 200, Some(2_000_000)),
        ),
        ("[%s] %U \"%{User-Agent}i\" 100%%", "[200] /a \"a b\\x22\" 100%", ("-", "/a", 200, None)),
        (
            "%{%Y-%m-%d %T}t|%s|%{place}k|%r",
            "2026-11-25 04:00:00|200|files|GET /|",
            ("GET", "/|", 200, None),
        ),
        ("%s\t%{X}i\t%U", "200\tx y\t/a", ("-", "/a", 200, None)),
    ] {
        let (method, target, status, micros) = read(format, line);
        assert_eq!((&*method, &*target, status, micros), expected, "{format}");
    }
}

#[test]
fn formats_whose_lines_have_two_readings_are_refused() {
    for (format, expected) in [
        ("%U", "no status"),
        ("%s", "no request"),
        ("%r %{A}i %s", "the end of `%{A}i`"),
        ("%s%D %U", "the end of `%D`"),
        ("%s %", "ends within"),
        ("%s %{A", "ends within"),
    ] {
        let error =
            LineTemplate::parse(format, TemplateLanguage::Kirin).expect_err(format).to_string();
        assert!(error.contains(expected), "{format}: {error}");
    }
}

#[test]
fn a_line_of_another_format_is_malformed() {
    let template = LineTemplate::parse("<%s> %U", TemplateLanguage::Kirin).unwrap();
    for line in ["", "200 /a", "<200>/a", "<x> /a", "<200"] {
        assert!(template.read(line.as_bytes()).is_err(), "{line}");
    }
}

const KIRIN_TIME: &str = "[06/Nov/1994:08:49:37 +0000]";

#[test]
fn each_directive_of_kirin_is_read_or_read_over() {
    // Every directive that `access_log` can write, with a value that it can have.
    for (directive, value) in [
        ("%%", "%"),
        ("%h", "2001:db8::1"),
        ("%a", "unix:"),
        ("%{c}a", "127.0.0.1"),
        ("%l", "-"),
        ("%u", "a\\x20b"),
        ("%t", KIRIN_TIME),
        ("%{%d/%b/%Y %T}t", "06/Nov/1994 08:49:37"),
        ("%{end:%c}t", "Sun Nov  6 08:49:37 1994"),
        ("%{sec}t", "784111777"),
        ("%{begin:msec}t", "784111777012"),
        ("%{usec}t", "784111777012345"),
        ("%{msec_frac}t", "012"),
        ("%{usec_frac}t", "012345"),
        ("%{%Y-%m-%d}t %{%T}t", "1994-11-06 08:49:37"),
        ("%r", "GET /other HTTP/1.1"),
        ("%m", "GET"),
        ("%U", "/other"),
        ("%q", "?c"),
        ("%q", ""),
        ("%H", "HTTP/2.0"),
        ("%>s", "200"),
        ("%<s", "200"),
        ("%b", "-"),
        ("%B", "0"),
        ("%D", "1500"),
        ("%T", "0"),
        ("%{s}T", "0"),
        ("%{ms}T", "1"),
        ("%{us}T", "1500"),
        ("%v", "a.org"),
        ("%V", "a.org:80"),
        ("%p", "8080"),
        ("%{local}p", "8080"),
        ("%P", "4711"),
        ("\"%{User-Agent}i\"", "\"a \\x22 b\""),
        ("%{Host}i", "a.org"),
        ("\"%{Set-Cookie}o\"", "\"a=b; c\""),
        ("\"%{id}C\"", "\"a\\x5Cb\""),
        ("\"%{HOME}e\"", "\"/root and\""),
        ("%{place}k", "app:web"),
        ("%{answered_by}k", "app"),
        ("%{cache}k", "HIT"),
        ("%{queue}k", "0.000010"),
        ("%{worker}k", "-"),
        ("%{upstream}k", "unix:/tmp/a"),
        ("%{upstream_time}k", "0.000100"),
        ("%{tls}k", "TLSv1.3"),
        ("%{request_id}k", "0af7651916cd43dd8448eb211c80319c"),
        ("%{bytes_in}k", "12"),
        ("%{end}k", "whole"),
        ("%{reqtime}k", "0.001500"),
        ("%{user}k", "-"),
        ("%{vhost}k", "a.org:80"),
    ] {
        for (before, behind) in [(" ", " "), ("\t", "\t"), ("|", "|")] {
            let format = format!("%s %{{uri}}k{before}{directive}{behind}%m %{{reqtime}}k");
            let line = format!("200 /a?b{before}{value}{behind}GET 0.001500");
            let template = LineTemplate::parse(&format, TemplateLanguage::Kirin);
            let template = match (template, before) {
                // A path, a user and others may have a bar.
                (Err(TemplateError::Ambiguous { .. }), "|") => continue,
                (template, _) => template.unwrap_or_else(|error| panic!("{format}: {error}")),
            };
            let record = template.read(line.as_bytes());
            let record = record.unwrap_or_else(|error| panic!("{format}: {line}: {error}"));
            let found = (&*record.method, &*record.target, record.status, record.micros);
            assert_eq!(found, (&b"GET"[..], &b"/a?b"[..], 200, Some(1500)), "{format}: {line}");
        }
    }
}

#[test]
fn formats_of_apache_are_read() {
    const TIME: &str = "[22/Nov/2026:19:40:01 +0100]";
    for (format, line, expected) in [
        (
            r#"%h %l %u %t "%r" %>s %b %D"#,
            format!(r#"::1 - a b {TIME} "GET /a?b HTTP/1.1" 200 - 1500"#),
            "GET /a?b 200 micros=1500 time=2026-11-22T18:40:01Z",
        ),
        (
            r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %{ms}T"#,
            format!(r#"::1 - - {TIME} "GET /\"a\\ HTTP/1.1" 200 7 "-" "a \" b\"" 15"#),
            "GET /\"a\\ 200 bytes=7 micros=15000 time=2026-11-22T18:40:01Z",
        ),
        (
            r#"LogFormat "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\" %T/%D" vhost"#,
            format!(r#"a.org:80 ::1 - - {TIME} "GET / HTTP/1.1" 200 7 "-" "a" 0/1500"#),
            "GET / 200 bytes=7 micros=1500 host=a.org time=2026-11-22T18:40:01Z",
        ),
        (
            "combinedio",
            format!(r#"::1 - - {TIME} "GET / HTTP/1.1" 200 7 "-" "a" 100 200"#),
            "GET / 200 bytes=7 time=2026-11-22T18:40:01Z",
        ),
        (
            "vhost_combined",
            format!(r#"a.org:80 ::1 - - {TIME} "GET / HTTP/1.1" 200 7 "-" "a""#),
            "GET / 200 bytes=7 host=a.org time=2026-11-22T18:40:01Z",
        ),
        (
            "host:%h\\ttime:%t\\treq:%r\\tstatus:%>s\\tsize:%b\\treqtime_microsec:%D",
            format!(
                "host:::1\ttime:{TIME}\treq:GET /a HTTP/1.1\tstatus:200\tsize:7\treqtime_microsec:1500"
            ),
            "GET /a 200 bytes=7 micros=1500 time=2026-11-22T18:40:01Z",
        ),
        (
            "LogFormat \"host:%h\\ttime:%t\\treq:%r\\tstatus:%>s\" ltsv",
            format!("host:::1\ttime:{TIME}\treq:GET /a HTTP/1.1\tstatus:200"),
            "GET /a 200 time=2026-11-22T18:40:01Z",
        ),
        (
            r#"%400,501{User-agent}i %!200r %s %m %U%q %X %I %^FB %{X}o"#,
            "- - 200 GET /a b?c X 12 34 d e f".into(),
            "the end of `%!200r`",
        ),
        (
            r#"%!200,304{Referer}i "%!404r" %<s %>s %{X}n"#,
            r#"http://a/ b "GET /a HTTP/1.1" 302 200 x y"#.into(),
            "GET /a 200",
        ),
        (
            r#"%!200,304{Referer}i "%!404r" %<s %>s "%{X}n""#,
            r#"http://a/ b "GET /a HTTP/1.1" 302 200 "x y""#.into(),
            "GET /a 200",
        ),
        (r#"%!200t "%!200r" %>s %m %U"#, r#"- "-" 200 GET /a b"#.into(), "GET /a b 200 time=?"),
        (
            r#"%m %U%q %H %s %X "%{x}C" %A %f"#,
            "GET /a b?c HTTP/1.1 200 X \"y\" ::1 /srv/a b".into(),
            "the status is not a number",
        ),
        (
            r#"%m %U%q %H %s %X "%{x}C" %A %R"#,
            "GET /a b?c HTTP/1.1 200 X \"y\" ::1 proxy-server".into(),
            "GET /a b?c 200 cut",
        ),
        (
            r#"%{%d/%b/%Y %T}t.%{msec_frac}t %{%z}t %{Host}i "%r" %>s %{c}h"#,
            r#"22/Nov/2026 19:40:01.500 +0100 a.org "GET / HTTP/1.1" 200 10.0.0.1"#.into(),
            "GET / 200 host=a.org time=2026-11-22T18:40:01.5Z",
        ),
        (r#"%{sec}t %m|%U|%q|%s"#, "1795372801 GET|/a|?b=c|200".into(), "the end of `%q`"),
        (
            "%{sec}t\t%m\t%U\t%q\t%s",
            "1795372801\tGET\t/a\t?b=c\t200".into(),
            "GET /a?b=c 200 time=2026-11-22T18:40:01Z",
        ),
        (
            "%{X-Forwarded-For}i %l %u %t \"%r\" %>s",
            format!("1.1.1.1, ::1 - - {TIME} \"GET / HTTP/1.1\" 200"),
            "GET / 200 time=2026-11-22T18:40:01Z",
        ),
        ("LogFormat '%s \\\n%r' \"a name\"", "200 GET / HTTP/1.1".into(), "GET / 200"),
        ("$5 %s %r", "$5 200 GET / HTTP/1.1".into(), "GET / 200"),
        ("%s %U 100%%", "200 /a 100%".into(), "- /a 200"),
    ] {
        let found = match LineFormat::from_text(format) {
            Ok(_) => read_text(format, &line),
            Err(error) => error.to_string(),
        };
        match expected.starts_with("the end") {
            true => assert!(found.starts_with(expected), "{format}: {found}"),
            false => assert_eq!(found, expected, "{format}: {line}"),
        }
    }
}

#[test]
fn formats_of_nginx_are_read() {
    const TIME: &str = "[22/Nov/2026:18:40:01 +0000]";
    const MAIN: &str =
        r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent"#;
    for (format, line, expected) in [
        (
            format!(r#"{MAIN} "$http_referer" $request_time $upstream_response_time"#),
            format!(r#"::1 - a b {TIME} "GET /\x22 HTTP/1.1" 200 7 "-" 0.250 0.1, 0.2 : 0.3"#),
            "GET /\" 200 bytes=7 micros=250000 time=2026-11-22T18:40:01Z",
        ),
        (
            format!("{MAIN} $upstream_connect_time $upstream_header_time $upstream_response_time $pipe $upstream_cache_status"),
            format!(r#"::1 - - {TIME} "GET / HTTP/2.0" 200 7 0.1, 0.2 - 0.1, 0.2 : 0.3 . MISS"#),
            "GET / 200 bytes=7 micros=600000 cache=MISS time=2026-11-22T18:40:01Z",
        ),
        (
            "log_format main '$remote_addr - [${time_iso8601}] '\n    '\"$request\" ${status}s \\'$upstream_addr\\'';".into(),
            "::1 - [2026-11-22T18:40:01+00:00] \"GET / HTTP/1.1\" 200s '10.0.0.1:80, unix:/tmp/a : 10.0.0.2:80'".into(),
            "GET / 200 time=2026-11-22T18:40:01Z",
        ),
        (
            "log_format j escape=json '{\"t\":$msec,\"r\":\"$request\",\"s\":$status,\"h\":\"$host\",\"u\":\"$upstream_response_time\"}';".into(),
            "{\"t\":1795372801.123,\"r\":\"GET /\\\"a HTTP/1.1\",\"s\":200,\"h\":\"a.org\",\"u\":\"\"}".into(),
            "GET /\"a 200 host=a.org time=2026-11-22T18:40:01.123Z",
        ),
        (
            "time:$time_local\\tmethod:$request_method\\turi:$uri$is_args$args\\tstatus:$status\\tvhost:$host\\tcost:$request_time".into(),
            "time:22/Nov/2026:18:40:01 +0000\tmethod:GET\turi:/a b?c=d\tstatus:200\tvhost:a.org\tcost:0.001".into(),
            "GET /a b?c=d 200 micros=1000 host=a.org time=2026-11-22T18:40:01Z",
        ),
        (
            "$request_method $uri $status $args".into(),
            "GET /a b 200 c=d".into(),
            "GET /a b?c=d 200",
        ),
        (
            "$remote_user $uri $status \"$request_method\"".into(),
            "a /x y 200 \"GET\"".into(),
            "GET /x y 200",
        ),
        ("$geoip_country \"$request\" $status".into(), "New Zealand \"GET / HTTP/1.1\" 200".into(), "GET / 200"),
        ("$status%$ $request".into(), "200%$ GET / HTTP/1.1".into(), "GET / 200"),
        ("\tlog_format a '$status' ' $request'; # '$request_time'".into(), "200 GET / HTTP/1.1".into(), "GET / 200"),
        ("log_format a '$status \\t$request'".into(), "200 \tGET / HTTP/1.1".into(), "GET / 200"),
    ] {
        assert_eq!(read_text(&format, &line), expected, "{format}: {line}");
    }
}

#[test]
fn a_text_that_is_no_format_says_what_is_missing() {
    for (text, expected) in [
        ("", "allowed are combined"),
        ("xml", "allowed are combined"),
        ("log_format main $status;", "`log_format` has no format in quotation marks"),
        ("log_format main '$status", "`log_format` has no format in quotation marks"),
        ("LogFormat common", "`LogFormat` has no format in quotation marks"),
        ("LogFormat \"%h\" x", "no status (%s)"),
        ("$request", "no status ($status)"),
        ("$status", "no request ($request"),
        ("%r %s 100%", "ends within `%`"),
        ("%r %s 100% of", "there is no `% `; a percent sign is written `%%`"),
        ("$a $b \"$request\" $status", "the end of `$b` cannot be found, because it and `$a`"),
        ("$request_time$status $uri", "the end of `$status` cannot be found"),
    ] {
        let error = LineFormat::from_text(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    for text in ["$status $request", "vhost_combined", "combinedio"] {
        let error = LineFormat::of_configuration(text).expect_err(text);
        assert_eq!(error, FormatTextError::NoFormat, "{text}");
    }
}

#[test]
fn the_unit_of_durations_is_that_of_the_directive() {
    use TimeUnit::{Microseconds, Milliseconds, Seconds};
    for (format, expected) in [
        ("%r %s %D", Some((Microseconds, "%D"))),
        ("%r %s %T %D", Some((Microseconds, "%D"))),
        ("%r %s %{ms}T %T", Some((Milliseconds, "%{ms}T"))),
        ("%r %s %{us}T", Some((Microseconds, "%{us}T"))),
        ("%r %s %T", Some((Seconds, "%T"))),
        (
            "\"$request\" $status $upstream_response_time",
            Some((Seconds, "$upstream_response_time")),
        ),
        ("%r %s", None),
        ("combined", None),
    ] {
        let read = LineFormat::from_text(format).expect(format);
        assert_eq!(read.duration_unit(), expected, "{format}");
    }
}
