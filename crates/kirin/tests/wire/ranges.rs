//! Conditions and ranges (RFC 9110 sections 13 and 14) on pages of the store and on files.

use std::process::Command;

use kirin_tests::{Kirin, Memcached, Reply, Site};

const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\n\
    memcached = [\"unix:m.sock\"]\n[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n";

/// Returns text in which every place differs.
fn text(bytes: usize) -> String {
    (0..).map(|n| format!("{n:07}\n")).take(bytes / 8 + 1).collect::<String>()[..bytes].to_owned()
}

fn serve() -> (Site, Kirin, Memcached) {
    let site =
        Site::new().with("public/small.txt", text(5000)).with("public/large.txt", text(1_000_000));
    let kirin = Kirin::start(&site, CONFIG);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("/page", format!("text/plain; charset=utf-8\r\n{}", text(5000)).as_bytes());
    (site, kirin, memcached)
}

/// Returns content range and bytes of each part.
fn parts(reply: &Reply) -> Vec<(String, String)> {
    let content_type = reply.field("content-type").expect("a type");
    let boundary =
        content_type.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let body = format!("\r\n{}", reply.text());
    let mut sections: Vec<&str> = body.split(&format!("\r\n--{boundary}")).collect();
    assert_eq!((sections.remove(0), sections.pop()), ("", Some("--\r\n")));
    let part = |section: &str| {
        let (head, bytes) = section.split_once("\r\n\r\n").expect("a head");
        let field = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(name)).expect("a field").to_owned()
        };
        assert_eq!(field("Content-Type: "), "text/plain; charset=utf-8");
        (field("Content-Range: "), bytes.to_owned())
    };
    sections.into_iter().map(part).collect()
}

#[test]
fn one_range_of_a_page_or_a_file() {
    let (_site, kirin, _memcached) = serve();
    let mut client = kirin.connect();
    for (target, size) in [("/page", 5000), ("/small.txt", 5000), ("/large.txt", 1_000_000)] {
        let whole = text(size);
        let tag = client.get(target).field("etag").expect("a tag").to_owned();
        for (range, start, end) in [
            ("bytes=0-0", 0, 1),
            ("bytes=10-99", 10, 100),
            ("bytes=4000-", 4000, size),
            ("bytes=-1", size - 1, size),
            ("bytes=-9999999", 0, size),
            ("bytes=100-200,150-300", 100, 301),
        ] {
            for condition in
                [String::new(), format!("If-Range: {tag}\r\n"), format!("If-Match: {tag}\r\n")]
            {
                let reply =
                    client.request("GET", target, &format!("Range: {range}\r\n{condition}"));
                assert_eq!(reply.status, 206, "{target} {range} {condition}");
                assert!(reply.text() == whole[start..end], "{target} {range}");
                let content_range = format!("bytes {start}-{}/{size}", end - 1);
                assert_eq!(reply.field("content-range"), Some(content_range.as_str()), "{target}");
                assert_eq!(reply.field("etag"), Some(tag.as_str()));
            }
        }
        for (fields, status, length) in [
            ("Range: bytes=9999999-", 416, None),
            ("Range: bytes=-0", 416, None),
            ("Range: bytes=9999999-,-0", 416, None),
            ("Range: bytes=2-1", 200, Some(size)),
            ("Range: lines=0-1", 200, Some(size)),
            ("Range: bytes=0-1\r\nIf-Range: \"other\"", 200, Some(size)),
            ("Range: bytes=0-1\r\nIf-Range: W/\"other\"", 200, Some(size)),
            ("Range: bytes=0-1\r\nIf-None-Match: *", 304, Some(0)),
            ("Range: bytes=0-1\r\nIf-Match: \"other\"", 412, None),
        ] {
            let reply = client.request("GET", target, &format!("{fields}\r\n"));
            assert_eq!(reply.status, status, "{target} {fields}");
            assert!(length.is_none_or(|length| length == reply.body.len()), "{target} {fields}");
            if status == 416 {
                assert_eq!(reply.field("content-range"), Some(format!("bytes */{size}").as_str()));
            }
        }
        let head = client.request("HEAD", target, "Range: bytes=0-1\r\n");
        assert_eq!(
            (head.status, head.field("content-length")),
            (200, Some(size.to_string().as_str()))
        );
        assert_eq!(head.field("accept-ranges"), Some("bytes"));
    }
}

