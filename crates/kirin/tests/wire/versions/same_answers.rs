//! Every request has the answer that it has over HTTP/1.

use kirin_tests::Memcached;

use super::*;

/// Method, target, fields and body of a request.
type Case<'a> = (&'a str, &'a str, &'a [Field<'a>], &'a [u8]);

/// Returns the fields of an answer that the versions have in common, sorted. A stream of an
/// application has a length if it arrives in one piece.
fn common(fields: impl Iterator<Item = (String, String)>, target: &str) -> Vec<(String, String)> {
    let of_a_version = ["transfer-encoding", "connection", "date"];
    let mut common: Vec<_> = fields
        .filter(|(name, _)| !of_a_version.contains(&name.as_str()))
        .filter(|(name, _)| name != "content-length" || !target.ends_with("/stream"))
        .collect();
    common.sort();
    common
}

#[test]
fn every_request_has_the_same_answer_as_over_http_1() {
    let served = serve();
    let kirin = &served.kirin;
    let mut store = Memcached::connect(&served.site.path("store.sock"));
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
    served.each(|version, client| {
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
            let request = SentRequest { method, target, fields: &fields, body, trailers: &[] };
            let new = client.send(request).expect("a whole response");
            let what = format!(
                "{method} {target} {fields:?}\nHTTP/1: {}\n{version}: {:?}",
                old.head, new.fields
            );
            assert_eq!(new.status, old.status, "{what}");
            let old_fields = (old.head.lines().skip(1))
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                // It is for clients that do not speak HTTP/3 yet.
                .filter(|(name, _)| name != "alt-svc");
            let new_fields = common(new.fields.iter().cloned(), target);
            assert_eq!(new_fields, common(old_fields, target), "{what}");
            assert!(new.field("date").is_some_and(|date| date.ends_with(" GMT")), "{what}");
            let lengths = (new.body.len(), old.body.len());
            assert!(new.body == old.body, "{what}\n{lengths:?} bytes");
        }
        assert_eq!(client.get("/app/protocol").text(), version);
    });
}
