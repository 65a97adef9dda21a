//! Access logs by site and by route.

use kirin_tests::{Client, Http2Client, Kirin, Site, wait_for};
use rustix::process::Signal;

const CONFIG: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
access_log = "listener.log"
[[listener]]
address = "127.0.0.1:0"
[[route]]
path = "/"
try = ["files:public"]
ssi = true
error_pages = { 404 = "/logged/page.html" }
[[route]]
path = "/logged"
try = ["files:public"]
access_log = "route.log"
[[route]]
path = "/silent"
try = ["files:public"]
access_log = false
[[site]]
hosts = ["a.test"]
access_log = "a.log"
[[site.route]]
path = "/"
try = ["files:public"]
[[site.route]]
path = "/silent"
try = ["files:public"]
access_log = false
[[site.route]]
path = "/own"
try = ["files:public"]
access_log = "own.log"
[[site.route]]
path = "/old"
redirect = "/"
[[site]]
hosts = ["b.test"]
access_log = "a.log"
[[site.route]]
path = "/only"
try = ["files:public"]
"#;

const LOGS: [&str; 4] = ["listener.log", "a.log", "own.log", "route.log"];

const LARGE: usize = 40_000_000;

fn serve() -> (Site, Kirin) {
    let mut site = Site::new()
        .with("public/large.bin", vec![b'x'; LARGE])
        .with("public/page.html", "<!--# include virtual=\"/logged/x\" -->");
    for directory in ["", "logged/", "silent/", "own/", "only/"] {
        site = site.with(&format!("public/{directory}x"), "x");
    }
    let site = site.with("public/logged/page.html", "a page");
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

/// Returns the lines of a log that have `text`.
fn lines(site: &Site, log: &str, text: &str) -> Vec<String> {
    let content = std::fs::read_to_string(site.path(log)).unwrap_or_default();
    content.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// Waits until a later request of the same connection is in each log. Then all earlier lines are.
fn wait_for_lines(site: &Site, kirin: &Kirin, mark: &str) {
    let mut client = kirin.connect();
    for (host, target) in
        [("c.test", "/x"), ("a.test", "/x"), ("a.test", "/own/x"), ("c.test", "/logged/x")]
    {
        client.send(format!("GET {target}?{mark} HTTP/1.1\r\nHost: {host}\r\n\r\n")).read_reply();
    }
    for log in LOGS {
        wait_for(&format!("{mark} in {log}"), || lines(site, log, mark).pop());
    }
}

/// The requests: host, target, status, and the log that gets the line.
const REQUESTS: [(&str, &str, u16, Option<&str>); 16] = [
    ("c.test", "/x", 200, Some("listener.log")),
    ("c.test", "/missing", 404, Some("listener.log")),
    ("c.test", "/page.html", 200, Some("listener.log")),
    ("c.test", "/logged/x", 200, Some("route.log")),
    ("c.test", "/logged/missing", 404, Some("route.log")),
    ("c.test", "/silent/x", 200, None),
    ("c.test", "/silent/missing", 404, None),
    ("a.test", "/x", 200, Some("a.log")),
    ("A.TEST.", "/missing", 404, Some("a.log")),
    ("a.test", "/old", 308, Some("a.log")),
    ("a.test", "/silent/x", 200, None),
    ("a.test", "/own/x", 200, Some("own.log")),
    ("a.test", "/own/missing", 404, Some("own.log")),
    ("b.test", "/only/x", 200, Some("a.log")),
    // No route, so no route's log.
    ("b.test", "/missing", 404, Some("listener.log")),
    ("a.test", "/%00", 400, Some("listener.log")),
];

#[test]
fn each_response_is_in_the_log_of_its_route_and_in_no_other() {
    let (site, kirin) = serve();
    let mut http1 = Client::connect(kirin.address());
    let mut http2 = Http2Client::connect(kirin.address());
    let mut unlogged = Client::connect(kirin.address_of(1));
    for (number, (host, target, status, _)) in REQUESTS.iter().enumerate() {
        let request =
            |mark: &str| format!("GET {target}?{mark}{number}. HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let reply = http1.send(request("one")).read_reply();
        assert_eq!(reply.status, *status, "{host} {target}");
        let reply = unlogged.send(request("other")).read_reply();
        assert_eq!(reply.status, *status, "{host} {target}");
        if *status != 400 {
            let reply = http2.get(&format!("http://{host}{target}?two{number}."));
            assert_eq!(reply.status, *status, "{host} {target}");
        }
    }
    wait_for_lines(&site, &kirin, "end-of-test");
    // Each event loop writes its lines by itself.
    for (number, (_, _, status, expected)) in REQUESTS.iter().enumerate() {
        let marks =
            [("one", true), ("two", *status != 400), ("other", *expected != Some("listener.log"))];
        for (mark, _) in marks.iter().filter(|(_, is_logged)| *is_logged) {
            if let Some(log) = expected {
                let text = format!("?{mark}{number}.");
                wait_for(&text, || lines(&site, log, &text).pop());
            }
        }
    }
    for (number, (host, target, status, expected)) in REQUESTS.iter().enumerate() {
        for log in LOGS {
            // A listener without a log has those of routes only.
            for (mark, is_here) in [
                ("one", *expected == Some(log)),
                ("two", *expected == Some(log) && *status != 400),
                ("other", *expected == Some(log) && log != "listener.log"),
            ] {
                let found = lines(&site, log, &format!("?{mark}{number}."));
                assert_eq!(found.len(), usize::from(is_here), "{host} {target} {mark}: {found:?}");
                let version = if mark == "two" { "HTTP/2.0" } else { "HTTP/1.1" };
                for line in found {
                    let part = format!(" {version}\" {status} ");
                    assert!(line.contains(&part), "{line}");
                }
            }
        }
    }
}

#[test]
fn a_cut_response_is_in_the_log_of_its_route() {
    let (site, kirin) = serve();
    let mut client = kirin.connect();
    client.send("GET /large.bin?cut-1 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(client.read_some(1000) > 0);
    drop(client);
    let mut client = Http2Client::connect(kirin.address());
    let pending = client.begin("GET", "http://b.test/only/x?whole", &[]);
    client.finish(pending);
    let pending = client.begin("GET", "http://a.test/large.bin?cut-2", &[]);
    let (status, body) = client.head_of(pending);
    assert_eq!(status, 200);
    drop((body, client));
    for mark in ["cut-1", "cut-2"] {
        let line = wait_for(mark, || lines(&site, "a.log", mark).pop());
        assert!(line.ends_with(" cut"), "{line}");
        for other in ["listener.log", "own.log", "route.log"] {
            assert_eq!(lines(&site, other, mark), Vec::<String>::new(), "{other}");
        }
    }
}

#[test]
fn logs_of_routes_are_opened_again() {
    let (site, kirin) = serve();
    wait_for_lines(&site, &kirin, "before");
    for log in LOGS {
        std::fs::rename(site.path(log), site.path(&format!("{log}.1"))).expect("renamed");
    }
    kirin.signal(Signal::USR1);
    for log in LOGS {
        wait_for(log, || site.path(log).exists().then_some(()));
    }
    wait_for_lines(&site, &kirin, "after");
    for log in LOGS {
        assert_eq!(lines(&site, log, "before").len(), 0, "{log}");
        let old = format!("{log}.1");
        assert_eq!((lines(&site, &old, "before").len(), lines(&site, &old, "after").len()), (1, 0));
    }
}
