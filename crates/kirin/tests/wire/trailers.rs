//! Trailers through the reverse proxy: of requests and responses, between HTTP/1.1 and HTTP/2 in
//! all four directions, and through filters. grpc.rs has gRPC with a separate client and server.

use std::io::Read;
use std::net::SocketAddr;

use bytes::Bytes;
use h2::RecvStream;
use http::{HeaderMap, Request, Response};
use kirin_tests::{Backend, Http2Client, Kirin, Site};
use tokio::net::{TcpListener, TcpStream};

/// Starts Kirin with this server behind it. `more` are further keys of the route.
fn proxy(server: &str, more: &str) -> (Site, Kirin) {
    let site = Site::new();
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\n\
             [[upstream]]\nname = \"api\"\nservers = [\"{server}\"]\n\
             [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n{more}"
        ),
    );
    (site, kirin)
}

fn http1(backend: &Backend) -> String {
    format!("http://{}", backend.address())
}

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    HeaderMap::from_iter(
        lines
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))),
    )
}

fn lines(fields: &HeaderMap) -> Vec<String> {
    fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect()
}

/// Starts an HTTP/2 server that answers with the request, and whose responses have trailers.
fn http2_backend() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("nonblocking");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
    });
    address
}

async fn serve(stream: TcpStream) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond));
    }
}

async fn answer(request: Request<RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    let (head, mut body) = request.into_parts();
    let mut length = 0;
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        length += data.len();
    }
    let trailers = body.trailers().await.expect("an end").unwrap_or_default();
    let text = format!("{length} {:?}", lines(&trailers));
    let mut response = Response::builder();
    for name in ["te", "trailer", "content-length", "x-sum"] {
        if let Some(value) = head.headers.get(name) {
            response = response.header(format!("got-{name}"), value);
        }
    }
    if head.uri.path() == "/announced" {
        response = response.header("trailer", "X-Sum, X-Other");
    }
    if head.uri.path() != "/unsized" {
        response = response.header("content-length", text.len());
    }
    let mut stream =
        respond.send_response(response.body(()).expect("a head"), false).expect("a stream");
    let _ = stream.send_data(Bytes::from(text), false);
    let trailers = match head.uri.path() {
        "/many" => {
            let mut many = HeaderMap::new();
            (0..101).for_each(|_| {
                many.append("x-many", "1".parse().expect("a value"));
            });
            many
        }
        _ => fields(&[
            ("x-sum", "1"),
            ("set-cookie", "a=b"),
            ("x-sum", "2"),
            ("content-type", "x/y"),
        ]),
    };
    let _ = stream.send_trailers(trailers);
}

/// Starts an HTTP/1.1 server whose responses have trailers. The target chooses whether they come at
/// once or piece by piece.
fn http1_backend() -> Backend {
    Backend::start(|mut connection| {
        while let Some(asked) = connection.read_request() {
            let text = format!("{} {:?}", asked.body.len(), asked.trailers);
            let got: String = ["te", "trailer", "content-length", "transfer-encoding", "x-sum"]
                .iter()
                .filter_map(|name| Some(format!("Got-{name}: {}\r\n", asked.field(name)?)))
                .collect();
            let response = format!(
                "HTTP/1.1 200 OK\r\n{got}Trailer: X-Sum, X-Other\r\nContent-Type: text/plain\r\n\
                 Connection: keep-alive, X-Hop\r\nTransfer-Encoding: chunked\r\n\r\n\
                 {:x}\r\n{text}\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\nX-Hop: 1\r\nX-Sum: 2\r\nContent-Length: 9\r\n\r\n",
                text.len()
            );
            if asked.target() != "/slow" {
                connection.send(response);
                continue;
            }
            // This is the head and the first bytes of the chunk, so that Kirin has to wait in the
            // middle of the rest.
            let start = response.find("\r\n\r\n").unwrap_or(0) + 6;
            connection.send(&response[..start]);
            for byte in response.as_bytes()[start..].chunks(1) {
                std::thread::sleep(std::time::Duration::from_millis(1));
                connection.send(byte);
            }
        }
    })
}

/// Sends an HTTP/1.1 request and returns the complete response.
fn exchange(kirin: &Kirin, request: &str) -> (String, String) {
    let mut client = kirin.connect();
    client.send(request);
    let answer = String::from_utf8_lossy(&client.read_to_end()).into_owned();
    let (head, body) =
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}: {}", kirin.log()));
    (head.to_ascii_lowercase(), body.to_owned())
}

fn get(target: &str, more: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{more}\r\n")
}

/// Returns a body in one chunk, with trailers.
const IN_CHUNKS: &str = "4\r\n0 []\r\n0\r\nx-sum: 1\r\nx-sum: 2\r\n\r\n";

