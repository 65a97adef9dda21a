//! HTTP/2 through the built program: it behaves as HTTP/1, also with slow and hostile clients.

mod attacks;
mod clients;
mod conformance;
mod connection;
mod errors;
mod floods;
mod frames;
mod malformed;
mod priority;
mod unread;
mod websocket;

use std::path::{Path, PathBuf};
use std::process::Command;

use h2::Reason;
use h2::client::Builder;
use kirin_tests::{Authority, Client, Http2Client, Kirin, Site, wait_for};
use rustix::process::Signal;

use connection::{Connection, Outcome};
use frames::*;

pub const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n\
    [store]\nmemcached = [\"unix:store.sock\"]\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nbody_limit = \"8MB\"\n\
    [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n";

pub const APP: &str = r#"
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
    if ($path eq '/app/slow') {
        return sub {
            my $writer = shift->([200, $text]);
            $writer->write("first\n");
            select undef, undef, undef, 0.01 until -e 'go';
            $writer->write("second\n");
            open my $written, '>', 'written';
            $writer->close;
        };
    }
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
    serve_with(CONFIG)
}

fn serve_with(config: &str) -> (Site, Kirin) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/hello.txt", "hello\n")
        .with("public/empty.txt", "")
        .with("public/large.bin", large())
        .with("public/middle.txt", "middle\n".repeat(1400))
        .with("public/page.html", "<p>page</p>".repeat(400));
    Authority::new("Kirin test authority").issue(&["localhost"]).write(&site, "a");
    let kirin = Kirin::start(&site, config);
    (site, kirin)
}

/// Returns 3 MB in which every place differs.
pub fn large() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Returns the memory of the program in kilobytes.
fn resident(kirin: &Kirin) -> u64 {
    kilobytes(kirin, "VmRSS:")
}

/// Returns the most memory that the program has had, in kilobytes.
fn peak(kirin: &Kirin) -> u64 {
    kilobytes(kirin, "VmHWM:")
}

/// Returns a line of proc_pid_status(5).
fn kilobytes(kirin: &Kirin, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", kirin.pid())).expect("status");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a line of memory");
    let number = line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok());
    number.expect("a number")
}

#[test]
fn a_reader_that_takes_nothing_costs_little_and_others_continue() {
    let (_site, kirin) = serve();
    assert_eq!(Http2Client::connect(kirin.address()).get("/large.bin").body.len(), 3_000_000);
    let before = resident(&kirin);
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
    let grown = resident(&kirin).saturating_sub(before);
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
        "access_log",
        "write_timeout = \"1s\"\nbody_timeout = \"1s\"\naccess_log",
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
fn a_stream_continues_when_the_window_of_the_connection_opens_again() {
    let (site, kirin) = serve();
    let mut connection = Connection::open(kirin.address());
    connection.send(get(1, "/app/slow"));
    connection.wait_for("the first piece", |frame| frame.is(DATA, 1));
    // A less urgent response takes all that is left of the window.
    let large = request("GET", "/large.bin", &[("priority", "u=7")]);
    connection.send(frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&large)));
    while connection.body_bytes(1) + connection.body_bytes(3) < 65_535 {
        connection.wait_for("data", |frame| frame.is(DATA, 3));
    }
    std::fs::write(site.path("go"), "").expect("write");
    site.wait_for_files("written", 1);
    // Kirin has seen what was written when it has answered this.
    let head = block(&request("HEAD", "/hello.txt", &[]));
    connection.send(frame(HEADERS, END_STREAM | END_HEADERS, 5, &head)).outcome_of(5);
    connection.send(window_update(0, 1000));
    let outcome = connection.outcome_of(1);
    assert_eq!(outcome.ok(), Some(&b"first\nsecond\n"[..]), "{outcome:?}\n{connection}");
}

#[test]
fn a_body_that_stops_behind_its_response_is_given_up_after_some_seconds() {
    let (_site, kirin) = serve();
    let mut connection = Connection::open(kirin.address());
    // A file takes no POST, so the response does not wait for the body.
    connection.send(post(1, "/hello.txt")).send(frame(DATA, 0, 1, b"unwanted"));
    let outcome = connection.outcome_of(1);
    assert!(matches!(outcome, Outcome::Answered(..)), "{outcome:?}\n{connection}");
    let reset = connection.wait_for("the end of the stream", |frame| frame.is(RST_STREAM, 1));
    assert_eq!(reset.number(0), Some(0), "NO_ERROR\n{connection}");
    assert!(connection.send(get(3, "/hello.txt")).outcome_of(3).ok().is_some(), "{connection}");
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
    let (_site, kirin) =
        serve_with(&CONFIG.replacen("access_log", "keep_alive = \"2s\"\naccess_log", 1));
    let mut client = Client::connect(kirin.address());
    client.send(PREFACE).send(frame(1, 5, 1, b"\x82\x86\x04\x0a/hello.txt\x41\x01a"));
    client.read_until(b"hello\n");
    let started = std::time::Instant::now();
    // Each ping is answered until the connection has ended.
    while client.try_send(frame(6, 0, 0, b"12345678")).try_read_until(b"12345678") {
        assert!(started.elapsed() < kirin_tests::wait_limit(), "pings keep the connection");
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
