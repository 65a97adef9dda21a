//! Slow, silent and disconnected clients, through the built program. Each takes only what the
//! limits allow, and other clients notice nothing.

use kirin_tests::{ADMIN, Client, Kirin, Reply, Site, wait_for};

const APP: &str = r#"
use v5.16; use warnings;
open my $seen, '>>', 'seen' or die $!;
sub {
    my $env = shift;
    my $text = sub { [200, ['Content-Type' => 'text/plain'], [@_]] };
    syswrite $seen, "$env->{PATH_INFO}\n";
    if ($env->{PATH_INFO} eq '/wait') { select undef, undef, undef, 0.01 until -e 'go' }
    return $text->('x' x 900_000) if $env->{PATH_INFO} eq '/large';
    $text->('hello');
};
"#;

fn serve(listener: &str, workers: usize) -> (Site, Kirin) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/hello.txt", "hello\n")
        .with("public/large.bin", vec![7; 30_000_000]);
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n{listener}\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = {workers}\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\", \"app:web\"]\n"
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

/// Sends these bytes one at a time, repeatedly, until the connection has been ended.
fn trickle(mut client: Client, bytes: &[u8]) {
    let mut bytes = bytes.iter().cycle();
    wait_for("the connection to be ended", || {
        let byte = bytes.next().copied().unwrap_or(b'x');
        client.is_ended_after_sending(&[byte]).then_some(())
    });
}

fn logged(site: &Site, what: &str) {
    wait_for(&format!("`{what}` in the access log"), || {
        std::fs::read_to_string(site.path("access.log"))
            .unwrap_or_default()
            .contains(what)
            .then_some(())
    });
}

/// Reads the next response that is not informational.
fn final_reply(client: &mut Client) -> Reply {
    loop {
        let reply = client.read_reply();
        if reply.status >= 200 {
            return reply;
        }
    }
}

#[test]
fn a_connection_without_a_request_is_ended() {
    let (_site, kirin) = serve("head_timeout = \"1s\"", 1);
    assert_eq!(kirin.connect().read_to_end(), b"");
}

#[test]
fn a_head_that_takes_too_long_is_ended_even_if_bytes_arrive() {
    let (_site, kirin) = serve("head_timeout = \"1s\"", 1);
    let mut silent = kirin.connect();
    silent.send("GET / HTTP/1.1\r\nHost: a\r\n");
    assert_eq!(silent.read_to_end(), b"");
    let mut slow = kirin.connect();
    slow.send("GET / HTTP/1.1\r\nHost: a\r\n");
    trickle(slow, b"X: y\r\n");
}

