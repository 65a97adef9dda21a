//! HTTP/2 between Kirin and its servers: gRPC with the h2 crate on both ends, and failures of
//! streams and connections.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response, StatusCode};
use kirin_tests::{Authority, Http2Client, Kirin, Site, wait_for, wait_limit};
use tokio::net::{TcpListener, TcpStream};

/// A server that speaks only HTTP/2.
struct Http2Backend {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    /// The number of requests that were reset before they were answered.
    ended: Arc<AtomicUsize>,
}

impl Http2Backend {
    fn start() -> Self {
        Self::with_streams(100)
    }

    /// Starts a server that accepts this many streams at the same time on a connection.
    fn with_streams(streams: u32) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("nonblocking");
        let address = listener.local_addr().expect("its address");
        let [connections, asked, ended] = <[Arc<AtomicUsize>; 3]>::default();
        let counts = (Arc::clone(&connections), Arc::clone(&asked), Arc::clone(&ended));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    counts.0.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(serve(
                        stream,
                        streams,
                        Arc::clone(&counts.1),
                        Arc::clone(&counts.2),
                    ));
                }
            });
        });
        Self { address, connections, asked, ended }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn proxy(&self) -> (Site, Kirin) {
        self.proxy_with("")
    }

    /// Starts Kirin with more keys of the listener.
    fn proxy_with(&self, listener: &str) -> (Site, Kirin) {
        self.proxy_of(listener, "")
    }

    /// Starts Kirin with more keys of the listener and of the upstream.
    fn proxy_of(&self, listener: &str, upstream: &str) -> (Site, Kirin) {
        let site = Site::new();
        let kirin = Kirin::start(
            &site,
            &format!(
                "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n{listener}\
                 [[upstream]]\nname = \"api\"\nservers = [\"h2c://{}\"]\n{upstream}\n\
                 [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n",
                self.address
            ),
        );
        (site, kirin)
    }
}

async fn serve(stream: TcpStream, streams: u32, asked: Arc<AtomicUsize>, ended: Arc<AtomicUsize>) {
    let handshake = h2::server::Builder::new().max_concurrent_streams(streams).handshake(stream);
    let Ok(mut connection) = handshake.await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        match request.uri().path() {
            "/refused" if number == 0 => {
                respond.send_reset(Reason::REFUSED_STREAM);
                continue;
            }
            "/goaway" => connection.graceful_shutdown(),
            _ => {}
        }
        tokio::spawn(answer(request, respond, Arc::clone(&ended)));
    }
}

fn grpc() -> http::response::Builder {
    Response::builder().header("content-type", "application/grpc")
}

fn trailers(status: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(
        "grpc-status".parse().expect("a name"),
        status.parse().expect("a value"),
    )])
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    ended: Arc<AtomicUsize>,
) {
    let (parts, mut body) = request.into_parts();
    let fields = parts.headers;
    match parts.uri.path() {
        "/unary" => {
            assert_eq!(fields.get("te").map(http::HeaderValue::as_bytes), Some(&b"trailers"[..]));
            let all = read_all(&mut body).await;
            let mut stream =
                respond.send_response(grpc().body(()).expect("a head"), false).expect("a stream");
            let _ = stream.send_data(all, false);
            let _ = stream.send_trailers(trailers("0"));
        }
        "/sized" => {
            let head = grpc().header("content-length", "5").body(()).expect("a head");
            let mut stream = respond.send_response(head, false).expect("a stream");
            let _ = stream.send_data(Bytes::from_static(b"hello"), false);
            let _ = stream.send_trailers(trailers("0"));
        }
        "/stream" => {
            let mut stream =
                respond.send_response(grpc().body(()).expect("a head"), false).expect("a stream");
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
                let _ = stream.send_data(data, false);
            }
            let _ = stream.send_trailers(trailers("0"));
        }
        "/only" => {
            let head = grpc().header("grpc-status", "12").body(()).expect("a head");
            let _ = respond.send_response(head, true);
        }
        "/cut" => {
            let mut stream = respond.send_response(Response::new(()), false).expect("a stream");
            let _ = stream.send_data(Bytes::from_static(b"part"), false);
            // A reset discards what is not sent. The client ends its request when it has the part.
            read_all(&mut body).await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
        "/hang" => std::future::pending().await,
        "/unread" => {
            let _ = poll_fn(|context| respond.poll_reset(context)).await;
            ended.fetch_add(1, Ordering::SeqCst);
        }
        "/ticks" => {
            let mut stream =
                respond.send_response(grpc().body(()).expect("a head"), false).expect("a stream");
            loop {
                let _ = stream.send_data(Bytes::from_static(b"."), false);
                let tick = std::time::Duration::from_millis(100);
                match tokio::time::timeout(tick, body.data()).await {
                    Err(_) => {}
                    Ok(Some(Ok(_))) => break,
                    Ok(_) => return,
                }
            }
            let _ = stream.send_trailers(trailers("0"));
        }
        "/stay" => {
            let mut stream = respond.send_response(Response::new(()), false).expect("a stream");
            let _ = stream.send_data(Bytes::from_static(b"stays"), false);
            let _ = poll_fn(|context| stream.poll_reset(context)).await;
        }
        "/reset" => respond.send_reset(Reason::INTERNAL_ERROR),
        "/teapot" => {
            let mut head = Response::new(());
            *head.status_mut() = StatusCode::IM_A_TEAPOT;
            let _ = respond.send_response(head, true);
        }
        _ => {
            let all = read_all(&mut body).await;
            let via = fields.get("via").and_then(|via| via.to_str().ok()).unwrap_or("none");
            let text = format!("{} {} {via} {}", parts.method, parts.uri, all.len());
            let mut stream = respond.send_response(Response::new(()), false).expect("a stream");
            let _ = stream.send_data(Bytes::from(text), true);
        }
    }
}

