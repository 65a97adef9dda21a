//! `proxy:NAME` through the built program, in front of servers whose bytes the test controls.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use kirin_tests::{
    Authority, Backend, Http2Client, Kirin, ReceivedRequest, Site, patient_seconds, wait_for,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn config(servers: &str, upstream: &str, route: &str) -> String {
    format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
         [[upstream]]\nname = \"api\"\nservers = [{servers}]\n{upstream}\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n{route}\n"
    )
}

fn proxy_with(backend: &Backend, upstream: &str, route: &str) -> (Site, Kirin) {
    let site = Site::new();
    let kirin =
        Kirin::start(&site, &config(&format!("\"{}\"", backend.address()), upstream, route));
    (site, kirin)
}

fn proxy(backend: &Backend) -> (Site, Kirin) {
    proxy_with(backend, "", "")
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Starts a server that answers with the request.
fn echo(asked: &ReceivedRequest) -> String {
    ok(&format!("{}\n\n{}", asked.head, String::from_utf8_lossy(&asked.body)))
}

#[test]
fn requests_and_responses_share_one_connection() {
    let backend = Backend::answering(|asked| {
        format!(
            "HTTP/1.1 201 Made\r\nServer: b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nLocation: http://inside/\r\n\
             X-Hop: 1\r\nConnection: keep-alive, X-Hop\r\nContent-Length: {}\r\n\r\n{}",
            asked.head.len(),
            asked.head
        )
    });
    let (site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    for _ in 0..5 {
        let reply = client.request(
            "GET",
            "/a/%62?c=d",
            "Cookie: x\r\nX-Forwarded-For: 6.6.6.6\r\nTE: trailers\r\n",
        );
        assert_eq!(reply.status, 201);
        let text = reply.text();
        // Each request has an id of its own (request_ids.rs).
        let lines = text.split_inclusive("\r\n");
        let without_id: String = lines.filter(|line| !line.starts_with("X-Request-Id: ")).collect();
        assert_eq!(
            without_id,
            "GET /a/%62?c=d HTTP/1.1\r\nHost: test\r\nCookie: x\r\nX-Forwarded-For: 127.0.0.1\r\n\
             X-Forwarded-Proto: http\r\nX-Forwarded-Host: test\r\nVia: 1.1 kirin\r\n\
             Connection: TE\r\nTE: trailers"
        );
        assert_eq!(
            (reply.field("server"), reply.field("location")),
            (Some("b"), Some("http://inside/"))
        );
        assert!(reply.head.contains("Set-Cookie: a=1\r\nSet-Cookie: b=2"), "{}", reply.head);
        assert!(
            reply.field("x-hop").is_none() && reply.field("via") == Some("1.1 kirin"),
            "{}",
            reply.head
        );
    }
    assert_eq!(backend.connections(), 1);
    wait_for("the access log", || {
        let log = std::fs::read_to_string(site.path("access.log")).ok()?;
        log.lines().next()?.contains("\" proxy 0.").then_some(())
    });
}

#[test]
fn the_server_sees_the_path_by_which_the_route_was_found() {
    let backend = Backend::answering(|asked| ok(asked.target()));
    let route = "[[route]]\npath = \"/v\"\nrewrite = \"/w\"\ntry = [\"proxy:api\"]\n";
    let (_site, kirin) = proxy_with(&backend, "", route);
    let mut client = kirin.connect();
    for (target, expected) in [
        ("/x/../y?q=%2e%2e", "/y?q=%2e%2e"),
        ("/x//y", "/x//y"),
        ("http://test/z?a", "/z?a"),
        ("/v/a%20b?q", "/w/a%20b?q"),
    ] {
        assert_eq!(client.get(target).text(), expected, "{target}");
    }
    assert_eq!(client.request("OPTIONS", "*", "").text(), "*");
}

#[test]
fn bodies_of_every_framing_arrive_whole() {
    let backend = Backend::answering(|asked| {
        ok(&format!(
            "{} {}",
            asked.body.len(),
            asked.field("transfer-encoding").unwrap_or("length")
        ))
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    for length in [0, 1, 1000, 70_000, 3_000_000] {
        let reply = client.post("/", "text/plain", &vec![b'x'; length]);
        assert_eq!(reply.text(), format!("{length} length"));
    }
    client
        .send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    client.send("6;x=y\r\n world\r\n0\r\nX: y\r\n\r\n");
    assert_eq!(client.read_reply().text(), "11 chunked");
    let mut http2 = Http2Client::connect(kirin.address());
    assert_eq!(http2.post("/", "text/plain", &[b'x'; 200_000], true).text(), "200000 length");
    assert_eq!(http2.post("/", "text/plain", &[b'x'; 200_000], false).text(), "200000 chunked");
}

#[test]
fn bodies_of_requests_and_responses_are_passed_on_as_they_arrive() {
    let backend = Backend::start(|mut connection| {
        while let Some(head) = connection.read_head() {
            assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            while let Some(chunk) = connection.take(8) {
                connection.send(&chunk);
                if chunk.starts_with(b"0") {
                    return;
                }
            }
        }
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..3 {
        client.send("3\r\nabc\r\n");
        client.read_until(b"3\r\nabc\r\n");
    }
    client.send("0\r\n\r\n");
    drop(client);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_buffered_body_is_complete_before_the_server_gets_it() {
    let backend = Backend::answering(|asked| {
        ok(&format!("{:?} {}", asked.field("content-length"), asked.body.len()))
    });
    let (_site, kirin) = proxy_with(&backend, "", "request_buffering = true\nbody_limit = \"3MB\"");
    let mut client = kirin.connect();
    client
        .send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    let mut other = kirin.connect();
    assert_eq!(other.get("/").text(), "None 0");
    assert_eq!(backend.connections(), 1, "the unfinished one has none");
    client.send("0\r\n\r\n");
    assert_eq!(client.read_reply().text(), "Some(\"5\") 5");
    let large = vec![b'x'; 2 << 20];
    assert_eq!(client.post("/", "text/plain", &large).text(), "Some(\"2097152\") 2097152");
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4000000\r\n\r\n");
    assert_eq!(client.read_reply().status, 413);
}

/// Returns whether the kernel takes no more bytes for a connection.
fn is_full(socket: &TcpStream) -> bool {
    let mut sockets = [PollFd::new(socket, PollFlags::OUT)];
    poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("poll") == 0
}

#[test]
fn a_slow_reader_slows_the_server_down() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let (sockets, socket) = mpsc::channel();
    let sockets = std::sync::Mutex::new(sockets);
    let backend = Backend::start(move |mut connection| {
        while let Some(head) = connection.read_head() {
            if head.starts_with("GET /small ") {
                connection.send(ok("small"));
                continue;
            }
            let _ = sockets.lock().expect("a channel").send(connection.socket());
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 400000000\r\n\r\n");
            while count.load(Ordering::SeqCst) < 400_000_000 && connection.send([b'x'; 100_000]) {
                count.fetch_add(100_000, Ordering::SeqCst);
            }
            return;
        }
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let socket = socket.recv_timeout(kirin_tests::wait_limit()).expect("a request at the server");
    let mut other = kirin.connect();
    let last = wait_for("the server to be held back", || {
        let before = sent.load(Ordering::SeqCst);
        // Kirin has one event loop. In the turns that these take it would also read more of the
        // large response, and the kernel would take more of it from the server.
        for _ in 0..500 {
            assert_eq!(other.get("/small").text(), "small");
        }
        let is_held = before > 0 && is_full(&socket) && sent.load(Ordering::SeqCst) == before;
        is_held.then_some(before)
    });
    assert!(last < 50_000_000, "{last} bytes are nowhere but in memory");
    drop(socket);
    assert_eq!(client.read_reply().body.len(), 400_000_000);
}

#[test]
fn methods_and_statuses_without_a_body_keep_the_connection_in_order() {
    let backend = Backend::answering(|asked| match asked.target() {
        "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nX: 1\r\n\r\n".into(),
        "/chunked" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
        "/204" => "HTTP/1.1 204 No Content\r\n\r\n".into(),
        "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 99\r\n\r\n".into(),
        _ => ok("after"),
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    let reply = client.request("HEAD", "/head", "");
    assert_eq!((reply.field("content-length"), reply.field("x")), (Some("1234"), Some("1")));
    assert_eq!(client.request("HEAD", "/chunked", "").field("content-length"), None);
    assert_eq!(client.get("/204").status, 204);
    assert_eq!(client.get("/304").field("etag"), Some("\"x\""));
    assert_eq!(client.get("/").text(), "after");
    assert_eq!(backend.connections(), 1);
}

#[test]
fn responses_of_every_framing_are_read_to_their_end() {
    let backend = Backend::start(|mut connection| {
        let Some(asked) = connection.read_request() else { return };
        match asked.target() {
            "/close" => connection.send("HTTP/1.0 200 OK\r\n\r\nup to the end"),
            "/bye" => connection
                .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbye"),
            _ => {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                connection.send("5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX-Trailer: 1\r\n\r\n")
            }
        };
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    for (target, body) in
        [("/close", "up to the end"), ("/bye", "bye"), ("/chunks", "hello!"), ("/bye", "bye")]
    {
        assert_eq!(client.get(target).text(), body, "{target}");
    }
    assert_eq!(backend.connections(), 4);
}

#[test]
fn informational_responses_are_passed_on_except_100() {
    let backend = Backend::answering(|_| {
        format!(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{}",
            ok("final")
        )
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    let early = client.get("/");
    assert_eq!((early.status, early.field("link")), (103, Some("</a>")));
    assert_eq!(client.read_reply().text(), "final");
}

#[test]
fn a_server_decides_whether_the_body_is_sent_at_all() {
    let backend = Backend::start(|mut connection| {
        let Some(head) = connection.read_head() else { return };
        assert!(head.contains("Expect: 100-continue"), "{head}");
        if head.starts_with("POST /no") {
            connection.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        } else {
            connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            let body = connection.take(5);
            connection.send(ok(&String::from_utf8_lossy(&body.unwrap_or_default())));
        }
        connection.wait_for_end();
    });
    let (_site, kirin) = proxy(&backend);
    let post = |target: &str| {
        let mut client = kirin.connect();
        client.send(format!(
            "POST {target} HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        ));
        client
    };
    assert_eq!(post("/no").read_reply().status, 403, "without a 100 before it");
    let mut client = post("/yes");
    assert_eq!(client.read_reply().status, 100);
    client.send("hello");
    assert_eq!(client.read_reply().text(), "hello");
}

#[test]
fn an_early_answer_reaches_a_client_that_is_still_sending() {
    let backend = Backend::start(|mut connection| {
        connection.read_head();
        connection
            .send("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge");
        connection.end();
        connection.wait_for_end();
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000000\r\n\r\n");
    client.send([b'x'; 1000]);
    let reply = client.read_reply();
    assert_eq!(
        (reply.status, reply.text().as_str(), reply.field("connection")),
        (413, "large", Some("close"))
    );
}

#[test]
fn a_websocket_becomes_a_tunnel() {
    let backend = Backend::start(|mut connection| {
        let Some(asked) = connection.read_request() else { return };
        if asked.field("upgrade") != Some("websocket")
            || asked.field("connection") != Some("Upgrade")
        {
            connection.send(ok("no upgrade"));
            return;
        }
        connection.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst",
        );
        while let Some(bytes) = connection.take(4) {
            connection.send(bytes.to_ascii_uppercase());
        }
        connection.send("bye");
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    client
        .send("GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let head = String::from_utf8(client.read_until(b"\r\n\r\n")).expect("text");
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("Upgrade: websocket\r\n"), "{head}");
    client.read_exactly(b"first");
    for _ in 0..3 {
        client.send("ping").read_exactly(b"PING");
    }
    client.end();
    assert_eq!(client.read_to_end(), b"bye");
    let mut other = kirin.connect();
    let reply = other.request(
        "GET",
        "/",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n",
    );
    assert_eq!(reply.text(), "no upgrade", "a tunnel of HTTP/2 would pass by the routes");
}

#[test]
fn the_protocols_that_a_426_response_requires_reach_the_client() {
    let backend = Backend::answering(|_| {
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2, HTTP/1.1\r\nConnection: Upgrade\r\n\
         Content-Length: 3\r\n\r\ntls"
            .into()
    });
    let (_site, kirin) = proxy(&backend);
    let mut client = kirin.connect();
    for _ in 0..2 {
        let reply = client.get("/");
        assert_eq!((reply.status, reply.text().as_str()), (426, "tls"), "{}", reply.head);
        assert_eq!(reply.field("upgrade"), Some("TLS/1.2, HTTP/1.1"), "{}", reply.head);
        assert_eq!(reply.field("connection"), Some("upgrade"), "{}", reply.head);
    }
}

#[test]
fn the_host_is_the_clients_the_servers_or_a_given_one() {
    let backend = Backend::answering(|asked| ok(asked.field("host").unwrap_or("none")));
    let own = backend.address().to_string();
    for (upstream, expected) in [
        ("", "test"),
        ("host = \"upstream\"", own.as_str()),
        ("host = \"www.a.test\"", "www.a.test"),
    ] {
        let (_site, kirin) = proxy_with(&backend, upstream, "");
        assert_eq!(kirin.get("/").text(), expected, "{upstream}");
    }
}

#[test]
fn servers_take_turns_and_one_may_be_a_unix_socket() {
    let tcp = Backend::answering(|_| ok("tcp"));
    let site = Site::new();
    let listener = UnixListener::bind(site.path("s.sock")).expect("a socket");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(1..) = stream.read(&mut buffer) {
                    let _ = stream.write_all(ok("unix").as_bytes());
                }
            });
        }
    });
    let kirin =
        Kirin::start(&site, &config(&format!("\"{}\", \"unix:s.sock\"", tcp.address()), "", ""));
    let mut client = kirin.connect();
    let answers: Vec<_> = (0..4).map(|_| client.get("/").text()).collect();
    assert_eq!(answers, ["tcp", "unix", "tcp", "unix"]);
}

#[test]
fn a_server_is_proxied_without_a_file() {
    let backend = Backend::answering(echo);
    let site = Site::new();
    let url = format!("http://{}", backend.address());
    let kirin = Kirin::start_with(&site, &["serve", "--listen", "127.0.0.1:0", &url]);
    assert!(kirin.get("/x").text().starts_with("GET /x HTTP/1.1\r\nHost: test\r\n"));
}

#[test]
fn idle_connections_are_closed_by_their_limits() {
    let (ended, ends) = mpsc::channel();
    let ended = std::sync::Mutex::new(ended);
    let backend = Backend::start(move |mut connection| {
        for _ in 0..2 {
            if connection.read_request().is_none() {
                break;
            }
            connection.send(ok(&connection.number.to_string()));
        }
        connection.wait_for_end();
        let _ = ended.lock().expect("a channel").send(connection.number);
    });
    // The second request must come in this time.
    let limits = format!("keep_time = \"{}\"\nmax_requests = 2", patient_seconds(3));
    let (_site, kirin) = proxy_with(&backend, &limits, "");
    let mut client = kirin.connect();
    let answers: Vec<_> = (0..3).map(|_| client.get("/").text()).collect();
    assert_eq!(answers, ["0", "0", "1"], "two requests a connection");
    assert_eq!(ends.recv_timeout(kirin_tests::wait_limit()), Ok(0));
    assert_eq!(ends.recv_timeout(kirin_tests::wait_limit()), Ok(1), "idle for too long");
}

#[test]
fn a_request_whose_client_disconnects_ends_at_the_server() {
    let (ended, ends) = mpsc::channel();
    let ended = std::sync::Mutex::new(ended);
    let backend = Backend::start(move |mut connection| {
        connection.read_request();
        connection.wait_for_end();
        let _ = ended.lock().expect("a channel").send(());
    });
    let (site, kirin) = proxy(&backend);
    for (connections, is_reset) in [(1, false), (2, true)] {
        let mut client = kirin.connect();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        wait_for("the request to arrive", || (backend.connections() == connections).then_some(()));
        if is_reset {
            client.reset()
        } else {
            drop(client)
        }
        assert_eq!(ends.recv_timeout(kirin_tests::wait_limit()), Ok(()));
        wait_for("499 in the access log, as nginx writes it", || {
            let log = std::fs::read_to_string(site.path("access.log")).ok()?;
            (log.matches("\" 499 0").count() == connections).then_some(())
        });
    }
}

/// Starts another Kirin that serves `hello.txt` and `large.bin` by TLS.
fn tls_server(authority: &Authority, names: &[&str], tls: &str) -> (Site, Kirin) {
    let site = Site::new()
        .with("public/hello.txt", "hello")
        .with("public/large.bin", vec![b'x'; 3_000_000])
        .with("ca.pem", authority.pem());
    authority.issue(names).write(&site, "a");
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n\
             certificates = [{{ chain = \"a.pem\", key = \"a.key\" }}]\n{tls}\n\
             [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
        ),
    );
    (site, kirin)
}

/// Starts a proxy of that Kirin with these settings of TLS.
fn tls_proxy(authority: &Authority, server: &Kirin, tls: &str) -> (Site, Kirin) {
    let site = Site::new().with("ca.pem", authority.pem());
    authority.issue(&["client.test"]).write(&site, "client");
    let servers = format!("\"https://localhost:{}\"", server.address().port());
    let kirin = Kirin::start(&site, &config(&servers, tls, ""));
    (site, kirin)
}

#[test]
fn a_server_is_verified_by_its_authority_and_name() {
    let authority = Authority::new("inside");
    let (_server_site, server) = tls_server(&authority, &["localhost"], "");
    let (_other_site, other) = tls_server(&authority, &["other.test"], "");
    for (server, tls, status) in [
        (&server, "tls = { ca = \"ca.pem\" }", 200),
        (&server, "", 502),
        (&server, "tls = { ca = \"ca.pem\", server_name = \"other.test\" }", 502),
        (&server, "tls = { verify = false }", 200),
        (&other, "tls = { ca = \"ca.pem\" }", 502),
        (&other, "tls = { ca = \"ca.pem\", server_name = \"other.test\" }", 200),
    ] {
        let (_site, kirin) = tls_proxy(&authority, server, tls);
        let mut client = kirin.connect();
        for _ in 0..3 {
            assert_eq!(client.get("/hello.txt").status, status, "{tls}: {}", kirin.log());
        }
        if status == 200 {
            assert_eq!(client.get("/large.bin").body.len(), 3_000_000);
        } else {
            kirin.wait_for_log("certificate");
        }
    }
}

#[test]
fn a_certificate_is_shown_to_a_server_that_asks_for_one() {
    let authority = Authority::new("inside");
    let (_server_site, server) = tls_server(&authority, &["localhost"], "client_ca = \"ca.pem\"");
    let shown =
        "tls = { ca = \"ca.pem\", certificate = { chain = \"client.pem\", key = \"client.key\" } }";
    for (tls, status) in [(shown, 200), ("tls = { ca = \"ca.pem\" }", 502)] {
        let (_site, kirin) = tls_proxy(&authority, &server, tls);
        assert_eq!(kirin.get("/hello.txt").status, status, "{tls}: {}", kirin.log());
    }
}

#[test]
fn names_are_looked_up_again() {
    let backend = Backend::answering(|_| ok("found"));
    let site = Site::new();
    let servers =
        format!("\"localhost:{}\", \"no-such-host.invalid:80\"", backend.address().port());
    let kirin = Kirin::start(&site, &config(&servers, "resolve = \"1s\"", ""));
    let mut client = kirin.connect();
    for _ in 0..4 {
        assert_eq!(client.get("/").text(), "found", "{}", kirin.log());
    }
    wait_for("the name to be looked up again", || {
        (kirin.log().matches("no-such-host.invalid").count() > 2).then_some(())
    });
    assert_eq!(client.get("/").text(), "found");
    assert_eq!(backend.connections(), 1, "the server that stays keeps its connections");
}
