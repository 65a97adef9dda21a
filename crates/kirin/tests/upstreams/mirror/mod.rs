//! `mirror` of a route, through the built program: which requests another upstream gets, how its
//! answers are compared, and that visitors do not notice it.

mod places;
mod warnings;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use kirin_tests::{
    Backend, Client, Http2Client, Kirin, LeasedPort, ReceivedRequest, Site, run_kirin, wait_for,
    wait_limit,
};

/// A gate through which threads of a server go one by one, when the test lets them.
type Gate = Mutex<mpsc::Receiver<()>>;

struct Mirrored {
    site: Site,
    kirin: Kirin,
}

fn config(place: SocketAddr, mirror: SocketAddr, keys: &str) -> String {
    format!(
        "threads = 1\nmetrics = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[upstream]]\nname = \"api\"\nservers = [\"{place}\"]\n\
         [[upstream]]\nname = \"next\"\nservers = [\"{mirror}\"]\nmax_failures = 1000\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n\
         mirror = {{ to = \"proxy:next\", {keys} }}\n"
    )
}

fn serve(place: &Backend, mirror: SocketAddr, keys: &str) -> Mirrored {
    Mirrored::start(Site::new(), &config(place.address(), mirror, keys))
}

impl Mirrored {
    fn start(site: Site, config: &str) -> Self {
        let kirin = Kirin::start(&site, config);
        Self { site, kirin }
    }

