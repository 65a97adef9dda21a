//! No failure of a server is silent, with any protocol. The client gets an error or a cut
//! connection. The log has one line with upstream, server, request and reason. The server's count
//! of failures grows by one.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::Response;
use kirin_tests::{ADMIN, Backend, BackendConnection, Kirin, LeasedPort, Site, wait_for};

/// The result of a failure for the client.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Status(u16),
    /// A response that starts with `part` and has no end.
    Cut,
}
use Seen::{Cut, Status};

/// The number of responses of which a client has read a part. A server waits for its next part
/// before it resets, because a reset discards bytes that were not read.
#[derive(Clone, Default)]
struct Parts(Arc<AtomicUsize>);

impl Parts {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn add_one(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A path, its result, and the text in the log.
type Case = (&'static str, Seen, &'static str);

/// Starts Kirin. A server may be silent for `limit`.
fn proxy(server: &str, limit: &str) -> (Site, Kirin) {
    let site = Site::new();
    let more = if server.starts_with("fastcgi:") { "root = \"/nowhere\"\n" } else { "" };
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n{ADMIN}\
         [[upstream]]\nname = \"api\"\nservers = [\"{server}\"]\nmax_failures = 0\n{more}\
         first_byte_timeout = \"{limit}\"\nidle_timeout = \"{limit}\"\nsend_timeout = \"{limit}\"\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

fn warnings(kirin: &Kirin) -> Vec<String> {
    kirin.log().lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
}

fn each_is_told_and_counted(server: &str, parts: &Parts, cases: &[Case]) {
    let (hanging, others): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|(target, ..)| target.starts_with("/hang"));
    each_of_a_kind(server, parts, &others, "30s");
    if !hanging.is_empty() {
        each_of_a_kind(server, parts, &hanging, "1s");
    }
}

fn each_of_a_kind(server: &str, parts: &Parts, cases: &[&Case], limit: &str) {
    let (_site, kirin) = proxy(server, limit);
    for (number, (target, seen, reason)) in cases.iter().copied().enumerate() {
        let mut client = kirin.connect();
        match seen {
            Status(status) => {
                let mut reply = client.get(target);
                while reply.status == 103 {
                    reply = client.read_reply();
                }
                assert_eq!(reply.status, *status, "{target}: {}", kirin.log());
            }
            Cut => {
                client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
                let mut got = client.read_until(b"part");
                parts.add_one();
                got.extend_from_slice(&client.read_to_end());
                let got = String::from_utf8_lossy(&got).into_owned();
                assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{target}: {got}");
                assert!(!got.ends_with("0\r\n\r\n"), "{target}: {got}");
            }
        }
        let lines = wait_for(&format!("a line for {target}:\n{}", kirin.log()), || {
            Some(warnings(&kirin)).filter(|lines| lines.len() > number)
        });
        assert_eq!(lines.len(), number + 1, "{target}: {lines:#?}");
        let line = &lines[number];
        for part in ["upstream=\"api\"", server, &format!("request=\"GET {target}\""), reason] {
            assert!(line.contains(part), "{target}: no {part} in {line}");
        }
        assert_eq!(kirin.count_of_servers("api", "failures"), number as u64 + 1, "{target}");
        assert_eq!(kirin.count_of_servers("api", "in_flight"), 0, "{target}");
    }
}

#[test]
fn a_refused_connection_is_logged_and_counted_for_every_protocol() {
    for scheme in ["", "h2c://", "fastcgi://", "scgi://", "uwsgi://"] {
        let cases: [Case; 2] = [
            ("/a", Status(502), "Connection refused"),
            ("/b?c", Status(502), "Connection refused"),
        ];
        // No process listens on this port.
        let nobody = LeasedPort::lease();
        let server = format!("{scheme}{}", nobody.address());
        each_is_told_and_counted(&server, &Parts::default(), &cases);
    }
}

#[test]
fn failures_of_http_1_servers_are_logged_and_counted() {
    let parts = Parts::default();
    let seen = parts.clone();
    let backend = Backend::start(move |mut connection| {
        let Some(asked) = connection.read_request() else { return };
        let before = seen.count();
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\npart";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n";
        let target = asked.target().to_owned();
        match target.as_str() {
            "/head" => connection.send("HTTP/1.1 200 OK\r\nContent-Le"),
            "/reset-head" => connection.send("HTTP/1.1 200 OK\r\nContent-Le"),
            "/garbage" => connection.send("\x16\x03\x01 garbage\r\n\r\n"),
            "/lengths" => {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
            }
            "/switch" => connection.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
            "/hints" => connection.send("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100)),
            "/megabyte" => {
                connection.send(format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n", "x".repeat(1 << 20)))
            }
            "/hang-head" => connection.send("HTTP/1.1 200 OK\r\n"),
            "/length" | "/reset-length" | "/hang-length" => connection.send(sized),
            "/chunk" | "/hang-chunk" => connection.send(chunked),
            "/broken-chunk" => connection.send(format!("{chunked}no size\r\n")),
            _ => true,
        };
        if target.starts_with("/hang") {
            return connection.wait_for_end();
        }
        connection.wait_until_read();
        if target == "/reset-length" {
            wait_for("the part at the client", || (seen.count() > before).then_some(()));
        }
        if target.starts_with("/reset") {
            connection.reset();
        }
    });
    each_is_told_and_counted(
        &backend.address().to_string(),
        &parts,
        &[
            ("/nothing", Status(502), "without a response"),
            ("/reset-nothing", Status(502), "without a response"),
            ("/head", Status(502), "inside the response's head"),
            ("/reset-head", Status(502), "inside the response's head"),
            ("/garbage", Status(502), "malformed"),
            ("/lengths", Status(502), "two different Content-Length"),
            ("/switch", Status(502), "did not ask"),
            ("/hints", Status(502), "more informational responses"),
            ("/megabyte", Status(502), "longer than 64 KiB"),
            ("/hang", Status(504), "no response for too long"),
            ("/hang-head", Status(504), "no response for too long"),
            ("/length", Cut, "ended before its end"),
            ("/reset-length", Cut, "reset"),
            ("/hang-length", Cut, "nothing came for too long"),
            ("/chunk", Cut, "ended before its end"),
            ("/hang-chunk", Cut, "nothing came for too long"),
            ("/broken-chunk", Status(502), "body of the response"),
        ],
    );
}

/// Runs [`serve_http2`].
fn http2_server(parts: &Parts) -> SocketAddr {
    let parts = parts.clone();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("nonblocking");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_http2(stream, parts.clone()));
            }
        });
    });
    address
}

