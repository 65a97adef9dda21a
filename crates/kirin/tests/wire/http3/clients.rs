//! What clients of HTTP/3 do that mean well.

use std::sync::mpsc;
use std::time::Duration;

use kirin_tests::wait_limit;

use super::*;

#[test]
fn gets_heads_ranges_and_conditions_are_answered_as_over_http_1() {
    let served = serve(CONFIG);
    let mut client = served.connect();
    let reply = client.get("/hello.txt");
    assert_eq!((reply.status(), reply.text()), (200, "hello\n"), "{reply:?}");
    assert_eq!(reply.field("content-length"), Some("6"), "{reply:?}");
    assert_eq!(reply.field("alt-svc"), None, "it speaks HTTP/3 already: {reply:?}");
    let tag = reply.field("etag").expect("an ETag").to_owned();
    let reply = client.request("GET", "/hello.txt", &[("if-none-match", &tag)]);
    assert_eq!((reply.status(), reply.length()), (304, 0), "{reply:?}");
    let reply = client.request("HEAD", "/hello.txt", &[]);
    assert_eq!((reply.status(), reply.length()), (200, 0), "{reply:?}");
    assert_eq!(reply.field("content-length"), Some("6"), "{reply:?}");
    let reply = client.request("GET", "/hello.txt", &[("range", "bytes=1-3")]);
    assert_eq!((reply.status(), reply.text()), (206, "ell"), "{reply:?}");
    assert_eq!(reply.field("content-range"), Some("bytes 1-3/6"), "{reply:?}");
    assert_eq!(client.get("/none.txt").status(), 404);
    served.wait_for_line("\"GET /none.txt HTTP/3.0\" 404 ");
    served.wait_for_line("\"HEAD /hello.txt HTTP/3.0\" 200 ");
}

#[test]
fn the_access_log_has_the_bytes_of_each_body() {
    let format =
        "access_log = { path = \"access.log\", format = \"%m %U %s %B %{Content-Length}o\" }";
    let served = serve(&CONFIG.replace("access_log = \"access.log\"", format));
    let asked = |client: &mut Http3Client, method: &str, path: &str, bytes: u64, length: u64| {
        let reply = client.request(method, path, &[]);
        assert_eq!((reply.status(), reply.length()), (200, bytes), "{reply:?}");
        served.wait_for_line(&format!("{method} {path} 200 {bytes} {length}\n"));
    };
    let mut client = served.connect();
    asked(&mut client, "GET", "/hello.txt", 6, 6);
    asked(&mut client, "HEAD", "/hello.txt", 0, 6);
    asked(&mut client, "GET", "/large.bin", 3_000_000, 3_000_000);
    asked(&mut client, "GET", "/app/much", 500_000, 500_000);
    // Its window is smaller than a file that is sent at once to others.
    let mut narrow = Http3Client::start();
    let options = json!({ "max_stream_data": 1000 });
    narrow.ask(&json!({ "do": "connect", "url": served.url(), "options": options }));
    asked(&mut narrow, "GET", "/page.html", 4400, 4400);
    asked(&mut narrow, "GET", "/app/much", 500_000, 500_000);
}

#[test]
fn many_requests_at_once_have_their_own_answers() {
    let served = serve(CONFIG);
    let mut client = served.connect();
    let path = |number: usize| ["/hello.txt", "/page.html", "/app/protocol"][number % 3];
    let streams: Vec<u64> = (0..100).map(|number| client.begin(path(number), json!({}))).collect();
    let page = "<p>page</p>".repeat(400);
    for (number, reply) in client.finish(&streams).iter().enumerate() {
        let expected = ["hello\n", &page, "HTTP/3"][number % 3];
        assert!(reply.text().starts_with(expected), "{}: {reply:?}", path(number));
        assert!(reply.status() == 200 && reply.is_complete(), "{}: {reply:?}", path(number));
    }
}