#[test]
fn an_http_1_client_gets_the_trailers_of_a_response_if_it_accepts_them() {
    let backend = http1_backend();
    let (_site, kirin) = proxy(&http1(&backend), "");
    for target in ["/", "/slow"] {
        let (head, body) = exchange(&kirin, &get(target, "TE: trailers\r\n"));
        let chunks: String = body.lines().map(|line| format!("{line}\r\n")).collect();
        assert!(
            chunks.ends_with("\r\n0\r\nx-sum: 1\r\nx-sum: 2\r\n\r\n"),
            "{target} {head} {body}"
        );
        assert!(head.contains("\r\ntrailer: x-sum, x-other"), "{head}");
        assert!(head.contains("\r\ngot-te: trailers"), "{head}");
        let (head, body) = exchange(&kirin, &get(target, "TE: gzip\r\n"));
        assert!(!head.contains("trailer") && !body.contains("x-sum"), "{head} {body}");
        assert!(
            head.contains("content-length: 4") || body.ends_with("\r\n0\r\n\r\n"),
            "{head} {body}"
        );
        let old = format!("GET {target} HTTP/1.0\r\nTE: trailers\r\n\r\n");
        let (head, body) = exchange(&kirin, &old);
        assert_eq!(body, "0 []", "{head}");
    }
    let (head, body) = exchange(&kirin, &get("/", "TE: trailers\r\n"));
    assert_eq!(body, IN_CHUNKS, "{head}");
}

#[test]
fn an_http_2_client_gets_the_trailers_of_an_http_1_server() {
    let backend = http1_backend();
    let (_site, kirin) = proxy(&http1(&backend), "");
    let mut client = Http2Client::connect(kirin.address());
    for target in ["/", "/slow"] {
        let reply = client.get(target);
        assert_eq!(reply.text(), "0 []");
        assert_eq!(reply.field("trailer"), Some("X-Sum, X-Other"));
        assert_eq!(reply.field("x-sum"), None, "they are no header fields");
        assert_eq!(lines(&reply.trailers.expect("trailers")), ["x-sum: 1", "x-sum: 2"], "{target}");
    }
    let reply = client.request("HEAD", "/", &[]);
    assert_eq!((reply.status, reply.trailers), (200, None));
}

#[test]
fn the_connection_to_a_server_is_used_again_behind_trailers() {
    let backend = http1_backend();
    let (_site, kirin) = proxy(&http1(&backend), "");
    let mut client = kirin.connect();
    for target in ["/", "/slow", "/", "/slow"] {
        assert_eq!(client.get(target).text(), "0 []");
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n\r\n"));
        client.read_until(b"x-sum: 2\r\n\r\n");
    }
    assert_eq!(backend.connections(), 1);
}

#[test]
fn trailers_of_an_http_2_server_reach_an_http_1_client() {
    let (_site, kirin) = proxy(&format!("h2c://{}", http2_backend()), "");
    for (target, te, is_chunked) in [
        ("/unsized", true, true),
        // A length has precedence over unannounced trailers, but not over announced ones.
        ("/sized", true, false),
        ("/announced", true, true),
        ("/announced", false, false),
    ] {
        let te = if te { "TE: trailers\r\n" } else { "" };
        let (head, body) = exchange(&kirin, &get(target, te));
        let expected = if is_chunked { IN_CHUNKS } else { "0 []" };
        assert_eq!(body, expected, "{target} {te}: {head}");
        assert_eq!(head.contains("content-length"), !is_chunked, "{target} {te}: {head}");
        let announced = target == "/announced" && !te.is_empty();
        assert_eq!(
            head.contains("\r\ntrailer: x-sum, x-other"),
            announced,
            "{target} {te}: {head}"
        );
    }
    let (head, body) = exchange(&kirin, &get("/unsized", ""));
    assert!(body.ends_with("0\r\n\r\n") && !body.contains("x-sum"), "{head} {body}");
    let mut client = Http2Client::connect(kirin.address());
    for target in ["/sized", "/unsized"] {
        let reply = client.get(target);
        assert_eq!(lines(&reply.trailers.expect("trailers")), ["x-sum: 1", "x-sum: 2"], "{target}");
    }
}

/// Returns the request with a body of `length` bytes that a server must have got.
fn got(length: usize) -> String {
    format!("{length} [\"x-sum: 1\", \"x-other: a, b\"]")
}