#[test]
fn several_ranges_come_as_parts_in_the_requested_order() {
    let (_site, kirin, _memcached) = serve();
    let mut client = kirin.connect();
    for (target, size) in [("/page", 5000), ("/small.txt", 5000), ("/large.txt", 1_000_000)] {
        let whole = text(size);
        let reply = client.request(
            "GET",
            target,
            "Range: bytes=1000-1007, 0-0, -8, 3000-3999\r\nAccept-Encoding: gzip\r\n",
        );
        assert_eq!(
            (reply.status, reply.field("content-range"), reply.field("content-encoding")),
            (206, None, None)
        );
        let expected: Vec<(String, String)> =
            [(1000, 1008), (0, 1), (size - 8, size), (3000, 4000)]
                .into_iter()
                .map(|(start, end)| {
                    (format!("bytes {start}-{}/{size}", end - 1), whole[start..end].to_owned())
                })
                .collect();
        assert!(parts(&reply) == expected, "{target}: {}", reply.text());
        // The connection continues in order.
        assert_eq!(client.request("GET", target, "Range: bytes=0-6\r\n").text(), "0000000");
    }
    let large = text(1_000_000);
    let reply = client.request("GET", "/large.txt", "Range: bytes=0-299999,500000-899999\r\n");
    let got: Vec<usize> = parts(&reply).iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(got, [300_000, 400_000]);
    assert!(parts(&reply)[1].1 == large[500_000..900_000]);
}

#[test]
fn a_thousand_ranges_get_the_complete_file_once() {
    let (_site, kirin, _memcached) = serve();
    let mut client = kirin.connect();
    let killer: String = (0..1300).map(|n| format!(",5-{n}")).collect();
    let apart: Vec<String> = (0..33).map(|n| format!("{}-{}", n * 150, n * 150)).collect();
    for target in ["/page", "/small.txt"] {
        let reply = client.request("GET", target, &format!("Range: bytes=0-{killer}\r\n"));
        assert_eq!((reply.status, reply.body.len()), (200, 5000));
        let reply = client.request("GET", target, &format!("Range: bytes={}\r\n", apart.join(",")));
        assert_eq!((reply.status, reply.body.len()), (200, 5000));
        let reply =
            client.request("GET", target, &format!("Range: bytes={}\r\n", apart[..32].join(",")));
        assert_eq!((reply.status, parts(&reply).len()), (206, 32));
        // The ranges request the same bytes repeatedly.
        let reply = client.request("GET", target, "Range: bytes=0-,0-,0-,0-,0-\r\n");
        assert_eq!((reply.status, reply.body.len()), (206, 5000));
    }
}

