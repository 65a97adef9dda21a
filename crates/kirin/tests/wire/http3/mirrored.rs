//! The mirror of a route whose visitors come over HTTP/3.

use std::sync::{Arc, Mutex, mpsc};

use kirin_tests::{ReceivedRequest, wait_limit};

use super::*;

/// The copies that a mirror got, one line each.
type Copies = Arc<Mutex<Vec<String>>>;

/// Returns a server, and the methods and targets of the copies that it got.
fn mirror(
    answer: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static,
) -> (Backend, Copies) {
    let asked = Copies::default();
    let record = Arc::clone(&asked);
    let backend = Backend::answering(move |request| {
        let line = request.head.lines().next().unwrap_or_default();
        let id = request.field("kirin-mirror").unwrap_or("0");
        record.lock().expect("a list").push(format!("{line} {id}"));
        answer(request)
    });
    (backend, asked)
}

fn echo(request: &ReceivedRequest) -> String {
    let body = match request.target() {
        "/much" => "much ".repeat(500_000),
        target => format!("{target} {}", String::from_utf8_lossy(&request.body)),
    };
    let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    match request.head.starts_with("HEAD ") {
        true => whole[..whole.len() - body.len()].to_owned(),
        false => whole,
    }
}

fn config(place: &Backend, mirror: &Backend) -> String {
    let (start, _) = CONFIG.split_once("[[app]]").expect("the listener");
    format!(
        "{ADMIN}{start}[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n\
         [[upstream]]\nname = \"next\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\", \"proxy:api\"]\n\
         mirror = {{ to = \"proxy:next\", methods = [\"GET\", \"POST\"] }}\n",
        place.address(),
        mirror.address()
    )
    .replace("threads = 2\n", "")
}

impl Served {
    /// Waits until a metric of the mirror has this value.
    fn wait_for_mirror(&self, name: &str, label: &str, value: u64) {
        let series = format!("kirin_mirror_{name}{{site=\"\",route=\"/\"{label}}} ");
        wait_for(&format!("{value} of {series}"), || (self.metric(&series) == value).then_some(()));
    }
}

#[test]
fn requests_over_http3_are_copied() {
    let place = Backend::answering(echo);
    let (mirror, asked) = mirror(|request| match request.target() {
        "/other" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(),
        _ => echo(request),
    });
    let served = serve(&config(&place, &mirror));
    let mut client = served.connect();
    for (method, path, expected, result, count) in [
        ("GET", "/a?b=%2e", "/a?b=%2e ", "equal", 1),
        ("HEAD", "/a", "", "equal", 2),
        ("GET", "/other", "/other ", "status", 1),
        // A file has no copy.
        ("GET", "/hello.txt", "hello\n", "equal", 2),
    ] {
        let reply = client.request(method, path, &[]);
        assert_eq!((reply.status(), reply.text()), (200, expected), "{reply:?}");
        served.wait_for_mirror("copies_total", &format!(",result=\"{result}\""), count);
    }
    assert_eq!(client.get("/much").length(), 2_500_000);
    served.wait_for_mirror("copies_total", ",result=\"equal\"", 3);
    for fields in [json!([["content-length", "5"]]), json!([])] {
        let post = json!({
            "do": "ask", "method": "POST", "path": "/form", "fields": fields, "hex": "68656c6c6f"
        });
        let reply = Http3Reply(client.ask(&post));
        assert_eq!((reply.status(), reply.text()), (200, "/form hello"), "{reply:?}");
    }
    served.wait_for_mirror("copies_total", ",result=\"equal\"", 5);
    let expected = [
        "GET /a?b=%2e HTTP/1.1 1",
        "HEAD /a HTTP/1.1 1",
        "GET /other HTTP/1.1 1",
        "GET /much HTTP/1.1 1",
        "POST /form HTTP/1.1 1",
        "POST /form HTTP/1.1 1",
    ];
    assert_eq!(*asked.lock().expect("a list"), expected);
    served.wait_for_mirror("in_flight", "", 0);
    served.wait_for_mirror("held_bytes", "", 0);
    served.assert_is_well();
}

#[test]
fn a_visitor_who_cancels_over_http3_is_not_followed_by_a_copy() {
    let (arrived, arrivals) = mpsc::channel();
    let arrived = Mutex::new(arrived);
    let place = Backend::start(move |mut connection| {
        while let Some(asked) = connection.read_request() {
            if asked.target() == "/half" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nab");
            }
            let _ = arrived.lock().expect("a channel").send(());
            connection.wait_for_end();
        }
    });
    let (mirror, asked) = mirror(echo);
    let served = serve(&config(&place, &mirror));
    let mut client = served.connect();
    for (path, count) in [("/half", 1), ("/none", 2)] {
        let stream = client.begin(path, json!({}));
        arrivals.recv_timeout(wait_limit()).expect("a request");
        client.ask(&json!({ "do": "cancel", "stream": stream }));
        served.wait_for_mirror("copies_skipped_total", ",reason=\"cut\"", count);
    }
    served.wait_for_mirror("held_bytes", "", 0);
    assert!(asked.lock().expect("a list").is_empty());
    served.assert_is_well();
}