#[test]
fn trailers_of_requests_reach_servers_of_both_protocols_from_clients_of_both() {
    let backend = http1_backend();
    let http2 = format!("h2c://{}", http2_backend());
    for server in [http1(&backend), http2] {
        for more in ["", "request_buffering = true\n"] {
            let (_site, kirin) = proxy(&server, more);
            let mut http2 = Http2Client::connect(kirin.address());
            for length in [0, 5, 100_000, 3_000_000] {
                let what = format!("{server} {more} {length}");
                let mut client = kirin.connect();
                client.send(
                    "POST /x HTTP/1.1\r\nHost: test\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\
                     Connection: close, X-Hop\r\n\r\n",
                );
                if length > 0 {
                    client.send(format!("{length:x}\r\n"));
                    client.send(vec![b'x'; length]);
                    client.send("\r\n");
                }
                client
                    .send("0\r\nX-Sum: 1\r\nX_Sum: 3\r\nX-Forwarded-For: 6.6.6.6\r\nX-Hop: 1\r\nX-Other:  a, b \r\n\r\n");
                let answer = String::from_utf8_lossy(&client.read_to_end()).into_owned();
                assert!(answer.contains(&got(length)), "{what}: {answer} {}", kirin.log());
                assert!(
                    answer.to_ascii_lowercase().contains("got-trailer: x-sum"),
                    "{what}: {answer}"
                );
                assert!(!answer.to_ascii_lowercase().contains("got-x-sum"), "{what}: {answer}");

                let body = vec![b'x'; length];
                let trailers = fields(&[("x-sum", "1"), ("host", "evil"), ("x-other", "a, b")]);
                let reply =
                    http2.send_with_trailers("POST", "/y", &[], &body, Some(trailers.clone()));
                assert_eq!(reply.text(), got(length), "{what}");
                // The request may have a length, too. Where both have no place, the trailers must
                // be announced or known beforehand.
                let text = length.to_string();
                let sized = [("content-length", text.as_str()), ("trailer", "x-sum")];
                let reply = http2.send_with_trailers("POST", "/z", &sized, &body, Some(trailers));
                assert_eq!(reply.text(), got(length), "{what}");
            }
        }
    }
}

#[test]
fn a_request_without_trailers_keeps_its_length() {
    let backend = http1_backend();
    for more in ["", "request_buffering = true\n"] {
        let (_site, kirin) = proxy(&http1(&backend), more);
        let mut client = Http2Client::connect(kirin.address());
        for length in [5, 100_000, 3_000_000] {
            let reply = client.post("/", "text/plain", &vec![b'x'; length], true);
            assert_eq!(
                reply.field("got-content-length"),
                Some(length.to_string().as_str()),
                "{more}{length}"
            );
            assert_eq!(reply.text(), format!("{length} []"));
        }
    }
}

#[test]
fn a_request_with_trailers_is_retried_with_them() {
    let backend = Backend::start(|mut connection| {
        while let Some(asked) = connection.read_request() {
            // The first connection ends at the moment of its second use.
            if connection.number == 0 && asked.target() == "/2" {
                return;
            }
            let text = format!("{} {:?}", asked.body.len(), asked.trailers);
            connection
                .send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()));
        }
    });
    let (_site, kirin) = proxy(&http1(&backend), "request_buffering = true\n");
    for target in ["/1", "/2"] {
        let request = format!(
            "PUT {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"
        );
        let (head, body) = exchange(&kirin, &request);
        assert_eq!(body, "5 [\"x-sum: 1\"]", "{head}");
    }
    assert_eq!(backend.connections(), 2);
}

#[test]
fn too_many_trailers_are_an_error_of_their_sender() {
    let backend = Backend::start(|mut connection| {
        while let Some(asked) = connection.read_request() {
            let many =
                if asked.target() == "/many" { "X-Many: 1\r\n".repeat(101) } else { String::new() };
            connection.send(format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n{many}\r\n"
            ));
        }
    });
    let (_site, kirin) = proxy(&http1(&backend), "");
    let many = "X-Many: 1\r\n".repeat(101);
    let (head, _) = exchange(
        &kirin,
        &format!(
            "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{many}\r\n"
        ),
    );
    assert!(head.starts_with("http/1.1 400"), "{head}");
    let mut map = HeaderMap::new();
    (0..101).for_each(|_| {
        map.append("x-many", "1".parse().expect("a value"));
    });
    let mut client = Http2Client::connect(kirin.address());
    assert_eq!(client.send_with_trailers("POST", "/", &[], b"hello", Some(map)).status, 400);
    // All of it has arrived at once, so nothing has been sent to the client yet.
    assert_eq!(client.get("/many").status, 502);

    let (_site, kirin) = proxy(&format!("h2c://{}", http2_backend()), "");
    let mut client = Http2Client::connect(kirin.address());
    let pending = client.begin("GET", "/many", &[]);
    assert!(client.try_finish(pending).is_err(), "an end without trailers would look whole");
    kirin.wait_for_log("more than 100 trailers");
}

