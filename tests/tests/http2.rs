//! HTTP/2 through the built program: it behaves as HTTP/1, also with slow and hostile clients.

use std::path::{Path, PathBuf};
use std::process::Command;

use h2::Reason;
use h2::client::Builder;
use kirin_tests::{Authority, Client, Http2Client, Kirin, Memcached, Site, wait_for};
use rustix::process::Signal;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\nkeep_alive = \"2s\"\n\
    [[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n\
    [store]\nmemcached = [\"unix:store.sock\"]\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nbody_limit = \"8MB\"\n\
    [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n";

const APP: &str = r#"
use v5.16; use warnings; use Digest::MD5;
sub {
    my $env = shift;
    my ($path, $text) = ($env->{PATH_INFO}, ['Content-Type' => 'text/plain']);
    my $body = do { local $/; my $input = $env->{'psgi.input'}; <$input> } // '';
    return [200, $text, [map { "$_=" . ($env->{$_} // '') . "\n" } qw(REQUEST_METHOD REQUEST_URI QUERY_STRING HTTP_HOST
        HTTP_COOKIE HTTP_X_A CONTENT_TYPE CONTENT_LENGTH REMOTE_ADDR), grep { /^HTTP_.*(TE|TRANSFER|CONNECTION)/ } sort keys %$env]]
        if $path eq '/app/env';
    return [200, $text, [$env->{SERVER_PROTOCOL}]] if $path eq '/app/protocol';
    return [200, $text, [length($body) . ' ' . Digest::MD5::md5_hex($body)]] if $path eq '/app/body';
    return [204, [], []] if $path eq '/app/none';
    return [302, [Location => '/', 'Set-Cookie' => 'a=1', 'Set-Cookie' => 'b=2', 'Keep-Alive' => 'x'], []] if $path eq '/app/redirect';
    if ($path eq '/app/hints') { $env->{'psgix.informational'}->(103, [Link => '</a.css>; rel=preload']); return [200, $text, ['done']] }
    return sub { my $writer = shift->([200, $text]); $writer->write("part $_\n") for 1 .. 3; $writer->close } if $path eq '/app/stream';
    return sub { my $writer = shift->([200, $text]); $writer->write("first\n"); kill KILL => $$ } if $path eq '/app/cut';
    if ($path eq '/app/wait') {
        open my $begun, '>', "begun.$$." . ($env->{QUERY_STRING} || 'x');
        open my $seen, '>>', 'requests'; syswrite $seen, "$path\n";
        select undef, undef, undef, 0.01 until -e 'go';
        return [200, $text, ['waited']];
    }
    [404, $text, ['not here']];
};
"#;

fn serve() -> (Site, Kirin) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/hello.txt", "hello\n")
        .with("public/empty.txt", "")
        .with("public/large.bin", large())
        .with("public/page.html", "<p>page</p>".repeat(400));
    Authority::new("Kirin test authority").issue(&["localhost"]).write(&site, "a");
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

/// Returns 3 MB in which every place differs.
fn large() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn h2spec() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/h2spec/h2spec");
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

#[test]
fn bodies_of_any_size_arrive_whole_with_and_without_a_length() {
    let (_site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    for size in [0, 1, 16_384, 70_000, 1_048_577, 5_000_000] {
        let body = vec![b'x'; size];
        let over_http1 = kirin.connect().post("/app/body", "text/plain", &body).text();
        for has_length in [true, false] {
            let reply = client.post("/app/body", "text/plain", &body, has_length);
            assert_eq!(
                (reply.status, reply.text()),
                (200, over_http1.clone()),
                "{size} {has_length}"
            );
        }
    }
    let reply = client.post("/app/body", "text/plain", &vec![b'x'; 9 << 20], false);
    assert_eq!(reply.status, 413);
    assert_eq!(client.get("/hello.txt").text(), "hello\n", "the connection stays");
}

#[test]
fn a_request_that_waits_delays_no_other() {
    let (site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    let waiting: Vec<_> = (0..20).map(|_| client.begin("GET", "/app/wait", &[])).collect();
    for _ in 0..20 {
        assert_eq!(client.get("/hello.txt").text(), "hello\n");
    }
    std::fs::write(site.path("go"), "").expect("write");
    for pending in waiting {
        assert_eq!(client.finish(pending).text(), "waited");
    }
}

#[test]
fn informational_responses_come_first() {
    let (_site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    let pending = client.begin("GET", "/app/hints", &[]);
    let (hints, status) = client.informational_of(pending);
    assert_eq!(status, 200);
    assert_eq!((hints.len(), hints[0].status().as_u16()), (1, 103));
    assert_eq!(hints[0].headers()["link"], "</a.css>; rel=preload");
    // 100 comes if the body is needed, and not otherwise.
    for (target, expected) in [("/app/body", vec![100]), ("/hello.txt", vec![])] {
        let pending = client.try_begin("POST", target, &[("expect", "100-continue")], false);
        let mut pending = pending.expect("a request");
        let _ = pending.stream.send_data(bytes::Bytes::from_static(b"hello"), true);
        let (informational, _) = client.informational_of(pending);
        let statuses: Vec<u16> =
            informational.iter().map(|response| response.status().as_u16()).collect();
        assert_eq!(statuses, expected, "{target}");
    }
}

#[test]
fn a_response_that_is_cut_is_reset_and_the_connection_stays() {
    let (_site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    let pending = client.begin("GET", "/app/cut", &[]);
    let error = client.try_finish(pending).expect_err("a part is not the whole");
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR), "{error}");
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
}

#[test]
fn a_reader_that_takes_nothing_costs_little_and_others_continue() {
    let (_site, kirin) = serve();
    let memory = || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", kirin.pid())).expect("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace()
            .nth(1)
            .and_then(|kilobytes| kilobytes.parse::<u64>().ok())
            .expect("a number")
    };
    assert_eq!(Http2Client::connect(kirin.address()).get("/large.bin").body.len(), 3_000_000);
    let before = memory();
    // Each has a window of 64 KB for its stream and reads nothing from it.
    let mut slow: Vec<_> = (0..10)
        .map(|_| {
            let mut settings = Builder::new();
            settings.initial_connection_window_size(1 << 30);
            let mut client = Http2Client::connect_with(kirin.address(), &settings);
            let streams: Vec<_> = (0..50)
                .map(|_| {
                    let pending = client.begin("GET", "/large.bin", &[]);
                    client.head_of(pending)
                })
                .collect();
            (client, streams)
        })
        .collect();
    let mut other = Http2Client::connect(kirin.address());
    assert!(other.get("/large.bin").body == large());
    let grown = memory().saturating_sub(before);
    // 500 streams of 3 MB would be 1.5 GB. With 128 KB each they are 64 MB.
    assert!(grown < 64 * 1024, "{grown} KB for 500 streams");
    let (client, streams) = &mut slow[0];
    let (status, body) = streams.pop().expect("a stream");
    assert_eq!(status, 200);
    assert!(client.body_of(body).expect("the body") == large(), "one that reads at last gets all");
}

#[test]
fn a_stalled_client_loses_its_stream_and_not_the_connection() {
    let (site, _kirin) = serve();
    let config = CONFIG.replacen(
        "keep_alive",
        "write_timeout = \"1s\"\nbody_timeout = \"1s\"\nkeep_alive",
        1,
    );
    let kirin = Kirin::start(&site, &config.replace("store.sock", "other.sock"));
    let mut settings = Builder::new();
    settings.initial_connection_window_size(1 << 30);
    let mut client = Http2Client::connect_with(kirin.address(), &settings);
    let pending = client.begin("GET", "/large.bin", &[]);
    let (status, body) = client.head_of(pending);
    assert_eq!(status, 200);
    // The client reads nothing from the stream until the log has the response, which was cut then.
    wait_for("the response to be cut", || {
        client.pause();
        let log = std::fs::read_to_string(site.path("access.log")).unwrap_or_default();
        log.contains("\"GET /large.bin HTTP/2.0\"").then_some(())
    });
    let error = client.body_of(body).expect_err("the body was cut");
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR), "{error}");
    // The client sends nothing of the body.
    let pending = client.try_begin("POST", "/app/body", &[], false).expect("a request");
    assert_eq!(client.finish(pending).status, 400);
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
}