#[test]
fn large_bodies_arrive_whole_in_both_directions() {
    let served = serve(CONFIG);
    let mut client = served.connect();
    let file = served.site.path("public/large.bin");
    let sent = client.ask(&json!({
        "do": "request", "method": "POST", "path": "/app/body", "file": file
    }));
    let stream = sent["stream"].as_u64().expect("a stream");
    let reply = client.finish(&[stream]).remove(0);
    let expected = format!("3000000 {}", sent["md5"].as_str().expect("a hash"));
    assert_eq!((reply.status(), reply.text()), (200, &*expected), "{reply:?}");
    // The hash of what was sent is that of the file.
    let streams: Vec<u64> = (0..3).map(|_| client.begin("/large.bin", json!({}))).collect();
    for reply in client.finish(&streams) {
        assert_eq!(reply.length(), 3_000_000);
        assert_eq!(sent["sha256"], reply.sha256());
    }
    for size in [0, 1, 16_384, 70_000, 1_048_577] {
        let command = json!({
            "do": "request", "method": "POST", "path": "/app/body", "size": size,
            "fields": [["content-length", size.to_string()]]
        });
        let sent = client.ask(&command);
        let reply = client.finish(&[sent["stream"].as_u64().expect("a stream")]).remove(0);
        let expected = format!("{size} {}", sent["md5"].as_str().expect("a hash"));
        assert_eq!(reply.text(), expected, "{reply:?}");
    }
    let reply = Http3Reply(client.ask(&json!({
        "do": "ask", "method": "POST", "path": "/app/body", "size": 9 << 20
    })));
    assert_eq!(reply.status(), 413, "{reply:?}");
    assert_eq!(client.get("/hello.txt").text(), "hello\n", "the connection stays");
}

#[test]
fn applications_see_the_protocol_and_the_fields() {
    let served = serve(CONFIG);
    let fields = [("x-a", "b"), ("cookie", "a=b"), ("cookie", "c=d")];
    let reply = served.connect().request("GET", "/app/env?x=y", &fields);
    let authority = format!("HTTP_HOST=127.0.0.1:{}\n", served.port.number());
    for line in [
        "psgi.url_scheme=https\n",
        "SERVER_PROTOCOL=HTTP/3\n",
        "REQUEST_METHOD=GET\n",
        "REQUEST_URI=/app/env?x=y\n",
        "HTTP_X_A=b\n",
        "HTTP_COOKIE=a=b; c=d\n",
        "REMOTE_ADDR=127.0.0.1\n",
        &authority,
    ] {
        assert!(reply.text().contains(line), "{line}: {}", reply.text());
    }
}

/// Starts Kirin with a server behind all of its paths.
fn serve_in_front_of(backend: &Backend, more: &str) -> Served {
    serve(&in_front_of(CONFIG, backend, more))
}

/// Returns the listeners of a configuration with a server behind all paths.
pub fn in_front_of(config: &str, backend: &Backend, more: &str) -> String {
    let start = config.split("[[app]]").next().expect("the listener");
    format!(
        "{start}[[upstream]]\nname = \"far\"\nservers = [\"http://{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:far\"]\n{more}",
        backend.address()
    )
}

#[test]
fn trailers_pass_in_both_directions() {
    let backend = Backend::answering(|asked| {
        let text = format!("{} {:?}", asked.body.len(), asked.trailers);
        format!(
            "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{text}\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n",
            text.len()
        )
    });
    for more in ["", "request_buffering = true\n"] {
        let served = serve_in_front_of(&backend, more);
        let mut client = served.connect();
        for size in [0, 5, 100_000] {
            let reply = Http3Reply(client.ask(&json!({
                "do": "ask", "method": "POST", "size": size, "trailers": [["x-b", "c"]]
            })));
            let text = format!("{size} [\"x-b: c\"]");
            assert_eq!((reply.status(), reply.text()), (200, &*text), "{more} {reply:?}");
            let trailers = json!([["x-sum", "1"], ["x-sum", "2"]]);
            assert_eq!(reply.0["trailers"], trailers, "{more} {reply:?}");
        }
    }
}

#[test]
fn a_stream_of_messages_passes_in_both_directions_before_it_ends() {
    let backend = Backend::start(|mut connection| {
        let Some(_head) = connection.read_head() else { return };
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        // Each message of 4 bytes is a chunk, and comes back before the next one is sent.
        while let Some(chunk) = connection.take("4\r\n0000\r\n".len()) {
            if !connection.send(chunk) {
                return;
            }
        }
    });
    let served = serve_in_front_of(&backend, "request_buffering = false\n");
    let mut client = served.connect();
    let stream = client.begin("/talk", json!({ "method": "POST", "end": false }));
    for number in 1..=20 {
        let text = format!("{number:04}");
        client.ask(&json!({ "do": "data", "stream": stream, "text": text }));
        let look = json!({ "do": "look", "stream": stream, "bytes": 4 * number });
        let reply = Http3Reply(client.ask(&look));
        assert!(reply.text().ends_with(&text) && !reply.is_complete(), "{reply:?}");
    }
}