async fn read_all(body: &mut RecvStream) -> Bytes {
    let mut all = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        all.extend_from_slice(&data);
    }
    Bytes::from(all)
}

/// Makes a gRPC call. It sends each message when the answer to the previous one has arrived.
/// Returns the head's fields, the data and the trailers.
fn call(
    kirin: &Kirin,
    path: &str,
    messages: &[&[u8]],
    in_turn: bool,
) -> (HeaderMap, Vec<u8>, Option<HeaderMap>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let work = async {
            let socket = TcpStream::connect(kirin.address()).await.expect("connect");
            let (mut client, connection) = h2::client::handshake(socket).await.expect("HTTP/2");
            tokio::spawn(connection);
            let request = Request::post(format!("http://test{path}")).header("te", "trailers");
            let request =
                request.header("content-type", "application/grpc").body(()).expect("a request");
            let (response, mut stream) = client.send_request(request, false).expect("a stream");
            let mut messages = messages.iter().map(|message| Bytes::copy_from_slice(message));
            let mut send = |stream: &mut h2::SendStream<Bytes>| match messages.next() {
                Some(message) => stream.send_data(message, false).expect("sent"),
                None => stream.send_data(Bytes::new(), true).expect("ended"),
            };
            for _ in 0..if in_turn { 1 } else { 2 } {
                send(&mut stream);
            }
            let (head, mut body) = response.await.expect("a response").into_parts();
            let mut data = Vec::new();
            while let Some(piece) = body.data().await {
                let piece = piece.expect("data");
                let _ = body.flow_control().release_capacity(piece.len());
                data.extend_from_slice(&piece);
                if in_turn {
                    send(&mut stream);
                }
            }
            (head.headers, data, body.trailers().await.expect("an end"))
        };
        tokio::time::timeout(wait_limit(), work).await.expect("an answer in time")
    })
}

#[test]
fn a_unary_call_has_its_trailers() {
    let backend = Http2Backend::start();
    let (_site, kirin) = backend.proxy();
    for path in ["/unary", "/sized"] {
        let (_, data, trailers) = call(&kirin, path, &[b"hello"], false);
        assert_eq!(
            (&data[..], &trailers.expect(path)["grpc-status"]),
            (&b"hello"[..], &"0".parse().unwrap())
        );
    }
    let (fields, data, trailers) = call(&kirin, "/only", &[b"hello"], false);
    assert_eq!((&fields["grpc-status"], data.len(), trailers), (&"12".parse().unwrap(), 0, None));
    assert_eq!(backend.connections(), 1);
}

#[test]
fn messages_of_both_sides_cross_while_the_call_lasts() {
    let backend = Http2Backend::start();
    for upstream in ["", "max_in_flight = 1"] {
        let (_site, kirin) = backend.proxy_of("", upstream);
        let (_, data, trailers) = call(&kirin, "/stream", &[b"one", b"two", b"three"], true);
        assert_eq!(data, b"onetwothree");
        assert_eq!(trailers.expect("trailers")["grpc-status"], "0");
    }
}

#[test]
fn a_client_may_be_silent_while_the_server_speaks() {
    let backend = Http2Backend::start();
    let (_site, kirin) = backend.proxy_with("body_timeout = \"1s\"\n");
    let mut client = Http2Client::connect(kirin.address());
    let mut pending =
        client.try_begin("POST", "/ticks", &[("te", "trailers")], false).expect("a request");
    let (data, trailers) = client.run(async {
        let mut body = pending.response.await.expect("a response").into_body();
        let mut ticks = 0;
        let mut data = Vec::new();
        while let Some(piece) = body.data().await {
            data.extend_from_slice(&piece.expect("data"));
            ticks += 1;
            if ticks == 30 {
                // This is three times as long as a client may be silent inside a body for which
                // Kirin waits.
                pending.stream.send_data(Bytes::from_static(b"enough"), true).expect("sent");
            }
        }
        (data, body.trailers().await.expect("an end"))
    });
    assert!(data.len() >= 30, "{}", data.len());
    assert_eq!(trailers.expect("trailers")["grpc-status"], "0");
}