#[test]
fn many_reset_requests_end_the_connection() {
    let (site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    let mut begun = 0;
    while begun < 2000 {
        match client.try_begin("GET", "/app/wait", &[], true) {
            Ok(pending) => client.reset(pending),
            Err(_) => break,
        }
        begun += 1;
    }
    assert!(begun < 2000, "2000 resets were taken");
    let error = client.wait_for_end().expect_err("the connection is ended");
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM), "{error}");
    // The workers are still there for other clients. They have started no more requests than there
    // are workers.
    std::fs::write(site.path("go"), "").expect("write");
    assert_eq!(Http2Client::connect(kirin.address()).get("/app/wait").text(), "waited");
    assert!(!kirin.log().contains("was lost"), "{}", kirin.log());
    let log = std::fs::read_to_string(site.path("requests"))
        .expect("the requests that workers have seen");
    assert!(log.lines().count() <= 2 + 1, "{} requests reached a worker", log.lines().count());
}

#[test]
fn occasional_resets_end_nothing() {
    let (site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    for _ in 0..300 {
        let pending = client.begin("GET", "/large.bin", &[]);
        client.reset(pending);
        assert_eq!(client.get("/hello.txt").text(), "hello\n");
    }
    let pending = client.begin("GET", "/app/wait?reset", &[]);
    site.wait_for_files("begun.", 1);
    client.reset(pending);
    std::fs::write(site.path("go"), "").expect("write");
    for _ in 0..10 {
        assert_eq!(client.get("/app/wait").text(), "waited");
    }
    assert!(!kirin.log().contains("lost"), "no worker is lost by it: {}", kirin.log());
}

/// Returns the preface, empty settings, and a header block of a GET with a long field, without its
/// end.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a length").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Sends the bytes of `more` until the server closes, and returns the server's answer.
fn flood(kirin: &Kirin, start: &[u8], more: &[u8]) -> Vec<u8> {
    use std::io::{Read, Write};
    let mut socket = std::net::TcpStream::connect(kirin.address()).expect("connect");
    socket.write_all(&[PREFACE, start].concat()).expect("send");
    let mut reader = socket.try_clone().expect("clone");
    reader.set_read_timeout(Some(kirin_tests::WAIT_LIMIT)).expect("timeout");
    let reading = std::thread::spawn(move || {
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            received.extend_from_slice(&buffer[..count]);
        }
        received
    });
    let mut sent = 0;
    while socket.write_all(more).is_ok() {
        sent += more.len();
        assert!(sent < 256 << 20, "256 MB were taken");
    }
    reading.join().expect("no panic")
}

