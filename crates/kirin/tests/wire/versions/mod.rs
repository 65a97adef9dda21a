//! What holds for HTTP/2 and HTTP/3 alike, by one interface of clients.

mod client;
mod field_values;
mod same_answers;

use kirin_tests::{Authority, Backend, Kirin, LeasedPort, Site, wait_for};

use crate::http2::{APP, CONFIG, large};
use client::{Answer, Field, OverHttp2, OverHttp3, Reset, SentRequest, StreamsClient};

/// A running Kirin, with a listener for HTTP/2 by prior knowledge and one for HTTP/3.
struct Served {
    kirin: Kirin,
    site: Site,
    port: LeasedPort,
}

/// The address of the listener with TLS, which must be free for UDP too.
const TLS_ADDRESS: &str = "address = \"127.0.0.1:0\"\n[listener.tls]\n";

fn serve() -> Served {
    serve_with(CONFIG, APP)
}

fn serve_app(app: &str) -> Served {
    serve_with(CONFIG, app)
}

fn serve_with(config: &str, app: &str) -> Served {
    let site = Site::new()
        .with("app.psgi", app)
        .with("public/hello.txt", "hello\n")
        .with("public/empty.txt", "")
        .with("public/large.bin", large())
        .with("public/page.html", "<p>page</p>".repeat(400));
    Authority::new("Kirin test authority").issue(&["localhost"]).write(&site, "a");
    let port = LeasedPort::lease();
    let number = port.number();
    assert!(config.contains(TLS_ADDRESS), "{config}");
    let tls = format!("address = \"127.0.0.1:{number}\"\n[listener.tls]\nhttp3 = true\n");
    let kirin = Kirin::start(&site, &config.replace(TLS_ADDRESS, &tls));
    Served { kirin, site, port }
}

impl Served {
    /// Runs a test for each version, by a connection of its own.
    fn each(&self, test: impl Fn(&str, &mut dyn StreamsClient)) {
        test("HTTP/2", &mut OverHttp2::connect(self.kirin.address()));
        let url = format!("https://127.0.0.1:{}", self.port.number());
        test("HTTP/3", &mut OverHttp3::connect(&url));
    }
}

#[test]
fn bodies_of_any_size_arrive_whole_with_and_without_a_length() {
    let served = serve();
    served.each(|version, client| {
        for size in [0, 1, 16_384, 70_000, 1_048_577, 5_000_000] {
            let body = vec![b'x'; size];
            let over_http1 = served.kirin.connect().post("/app/body", "text/plain", &body).text();
            let length = size.to_string();
            for fields in [&[("content-length", length.as_str())][..], &[]] {
                let request =
                    SentRequest { method: "POST", target: "/app/body", fields, ..ask(&body) };
                let reply = client.send(request).expect("a whole response");
                let what = format!("{version} {size} {fields:?}");
                assert_eq!((reply.status, reply.text()), (200, over_http1.clone()), "{what}");
            }
        }
        let body = vec![b'x'; 9 << 20];
        let request = SentRequest { method: "POST", target: "/app/body", ..ask(&body) };
        assert_eq!(client.send(request).expect("a whole response").status, 413, "{version}");
        assert_eq!(client.get("/hello.txt").text(), "hello\n", "{version}: the connection stays");
    });
}

/// Returns a request with this body.
fn ask(body: &[u8]) -> SentRequest<'_> {
    SentRequest { body, ..SentRequest::default() }
}

#[test]
fn a_request_that_waits_delays_no_other() {
    let served = serve();
    served.each(|version, client| {
        let go = served.site.path("go");
        let waiting: Vec<_> = (0..20).map(|_| client.begin("GET", "/app/wait")).collect();
        for _ in 0..20 {
            assert_eq!(client.get("/hello.txt").text(), "hello\n", "{version}");
        }
        std::fs::write(&go, "").expect("write");
        for number in waiting {
            let reply = client.finish(number).expect("a whole response");
            assert_eq!(reply.text(), "waited", "{version}");
        }
        std::fs::remove_file(&go).expect("the file");
    });
}

#[test]
fn informational_responses_come_first() {
    let served = serve();
    served.each(|version, client| {
        let hints = SentRequest { method: "GET", target: "/app/hints", ..SentRequest::default() };
        let link = ("link".to_owned(), "</a.css>; rel=preload".to_owned());
        assert_eq!(client.informational(hints), (vec![(103, vec![link])], 200), "{version}");
        assert_eq!(client.get("/app/hints").text(), "done", "{version}");
        // 100 comes if the body is needed, and not otherwise.
        let fields = &[("expect", "100-continue")];
        for (target, expected) in [("/app/body", vec![(100, vec![])]), ("/hello.txt", vec![])] {
            let request = SentRequest { method: "POST", target, fields, ..ask(b"hello") };
            assert_eq!(client.informational(request).0, expected, "{version} {target}");
        }
    });
}

#[test]
fn a_response_that_is_cut_is_reset_and_the_connection_stays() {
    let served = serve();
    served.each(|version, client| {
        let number = client.begin("GET", "/app/cut");
        let reset = client.finish(number).expect_err("a part is not the whole");
        assert_eq!(reset, Reset::Internal, "{version}");
        assert_eq!(client.get("/hello.txt").text(), "hello\n", "{version}");
    });
}

#[test]
fn a_response_without_content_ends_well_while_the_body_is_still_sent() {
    let backend = Backend::start(|mut connection| {
        let Some(head) = connection.read_head() else { return };
        let status = if head.starts_with("HEAD") { "200 OK" } else { "304 Not Modified" };
        connection.send(format!("HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n"));
        connection.wait_for_end();
    });
    let start = CONFIG.split("[[app]]").next().expect("the listeners");
    let config = format!(
        "{start}[[upstream]]\nname = \"far\"\nservers = [\"http://{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:far\"]\nrequest_buffering = false\n",
        backend.address()
    );
    let served = serve_with(&config, APP);
    served.each(|version, client| {
        for (method, status) in [("HEAD", 200), ("POST", 304)] {
            let number = client.begin_open(method, "/", b"a part of the body");
            let reply = client.finish(number).expect("a whole response");
            assert_eq!((reply.status, reply.body.len()), (status, 0), "{version} {method}");
        }
    });
    assert!(!served.kirin.log().contains("panic"), "{}", served.kirin.log());
}

#[test]
fn malformed_requests_are_refused_and_reach_no_application() {
    let served = serve();
    let long = format!("/{}", "x".repeat(9000));
    let many: Vec<Field<'_>> = vec![("x", "y"); 101];
    served.each(|version, client| {
        for (target, fields, status) in [
            ("/hello.txt", &[("host", "other")][..], 400),
            ("/hello.txt", &[("host", "test")], 200),
            ("/hello.txt", &[("expect", "something")], 417),
            ("/hello.txt", &many, 431),
            (&long, &[], 414),
        ] {
            let request = SentRequest { method: "GET", target, fields, ..SentRequest::default() };
            let reply = client.send(request).expect("a whole response");
            assert_eq!(reply.status, status, "{version} {target} {fields:?}");
        }
        assert_eq!(client.get("/hello.txt").text(), "hello\n", "{version}");
    });
    // Only the listener without TLS has a log.
    wait_for("the access log", || {
        let log = std::fs::read_to_string(served.site.path("access.log")).unwrap_or_default();
        log.contains("\"GET /hello.txt HTTP/2.0\" 200 6 ").then_some(())
    });
}