#[test]
fn failures_of_http_2_servers_are_logged_and_counted() {
    let parts = Parts::default();
    each_is_told_and_counted(
        &format!("h2c://{}", http2_server(&parts)),
        &parts,
        &[
            ("/reset", Status(502), "reset the stream or ended the connection"),
            ("/end", Status(502), "reset the stream or ended the connection"),
            ("/megabyte", Status(502), "reset the stream or ended the connection"),
            ("/hang", Status(504), "no response for too long"),
            ("/reset-body", Cut, "stream"),
            ("/end-body", Cut, "stream closed"),
            ("/hang-body", Cut, "nothing came for too long"),
        ],
    );
}

async fn serve_http2(stream: tokio::net::TcpStream, parts: Parts) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let before = parts.count();
        match path.as_str() {
            "/reset" => respond.send_reset(Reason::INTERNAL_ERROR),
            "/end" => return,
            "/hang" => std::mem::forget(respond),
            "/megabyte" => {
                let mut head = Response::new(());
                for number in 0..64 {
                    let name = format!("x-{number}").parse::<http::HeaderName>().expect("a name");
                    head.headers_mut().insert(name, "x".repeat(16_000).parse().expect("a value"));
                }
                let _ = respond.send_response(head, true);
            }
            _ => {
                let Ok(mut stream) = respond.send_response(Response::new(()), false) else {
                    continue;
                };
                let _ = stream.send_data(Bytes::from_static(b"part"), false);
                // Bytes are sent while the connection is polled.
                while parts.count() == before {
                    let turn = tokio::time::timeout(Duration::from_millis(5), connection.accept());
                    if turn.await.is_ok() {
                        return;
                    }
                }
                match path.as_str() {
                    "/reset-body" => stream.send_reset(Reason::INTERNAL_ERROR),
                    "/end-body" => return,
                    _ => std::mem::forget(stream),
                }
            }
        }
    }
}