/// Returns the error code of the GOAWAY in `received`.
fn goaway(received: &[u8]) -> Option<u32> {
    let mut rest = received;
    while let Some((head, after)) = rest.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if head[3] == 7 {
            return after.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
        }
        rest = after.get(length..)?;
    }
    None
}

#[test]
fn floods_of_continuations_and_empty_frames_end_the_connection() {
    let (_site, kirin) = serve();
    let get = b"\x82\x86\x84\x41\x01a";
    let headers = frame(1, 0, 1, get);
    // A field that is not indexed, with a value of 100 bytes.
    let field = [&b"\x00\x01x\x64"[..], &[b'v'; 100]].concat();
    let received = flood(&kirin, &headers, &frame(9, 0, 1, &field.repeat(100)).repeat(10));
    assert!(goaway(&received).is_some(), "continuations: {received:?}");
    let received = flood(&kirin, &headers, &frame(9, 0, 1, b"").repeat(1000));
    assert!(goaway(&received).is_some(), "empty continuations: {received:?}");
    // Empty DATA frames of a request that an application reads.
    let post = frame(1, 4, 1, b"\x83\x86\x04\x09/app/body\x41\x01a");
    let received = flood(&kirin, &post, &frame(0, 0, 1, b"").repeat(1000));
    assert!(goaway(&received).is_some(), "empty data: {received:?}");
    assert_eq!(kirin.get("/hello.txt").text(), "hello\n");
}