#[test]
fn clients_of_both_protocols_share_one_connection() {
    let backend = Http2Backend::start();
    let (_site, kirin) = backend.proxy();
    let mut http1 = kirin.connect();
    let mut http2 = Http2Client::connect(kirin.address());
    for _ in 0..3 {
        let reply = http1.get("/a?b");
        assert_eq!(
            (reply.text().as_str(), reply.field("via")),
            ("GET http://test/a?b 1.1 kirin 0", Some("2.0 kirin"))
        );
        assert_eq!(http2.get("/c").text(), "GET http://test/c 2.0 kirin 0");
    }
    assert_eq!(
        http1.post("/p", "text/plain", &vec![b'x'; 1_000_000]).text(),
        "POST http://test/p 1.1 kirin 1000000"
    );
    assert_eq!(http1.get("/teapot").status, 418);
    assert_eq!(http1.request("HEAD", "/a", "").status, 200);
    assert_eq!(
        http1.request("GET", "/a", "Connection: Upgrade\r\nUpgrade: websocket\r\n").status,
        200
    );
    assert_eq!(backend.connections(), 1);
}

#[test]
fn streams_that_end_early_are_cut_and_refused_ones_are_retried() {
    let backend = Http2Backend::start();
    let (_site, kirin) = backend.proxy();
    let mut client = kirin.connect();
    let reply = client.post("/refused", "text/plain", b"12345");
    assert_eq!(
        reply.text(),
        "POST http://test/refused 1.1 kirin 5",
        "nothing was done of it: {}",
        kirin.log()
    );
    assert_eq!(client.post("/reset", "text/plain", b"12345").status, 502);
    client.send("POST /cut HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.read_until(b"part");
    client.send("0\r\n\r\n");
    assert!(!client.read_to_end().ends_with(b"0\r\n\r\n"));
    kirin.wait_for_log("response was cut");
    let mut http2 = Http2Client::connect(kirin.address());
    let mut pending = http2.try_begin("POST", "/cut", &[], false).expect("a request");
    let is_cut = http2.run(async {
        let mut body = pending.response.await.expect("a head").into_body();
        assert_eq!(body.data().await.expect("a part").expect("a part"), "part");
        pending.stream.send_data(Bytes::new(), true).expect("an end");
        while let Some(piece) = body.data().await {
            if piece.is_err() {
                return true;
            }
        }
        body.trailers().await.is_err()
    });
    assert!(is_cut);
    let (_site, kirin) = backend.proxy_of("", "first_byte_timeout = \"1s\"");
    assert_eq!(kirin.get("/hang").status, 504);
}

#[test]
fn a_server_that_sends_goaway_gets_no_more_requests_on_that_connection() {
    let backend = Http2Backend::start();
    let (_site, kirin) = backend.proxy();
    let mut client = kirin.connect();
    for _ in 0..10 {
        assert_eq!(client.get("/goaway").text(), "GET http://test/goaway 1.1 kirin 0");
    }
    wait_for("the requests", || (backend.asked.load(Ordering::SeqCst) >= 10).then_some(()));
    assert!(backend.connections() > 5, "{}", backend.connections());
}

#[test]
fn the_responses_of_many_streams_reach_the_right_clients() {
    let backend = Http2Backend::start();
    let (_site, kirin) = backend.proxy();
    let address = kirin.address();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut client = kirin_tests::Client::connect(address);
                for number in 0..50 {
                    let path = format!("/{thread}-{number}");
                    assert_eq!(
                        client.get(&path).text(),
                        format!("GET http://test{path} 1.1 kirin 0")
                    );
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("right answers"));
    assert_eq!(backend.connections(), 1);
}

#[test]
fn more_requests_than_a_server_allows_on_a_connection_are_all_answered() {
    // The requests come from the first moment on, before the server has sent its limit.
    let backend = Http2Backend::with_streams(2);
    let (_site, kirin) = backend.proxy();
    let mut client = Http2Client::connect(kirin.address());
    let pending: Vec<_> =
        (0..60).map(|number| client.begin("GET", &format!("/{number}"), &[])).collect();
    for (number, pending) in pending.into_iter().enumerate() {
        assert_eq!(client.finish(pending).text(), format!("GET http://test/{number} 2.0 kirin 0"));
    }
    assert_eq!(backend.asked.load(Ordering::SeqCst), 60, "none was refused and sent again");
    assert!(backend.connections() <= 8, "{}", backend.connections());
}

#[test]
fn a_server_with_a_full_window_sees_that_the_client_has_gone() {
    let backend = Http2Backend::start();
    let (_site, kirin) = backend.proxy();
    let mut client = Http2Client::connect(kirin.address());
    let mut pending = client.try_begin("POST", "/unread", &[], false).expect("a request");
    // This is more than the server's window, and less than Kirin reads in this time.
    pending.stream.send_data(Bytes::from(vec![b'x'; 100_000]), false).expect("sent");
    wait_for("the request", || {
        client.pause();
        (backend.asked.load(Ordering::SeqCst) > 0).then_some(())
    });
    client.reset(pending);
    wait_for("the end", || {
        client.pause();
        (backend.ended.load(Ordering::SeqCst) > 0).then_some(())
    });
}

#[test]
fn long_responses_do_not_block_others() {
    let backend = Http2Backend::with_streams(2);
    let (_site, kirin) = backend.proxy();
    let mut client = Http2Client::connect(kirin.address());
    let mut stay = Vec::new();
    for number in 0..15 {
        let pending = client.begin("GET", "/stay", &[]);
        stay.push(client.head_of(pending));
        assert_eq!(backend.connections(), number / 2 + 1);
    }
    assert_eq!(client.get("/a").text(), "GET http://test/a 2.0 kirin 0");
    let pending = client.begin("GET", "/stay", &[]);
    stay.push(client.head_of(pending));
    // There is no room left. New requests wait until some of the others end, and then get the free
    // room.
    let waiting = client.begin("GET", "/b", &[]);
    client.pause();
    assert_eq!(backend.asked.load(Ordering::SeqCst), 17);
    drop(stay);
    assert_eq!(client.finish(waiting).text(), "GET http://test/b 2.0 kirin 0");
    assert_eq!(client.get("/c").status, 200);
    assert_eq!(backend.connections(), 8);
}

#[test]
fn a_tls_server_that_accepts_http_2_gets_it() {
    let authority = Authority::new("inside");
    let server_site = Site::new().with("public/hello.txt", "hello");
    authority.issue(&["localhost"]).write(&server_site, "a");
    let server = Kirin::start(
        &server_site,
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n\
         certificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    let site = Site::new().with("ca.pem", authority.pem());
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"api\"\n\
             servers = [\"https://localhost:{}\"]\ntls = {{ ca = \"ca.pem\" }}\n\
             [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n",
            server.address().port()
        ),
    );
    let mut client = kirin.connect();
    for _ in 0..3 {
        let reply = client.get("/hello.txt");
        assert_eq!(
            (reply.text().as_str(), reply.field("via")),
            ("hello", Some("2.0 kirin")),
            "{}",
            kirin.log()
        );
    }
    let reply =
        client.request("GET", "/hello.txt", "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    assert_eq!(reply.field("via"), Some("1.1 kirin"), "upgrades are HTTP/1.1's");
}

/// Starts a server that sends informational responses without end, with a thousand fields of a
/// thousand bytes each.
fn flood_of_hints() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let mut hint = vec![0, 0x03, 0xed, 1, 4, 0, 0, 0, 1];
    hint.extend(b"\x08\x03103");
    hint.extend([0x90; 1000]);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let hints = hint.repeat(64);
            std::thread::spawn(move || {
                let _ = stream.write_all(b"\0\0\0\x04\0\0\0\0\0");
                if !read_to_headers(&mut stream) {
                    return;
                }
                let mut sent = 0;
                while sent < 20 << 20 && stream.write_all(&hints).is_ok() {
                    sent += hints.len();
                }
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest);
            });
        }
    });
    address
}

/// Reads the preface and frames, up to the end of a request's HEADERS. Returns false if the
/// connection ends before.
fn read_to_headers(stream: &mut std::net::TcpStream) -> bool {
    const HEADERS: u8 = 1;
    let mut skip = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();
    let mut kind = None;
    loop {
        if stream.read_exact(&mut vec![0; skip]).is_err() {
            return false;
        }
        if kind == Some(HEADERS) {
            return true;
        }
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return false;
        }
        skip = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        kind = Some(head[3]);
    }
}

/// Returns the highest memory of the program, in KB.
fn peak_memory(kirin: &Kirin) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", kirin.pid())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn informational_responses_without_end_are_an_error_and_take_no_memory() {
    let site = Site::new();
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"api\"\n\
             servers = [\"h2c://{}\"]\n[[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n",
            flood_of_hints()
        ),
    );
    let before = peak_memory(&kirin);
    let mut client = kirin.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.read_until(b"HTTP/1.1 502 Bad Gateway\r\n");
    kirin.wait_for_log("more informational responses");
    let grown = peak_memory(&kirin) - before;
    assert!(grown < 150_000, "{grown} KB");
}
