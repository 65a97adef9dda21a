//! `kirin profile` and the log of slow requests for Python: both point at the slow line of an
//! application.

use kirin_tests::{ADMIN, Kirin, Site, wait_for};

use crate::profile::{get, most_frequent, profile, stop, text};

/// An application with slow handlers. They end when a file is there.
const SLOW: &str = "\
import os, time
from büro import Büro

def sleeps(stop):
    while not os.path.exists(stop):
        time.sleep(1)  # SLEEPS

def parts(stop):
    yield b''
    sleeps(stop)  # STREAMS
    yield b'part'

def application(environ, start_response):
    _, what, stop = environ['PATH_INFO'].split('/')
    start_response('200 OK', [('Content-Type', 'text/plain')])
    if what == 'parts':
        return parts(stop)
    if what == 'computes':
        Büro().計算(stop)  # CALLS COMPUTES
    else:
        sleeps(stop)  # CALLS SLEEPS
    return [b'done']
";

/// A module, a class and a function whose names have characters of several sizes.
const OFFICE: &str = "\
import os

class Büro:
    def 計算(self, stop):
        total = 0
        while not os.path.exists(stop):
            for number in range(100_000): total += number  # COMPUTES
        return total
";

/// An ASGI application that keeps the event loop busy, or lets it wait.
const LOOP: &str = "\
import asyncio, os

def computes(stop):
    while not os.path.exists(stop):
        for number in range(100_000): pass  # COMPUTES

async def waits(stop):
    while not os.path.exists(stop):
        await asyncio.sleep(0.05)

async def application(scope, receive, send):
    if scope['type'] != 'http':
        return
    _, what, stop = scope['path'].split('/')
    if what == 'computes':
        computes(stop)  # CALLS COMPUTES
    else:
        await waits(stop)
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'done'})
";

/// Returns the end of a frame: the function and the line with a comment.
fn frame(program: &str, file: &str, function: &str, comment: &str) -> String {
    let line = program.lines().position(|line| line.ends_with(&format!("  # {comment}")));
    format!("{function} ({file}:{})", line.expect(comment) + 1)
}

fn in_slow(function: &str, comment: &str) -> String {
    frame(SLOW, "slow.py", function, comment)
}

/// Starts an application whose workers use the ring, or do not.
fn serve(program: &str, ring: u8, more: &str) -> (Site, Kirin) {
    let site = Site::new().with("slow.py", program).with("büro.py", OFFICE);
    let config = format!(
        r#"{ADMIN}
[[listener]]
address = "127.0.0.1:0"

[[app]]
name = "web"
load = "slow.py"
workers = 3
env = {{ KIRIN_RING = "{ring}" }}
{more}

[[route]]
path = "/"
try = ["app:web"]
"#
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

#[test]
fn a_profile_points_at_the_python_line_that_computes_and_at_the_one_that_sleeps() {
    for ring in [0, 1] {
        let (site, kirin) = serve(SLOW, ring, "");
        let whats = ["computes", "sleeps", "parts"];
        let requests = whats.map(|what| get(&kirin, &format!("/{what}/stop")));
        let ends = ["計算 (", "sleeps (", "parts ("];
        let folded = wait_for("samples of all requests", || {
            let folded = text(&profile(&site, &kirin, &["--seconds", "1"]));
            ends.iter().all(|end| folded.contains(end)).then_some(folded)
        });
        let line = most_frequent(&folded, "計算");
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        assert!(count.parse::<u64>().is_ok_and(|count| count > 0), "{folded}");
        let (outer, inner) = stack.split_once(';').expect("two calls");
        // A profile has what the application calls, and not what the adapter does before.
        assert_eq!(outer, in_slow("application", "CALLS COMPUTES"), "{folded}");
        // Before Python 3.11 a function does not know its class.
        let expected = frame(OFFICE, "büro.py", "計算", "COMPUTES");
        assert_eq!(inner.strip_prefix("Büro.").unwrap_or(inner), expected, "{folded}");
        let calls = [("application", "CALLS SLEEPS"), ("sleeps", "SLEEPS")];
        let expected = calls.map(|(function, comment)| in_slow(function, comment)).join(";");
        assert!(folded.lines().any(|line| line.starts_with(&format!("{expected} "))), "{folded}");
        let calls = [("parts", "STREAMS"), ("sleeps", "SLEEPS")];
        let expected = calls.map(|(function, comment)| in_slow(function, comment)).join(";");
        assert!(folded.lines().any(|line| line.contains(&format!(";{expected} "))), "{folded}");

        text(&profile(&site, &kirin, &["--seconds", "1", "-o", "slow.svg"]));
        let svg = std::fs::read_to_string(site.path("slow.svg")).expect("slow.svg");
        assert!(svg.contains("<svg") && svg.contains(&in_slow("sleeps", "SLEEPS")), "{svg}");
        stop(&site, "stop");
        for request in requests {
            assert_eq!(request.join().expect("a reply").status, 200);
        }
    }
}

#[test]
fn a_slow_request_is_logged_with_its_python_line_and_continues() {
    for ring in [0, 1] {
        let (site, kirin) = serve(SLOW, ring, "slow = \"200ms\"");
        let request = get(&kirin, "/sleeps/stop");
        let slow = wait_for("a slow request", || {
            let status = kirin.status();
            status["apps"][0]["slow_requests"].as_array()?.first().cloned()
        });
        let calls = [in_slow("sleeps", "SLEEPS"), in_slow("application", "CALLS SLEEPS")];
        assert_eq!(slow["stack"], serde_json::json!(calls), "{slow}");
        kirin.wait_for_log(&format!("stack=\n\t{}\n\t{}", calls[0], calls[1]));
        stop(&site, "stop");
        assert_eq!(request.join().expect("a reply").text(), "done");
    }
}

#[test]
fn the_stack_of_an_event_loop_is_what_it_runs() {
    let (site, kirin) = serve(LOOP, 1, "");
    let calls = [("application", "CALLS COMPUTES"), ("computes", "COMPUTES")];
    let calls = calls.map(|(function, comment)| frame(LOOP, "slow.py", function, comment));
    // A stack begins with the application, or with the loop.
    for (what, begin, part) in [("waits", "", "select ("), ("computes", &*calls.join(";"), "")] {
        let request = get(&kirin, &format!("/{what}/{what}"));
        wait_for("a sample of it", || {
            let folded = text(&profile(&site, &kirin, &["--seconds", "1"]));
            let mut lines = folded.lines();
            lines.any(|line| line.starts_with(begin) && line.contains(part)).then_some(())
        });
        stop(&site, what);
        assert_eq!(request.join().expect("a reply").text(), "done");
    }
}