#[test]
fn a_flood_of_pings_and_settings_takes_no_memory() {
    use std::io::Write;
    let (_site, kirin) = serve();
    let resident = || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", kirin.pid())).expect("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace()
            .nth(1)
            .and_then(|kilobytes| kilobytes.parse::<u64>().ok())
            .expect("a number")
    };
    let before = resident();
    for more in [frame(6, 0, 0, b"12345678"), frame(4, 0, 0, b"\0\x04\0\0\x10\0")] {
        let mut socket = std::net::TcpStream::connect(kirin.address()).expect("connect");
        socket.set_nonblocking(true).expect("non-blocking");
        // The client does not read the answers. The server stops reading when it cannot write them.
        socket.write_all(PREFACE).expect("send");
        let (more, mut sent) = (more.repeat(1000), 0);
        let mut blocked = 0;
        while blocked < 50 {
            match socket.write(&more[sent % 17..]) {
                Ok(count) => (sent, blocked) = (sent + count, 0),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    blocked += 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(_) => break,
            }
            assert!(sent < 256 << 20, "256 MB were taken");
        }
        assert!(sent > 0);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KB");
    assert_eq!(kirin.get("/hello.txt").text(), "hello\n");
}

#[test]
fn malformed_requests_are_refused_and_reach_no_application() {
    let (site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    for (fields, status) in [
        (&[("host", "other")][..], 400),
        (&[("host", "test")], 200),
        (&[("expect", "something")], 417),
    ] {
        assert_eq!(client.request("GET", "/hello.txt", fields).status, status, "{fields:?}");
    }
    let many: Vec<(&str, &str)> = vec![("x", "y"); 101];
    assert_eq!(client.request("GET", "/hello.txt", &many).status, 431);
    let long = format!("/{}", "x".repeat(9000));
    assert_eq!(client.request("GET", &long, &[]).status, 414);
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
    wait_for("the access log", || {
        let log = std::fs::read_to_string(site.path("access.log")).unwrap_or_default();
        log.contains("\"GET /hello.txt HTTP/2.0\" 200 6 ").then_some(())
    });
}

#[test]
fn the_preface_is_only_for_the_start_of_a_connection() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
    client.send(PREFACE);
    assert!(client.read_reply().status >= 400);
    assert_eq!(client.read_to_end(), b"");
    // It may arrive in pieces.
    for at in 1..PREFACE.len() {
        let mut client = Client::connect(kirin.address());
        client.send(&PREFACE[..at]);
        client.send(&PREFACE[at..]).send(frame(6, 0, 0, b"12345678"));
        let mut received = client.read_until(b"12345678");
        assert_eq!(received.drain(..9).nth(3), Some(4), "settings come first; cut at {at}");
    }
}