    /// Returns the values of all metrics of mirrors, as `NAME{LABELS}`.
    fn metrics(&self) -> String {
        let address = wait_for("the address of metrics", || {
            let log = self.kirin.log();
            let (_, rest) = log.split_once("metrics on http://")?;
            rest.split_once('/')?.0.parse().ok()
        });
        let mut client = Client::connect(address);
        client.send("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        let text = client.read_reply().text();
        let lines = text.lines().filter(|line| line.starts_with("kirin_mirror"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Returns the value of the series of the route `/`.
    fn value(&self, name: &str, label: &str) -> Option<u64> {
        let series = format!("kirin_mirror_{name}{{site=\"\",route=\"/\"{label}}} ");
        let text = self.metrics();
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    }

    /// Waits until so many copies have had this result.
    fn wait_for_result(&self, result: &str, count: u64) {
        self.wait_for_value("copies_total", &format!(",result=\"{result}\""), count);
    }

    /// Waits until so many copies were not sent for this reason.
    fn wait_for_skips(&self, reason: &str, count: u64) {
        self.wait_for_value("copies_skipped_total", &format!(",reason=\"{reason}\""), count);
    }

    fn wait_for_value(&self, name: &str, label: &str, count: u64) {
        let what = fmt::from_fn(|f| write!(f, "{count} of {name}{label}:\n{}", self.metrics()));
        wait_for(&what, || (self.value(name, label)? == count).then_some(()));
    }

    /// Waits until nothing is left of any copy.
    fn wait_for_rest(&self) {
        self.wait_for_value("in_flight", "", 0);
        self.wait_for_value("held_bytes", "", 0);
    }
}

fn reply(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn html(body: &str) -> String {
    reply("200 OK", "Content-Type: text/html\r\n", body)
}

/// Returns a server with a page for each path, and what it was asked.
fn pages(
    page: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static,
) -> (Backend, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let asked = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
    let record = Arc::clone(&asked);
    let backend = Backend::answering(move |request| {
        let answer = page(request);
        let ReceivedRequest { head, body, trailers } = request;
        let (head, body, trailers) = (head.clone(), body.clone(), trailers.clone());
        record.lock().expect("a list").push(ReceivedRequest { head, body, trailers });
        answer
    });
    (backend, asked)
}

#[test]
fn answers_are_compared_by_status_length_and_body() {
    let (place, _) = pages(|asked| match asked.target() {
        "/redirect" => reply("302 Found", "Location: /a\r\n", ""),
        "/coded" => reply("200 OK", "Content-Encoding: gzip\r\n", "abc"),
        "/chunks" => {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
                .into()
        }
        _ => html("abc"),
    });
    let (mirror, asked) = pages(|asked| match asked.target() {
        "/status" => reply("500 Oh", "", "abc"),
        "/length" => html("abcd"),
        "/body" => html("abd"),
        "/redirect" => reply("302 Found", "Location: /b\r\n", ""),
        "/coded" => reply("200 OK", "Content-Encoding: gzip\r\n", "abd"),
        _ => html("abc"),
    });
    let mirrored = serve(&place, mirror.address(), "");
    let mut client = mirrored.kirin.connect();
    for (target, result, count) in [
        ("/a?b=%2e", "equal", 1),
        ("/chunks", "equal", 2),
        ("/redirect", "equal", 3),
        ("/status", "status", 1),
        ("/length", "length", 1),
        ("/body", "body", 1),
        ("/coded", "coded", 1),
    ] {
        let fields = "Cookie: x=1\r\nX-Own: y\r\nKirin-Other: 1\r\nConnection: kirin-mirror\r\n\
                      If-None-Match: \"1\"\r\n";
        let answer = client.request("GET", target, fields);
        assert!(answer.status < 400 && answer.field("x-mirror").is_none(), "{}", answer.head);
        mirrored.wait_for_result(result, count);
    }
    // The answers to HEAD have lengths only.
    assert_eq!(client.request("HEAD", "/length", "").status, 200);
    mirrored.wait_for_result("length", 2);
    assert_eq!(client.request("HEAD", "/body", "").status, 200);
    mirrored.wait_for_result("equal", 4);
    let asked = asked.lock().expect("a list");
    let first = &asked[0];
    assert!(first.head.starts_with("GET /a?b=%2e HTTP/1.1\r\nHost: test\r\n"), "{}", first.head);
    for (name, value) in [
        ("kirin-mirror", Some("1")),
        ("cookie", Some("x=1")),
        ("x-own", Some("y")),
        ("x-forwarded-for", Some("127.0.0.1")),
        ("if-none-match", None),
    ] {
        assert_eq!(first.field(name), value, "{name}: {}", first.head);
    }
    assert_eq!(asked.len(), 9);
    let log = mirrored.kirin.log();
    let line = log.lines().find(|line| line.contains("the answers differ (status)"));
    let line = line.unwrap_or_else(|| panic!("no line about the difference: {log}"));
    for part in ["/status", "200", "500", "proxy:next", "request_id="] {
        assert!(line.contains(part), "{part}: {line}");
    }
    mirrored.wait_for_rest();
}

#[test]
fn ignored_parts_may_differ() {
    let count = AtomicUsize::new(9);
    let page = Arc::new(move |end: &str| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        html(&format!("<p>\n<input value=\"{number}\" name=token>\nat {number}:00\n{end}"))
    });
    let other = Arc::clone(&page);
    let place = Backend::answering(move |_| page("x"));
    let mirror =
        Backend::answering(move |asked| other(if asked.target() == "/y" { "y" } else { "x" }));
    let ignore = r#"ignore = ['value="[0-9]+"', '^at .*$']"#;
    let mirrored = serve(&place, mirror.address(), ignore);
    let mut client = mirrored.kirin.connect();
    assert_eq!(client.get("/").status, 200);
    mirrored.wait_for_result("equal", 1);
    assert_eq!(client.get("/y").status, 200);
    mirrored.wait_for_result("body", 1);
}

#[test]
fn a_copy_is_sent_after_the_visitor_has_the_answer() {
    let events = Arc::<Mutex<Vec<&str>>>::default();
    let (open, gate) = mpsc::channel();
    let gate: Gate = Mutex::new(gate);
    let of_place = Arc::clone(&events);
    let place = Backend::start(move |mut connection| {
        while connection.read_request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
            let _ = gate.lock().expect("a gate").recv_timeout(wait_limit());
            of_place.lock().expect("a list").push("the place ends");
            connection.send("cd");
        }
    });
    let (open_mirror, mirror_gate) = mpsc::channel();
    let mirror_gate: Gate = Mutex::new(mirror_gate);
    let of_mirror = Arc::clone(&events);
    let mirror = Backend::answering(move |_| {
        of_mirror.lock().expect("a list").push("the mirror is asked");
        let _ = mirror_gate.lock().expect("a gate").recv_timeout(wait_limit());
        reply("200 OK", "", "abcd")
    });
    let mirrored = serve(&place, mirror.address(), "");
    let mut client = mirrored.kirin.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.read_until(b"\r\n\r\nab");
    assert_eq!(mirrored.value("in_flight", ""), Some(0));
    assert!(mirrored.value("held_bytes", "") > Some(0), "{}", mirrored.metrics());
    open.send(()).expect("a gate");
    client.read_exactly(b"cd");
    // The next request of the same visitor is answered while the mirror has the first one.
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    open.send(()).expect("a gate");
    assert_eq!(client.read_reply().text(), "abcd");
    mirrored.wait_for_value("in_flight", "", 2);
    assert_eq!(events.lock().expect("a list")[0], "the place ends");
    for _ in 0..2 {
        open_mirror.send(()).expect("a gate");
    }
    mirrored.wait_for_result("equal", 2);
    mirrored.wait_for_rest();
}

#[test]
fn visitors_do_not_notice_a_dead_mirror() {
    let place = Backend::answering(|_| html("abc"));
    let port = LeasedPort::lease();
    let mirrored = serve(&place, port.address(), "");
    let mut client = mirrored.kirin.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/").text(), "abc");
    }
    mirrored.wait_for_result("failed", 5);
    mirrored.wait_for_rest();
}

#[test]
fn copies_that_get_no_answer_are_few() {
    let place = Backend::answering(|_| html("abc"));
    let (close, gate) = mpsc::channel::<()>();
    let gate: Gate = Mutex::new(gate);
    let mirror = Backend::start(move |mut connection| {
        let _ = connection.read_head();
        // It ends when the test drops the sender.
        let _ = gate.lock().expect("a gate").recv_timeout(wait_limit());
    });
    let mirrored = serve(&place, mirror.address(), "");
    let mut client = mirrored.kirin.connect();
    for _ in 0..40 {
        assert_eq!(client.get("/").text(), "abc");
    }
    mirrored.wait_for_skips("busy", 8);
    assert_eq!(mirrored.value("in_flight", ""), Some(32), "{}", mirrored.metrics());
    drop(close);
    mirrored.wait_for_result("failed", 32);
    mirrored.wait_for_rest();
    assert_eq!(client.get("/").text(), "abc");
}

#[test]
fn bodies_of_requests_are_copied_if_the_methods_say_so() {
    let echo = |asked: &ReceivedRequest| {
        html(&format!("{} {}", asked.body.len(), String::from_utf8_lossy(&asked.body)))
    };
    let (place, _) = pages(echo);
    let (mirror, asked) = pages(echo);
    let mirrored = serve(&place, mirror.address(), "methods = [\"POST\", \"PUT\"]");
    let mut client = mirrored.kirin.connect();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.post("/", "text/plain", b"hello").text(), "5 hello");
    mirrored.wait_for_result("equal", 1);
    client.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("3\r\nabc\r\n");
    client.send("2\r\nde\r\n0\r\n\r\n");
    assert_eq!(client.read_reply().text(), "5 abcde");
    mirrored.wait_for_result("equal", 2);
    let small = vec![b'x'; 64 * 1024];
    assert_eq!(client.post("/", "text/plain", &small).status, 200);
    mirrored.wait_for_result("equal", 3);
    assert_eq!(client.post("/", "text/plain", &[&small[..], b"y"].concat()).status, 200);
    mirrored.wait_for_skips("request_body", 1);
    client.send("PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send([b"10001\r\n", &small[..], b"y\r\n0\r\n\r\n"].concat());
    assert_eq!(client.read_reply().status, 200);
    mirrored.wait_for_skips("request_body", 2);
    let mut http2 = Http2Client::connect(mirrored.kirin.address());
    for (body, has_length, count) in [(&b"two"[..], true, 4), (b"three", false, 5)] {
        assert_eq!(http2.post("/", "text/plain", body, has_length).status, 200);
        // Two copies may reach the mirror in another order.
        mirrored.wait_for_result("equal", count);
    }
    let asked = asked.lock().expect("a list");
    let bodies: Vec<&[u8]> = asked.iter().map(|asked| &asked.body[..]).collect();
    let expected = [b"hello", b"abcde", &small[..], b"two", b"three"];
    let lengths: Vec<_> = bodies.iter().map(|body| body.len()).collect();
    assert!(bodies == expected, "{lengths:?}");
    assert!(asked.iter().all(|asked| asked.field("kirin-mirror") == Some("1")));
    mirrored.wait_for_rest();
}

#[test]
fn requests_over_http2_are_copied() {
    let (place, _) = pages(|_| html("abc"));
    let (mirror, asked) = pages(|_| html("abc"));
    let mirrored = serve(&place, mirror.address(), "");
    let mut client = Http2Client::connect(mirrored.kirin.address());
    for count in 1..=3 {
        assert_eq!(client.get("/a").text(), "abc");
        mirrored.wait_for_result("equal", count);
    }
    assert!(asked.lock().expect("a list").iter().all(|asked| asked.target() == "/a"));
    mirrored.wait_for_rest();
}

#[test]
fn the_share_says_how_many_requests_are_copied() {
    for (share, least, most) in [("0%", 0, 0), ("50%", 40, 160), ("100%", 200, 200)] {
        let place = Backend::answering(|_| html("abc"));
        let (mirror, asked) = pages(|_| html("abc"));
        let mirrored = serve(&place, mirror.address(), &format!("share = \"{share}\""));
        let mut client = mirrored.kirin.connect();
        for _ in 0..200 {
            assert_eq!(client.get("/").text(), "abc");
            mirrored.wait_for_few_in_flight();
        }
        mirrored.wait_for_rest();
        let copied = asked.lock().expect("a list").len();
        // 50 %: eight standard deviations.
        assert!((least..=most).contains(&copied), "{share}: {copied}");
    }
}

impl Mirrored {
    /// Lets copies end before the next request, so that none is skipped.
    fn wait_for_few_in_flight(&self) {
        wait_for("copies to end", || (self.value("in_flight", "")? < 16).then_some(()));
    }
}

#[test]
fn requests_without_a_comparable_answer_are_not_copied() {
    let (place, _) = pages(|asked| match asked.target() {
        "/same" => "HTTP/1.1 304 Not Modified\r\n\r\n".into(),
        _ => html("abc"),
    });
    let (mirror, asked) = pages(|_| html("abc"));
    let mirrored = serve(&place, mirror.address(), "");
    let mut client = mirrored.kirin.connect();
    assert_eq!(client.get("/same").status, 304);
    mirrored.wait_for_skips("not_modified", 1);
    for fields in ["Range: bytes=0-0\r\n", "Kirin-Mirror: 1\r\n"] {
        assert_eq!(client.request("GET", "/", fields).status, 200);
    }
    assert_eq!(client.get("/last").status, 200);
    mirrored.wait_for_result("equal", 1);
    let asked = asked.lock().expect("a list");
    assert_eq!(asked.iter().map(ReceivedRequest::target).collect::<Vec<_>>(), ["/last"]);
}

#[test]
fn a_visitor_who_leaves_is_not_followed_by_a_copy() {
    let (arrived, arrivals) = mpsc::channel();
    let arrived = Mutex::new(arrived);
    let (go_on, gate) = mpsc::channel();
    let gate: Gate = Mutex::new(gate);
    let place = Backend::start(move |mut connection| {
        while let Some(asked) = connection.read_request() {
            let is_half = asked.target() == "/half";
            if is_half {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nab");
            }
            let _ = arrived.lock().expect("a channel").send(());
            if is_half {
                // Kirin learns of the end of the client when it writes.
                let _ = gate.lock().expect("a gate").recv_timeout(wait_limit());
                connection.send([b'x'; 500_000]);
            }
            connection.wait_for_end();
        }
    });
    let (mirror, asked) = pages(|_| html("abc"));
    let mirrored = serve(&place, mirror.address(), "");
    for (target, count) in [("/half", 1), ("/none", 2)] {
        let mut client = mirrored.kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        if target == "/half" {
            client.read_until(b"\r\n\r\nab");
        }
        arrivals.recv_timeout(wait_limit()).expect("a request");
        client.reset();
        go_on.send(()).expect("a gate");
        mirrored.wait_for_skips("cut", count);
    }
    mirrored.wait_for_rest();
    assert!(asked.lock().expect("a list").is_empty());
}

#[test]
fn the_memory_of_copies_is_bounded() {
    const VISITORS: usize = 150;
    let (open, gate) = mpsc::channel();
    let gate: Gate = Mutex::new(gate);
    let count = Arc::new(AtomicUsize::new(0));
    let arrived = Arc::clone(&count);
    let place = Backend::answering(move |_| {
        arrived.fetch_add(1, Ordering::SeqCst);
        let _ = gate.lock().expect("a gate").recv_timeout(wait_limit());
        html("abc")
    });
    let mirror = Backend::answering(|_| html("abc"));
    let mirrored = serve(&place, mirror.address(), "methods = [\"POST\"]");
    let body = vec![b'x'; 64 * 1024];
    let head = format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut clients: Vec<Client> = (0..VISITORS).map(|_| mirrored.kirin.connect()).collect();
    for client in &mut clients {
        client.send([head.as_bytes(), &body].concat());
    }
    wait_for("all requests", || (count.load(Ordering::SeqCst) == VISITORS).then_some(()));
    let (held, skipped) = (
        mirrored.value("held_bytes", "").expect("a value"),
        mirrored.value("copies_skipped_total", ",reason=\"memory\"").expect("a value"),
    );
    // 8 MB hold 124 copies with bodies of 64 KB.
    assert!(held > 7 << 20 && held <= 8 << 20, "{held}");
    assert!((20..40).contains(&skipped), "{skipped}");
    for _ in 0..VISITORS {
        open.send(()).expect("a gate");
    }
    for client in &mut clients {
        assert_eq!(client.read_reply().text(), "abc");
    }
    mirrored.wait_for_rest();
}

#[test]
fn a_reload_may_take_the_mirror_away_from_a_copy() {
    let place = Backend::answering(|_| html("abc"));
    let (open, gate) = mpsc::channel();
    let gate: Gate = Mutex::new(gate);
    let mirror = Backend::answering(move |_| {
        let _ = gate.lock().expect("a gate").recv_timeout(wait_limit());
        html("abc")
    });
    let mirrored = serve(&place, mirror.address(), "");
    let reload = |config: &str| {
        std::fs::write(mirrored.site.path("kirin.toml"), config).expect("kirin.toml");
        let output = run_kirin(&mirrored.site, &["reload"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let mut client = mirrored.kirin.connect();
    assert_eq!(client.get("/").text(), "abc");
    mirrored.wait_for_value("in_flight", "", 1);
    let with_mirror = config(place.address(), mirror.address(), "");
    let lines = with_mirror.split_inclusive('\n').filter(|line| !line.starts_with("mirror"));
    let without: String = lines.collect();
    let without = without.replace("name = \"next\"", "name = \"other\"");
    reload(&without);
    assert_eq!(mirrored.metrics(), "");
    assert_eq!(client.get("/").text(), "abc");
    open.send(()).expect("a gate");
    // The counters of a mirror that was away begin again.
    reload(&with_mirror);
    assert_eq!(client.get("/").text(), "abc");
    open.send(()).expect("a gate");
    mirrored.wait_for_result("equal", 1);
    // Those of a mirror that stays go on.
    reload(&with_mirror.replace("\"proxy:next\", ", "\"proxy:next\", share = \"99.999%\""));
    mirrored.wait_for_result("equal", 1);
    assert_eq!(client.get("/").text(), "abc");
    open.send(()).expect("a gate");
    mirrored.wait_for_result("equal", 2);
    assert!(!mirrored.kirin.log().contains("panic"), "{}", mirrored.kirin.log());
}

#[test]
fn explain_names_the_mirror() {
    let place = Backend::answering(|_| html("abc"));
    let mirrored = serve(&place, place.address(), "share = \"10%\"");
    let output = run_kirin(&mirrored.site, &["explain", "http://test/a"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "proxy:next gets a copy of 10% of the GET requests that reach code";
    assert!(text.contains("mirror") && text.contains(expected), "{text}");
}