#[test]
fn websockets_carry_messages_of_any_size() {
    let served = serve(CONFIG);
    let mut client = served.connect();
    let settings = client.ask(&json!({ "do": "settings" }));
    assert_eq!(settings["settings"]["8"], 1, "extended CONNECT (RFC 9220): {settings}");
    let socket = client.ask(&json!({
        "do": "websocket", "path": "/app/echo", "sizes": [0, 1, 125, 126, 65_535, 65_536, 1_000_000]
    }));
    assert_eq!(socket["status"], 200, "{socket}");
    let refused = client.ask(&json!({ "do": "websocket", "path": "/app/protocol" }));
    assert_ne!(refused["status"], 101, "{refused}");
    assert_eq!(client.get("/hello.txt").text(), "hello\n", "the connection stays");
}

/// Sends a GET by curl, and returns the head of the response.
pub fn head_by_curl(port: &LeasedPort, version: &str) -> String {
    let mut command = Command::new("curl");
    command.args(["-sS", "-k", version, "-D", "-", "-o", "/dev/null"]);
    let output = run(command.arg(format!("https://127.0.0.1:{}/hello.txt", port.number())));
    assert!(output.status.success(), "{}", described(&command, &output));
    String::from_utf8_lossy(&output.stdout).to_ascii_lowercase()
}

#[test]
fn responses_over_http_1_and_2_say_where_http_3_is() {
    let served = serve(CONFIG);
    let expected = format!("\r\nalt-svc: h3=\":{}\"; ma=86400\r\n", served.port.number());
    for version in ["--http1.1", "--http2"] {
        let head = head_by_curl(&served.port, version);
        assert!(head.contains(&expected), "{version}: {head}");
    }
    let own = serve(&format!("{CONFIG}headers = {{ Alt-Svc = 'clear' }}\n"));
    let head = head_by_curl(&own.port, "--http2");
    assert!(head.contains("\r\nalt-svc: clear\r\n") && !head.contains("h3="), "{head}");
    let explained = |served: &Served| said(&served.site, &["explain", &served.url()]).1;
    let text = explained(&served);
    assert!(text.contains("(https by HTTP/1.1, HTTP/2 and HTTP/3)\n"), "{text}");
    let without = serve(&CONFIG.replace("http3 = true", "http3 = false"));
    let text = explained(&without);
    assert!(text.contains("(https by HTTP/1.1 and HTTP/2)\n"), "{text}");
    let head = head_by_curl(&without.port, "--http1.1");
    assert!(!head.contains("alt-svc"), "{head}");
}

#[test]
fn the_metrics_count_connections_and_streams() {
    let served = serve(&format!("{CONFIG}{ADMIN}"));
    let mut client = served.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/hello.txt").status(), 200);
    }
    let port = served.port.number();
    let listener = format!("{{listener=\"127.0.0.1:{port}\"");
    assert_eq!(served.metric(&format!("kirin_http3_connections_total{listener}")), 1);
    assert_eq!(served.metric(&format!("kirin_http3_streams_total{listener}")), 5);
    let open = format!("kirin_connections{listener},state=\"http3\"}}");
    wait_for("the number of open connections", || (served.metric(&open) == 1).then_some(()));
}

#[test]
fn go_quic_gets_the_answers_it_expects() {
    let served = serve(CONFIG);
    let mut command = Command::new(installed("go_client"));
    command.arg(served.url()).arg(served.site.path("public/large.bin"));
    let output = run(&mut command);
    let is_ok = output.status.success() && output.stdout.ends_with(b"OK\n");
    assert!(is_ok, "{}", described(&command, &output));
}

/// Connects with a certificate of the client, or without, and asks for what an application sees.
fn ask_with(served: &Served, certificate: Option<&Issued>) -> Result<String, String> {
    let mut connect = json!({ "do": "connect", "url": served.url() });
    if let Some(issued) = certificate {
        issued.write(&served.site, "client");
        let files = ["client.pem", "client.key"].map(|name| served.site.path(name));
        connect["certificate"] = json!(files);
    }
    let mut client = Http3Client::start();
    client.try_ask(&connect)?;
    let answer = client.try_ask(&json!({ "do": "ask", "path": "/app/env" }))?;
    Ok(Http3Reply(answer).text().to_owned())
}