#[test]
fn an_idle_connection_is_ended_after_its_time_and_pings_do_not_keep_it() {
    let (_site, kirin) = serve();
    let mut client = Client::connect(kirin.address());
    client.send(PREFACE).send(frame(1, 5, 1, b"\x82\x86\x04\x0a/hello.txt\x41\x01a"));
    client.read_until(b"hello\n");
    let started = std::time::Instant::now();
    // Each ping is answered until the connection has ended.
    while client.try_send(frame(6, 0, 0, b"12345678")).try_read_until(b"12345678") {
        assert!(started.elapsed() < kirin_tests::WAIT_LIMIT, "pings keep the connection");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut busy = Http2Client::connect(kirin.address());
    assert_eq!(busy.get("/hello.txt").status, 200);
    busy.wait_for_end().expect("a good end");
}

#[test]
fn term_finishes_started_requests_and_accepts_no_more() {
    let (site, mut kirin) = serve();
    let idle = Http2Client::connect(kirin.address());
    // This client does not answer the ping by which GOAWAY finds out which requests were on their
    // way.
    let mut silent = Client::connect(kirin.address());
    silent.send(PREFACE).send(frame(1, 5, 1, b"\x82\x86\x04\x0a/hello.txt\x41\x01a"));
    silent.read_until(b"hello\n");
    let mut client = Http2Client::connect(kirin.address());
    let pending = client.begin("GET", "/app/wait", &[]);
    site.wait_for_files("begun.", 1);
    kirin.signal(Signal::TERM);
    kirin.wait_for_log("stopping");
    idle.wait_for_end().expect("an idle connection ends well");
    silent.read_to_end();
    std::fs::write(site.path("go"), "").expect("write");
    assert_eq!(client.finish(pending).text(), "waited");
    client.wait_for_end().expect("a good end");
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
}

/// Returns the error codes of the GOAWAY frames in `bytes`.
fn goaways(mut bytes: &[u8]) -> Vec<u32> {
    let mut codes = Vec::new();
    while let [a, b, c, kind, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some(payload) = rest.get(5..5 + length) else { break };
        if let (7, [_, _, _, _, code @ ..]) = (*kind, payload) {
            codes.push(u32::from_be_bytes(code[..4].try_into().expect("an error code")));
        }
        bytes = &rest[5 + length..];
    }
    codes
}

#[test]
fn a_flood_of_frames_without_requests_ends_the_connection() {
    let (_site, kirin) = serve();
    // A stream that waits for its body: POST /app/body, by the static table of HPACK.
    let post = frame(1, 4, 1, b"\x83\x86\x04\x09/app/body\x41\x01a");
    for (what, opening, flood) in [
        ("PING", vec![], frame(6, 0, 0, &[0; 8])),
        ("SETTINGS", vec![], frame(4, 0, 0, &[])),
        ("WINDOW_UPDATE", vec![], frame(8, 0, 0, &[0, 0, 0, 1])),
        ("PRIORITY", vec![], frame(2, 0, 3, &[0, 0, 0, 0, 1])),
        ("an unknown type", vec![], frame(0xbe, 0, 0, b"hello")),
        ("empty DATA", post.clone(), frame(0, 0, 1, &[])),
        ("padding", post, frame(0, 8, 1, &[7, 0, 0, 0, 0, 0, 0, 0])),
    ] {
        let mut client = kirin.connect();
        client.send(PREFACE).send(&opening);
        client.try_send(flood.repeat(5000));
        let received = client.read_to_end();
        assert_eq!(goaways(&received).last(), Some(&0xb), "{what}: {} bytes", received.len());
    }
    assert!(kirin.log().contains("frames that ask for nothing"), "{}", kirin.log());
}

#[test]
fn pings_and_window_updates_beside_requests_are_not_a_flood() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client.send(PREFACE);
    for number in 0..2000u32 {
        let mut round = frame(1, 5, 2 * number + 1, b"\x82\x86\x04\x0a/hello.txt\x41\x01a");
        round.extend(frame(6, 0, 0, &number.to_be_bytes().repeat(2)));
        round.extend(frame(8, 0, 0, &[0, 0, 0, 1]));
        client.send(round);
        // The answer to the ping is behind that to the request, or before it.
        client.read_until(b"hello\n");
    }
}