#[test]
fn a_head_behind_another_request_has_its_own_time() {
    let (_site, kirin) = serve("head_timeout = \"1s\"\nkeep_alive = \"1h\"", 1);
    let mut client = kirin.connect();
    assert_eq!(client.get("/hello.txt").status, 200);
    client.send("GET / HTTP/1.1\r\n");
    assert_eq!(client.read_to_end(), b"");
    // The same bytes are in the packet of a request for the application.
    let mut client = kirin.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n");
    assert_eq!(client.read_reply().text(), "hello");
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn a_stalled_body_is_ended_and_the_application_does_not_see_it() {
    let (site, kirin) = serve("body_timeout = \"1s\"", 1);
    for body in ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhel"] {
        let mut client = kirin.connect();
        client.send(format!("POST /slow HTTP/1.1\r\nHost: a\r\n{body}"));
        let answer = client.read_to_end();
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert_eq!(kirin.get("/").text(), "hello");
    assert_eq!(std::fs::read_to_string(site.path("seen")).expect("seen"), "/\n");
}

#[test]
fn a_body_below_the_minimum_rate_is_ended() {
    let (_site, kirin) = serve("body_timeout = \"1s\"\nmin_rate = \"10KB\"", 1);
    let mut client = kirin.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    trickle(client, b"x");
    // The same rule holds for a body that no place reads.
    let mut client = kirin.connect();
    client.send("POST /hello.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    trickle(client, b"1\r\nx\r\n");
}

#[test]
fn a_response_that_is_not_read_is_given_up() {
    let (site, kirin) = serve("write_timeout = \"1s\"", 1);
    let mut client = kirin.connect();
    client.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    logged(&site, "GET /large.bin");
    let received = client.read_to_end();
    assert!(received.len() < 30_000_000, "{} bytes", received.len());
}

#[test]
fn a_response_that_is_read_below_the_minimum_rate_is_given_up() {
    let (site, kirin) = serve("write_timeout = \"2s\"\nmin_rate = \"1GB\"", 1);
    let mut client = kirin.connect();
    client.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut read = 0;
    wait_for("the response to be given up", || {
        read += client.read_some(64 * 1024);
        std::fs::read_to_string(site.path("access.log"))
            .unwrap_or_default()
            .contains("/large.bin")
            .then_some(())
    });
    read += client.read_to_end().len();
    assert!(read < 30_000_000, "{read} bytes");
}

#[test]
fn many_slow_clients_of_every_kind_leave_others_alone() {
    let (_site, kirin) = serve("", 2);
    let attack = |bytes: &str| -> Vec<Client> {
        let connect = |_| {
            let mut client = kirin.connect();
            client.send(bytes);
            client
        };
        (0..100).map(connect).collect()
    };
    let mut ranges = String::from("0-1");
    for start in 2..1200 {
        ranges.push_str(&format!(",{start}-"));
    }
    let attackers = [
        attack(""),
        attack("GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n"),
        attack("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhello"),
        attack("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        attack("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n"),
        attack("GET /large HTTP/1.1\r\nHost: a\r\n\r\n"),
        attack(&format!("HEAD /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes={ranges}\r\n\r\n")),
    ];
    let mut client = kirin.connect();
    for _ in 0..50 {
        assert_eq!(client.get("/hello.txt").text(), "hello\n");
        assert_eq!(client.get("/").text(), "hello");
        assert_eq!(client.post("/", "text/plain", b"a body").text(), "hello");
        assert_eq!(kirin.get("/").text(), "hello");
    }
    drop(attackers);
}

#[test]
fn a_request_of_a_client_that_has_gone_leaves_the_queue() {
    let (site, kirin) = serve("", 1);
    let mut first = kirin.connect();
    first.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("the first request at the worker", || {
        std::fs::read_to_string(site.path("seen")).ok().filter(|seen| seen.contains("/wait"))
    });
    let queued = |target: &str, version: &str| {
        let mut client = kirin.connect();
        client.send(format!("GET {target} HTTP/{version}\r\nHost: a\r\n\r\n"));
        client
    };
    let gone = queued("/gone", "1.1");
    let mut half_closed = queued("/half-closed", "1.1");
    let mut half_closed_old = queued("/half-closed-old", "1.0");
    let mut pipelining = queued("/pipelining", "1.1");
    let mut patient = queued("/patient", "1.1");
    half_closed.end();
    half_closed_old.end();
    pipelining.send("GET /pipelined HTTP/1.1\r\nHost: a\r\n\r\n").end();
    drop(gone);
    logged(&site, "GET /gone HTTP/1.1\" 499");
    std::fs::write(site.path("go"), "").expect("a file");
    for client in
        [&mut first, &mut half_closed, &mut half_closed_old, &mut pipelining, &mut patient]
    {
        assert_eq!(final_reply(client).text(), "hello");
    }
    assert_eq!(final_reply(&mut pipelining).text(), "hello");
    let seen = std::fs::read_to_string(site.path("seen")).expect("seen");
    assert!(!seen.contains("/gone"), "{seen}");
    assert_eq!(seen.lines().count(), 6, "{seen}");
    assert_eq!(patient.get("/after").text(), "hello");
}

#[test]
fn a_client_that_resets_during_its_request_is_logged_with_499() {
    let (site, kirin) = serve("", 1);
    let mut client = kirin.connect();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("the request at the worker", || {
        std::fs::read_to_string(site.path("seen")).ok().filter(|seen| seen.contains("/wait"))
    });
    client.reset();
    std::fs::write(site.path("go"), "").expect("a file");
    logged(&site, "GET /wait HTTP/1.1\" 499 0");
}

#[test]
fn a_client_that_resets_leaves_the_queue_with_every_protocol() {
    let (site, kirin) = serve(ADMIN, 1);
    let mut first = kirin.connect();
    first.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("the first request at the worker", || {
        std::fs::read_to_string(site.path("seen")).ok().filter(|seen| seen.contains("/wait"))
    });
    let mut gone = kirin.connect();
    gone.send("GET /gone HTTP/1.0\r\n\r\n");
    wait_for("the request in the queue", || {
        (kirin.status()["apps"][0]["waiting_requests"] == 1).then_some(())
    });
    gone.reset();
    logged(&site, "\" 499");
    std::fs::write(site.path("go"), "").expect("a file");
    assert_eq!(first.read_reply().text(), "hello");
    assert!(!std::fs::read_to_string(site.path("seen")).expect("seen").contains("/gone"));
}