#[test]
fn certificates_of_clients_are_verified() {
    let clients = Authority::new("Clients");
    for (verify, anonymous) in [("optional", true), ("required", false)] {
        let served = serve(CONFIG);
        std::fs::write(served.site.path("clients.pem"), clients.pem()).expect("a file");
        let keys = format!("client_ca = \"clients.pem\"\nclient_verify = \"{verify}\"\nhttp3");
        let config = CONFIG.replace("http3", &keys);
        let Served { kirin, site, port, authority } = served;
        drop(kirin);
        let kirin = Kirin::start(&site, &with_port(&config, &port));
        let served = Served { kirin, site, port, authority };
        let known = ask_with(&served, Some(&clients.issue(&["alice"])));
        let known = known.unwrap_or_else(|error| panic!("{verify}: {error}"));
        assert!(known.contains("SSL_CLIENT_VERIFY=SUCCESS\n"), "{verify}: {known}");
        assert!(known.contains("SSL_CLIENT_S_DN=CN=alice,O=Kirin\\, tests\n"), "{known}");
        let stranger = ask_with(&served, Some(&served.authority.issue(&["eve"])));
        assert!(stranger.is_err(), "{verify}: a stranger is turned away: {stranger:?}");
        match ask_with(&served, None) {
            Ok(seen) => {
                assert!(anonymous && seen.contains("SSL_CLIENT_VERIFY=NONE\n"), "{verify}: {seen}");
            }
            Err(error) => assert!(!anonymous, "{verify}: {error}"),
        }
    }
}

#[test]
fn an_application_and_a_server_learn_that_the_client_has_gone() {
    let served = serve(CONFIG);
    for command in ["cancel", "stop", "close"] {
        let mut client = served.connect();
        let stream = client.begin("/app/endless", json!({}));
        client.ask(&json!({ "do": "look", "stream": stream, "bytes": 1000 }));
        client.ask(&json!({ "do": command, "stream": stream }));
        served.site.wait_for_files("gone.", 1);
        std::fs::remove_file(served.site.path("gone.1")).expect("the file");
    }
    let (tell, told) = mpsc::channel();
    let backend = Backend::start(move |mut connection| {
        let Some(_head) = connection.read_head() else { return };
        connection.wait_for_end();
        let _ = tell.send(());
    });
    let served = serve_in_front_of(&backend, "");
    let mut client = served.connect();
    let stream = client.begin("/", json!({}));
    wait_for("the request", || (backend.connections() == 1).then_some(()));
    client.ask(&json!({ "do": "cancel", "stream": stream }));
    // The end comes before the server would end it by itself.
    told.recv_timeout(wait_limit() - Duration::from_secs(1)).expect("the server learns of it");
    served.wait_for_line("\"GET / HTTP/3.0\" 499 ");
}

/// Returns how many bytes of another response there are when that of the first of two requests has
/// come. Each is for 400 KB,
/// which QUIC takes at once, and has a `priority`.
fn beside(served: &Served, first: Option<&str>, second: Option<&str>) -> (u64, u64) {
    let mut client = served.connect();
    let mut begin = |priority: Option<&str>| {
        let fields: Vec<_> = priority.map(|value| ["priority", value]).into_iter().collect();
        client.begin("/middle.bin", json!({ "fields": fields }))
    };
    let (first, second) = (begin(first), begin(second));
    let length = |client: &mut Http3Client, stream| {
        client.ask(&json!({ "do": "look", "stream": stream }))["length"].as_u64().expect("a length")
    };
    client.ask(&json!({ "do": "first_end", "streams": [first, second] }));
    let lengths = (length(&mut client, first), length(&mut client, second));
    for reply in client.finish(&[first, second]) {
        assert_eq!(reply.length(), 400_000, "{reply:?}");
    }
    lengths
}

#[test]
fn a_more_urgent_response_goes_first() {
    let served = serve(CONFIG);
    for (first, second) in [(Some("u=5"), Some("u=1")), (Some("u=6"), None), (None, Some("u=2"))] {
        let (first_bytes, second_bytes) = beside(&served, first, second);
        assert_eq!(second_bytes, 400_000, "{first:?}, {second:?}");
        assert!(first_bytes < 350_000, "{first:?}, {second:?}: {first_bytes}");
    }
}

#[test]
fn a_response_that_is_not_incremental_is_sent_as_a_whole() {
    let served = serve(CONFIG);
    let (first, second) = beside(&served, Some("u=3"), Some("u=3"));
    assert_eq!(first, 400_000);
    assert!(second < 100_000, "{second}");
    let (first, second) = beside(&served, Some("u=3, i"), Some("u=3, i"));
    assert!(first.min(second) > 200_000, "they share: {first}, {second}");
}
