//! HTTP/2 as h2spec, curl and HTTP/1 have it.

use super::*;

fn h2spec() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/h2spec/h2spec");
    assert!(path.exists(), "{} is not there: run tests/install_h2spec.sh", path.display());
    path
}

/// Runs h2spec. Returns its report if it ends well.
fn run_h2spec(arguments: &[&str], port: u16) -> Result<String, String> {
    let output = Command::new(h2spec())
        .args(["--strict", "-h", "127.0.0.1", "-p", &port.to_string()])
        .args(arguments)
        .output()
        .expect("h2spec runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

#[test]
fn h2spec_passes_over_tls() {
    let (_site, kirin) = serve();
    let report = run_h2spec(&["-t", "-k"], kirin.address_of(1).port())
        .unwrap_or_else(|report| panic!("{report}"));
    assert!(report.contains(" 0 skipped, 0 failed"), "{report}");
}

#[test]
fn h2spec_passes_by_prior_knowledge() {
    let (_site, kirin) = serve();
    let report =
        run_h2spec(&[], kirin.address().port()).expect_err("one case asks for what HTTP/1 forbids");
    // 3.5.2 sends "INVALID CONNECTION PREFACE" and expects the connection to end without an answer.
    // This port also speaks HTTP/1, and answers an invalid request line with 400 before the end.
    assert!(report.contains(" 0 skipped, 1 failed"), "{report}");
    let failures = report.split("Failures:").nth(1).expect("failures");
    assert!(failures.contains("2: Sends invalid connection preface"), "{report}");
    assert!(failures.contains("looked like an HTTP/1.1 header"), "{report}");
}

/// Method, target, fields and body of a request.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8]);

#[test]
fn every_request_has_the_same_answer_as_over_http_1() {
    let (site, kirin) = serve();
    let mut store = Memcached::connect(&site.path("store.sock"));
    store.set("/stored", b"text/html\r\n<p>stored</p>");
    store.set("/included", b"text/html\r\n<!--# include part --> and <!--# include part -->");
    store.set("part", "part ".repeat(1000).as_bytes());
    let etag = kirin.get("/hello.txt").field("etag").expect("an ETag").to_owned();
    let large_body = vec![b'x'; 3_000_000];
    let cases: &[Case<'_>] = &[
        ("GET", "/hello.txt", &[], b""),
        ("GET", "/hello.txt?q=%20x", &[], b""),
        ("HEAD", "/hello.txt", &[], b""),
        ("GET", "/empty.txt", &[], b""),
        ("GET", "/large.bin", &[], b""),
        ("HEAD", "/large.bin", &[], b""),
        ("GET", "/hello.txt", &[("range", "bytes=1-3")], b""),
        ("GET", "/large.bin", &[("range", "bytes=-100000")], b""),
        ("GET", "/hello.txt", &[("range", "bytes=9-")], b""),
        ("GET", "/hello.txt", &[("if-none-match", &etag)], b""),
        ("HEAD", "/hello.txt", &[("if-none-match", &etag)], b""),
        ("GET", "/hello.txt", &[("if-match", "\"other\"")], b""),
        ("GET", "/hello.txt", &[("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT")], b""),
        ("GET", "/page.html", &[("accept-encoding", "gzip")], b""),
        ("GET", "/stored", &[], b""),
        ("HEAD", "/stored", &[], b""),
        ("GET", "/included", &[], b""),
        ("HEAD", "/included", &[], b""),
        ("GET", "/none", &[], b""),
        ("HEAD", "/none", &[], b""),
        ("POST", "/hello.txt", &[], b""),
        ("POST", "/hello.txt", &[], b"unwanted"),
        ("DELETE", "/hello.txt", &[], b""),
        ("OPTIONS", "/hello.txt", &[], b""),
        ("GET", "/..", &[], b""),
        ("GET", "/%00", &[], b""),
        ("GET", "/a%2Fb", &[], b""),
        ("GET", "//hello.txt", &[], b""),
        (
            "GET",
            "/app/env?a=b%20c",
            &[("x-a", "1"), ("x-a", "2"), ("cookie", "a=1"), ("cookie", "b=2")],
            b"",
        ),
        ("POST", "/app/env", &[("content-type", "text/x"), ("te", "trailers")], b"12345"),
        ("PUT", "/app/body", &[], b"hello"),
        ("POST", "/app/body", &[], &large_body),
        ("POST", "/app/none", &[], b"x"),
        ("GET", "/app/redirect", &[], b""),
        ("GET", "/app/stream", &[], b""),
        ("HEAD", "/app/stream", &[], b""),
        ("GET", "/app/none", &[], b""),
        ("GET", "/app/nothing", &[], b""),
        ("PROPFIND", "/app/nothing", &[], b""),
    ];
    let mut http2 = Http2Client::connect(kirin.address());
    for (method, target, fields, body) in cases {
        let mut lines: String =
            fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        if !body.is_empty() {
            lines += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut http1 = kirin.connect();
        http1
            .send(format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{lines}\r\n"))
            .try_send(body);
        let old = if *method == "HEAD" { http1.read_head_reply() } else { http1.read_reply() };
        let length = body.len().to_string();
        let mut fields = fields.to_vec();
        if !body.is_empty() {
            fields.push(("content-length", &length));
        }
        let new = http2.send(method, target, &fields, body);
        let what =
            format!("{method} {target} {fields:?}\nHTTP/1: {}\nHTTP/2: {:?}", old.head, new.fields);
        assert_eq!(new.status, old.status, "{what}");
        // A stream of an application has a length if it arrives in one piece.
        let mut old_fields: Vec<(String, String)> = (old.head.lines().skip(1))
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .filter(|(name, _)| {
                !["transfer-encoding", "connection", "date"].contains(&name.as_str())
            })
            .filter(|(name, _)| name != "content-length" || !target.ends_with("/stream"))
            .collect();
        let mut new_fields: Vec<(String, String)> = (new.fields.iter())
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .filter(|(name, _)| {
                name != "date" && (name != "content-length" || !target.ends_with("/stream"))
            })
            .collect();
        old_fields.sort();
        new_fields.sort();
        assert_eq!(new_fields, old_fields, "{what}");
        assert!(new.field("date").is_some_and(|date| date.ends_with(" GMT")), "{what}");
        assert!(new.body == old.body, "{what}\n{} and {} bytes", new.body.len(), old.body.len());
    }
    assert_eq!(http2.get("/app/protocol").text(), "HTTP/2");
}

#[test]
fn curl_speaks_http2_over_tls_and_by_prior_knowledge() {
    let (site, kirin) = serve();
    let (plain, tls) = (kirin.address(), kirin.address_of(1));
    for (arguments, url) in [
        (&["--http2-prior-knowledge"][..], format!("http://{plain}")),
        (&["--http2", "-k"], format!("https://{tls}")),
    ] {
        std::fs::write(site.path("upload"), large()).expect("write");
        let output = Command::new("curl")
            .args(["-sS", "--data-binary", "@upload", "-w", " %{http_version}"])
            .args(arguments)
            .arg(format!("{url}/app/body"))
            .current_dir(site.root())
            .output()
            .expect("curl");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            shown.starts_with("3000000 ") && shown.ends_with(" 2"),
            "{arguments:?}: {shown} {output:?}"
        );
    }
}
