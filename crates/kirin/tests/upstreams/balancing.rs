//! The choice of a server of an upstream, through the built program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kirin_tests::{Backend, Kirin, LeasedPort, ReceivedRequest, Site, wait_for};

fn proxy(servers: &str, upstream: &str) -> (Site, Kirin) {
    let site = Site::new();
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"api\"\nservers = [{servers}]\n\
         {upstream}\n[[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\nrequest_buffering = true\n"
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

/// Formats the addresses for `servers`.
fn list(backends: &[&Backend]) -> String {
    let quoted: Vec<String> =
        backends.iter().map(|backend| format!("\"{}\"", backend.address())).collect();
    quoted.join(", ")
}

/// Starts a server that answers with its name.
fn named(name: &'static str) -> Backend {
    Backend::answering(move |_| ok(name))
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Starts a server that ends each connection after it has read a request. Also returns the number
/// of requests that it has read.
fn ending() -> (Backend, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let backend = Backend::start(move |mut connection| {
        if connection.read_request().is_some() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (backend, requests)
}

/// Returns the bodies of `count` responses, sorted.
fn answers(kirin: &Kirin, requests: usize) -> Vec<String> {
    let mut client = kirin.connect();
    let mut answers: Vec<String> = (0..requests)
        .map(|_| {
            let reply = client.get("/");
            assert_eq!(reply.status, 200, "{}", kirin.log());
            reply.text()
        })
        .collect();
    answers.sort();
    answers
}

#[test]
fn servers_take_turns_by_weight() {
    let (a, b) = (named("a"), named("b"));
    let servers = format!("\"{}\", {{ address = \"{}\", weight = 3 }}", a.address(), b.address());
    let (_site, kirin) = proxy(&servers, "");
    let answers = answers(&kirin, 20);
    assert_eq!(answers.iter().filter(|answer| *answer == "a").count(), 5, "{answers:?}");
}

#[test]
fn an_unreachable_server_costs_no_response_and_is_ejected() {
    // No process listens on this port.
    let (nobody, b) = (LeasedPort::lease(), named("b"));
    let servers = format!("\"{}\", {}", nobody.address(), list(&[&b]));
    let (_site, kirin) = proxy(&servers, "max_failures = 2");
    let mut client = kirin.connect();
    for _ in 0..10 {
        // Nothing has been sent, so any method may go to another server.
        assert_eq!(client.post("/", "text/plain", b"x").text(), "b", "{}", kirin.log());
    }
    kirin.wait_for_log("has failed too often and gets no requests for a while");
    assert_eq!(kirin.log().matches("request goes to another server").count(), 2, "{}", kirin.log());
}

#[test]
fn a_request_that_a_server_may_have_done_is_retried_only_if_idempotent() {
    let ((a, requests), b) = (ending(), named("b"));
    let servers =
        format!("\"{}\", {{ address = \"{}\", backup = true }}", a.address(), b.address());
    let (_site, kirin) = proxy(&servers, "max_failures = 0");
    let mut client = kirin.connect();
    assert_eq!(client.post("/", "text/plain", b"once").status, 502);
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    assert_eq!(client.get("/").text(), "b");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    client.send("PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nagain");
    let reply = client.read_reply();
    assert_eq!((reply.status, reply.text().as_str()), (200, "b"));
}

#[test]
fn a_backup_is_asked_when_the_others_have_failed() {
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let a = Backend::start(move |mut connection| {
        while connection.read_request().is_some() {
            if is_down.load(Ordering::SeqCst) {
                return;
            }
            connection.send(ok("a"));
        }
    });
    let b = named("b");
    let servers = format!("{}, {{ address = \"{}\", backup = true }}", list(&[&a]), b.address());
    let (_site, kirin) = proxy(&servers, "max_failures = 1\nejection_time = \"1s\"");
    assert_eq!(answers(&kirin, 4), ["a", "a", "a", "a"]);
    down.store(true, Ordering::SeqCst);
    assert_eq!(answers(&kirin, 4), ["b", "b", "b", "b"]);
    down.store(false, Ordering::SeqCst);
    wait_for("the first to be tried again", || (answers(&kirin, 1) == ["a"]).then_some(()));
}

#[test]
fn when_all_servers_are_ejected_all_are_tried() {
    let ((a, of_a), (b, of_b)) = (ending(), ending());
    let (_site, kirin) = proxy(&list(&[&a, &b]), "max_failures = 1\nejection_time = \"1h\"");
    for _ in 0..4 {
        assert_eq!(kirin.connect().post("/", "text/plain", b"x").status, 502);
    }
    assert_eq!((of_a.load(Ordering::SeqCst), of_b.load(Ordering::SeqCst)), (2, 2));
}

#[test]
fn a_busy_server_gets_fewer_requests() {
    let (a, b) = (
        Backend::answering(|asked| {
            if asked.target() == "/hang" {
                std::thread::park();
            }
            ok("a")
        }),
        named("b"),
    );
    let (_site, kirin) = proxy(&list(&[&a, &b]), "balance = \"least-connections\"");
    let mut hanging = kirin.connect();
    hanging.send("GET /hang HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_for("the request to arrive", || (a.connections() == 1).then_some(()));
    assert_eq!(answers(&kirin, 6), ["b"; 6]);
}

#[test]
fn a_key_leads_to_the_same_server() {
    let (a, b, c) = (named("a"), named("b"), named("c"));
    let (_site, kirin) =
        proxy(&list(&[&a, &b, &c]), "balance = \"hash\"\nhash_key = \"header:X-User\"");
    let mut client = kirin.connect();
    let mut of_user =
        |user: usize| client.request("GET", "/", &format!("X-User: {user}\r\n")).text();
    let first: Vec<String> = (0..40).map(&mut of_user).collect();
    let second: Vec<String> = (0..40).map(&mut of_user).collect();
    assert_eq!(first, second);
    for name in ["a", "b", "c"] {
        assert!(first.iter().any(|answer| answer == name), "{name}: {first:?}");
    }
}

#[test]
fn a_visitor_stays_with_the_server_that_had_it_first() {
    let is_well = Arc::new(AtomicBool::new(true));
    let well = Arc::clone(&is_well);
    let a = named("a");
    let b = Backend::start(move |mut connection| {
        while connection.read_request().is_some() && well.load(Ordering::SeqCst) {
            connection.send(ok("b"));
        }
    });
    let (_site, kirin) = proxy(&list(&[&a, &b]), "sticky_cookie = \"server\"\nmax_failures = 1");
    let mut client = kirin.connect();
    let cookie = wait_for("an answer of b", || {
        let reply = client.get("/");
        let cookie = reply.field("set-cookie").expect("a cookie").to_owned();
        (reply.text() == "b").then_some(cookie)
    });
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
    let own = format!("Cookie: x=y; {}\r\n", cookie.split(';').next().unwrap_or_default());
    for _ in 0..5 {
        let reply = client.request("GET", "/", &own);
        assert_eq!((reply.text().as_str(), reply.field("set-cookie")), ("b", None));
    }
    is_well.store(false, Ordering::SeqCst);
    let reply = client.request("GET", "/", &own);
    assert_eq!(reply.text(), "a");
    assert!(reply.field("set-cookie").is_some_and(|new| new != cookie));
}

#[test]
fn an_unhealthy_server_gets_no_requests_until_it_is_healthy() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let a = Backend::answering(move |asked: &ReceivedRequest| match asked.target() {
        "/up?deep" if !well.load(Ordering::SeqCst) => {
            "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        "/up?deep" => {
            assert!(asked.head.contains("\r\nUser-Agent: kirin-health"), "{}", asked.head);
            ok("")
        }
        _ => ok("a"),
    });
    let b = named("b");
    let health = "health = { path = \"/up?deep\", interval = \"1s\", unhealthy_after = 1, healthy_after = 1 }";
    let (_site, kirin) = proxy(&list(&[&a, &b]), health);
    kirin.wait_for_log("is not healthy and gets no requests");
    assert_eq!(answers(&kirin, 6), ["b"; 6]);
    is_well.store(true, Ordering::SeqCst);
    kirin.wait_for_log("is healthy again");
    assert_eq!(answers(&kirin, 6), ["a", "a", "a", "b", "b", "b"]);
}

#[test]
fn without_a_healthy_server_the_error_comes_at_once() {
    let a = Backend::answering(|_| "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned());
    let health = "health = { path = \"/\", interval = \"1s\", unhealthy_after = 1 }";
    let (_site, kirin) = proxy(&list(&[&a]), health);
    kirin.wait_for_log("is not healthy and gets no requests");
    assert_eq!(kirin.get("/").status, 502);
    kirin.wait_for_log("none of its servers that are left to try is healthy");
}
