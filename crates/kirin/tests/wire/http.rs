//! The HTTP/1 engine, through the built program: framing, persistence, pipelining, refusals.

use kirin_tests::{Kirin, Site, wait_for};
use rustix::process::Signal;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";

fn serve() -> (Site, Kirin) {
    let site = Site::new().with("public/hello.txt", "hello\n").with("public/large.bin", large());
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

/// Returns 3 MB in which every place differs.
fn large() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn a_connection_serves_many_requests() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    for _ in 0..3 {
        let reply = client.get("/hello.txt");
        assert_eq!((reply.status, reply.text().as_str()), (200, "hello\n"));
        assert!(reply.field("date").is_some_and(|date| date.ends_with(" GMT")), "{reply:?}");
        assert_eq!(reply.field("connection"), None);
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send([get("/hello.txt"), get("/none"), get("/large.bin"), get("/hello.txt")].concat());
    assert_eq!(client.read_reply().text(), "hello\n");
    assert_eq!(client.read_reply().status, 404);
    assert_eq!(client.read_reply().body, large());
    assert_eq!(client.read_reply().text(), "hello\n");
}

#[test]
fn a_thousand_pipelined_requests_are_all_answered() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client.send("GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000));
    for _ in 0..1000 {
        assert_eq!(client.read_reply().text(), "hello\n");
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    for byte in b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n" {
        client.send([*byte]);
    }
    assert_eq!(client.read_reply().text(), "hello\n");
}

#[test]
fn http_1_0_closes_unless_asked_to_keep() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client.send("GET /hello.txt HTTP/1.0\r\n\r\n");
    let reply = client.read_reply();
    assert_eq!((reply.text().as_str(), reply.field("connection")), ("hello\n", Some("close")));
    assert_eq!(client.read_to_end(), b"");

    let mut client = kirin.connect();
    for _ in 0..2 {
        client.send("GET /hello.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let reply = client.read_reply();
        assert_eq!(
            (reply.text().as_str(), reply.field("connection")),
            ("hello\n", Some("keep-alive"))
        );
    }
}

#[test]
fn connection_close_is_obeyed() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    let reply = client.request("GET", "/hello.txt", "Connection: close\r\n");
    assert_eq!((reply.text().as_str(), reply.field("connection")), ("hello\n", Some("close")));
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn head_has_the_length_and_no_body() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    for (target, length) in [("/hello.txt", "6"), ("/large.bin", "3000000")] {
        let reply = client.request("HEAD", target, "");
        assert_eq!((reply.status, reply.field("content-length")), (200, Some(length)));
    }
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
}

#[test]
fn a_half_closed_client_gets_its_answer() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n").end();
    assert_eq!(client.read_reply().body, large());
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn an_unread_body_is_skipped_and_the_connection_kept() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    assert_eq!(client.post("/hello.txt", "text/plain", b"0123456789").status, 405);
    client.send(
        "POST /hello.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n\
         GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(client.read_reply().status, 405);
    assert_eq!(client.read_reply().text(), "hello\n");
}

#[test]
fn a_large_unread_body_ends_the_connection_after_the_response() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client
        .send("POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n")
        .try_send(large());
    let reply = client.read_reply();
    assert_eq!((reply.status, reply.field("connection")), (405, Some("close")));
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn refusals_have_the_right_status_and_close() {
    let (_site, kirin) = serve();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_owned(),
            400,
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_owned(), 501),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n".to_owned(), 505),
        ("\x16\x03\x01".to_owned(), 400),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(9000)), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(40_000)), 431),
    ] {
        let mut client = kirin.connect();
        let reply = client.try_send(&request).read_reply();
        let shown = &request[..request.len().min(100)];
        assert_eq!((reply.status, reply.field("connection")), (status, Some("close")), "{shown}");
        assert_eq!(client.read_to_end(), b"", "{shown}");
    }
}

#[test]
fn no_request_behind_a_refused_one_is_answered() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client.send("GET /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\nGET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.read_reply().status, 400);
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn many_connections_at_once_are_served() {
    let (_site, kirin) = serve();
    let mut clients: Vec<_> = (0..500).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        client.send("GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.read_reply().text(), "hello\n");
    }
}

#[test]
fn an_idle_connection_is_ended_after_its_time() {
    let site = Site::new().with("public/hello.txt", "hello\n");
    let kirin =
        Kirin::start(&site, &CONFIG.replace("access_log", "keep_alive = \"1s\"\naccess_log"));
    let mut client = kirin.connect();
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn term_finishes_responses_and_ends_idle_connections() {
    let (_site, mut kirin) = serve();
    let mut idle = kirin.connect();
    assert_eq!(idle.get("/hello.txt").status, 200);
    let mut busy = kirin.connect();
    // This is more than the socket's buffers hold, so it is still being sent when the signal comes.
    busy.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n".repeat(4));
    let first = busy.read_head_reply();
    assert_eq!(first.status, 200);
    kirin.signal(Signal::TERM);
    assert_eq!(idle.read_to_end(), b"");
    let rest = busy.read_to_end();
    assert!(rest.len() >= large().len(), "the response in progress was cut at {}", rest.len());
    assert!(rest.starts_with(&large()), "the response in progress was changed");
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
}

#[test]
fn the_access_log_names_the_place() {
    let (site, kirin) = serve();
    let mut client = kirin.connect();
    assert_eq!(client.get("/hello.txt?a=\"b").status, 200);
    assert_eq!(client.get("/none").status, 404);
    let log = wait_for("two lines", || {
        let log = std::fs::read_to_string(site.path("access.log")).unwrap_or_default();
        (log.lines().count() == 2).then_some(log)
    });
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines[0].contains("\"GET /hello.txt?a=\\x22b HTTP/1.1\" 200 6 \"-\" \"-\" files "),
        "{log}"
    );
    assert!(lines[1].contains("\"GET /none HTTP/1.1\" 404 14 \"-\" \"-\" kirin "), "{log}");
}