/// Starts a server with this response.
fn always(content_type: &'static str, field: &'static str, body: &'static str) -> Backend {
    Backend::answering(move |_| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{field}Trailer: X-Sum\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\nX-Sum: 1\r\nETag: \"x\"\r\n\
             Content-Digest: sha-256=:x:\r\n\r\n",
            body.len()
        )
    })
}

#[test]
fn a_compressed_response_keeps_its_trailers_except_digests() {
    let text: &str = Box::leak("hello ".repeat(200).into_boxed_str());
    let backend = always("text/plain", "", text);
    let (_site, kirin) = proxy(&http1(&backend), "compress = true\n");
    let mut client = Http2Client::connect(kirin.address());
    let reply = client.request("GET", "/", &[("accept-encoding", "gzip")]);
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&reply.body[..]).read_to_string(&mut plain).expect("gzip");
    assert_eq!(
        (plain.as_str(), lines(&reply.trailers.expect("trailers"))),
        (text, vec!["x-sum: 1".to_owned()])
    );
    let reply = client.get("/");
    assert_eq!(
        lines(&reply.trailers.expect("trailers")),
        ["x-sum: 1", "etag: \"x\"", "content-digest: sha-256=:x:"]
    );
}

#[test]
fn a_built_page_has_no_trailers_and_announces_none() {
    let backend = always("text/html", "", "<!--# echo var=\"uri\" -->!");
    let (_site, kirin) = proxy(&http1(&backend), "ssi = true\n");
    let mut client = Http2Client::connect(kirin.address());
    let reply = client.get("/page");
    assert_eq!((reply.text().as_str(), reply.trailers.as_ref()), ("/page!", None));
    assert_eq!(reply.field("trailer"), None);
}

#[test]
fn a_stored_response_has_no_trailers_and_another_has() {
    let stored = always("text/plain", "Cache-Control: max-age=60\r\n", "hello");
    let (_site, kirin) = proxy(&http1(&stored), "cache = true\n");
    let mut client = Http2Client::connect(kirin.address());
    for _ in 0..3 {
        let reply = client.get("/");
        assert_eq!((reply.text().as_str(), reply.field("trailer")), ("hello", None));
        assert_eq!(
            (reply.field("x-sum"), reply.trailers.as_ref()),
            (None, None),
            "{}",
            kirin.log()
        );
    }
    assert_eq!(stored.connections(), 1);
    let unstored = always("text/plain", "Cache-Control: no-store\r\n", "hello");
    let (_site, kirin) = proxy(&http1(&unstored), "cache = true\n");
    let mut client = Http2Client::connect(kirin.address());
    for _ in 0..2 {
        let reply = client.get("/");
        assert_eq!((reply.text().as_str(), reply.field("trailer")), ("hello", Some("X-Sum")));
        assert!(reply.trailers.is_some_and(|trailers| trailers.contains_key("x-sum")));
    }
}

/// An application of ASGI whose responses have trailers.
const APPLICATION: &str = r#"
async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    headers = [(b"content-type", b"text/plain"), (b"trailer", b"X-Sum"), (b"connection", b"X-Own")]
    await send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": True})
    size = int(scope["query_string"] or b"5")
    await send({"type": "http.response.body", "body": b"x" * size})
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"%d" % size)]})
"#;

#[test]
fn the_trailers_of_an_application_reach_clients_of_both_versions() {
    let site = Site::new().with("app.py", APPLICATION);
    let kirin = Kirin::start(
        &site,
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.py\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n\
         [[route]]\npath = \"/small\"\ntry = [\"app:web\"]\ncompress = true\n",
    );
    let mut http2 = Http2Client::connect(kirin.address());
    // A whole body, one that is read ahead, and one whose end the client must wait for.
    for size in [5, 0, 300_000, 2_000_000] {
        let reply = http2.get(&format!("/?{size}"));
        assert_eq!((reply.status, reply.body.len()), (200, size));
        assert_eq!(reply.field("trailer"), Some("X-Sum"));
        assert_eq!(lines(&reply.trailers.expect("trailers")), [format!("x-sum: {size}")]);
        let mut http1 = kirin.connect();
        http1.send(format!("GET /?{size} HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n"));
        let head = http1.read_head_reply().head;
        assert!(head.to_ascii_lowercase().contains("\r\ntrailer: x-sum"), "{head}");
        let end = format!("0\r\nx-sum: {size}\r\n\r\n");
        let body = http1.read_until(end.as_bytes());
        assert!(body.len() >= size, "{}", body.len());
    }
    let reply = http2.request("GET", "/small?5000", &[("accept-encoding", "gzip")]);
    assert_eq!(reply.field("content-encoding"), Some("gzip"));
    assert_eq!(lines(&reply.trailers.expect("trailers")), ["x-sum: 5000"]);
}