#[test]
fn pages_with_dates_are_compared_by_them_and_conditions_come_in_order() {
    let (_site, kirin, mut memcached) = serve();
    let (before, same, after) = (
        "Sun, 06 Nov 1994 08:49:36 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:38 GMT",
    );
    let fields = format!("Content-Type: text/plain\r\nETag: \"t\"\r\nLast-Modified: {same}\r\n");
    memcached.set("/dated", format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello").as_bytes());
    memcached.set("/gone", format!("HTTP/1.1 404 Not Found\r\n{fields}\r\nhello").as_bytes());
    memcached
        .set("/weak", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: W/\"t\"\r\n\r\nhello");
    let mut client = kirin.connect();
    for (lines, status) in [
        (vec![("If-Modified-Since", same)], 304),
        (vec![("If-Modified-Since", after)], 304),
        (vec![("If-Modified-Since", "Mon, 06 Nov 1994 08:49:37 GMT")], 304),
        (vec![("If-Modified-Since", "sun, 06 nov 1994 08:49:37 gmt")], 304),
        (vec![("If-Modified-Since", "Friday, 06-NOV-94 08:49:37 GMT")], 304),
        (vec![("If-Modified-Since", "Mon Nov  6 08:49:37 1994")], 304),
        (vec![("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 PST")], 200),
        (vec![("If-Modified-Since", before)], 200),
        (vec![("If-None-Match", "\"x\""), ("If-Modified-Since", same)], 200),
        (vec![("If-None-Match", "\"t\""), ("If-Modified-Since", before)], 304),
        (vec![("If-Unmodified-Since", before)], 412),
        (vec![("If-Unmodified-Since", same)], 200),
        (vec![("If-Match", "\"t\""), ("If-Unmodified-Since", before)], 200),
        (vec![("If-Match", "\"x\""), ("If-Unmodified-Since", same)], 412),
        (vec![("If-Match", "\"x\""), ("If-None-Match", "\"t\"")], 412),
        (vec![("If-Match", "*"), ("If-None-Match", "*")], 304),
        (vec![("If-Range", same), ("Range", "bytes=0-1")], 206),
        (vec![("If-Range", before), ("Range", "bytes=0-1")], 200),
        (vec![("If-Range", "\"t\""), ("Range", "bytes=0-1")], 206),
        (vec![("If-Modified-Since", same), ("Range", "bytes=0-1")], 304),
    ] {
        let fields: String =
            lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        assert_eq!(client.request("GET", "/dated", &fields).status, status, "{fields}");
        // A condition does not make an error a success.
        assert_eq!(client.request("GET", "/gone", &fields).status, 404, "{fields}");
    }
    for (fields, status) in [
        ("If-None-Match: \"t\"\r\n", 304),
        ("If-None-Match: W/\"t\"\r\n", 304),
        ("If-Match: W/\"t\"\r\n", 412),
        ("If-Range: W/\"t\"\r\nRange: bytes=0-1\r\n", 200),
    ] {
        assert_eq!(client.request("GET", "/weak", fields).status, status, "{fields}");
    }
}

#[test]
fn a_page_with_includes_is_sent_completely() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set(
        "/",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"own\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\na<!--# include b -->c",
    );
    memcached.set("b", b"-b-");
    let mut client = kirin.connect();
    let reply = client.request("GET", "/", "Range: bytes=0-1\r\n");
    assert_eq!(
        (reply.status, reply.text().as_str(), reply.field("accept-ranges")),
        (200, "a-b-c", None)
    );
    // Its own tag and date do not describe the parts.
    assert_eq!(reply.head.matches("ETag: ").count(), 1);
    assert_eq!(reply.field("last-modified"), None);
    let tag = reply.field("etag").expect("a tag");
    for (fields, status) in [
        ("If-None-Match: \"own\"\r\n".to_owned(), 200),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(), 200),
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-Match: {tag}\r\n"), 200),
        ("If-Match: \"own\"\r\n".to_owned(), 412),
    ] {
        assert_eq!(client.request("GET", "/", &fields).status, status, "{fields}");
    }
}

#[test]
fn curl_joins_a_download_that_was_cut() {
    let (site, kirin, _memcached) = serve();
    let part = site.path("part");
    std::fs::write(&part, &text(1_000_000)[..123_456]).expect("a part");
    let status = Command::new("curl")
        .args(["-sS", "-f", "-C", "-", "-o"])
        .arg(&part)
        .arg(format!("http://{}/large.txt", kirin.address()))
        .status()
        .expect("curl");
    assert!(
        status.success() && std::fs::read_to_string(&part).expect("the file") == text(1_000_000)
    );
}
