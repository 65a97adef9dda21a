//! Servers behind Kirin that fail in every way. The client gets an error or a cut connection, and
//! never a part that looks complete. The log has the reason.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kirin_tests::{Backend, Client, Kirin, LeasedPort, Site, wait_for};

const TIMES: &str = "connect_timeout = \"1s\"\nsend_timeout = \"1s\"\nfirst_byte_timeout = \"1s\"\nidle_timeout = \"1s\"\n";

fn proxy_to(servers: &str) -> (Site, Kirin) {
    proxy_with(servers, "")
}

fn proxy_with(servers: &str, times: &str) -> (Site, Kirin) {
    let site = Site::new();
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
             [[upstream]]\nname = \"api\"\nservers = [{servers}]\n{times}\
             [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
        ),
    );
    (site, kirin)
}

fn proxy(backend: &Backend) -> (Site, Kirin) {
    proxy_to(&format!("\"{}\"", backend.address()))
}

/// Starts Kirin in front of a server that hangs.
fn hasty_proxy(backend: &Backend) -> (Site, Kirin) {
    proxy_with(&format!("\"{}\"", backend.address()), TIMES)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Returns all bytes that a client gets of a cut response, which must not be complete.
fn cut_response(client: &mut Client, target: &str) -> String {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    String::from_utf8_lossy(&client.read_to_end()).into_owned()
}

#[test]
fn a_server_that_refuses_is_a_502_with_a_line_in_the_log() {
    let nobody = LeasedPort::lease();
    let (_site, kirin) = proxy_to(&format!("\"{}\"", nobody.address()));
    assert_eq!(kirin.get("/x?y").status, 502);
    kirin.wait_for_log("Connection refused");
    let log = kirin.log();
    let line = log.lines().find(|line| line.contains("refused")).expect("a line");
    assert!(
        line.contains("upstream=\"api\"") && line.contains("GET /x?y") && line.contains("WARN"),
        "{line}"
    );
}

#[test]
fn another_server_replaces_one_that_refuses() {
    let backend = Backend::answering(|asked| ok(&String::from_utf8_lossy(&asked.body)));
    let nobody = LeasedPort::lease();
    let servers = format!("\"{}\", \"{}\"", nobody.address(), backend.address());
    let (_site, kirin) = proxy_to(&servers);
    let mut client = kirin.connect();
    for _ in 0..4 {
        assert_eq!(
            client.post("/", "text/plain", b"nothing was sent before").text(),
            "nothing was sent before"
        );
    }
}

#[test]
fn an_invalid_response_is_a_502() {
    for (answer, reason) in [
        ("garbage garbage\r\n\r\n", "malformed"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "Content-Length"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "both",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\n", "not chunked"),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0"),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "malformed"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "chunked"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "did not ask"),
        ("HTTP/1.1 200 OK\r\nContent-Le", "inside the response's head"),
        ("", "without a response"),
    ] {
        let backend = Backend::start(move |mut connection| {
            connection.read_request();
            connection.send(answer);
            connection.end();
            connection.wait_for_end();
        });
        let (_site, kirin) = proxy(&backend);
        assert_eq!(kirin.get("/").status, 502, "{answer:?}");
        kirin.wait_for_log(reason);
        assert_eq!(backend.connections(), 1, "{answer:?} is not asked for again");
    }
}

#[test]
fn a_megabyte_of_fields_is_a_502() {
    let backend = Backend::start(|mut connection| {
        connection.read_request();
        connection.send("HTTP/1.1 200 OK\r\n");
        let line = format!("X-Long: {}\r\n", "x".repeat(1000));
        for _ in 0..1000 {
            if !connection.send(&line) {
                return;
            }
        }
        connection.send("Content-Length: 0\r\n\r\n");
    });
    let (_site, kirin) = proxy(&backend);
    assert_eq!(kirin.get("/").status, 502);
    kirin.wait_for_log("longer than 64 KiB");
}