#[test]
fn a_server_that_does_not_speak_http_2_is_logged_and_counted() {
    let backend = Backend::start(|mut connection| {
        connection.read_head();
        connection.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        // Closing with unread bytes would reset the connection, perhaps before the answer is read.
        connection.wait_for_end();
    });
    let reason = "cannot be connected to: connection error detected: frame with invalid size";
    each_is_told_and_counted(
        &format!("h2c://{}", backend.address()),
        &Parts::default(),
        &[("/", Status(502), reason)],
    );
}

#[test]
fn a_client_that_aborts_its_upload_is_not_a_failure_of_the_server() {
    let http1 = Backend::start(|mut connection| {
        connection.read_head();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
        connection.wait_for_end();
    });
    let parts = Parts::default();
    for server in [http1.address().to_string(), format!("h2c://{}", http2_server(&parts))] {
        let (_site, kirin) = proxy(&server, "30s");
        let mut client = kirin.connect();
        client.send("POST /upload HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
        client.read_until(b"part");
        parts.add_one();
        client.send("no chunk\r\n");
        client.read_to_end();
        kirin.wait_for_log("response was cut");
        assert_eq!(kirin.count_of_servers("api", "failures"), 0, "{server}: {}", kirin.log());
    }
}

/// Encodes a record of FastCGI (its specification, section 3.3).
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("short content").to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// Reads the records of a request. Returns the value of its `REQUEST_URI`.
fn read_fastcgi(connection: &mut BackendConnection) -> Option<String> {
    let mut parameters = Vec::new();
    loop {
        let head = connection.take(8)?;
        let length = usize::from(u16::from_be_bytes([head[4], head[5]])) + usize::from(head[6]);
        let content = connection.take(length)?;
        match (head[1], length) {
            (4, _) => parameters.extend_from_slice(&content),
            // This is the end of the body.
            (5, 0) => break,
            _ => {}
        }
    }
    let text = String::from_utf8_lossy(&parameters).into_owned();
    let (_, rest) = text.split_once("REQUEST_URI")?;
    Some(rest.chars().take_while(|c| c.is_ascii_lowercase() || "/-.".contains(*c)).collect())
}

#[test]
fn failures_of_fastcgi_servers_are_logged_and_counted() {
    const OUT: u8 = 6;
    let parts = Parts::default();
    let seen = parts.clone();
    let backend = Backend::start(move |mut connection| {
        let Some(target) = read_fastcgi(&mut connection) else { return };
        let before = seen.count();
        let part = record(OUT, b"Status: 200\r\nContent-Type: text/plain\r\n\r\npart");
        match target.as_str() {
            "/head.php" => connection.send(record(OUT, b"Content-Ty")),
            "/inside.php" => connection.send(&record(OUT, b"Content-Type: text/plain\r\n")[..20]),
            "/garbage.php" => connection.send("HTTP/1.1 200 OK\r\n\r\n"),
            "/fields.php" => connection.send(record(OUT, b"no field\r\n\r\n")),
            "/megabyte.php" => (0..1024).all(|number| {
                connection
                    .send(record(OUT, format!("X-{number}: {}\r\n", "x".repeat(1000)).as_bytes()))
            }),
            "/body.php" | "/hang-body.php" | "/reset-body.php" => connection.send(part),
            _ => true,
        };
        if target.starts_with("/hang") {
            return connection.wait_for_end();
        }
        connection.wait_until_read();
        if target == "/reset-body.php" {
            wait_for("the part at the client", || (seen.count() > before).then_some(()));
        }
        if target.starts_with("/reset") {
            connection.reset();
        }
    });
    each_is_told_and_counted(
        &format!("fastcgi://{}", backend.address()),
        &parts,
        &[
            ("/nothing.php", Status(502), "without a response"),
            ("/reset.php", Status(502), "without a response"),
            ("/head.php", Status(502), "inside the response's head"),
            ("/inside.php", Status(502), "inside the response's head"),
            ("/garbage.php", Status(502), "FastCGI"),
            ("/fields.php", Status(502), "head"),
            ("/megabyte.php", Status(502), "longer than 64 KiB"),
            ("/hang.php", Status(504), "no response for too long"),
            ("/body.php", Cut, "without the record that ends"),
            ("/reset-body.php", Cut, "reset"),
            ("/hang-body.php", Cut, "nothing came for too long"),
        ],
    );
}
