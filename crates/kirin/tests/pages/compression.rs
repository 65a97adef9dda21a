//! Content codings as a client sees them, of pages in the store, files and applications.

use std::io::{Read, Write};
use std::process::Command;

use kirin_tests::{Client, Kirin, Memcached, Reply, Site, wait_for};

const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\n\
    memcached = [\"unix:m.sock\"]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"app:web\"]\n\
    [[route]]\npath = \"/on\"\ntry = [\"store\", \"app:web\"]\ncompress = true\n\
    [[route]]\npath = \"/off\"\ntry = [\"store\", \"files:public\", \"app:web\"]\ncompress = false\n\
    [[route]]\npath = \"/gzip\"\ntry = [\"store\"]\ncompress = [\"gzip\"]\n";

const APP: &str = r#"
use v5.16; use warnings;
my $page = join '', map { "<p>paragraph number $_</p>\n" } 1 .. 100;
sub {
    my $env = shift;
    my ($what) = $env->{PATH_INFO} =~ m{([^/]*)$};
    my @html = ('Content-Type' => 'text/html');
    return [200, [@html, ETag => '"tag"', Vary => 'Cookie'], [$page]] if $what eq 'page';
    return [200, [@html], ["\x{1f}\x{8b}" . 'x' x 1000]] if $what eq 'page-never';
    return [200, [@html, 'Content-Encoding' => 'br'], ['x' x 1000]] if $what eq 'coded';
    return [200, [@html], ['x' x 100]] if $what eq 'tiny';
    return [200, [@html], [map { $page } 1 .. 200]] if $what eq 'large';
    return [($env->{HTTP_IF_NONE_MATCH} // '') eq '"tag"' ? 304 : 200, [@html, ETag => '"tag"'], []] if $what eq 'conditional';
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/event-stream']]);
        $writer->write("data: first\n\n");
        until (-e 'go') { select undef, undef, undef, 0.01 }
        $writer->write("data: last\n\n");
        $writer->close;
    } if $what eq 'events';
    return [404, ['Content-Type' => 'text/plain'], ["the application has no $env->{PATH_INFO}"]];
};
"#;

fn serve() -> (Site, Kirin, Memcached) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/app.js", script())
        .with("public/off/app.js", script())
        .with("public/page", "from the file\n");
    let kirin = Kirin::start(&site, CONFIG);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

fn html(bytes: usize) -> String {
    let lines = (0..)
        .map(|n| format!("<li class=\"memo\"><a href=\"/memo/{n}\">memo number {n}</a></li>\n"));
    let mut page = String::new();
    for line in lines {
        if page.len() >= bytes {
            break;
        }
        page += &line;
    }
    page.truncate(bytes);
    page
}

fn script() -> String {
    html(20_000)
}

fn get(client: &mut Client, target: &str, codings: &str) -> Reply {
    client.request("GET", target, &format!("Accept-Encoding: {codings}\r\n"))
}

/// Decodes the body by its `Content-Encoding`.
fn decoded(reply: &Reply) -> String {
    let mut plain = Vec::new();
    match reply.field("content-encoding") {
        None => plain = reply.body.clone(),
        Some("gzip") => {
            flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut plain).expect("gzip");
        }
        Some("br") => {
            brotli::Decompressor::new(&reply.body[..], 4096).read_to_end(&mut plain).expect("br");
        }
        Some("zstd") => plain = zstd::decode_all(&reply.body[..]).expect("zstd"),
        Some(other) => panic!("{other}"),
    }
    String::from_utf8(plain).expect("text")
}

fn coding(reply: &Reply) -> Option<&str> {
    assert_eq!(
        reply.head.to_ascii_lowercase().matches("content-encoding").count(),
        usize::from(reply.field("content-encoding").is_some())
    );
    reply.field("content-encoding")
}

#[test]
fn a_page_is_compressed_in_the_coding_that_the_client_prefers() {
    let (_site, kirin, mut memcached) = serve();
    let page = html(10_000);
    memcached.set("/p", format!("text/html\r\n{page}").as_bytes());
    let mut client = kirin.connect();
    let plain = client.get("/p");
    assert_eq!((coding(&plain), plain.text() == page), (None, true));
    assert_eq!(plain.field("vary"), Some("Accept-Encoding"));
    let mut tags = vec![plain.field("etag").expect("an ETag").to_owned()];
    for (codings, expected) in [
        ("gzip", "gzip"),
        ("br", "br"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, zstd", "zstd"),
        ("br;q=0.5, gzip;q=0.9", "gzip"),
        ("*", "br"),
    ] {
        let first = get(&mut client, "/p", codings);
        assert_eq!((first.status, coding(&first)), (200, Some(expected)), "{codings}");
        assert_eq!(first.field("vary"), Some("Accept-Encoding"));
        assert_eq!(first.field("content-type"), Some("text/html"));
        assert_eq!(first.field("content-length"), Some(first.body.len().to_string().as_str()));
        assert!(first.body.len() < 2000 && decoded(&first) == page, "{codings}");
        tags.push(first.field("etag").expect("an ETag").to_owned());
        let again = get(&mut client, "/p", codings);
        assert_eq!(without_date(&again), without_date(&first), "{codings}");
        assert!(again.body == first.body, "{codings}");
        let head = client.request("HEAD", "/p", &format!("Accept-Encoding: {codings}\r\n"));
        assert_eq!(without_date(&head), without_date(&first), "{codings}");
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "{tags:?}");
    // A new value is compressed again.
    memcached.set("/p", format!("text/html\r\n{}", html(5000)).as_bytes());
    assert_eq!(decoded(&get(&mut client, "/p", "gzip")), html(5000));
}

#[test]
fn a_page_is_sent_uncompressed_if_requested_or_not_worth_it() {
    let (_site, kirin, mut memcached) = serve();
    let page = html(2000);
    for (key, head) in [
        ("/p", "text/html"),
        ("/off/p", "text/html"),
        ("/gzip/p", "text/html"),
        ("/image", "image/png"),
        ("/fixed", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: no-transform\r\n"),
    ] {
        memcached.set(key, format!("{head}\r\n{page}").as_bytes());
    }
    memcached.set("/tiny", format!("text/html\r\n{}", html(511)).as_bytes());
    let mut client = kirin.connect();
    for (target, codings, expected, vary) in [
        ("/p", "identity", None, Some("Accept-Encoding")),
        ("/p", "gzip;q=0", None, Some("Accept-Encoding")),
        ("/p", "deflate", None, Some("Accept-Encoding")),
        ("/p", "identity;q=0", None, Some("Accept-Encoding")),
        ("/p", "identity, gzip;q=0.5", None, Some("Accept-Encoding")),
        ("/off/p", "gzip", None, None),
        ("/gzip/p", "br, gzip;q=0.1", Some("gzip"), Some("Accept-Encoding")),
        ("/gzip/p", "br", None, Some("Accept-Encoding")),
        ("/image", "gzip", None, None),
        ("/fixed", "gzip", None, None),
        ("/tiny", "gzip", None, None),
    ] {
        let reply = get(&mut client, target, codings);
        assert_eq!(
            (reply.status, coding(&reply), reply.field("vary")),
            (200, expected, vary),
            "{target} {codings}"
        );
    }
}

#[test]
fn a_large_page_is_sent_uncompressed_until_a_thread_has_compressed_it() {
    let (_site, kirin, mut memcached) = serve();
    let page = html(300_000);
    memcached.set("/large", format!("text/html\r\n{page}").as_bytes());
    let mut client = kirin.connect();
    for name in ["gzip", "br", "zstd"] {
        let reply = wait_for("the compressed page", || {
            let reply = get(&mut client, "/large", name);
            assert_eq!((reply.status, reply.field("vary")), (200, Some("Accept-Encoding")));
            assert!(decoded(&reply) == page);
            coding(&reply).is_some().then_some(reply)
        });
        assert!(reply.body.len() < page.len() / 5);
    }
    // A page that changes often is never mixed up with its predecessor.
    for bytes in (100_000..120_000).step_by(1000) {
        memcached.set("/large", format!("text/html\r\n{}", html(bytes)).as_bytes());
        assert!(decoded(&get(&mut client, "/large", "gzip")) == html(bytes), "{bytes}");
    }
}

#[test]
fn a_client_with_any_accepted_variant_of_a_page_gets_304() {
    let (_site, kirin, mut memcached) = serve();
    let page =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"t\"\r\n\r\n{}", html(2000));
    memcached.set("/p", page.as_bytes());
    let mut client = kirin.connect();
    for (codings, held, expected) in [
        ("gzip", "\"t-gzip\"", Some("\"t-gzip\"")),
        ("gzip", "W/\"t-gzip\"", Some("\"t-gzip\"")),
        ("gzip", "\"t\"", Some("\"t\"")),
        ("gzip, br", "\"t-gzip\"", Some("\"t-gzip\"")),
        ("gzip, br", "\"t\", \"t-gzip\", \"t-br\"", Some("\"t-br\"")),
        ("gzip", "*", Some("\"t-gzip\"")),
        ("identity", "\"t\"", Some("\"t\"")),
        ("identity", "\"t-gzip\"", None),
        ("gzip", "\"t-br\"", None),
        ("gzip, identity;q=0", "\"t\"", None),
    ] {
        let fields = format!("Accept-Encoding: {codings}\r\nIf-None-Match: {held}\r\n");
        let reply = client.request("GET", "/p", &fields);
        let tag = (reply.status == 304).then(|| reply.field("etag").expect("a tag"));
        assert_eq!(tag, expected, "{held} for {codings}");
        assert_eq!(reply.field("vary"), Some("Accept-Encoding"), "{held} for {codings}");
    }
    for (codings, wanted, status, expected) in [
        ("gzip", "\"t-gzip\"", 200, Some("gzip")),
        ("br, gzip", "\"t-gzip\"", 200, Some("gzip")),
        ("gzip", "\"t\"", 200, None),
        ("identity", "\"t-gzip\"", 412, None),
    ] {
        let fields = format!("Accept-Encoding: {codings}\r\nIf-Match: {wanted}\r\n");
        let reply = client.request("GET", "/p", &fields);
        assert_eq!((reply.status, coding(&reply)), (status, expected), "{wanted} for {codings}");
    }
}

/// Returns the lines of a head without `Date`: a second may begin between two responses.
fn without_date(reply: &Reply) -> Vec<&str> {
    reply.head.lines().filter(|line| !line.starts_with("Date:")).collect()
}

#[test]
fn a_page_with_includes_is_built_and_then_compressed() {
    let (_site, kirin, mut memcached) = serve();
    memcached
        .set("/", format!("text/html\r\n<h1><!--# include name --></h1>{}", html(2000)).as_bytes());
    memcached.set("/big", b"text/html\r\n<!--# include part --><!--# include part -->");
    memcached.set("part", html(100_000).as_bytes());
    memcached.set("/small", b"text/html\r\n<!--# include name -->");
    let mut client = kirin.connect();
    for (name, codings) in
        [("one", "gzip"), ("one", "br"), ("one", "zstd"), ("two", "gzip, br, zstd")]
    {
        memcached.set("name", name.as_bytes());
        let plain = client.get("/");
        assert_eq!(plain.field("vary"), Some("Accept-Encoding"));
        let reply = get(&mut client, "/", codings);
        assert!(coding(&reply).is_some() && reply.body.len() < 1000, "{}", reply.head);
        assert_eq!(decoded(&reply), plain.text());
        assert_ne!(reply.field("etag"), plain.field("etag"));
        assert_eq!(reply.head.to_ascii_lowercase().matches("etag:").count(), 1);
        let fields = format!(
            "Accept-Encoding: {codings}\r\nIf-None-Match: {}\r\n",
            reply.field("etag").unwrap()
        );
        let again = client.request("GET", "/", &fields);
        assert_eq!((again.status, again.field("etag")), (304, reply.field("etag")));
        let head = client.request("HEAD", "/", &format!("Accept-Encoding: {codings}\r\n"));
        assert_eq!(without_date(&head), without_date(&reply));
        let big = get(&mut client, "/big", codings);
        assert!(coding(&big).is_some() && decoded(&big) == html(100_000).repeat(2), "{}", big.head);
        let head = client.request("HEAD", "/big", &format!("Accept-Encoding: {codings}\r\n"));
        assert_eq!(without_date(&head), without_date(&big));
    }
    assert_eq!(coding(&get(&mut client, "/small", "gzip")), None);
    // A page that was built for one visitor is never given to another.
    for n in 0..30 {
        memcached.set("name", "long ".repeat(n % 7).as_bytes());
        for _ in 0..2 {
            assert_eq!(decoded(&get(&mut client, "/", "gzip")), client.get("/").text(), "{n}");
        }
    }
}

#[test]
fn a_stored_coded_response_goes_to_clients_that_accept_the_coding() {
    let (_site, kirin, mut memcached) = serve();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(html(2000).as_bytes()).unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n";
    let stored = [head.as_bytes(), &encoder.finish().unwrap()].concat();
    memcached.set("/page", &stored);
    memcached.set("/gzip/alone", &stored);
    let mut client = kirin.connect();
    for codings in ["gzip", "br, gzip;q=0.1", "*"] {
        let reply = get(&mut client, "/page", codings);
        assert_eq!(
            (coding(&reply), reply.field("vary")),
            (Some("gzip"), Some("Accept-Encoding")),
            "{codings}"
        );
        assert_eq!(decoded(&reply), html(2000));
    }
    // A client without a preference accepts any coding.
    assert_eq!(coding(&client.get("/page")), Some("gzip"));
    // Other clients get it from the next place, or not at all.
    assert_eq!(get(&mut client, "/page", "br").text(), "from the file\n");
    assert_eq!(get(&mut client, "/gzip/alone", "br").status, 406);
    assert_eq!(get(&mut client, "/gzip/alone", "gzip").status, 200);
}

#[test]
fn files_are_compressed_and_curl_decodes_them() {
    let (site, kirin, _memcached) = serve();
    let curl = |arguments: &[&str]| {
        let url = format!("http://{}", kirin.address());
        let arguments: Vec<String> = arguments.iter().map(|a| a.replace("URL", &url)).collect();
        let output = Command::new("curl")
            .args(["-sS", "--compressed", "-D", "-"])
            .args(&arguments)
            .output()
            .expect("curl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head.to_ascii_lowercase(), body.to_owned())
    };
    for name in ["br", "gzip", "zstd"] {
        let accept = format!("Accept-Encoding: {name}");
        let (head, body) = curl(&["-H", &accept, "URL/app.js"]);
        assert!(head.contains(&format!("content-encoding: {name}")), "{head}");
        assert!(body == script(), "{name}");
    }
    let (head, body) = curl(&["URL/off/app.js"]);
    assert!(!head.contains("content-encoding") && body == script(), "{head}");
    // Python's zlib reads it too.
    let script = format!(
        "import gzip, urllib.request as u\nr = u.urlopen(u.Request('http://{}/app.js', headers={{'Accept-Encoding': 'gzip'}}))\n\
         assert r.headers['Content-Encoding'] == 'gzip'\nassert gzip.decompress(r.read()) == open('public/app.js', 'rb').read()",
        kirin.address()
    );
    let output = Command::new("/usr/bin/python3")
        .current_dir(site.root())
        .args(["-c", &script])
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn application_responses_are_compressed_only_if_the_route_says_so() {
    let (_site, kirin, _memcached) = serve();
    let mut client = kirin.connect();
    for target in ["/page-never", "/off/page"] {
        let reply = get(&mut client, target, "gzip");
        assert_eq!((reply.status, coding(&reply)), (200, None), "{target}");
    }
    for codings in ["gzip", "br", "zstd"] {
        let plain = client.get("/on/page");
        assert_eq!((coding(&plain), plain.field("vary")), (None, Some("Cookie, Accept-Encoding")));
        let reply = get(&mut client, "/on/page", codings);
        assert_eq!(
            (coding(&reply), reply.field("vary")),
            (Some(codings), Some("Cookie, Accept-Encoding"))
        );
        assert_eq!(reply.field("etag"), Some(format!("\"tag-{codings}\"").as_str()));
        assert_eq!(reply.field("content-length"), Some(reply.body.len().to_string().as_str()));
        assert_eq!(decoded(&reply), plain.text());
        let head = client.request("HEAD", "/on/page", &format!("Accept-Encoding: {codings}\r\n"));
        let lines = |reply: &Reply| {
            let mut lines: Vec<String> = reply.head.lines().map(str::to_owned).collect();
            lines.retain(|line| !line.to_ascii_lowercase().starts_with("content-length"));
            lines
        };
        assert_eq!(lines(&head), lines(&reply));
        let large = get(&mut client, "/on/large", codings);
        assert!(
            coding(&large) == Some(codings) && decoded(&large) == plain.text().repeat(200),
            "{}",
            large.head
        );
    }
    for (target, expected) in [("/on/coded", Some("br")), ("/on/tiny", None)] {
        assert_eq!(coding(&get(&mut client, target, "gzip")), expected, "{target}");
    }
}

#[test]
fn the_application_sees_its_own_tag_and_the_client_its_variants_tag() {
    let (_site, kirin, _memcached) = serve();
    let mut client = kirin.connect();
    for (held, status, tag) in [
        ("\"tag-gzip\"", 304, "\"tag-gzip\""),
        ("\"tag\"", 304, "\"tag\""),
        ("\"tag-deflate\"", 200, "\"tag\""),
    ] {
        let fields = format!("Accept-Encoding: gzip\r\nIf-None-Match: {held}\r\n");
        let reply = client.request("GET", "/on/conditional", &fields);
        assert_eq!((reply.status, reply.field("etag")), (status, Some(tag)), "{held}");
    }
}

#[test]
fn events_of_an_application_arrive_when_they_happen() {
    let (site, kirin, _memcached) = serve();
    let mut stream = std::net::TcpStream::connect(kirin.address()).expect("connect");
    stream.set_read_timeout(Some(kirin_tests::wait_limit())).expect("timeout");
    stream
        .write_all(
            b"GET /on/events HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
        )
        .expect("send");
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    // The first event can be decoded while the application still waits.
    loop {
        let count = stream.read(&mut buffer).expect("bytes");
        assert!(count > 0, "the stream ended early");
        received.extend_from_slice(&buffer[..count]);
        if unchunked_and_decoded(&received) == "data: first\n\n" {
            break;
        }
    }
    std::fs::write(site.path("go"), "").expect("go");
    stream.read_to_end(&mut received).expect("the rest");
    assert_eq!(unchunked_and_decoded(&received), "data: first\n\ndata: last\n\n");
    assert!(received.ends_with(b"0\r\n\r\n"));
}

/// Decodes the chunks that have arrived so far.
fn unchunked_and_decoded(received: &[u8]) -> String {
    let Some(head_end) = received.windows(4).position(|window| window == b"\r\n\r\n") else {
        return String::new();
    };
    let mut rest = &received[head_end + 4..];
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    while let Some(line_end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size =
            usize::from_str_radix(std::str::from_utf8(&rest[..line_end]).expect("a size"), 16)
                .expect("a size");
        let Some(chunk) = rest.get(line_end + 2..line_end + 2 + size) else { break };
        decoder.write_all(chunk).and_then(|()| decoder.flush()).expect("gzip");
        rest = rest.get(line_end + 4 + size..).unwrap_or_default();
    }
    String::from_utf8(decoder.get_ref().clone()).expect("text")
}