#[test]
fn a_server_that_dies_behind_the_head_leaves_the_client_with_the_head() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    let backend = Backend::start(move |mut connection| {
        connection.read_request();
        connection.send(head);
    });
    let (_site, kirin) = proxy(&backend);
    // The kernel decides whether the end arrives with the head or behind it.
    for _ in 0..50 {
        let got = cut_response(&mut kirin.connect(), "/");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\n"), "{got:?}");
    }
}

#[test]
fn a_body_that_is_cut_never_looks_complete() {
    for (target, head) in [
        ("/length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"),
        ("/chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"),
        ("/inside", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npart"),
        ("/broken", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"),
        ("/reset", "HTTP/1.0 200 OK\r\n\r\npart"),
    ] {
        let (go_on, wait) = std::sync::mpsc::channel();
        let wait = std::sync::Mutex::new(wait);
        let backend = Backend::start(move |mut connection| {
            connection.read_request();
            connection.send(head);
            let _ = wait.lock().expect("a channel").recv_timeout(kirin_tests::wait_limit());
            match target {
                "/reset" => connection.reset(),
                "/broken" => {
                    connection.send("no chunk\r\n");
                    connection.wait_for_end();
                }
                _ => connection.end(),
            }
        });
        let (_site, kirin) = proxy(&backend);
        let mut client = kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        client.read_until(b"part");
        go_on.send(()).expect("a backend");
        let rest = client.read_to_end();
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{target}: {:?}", String::from_utf8_lossy(&rest));
        kirin.wait_for_log("response was cut");
    }
}

#[test]
fn a_server_that_hangs_is_a_504_or_cuts_the_response() {
    let backend = Backend::start(|mut connection| {
        let Some(asked) = connection.read_request() else { return };
        match asked.target() {
            "/head" => connection.send("HTTP/1.1 200 OK\r\n"),
            "/body" => connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"),
            _ => true,
        };
        connection.wait_for_end();
    });
    let (_site, kirin) = hasty_proxy(&backend);
    for target in ["/nothing", "/head"] {
        assert_eq!(kirin.get(target).status, 504, "{target}");
    }
    kirin.wait_for_log("sent no response for too long");
    let got = cut_response(&mut kirin.connect(), "/body");
    assert!(got.ends_with("part"), "{got}");
    kirin.wait_for_log("nothing came for too long");
}

#[test]
fn a_server_that_takes_nothing_is_a_504() {
    let (_keep, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let backend = Backend::start(move |_connection| {
        let _ = wait.lock().expect("a channel").recv_timeout(kirin_tests::wait_limit());
    });
    let (_site, kirin) = hasty_proxy(&backend);
    let mut client = kirin.connect();
    // This is more than the sockets between hold, and less than would block the reading of the
    // client.
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000000\r\n\r\n");
    while client.try_send_now(&[b'x'; 65536]) {}
    assert_eq!(client.read_reply().status, 504);
    kirin.wait_for_log("took nothing more of the request");
}

#[test]
fn a_request_on_a_dead_kept_connection_is_retried_if_that_is_safe() {
    let asked_for = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked_for);
    let backend = Backend::start(move |mut connection| {
        // The first connection answers once and dies at the second request.
        while connection.read_request().is_some() {
            count.fetch_add(1, Ordering::SeqCst);
            if connection.number == 0 && count.load(Ordering::SeqCst) > 1 {
                return;
            }
            connection.send(ok("answer"));
        }
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    assert_eq!(client.get("/").text(), "answer");
    assert_eq!(client.get("/").text(), "answer");
    assert_eq!((backend.connections(), asked_for.load(Ordering::SeqCst)), (2, 3));
}

#[test]
fn a_request_that_may_have_been_done_is_not_retried() {
    let asked_for = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked_for);
    let backend = Backend::start(move |mut connection| {
        while connection.read_request().is_some() {
            if count.fetch_add(1, Ordering::SeqCst) == 1 {
                return;
            }
            connection.send(ok("answer"));
        }
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    assert_eq!(client.get("/").text(), "answer");
    assert_eq!(client.post("/", "text/plain", b"once").status, 502);
    assert_eq!(asked_for.load(Ordering::SeqCst), 2);
    // A new connection that dies is not a stale one, so no request is retried.
    assert_eq!(client.get("/").text(), "answer");
}

#[test]
fn a_connection_that_was_closed_while_it_was_idle_is_not_used() {
    let backend = Backend::start(|mut connection| {
        connection.read_request();
        connection.send(ok(&connection.number.to_string()));
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    for number in 0..20 {
        // It must not be sent twice. On an ended connection it would be a 502.
        let reply = client.post("/", "text/plain", b"once");
        assert_eq!((reply.status, reply.text()), (200, number.to_string()), "{}", kirin.log());
        wait_for("the end to arrive", || (!has_connection_to(backend.address())).then_some(()));
        // The loop has seen both when a later request is answered.
        assert_eq!(kirin.get("/%zz").status, 400);
    }
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

/// Returns whether a process on this machine has a connection to `address` whose end has not
/// arrived.
fn has_connection_to(address: SocketAddr) -> bool {
    const ESTABLISHED: &str = "01";
    let SocketAddr::V4(address) = address else { panic!("{address} is not IPv4") };
    // The kernel prints the bytes of an address as a number of the machine.
    let octets = u32::from_ne_bytes(address.ip().octets());
    let wanted = format!("{octets:08X}:{:04X}", address.port());
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("proc(5)");
    sockets.lines().any(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        fields.get(2) == Some(&wanted.as_str()) && fields.get(3) == Some(&ESTABLISHED)
    })
}

#[test]
fn bytes_behind_a_response_belong_to_no_request() {
    let backend = Backend::start(|mut connection| {
        connection.read_request();
        connection.send(format!("{}{}", ok("first"), ok("smuggled")));
        connection.wait_for_end();
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    for number in 1..4 {
        assert_eq!(client.get("/").text(), "first");
        assert_eq!(backend.connections(), number);
    }
    kirin.wait_for_log("bytes after the end of a response");
}

#[test]
fn a_server_that_ends_its_side_still_gets_the_request_and_answers() {
    let backend = Backend::start(|mut connection| {
        connection.read_request();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        connection.send("x".repeat(100_000));
        connection.end();
        connection.wait_for_end();
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/").body.len(), 100_000);
    }
}

#[test]
fn resets_under_load_cost_errors_and_never_a_wrong_answer() {
    let backend = Backend::start(|mut connection| {
        let mut served = 0;
        while let Some(asked) = connection.read_request() {
            served += 1;
            let name = asked.target().to_owned();
            match (connection.number + served) % 7 {
                0 => return connection.reset(),
                1 => {
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ncut");
                    return connection.reset();
                }
                _ => connection.send(ok(&name)),
            };
        }
    });
    let (_site, kirin) = proxy(&backend);
    let address = kirin.address();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut good = 0;
                for number in 0..50 {
                    let mut client = Client::connect(address);
                    let name = format!("/{thread}-{number}");
                    client.send(format!(
                        "GET {name} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
                    ));
                    let all = String::from_utf8_lossy(&client.read_to_end()).into_owned();
                    match all.split_once("\r\n\r\n") {
                        Some((head, body))
                            if head.starts_with("HTTP/1.1 200") && !head.contains("th: 50") =>
                        {
                            assert_eq!(body, name);
                            good += 1;
                        }
                        Some((head, body)) if head.starts_with("HTTP/1.1 200") => {
                            assert!(body.len() < 50)
                        }
                        other => assert!(all.starts_with("HTTP/1.1 502"), "{other:?}"),
                    }
                }
                good
            })
        })
        .collect();
    let good: usize =
        threads.into_iter().map(|thread| thread.join().expect("no wrong answer")).sum();
    assert!(good > 100, "{good} of 400");
}
