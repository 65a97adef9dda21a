//! The lines in the log about a mirror that fails for each copy.

use std::time::Instant;

use kirin_tests::{BackendConnection, LeasedPort, Site};

use super::{Backend, Mirrored, SocketAddr, config, html};

/// The copies of a test, which are more than the lines that they may cause.
const COPIES: u64 = 30;

/// The time between two lines of one kind, in seconds.
const INTERVAL_SECONDS: u64 = 10;

/// Sends copies to a mirror. Checks that there are few lines with `message`, and no other warnings.
fn assert_few_lines(mirror: SocketAddr, result: &str, message: &str) -> Mirrored {
    let (place, gone) = (Backend::answering(|_| html("abc")), LeasedPort::lease());
    let others = format!(
        "[[upstream]]\nname = \"gone\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/gone\"\ntry = [\"proxy:gone\"]\n\
         [[route]]\npath = \"/direct\"\ntry = [\"proxy:next\"]\n[[route]]",
        gone.address()
    );
    let config = config(place.address(), mirror, "").replace("[[route]]", &others);
    let begun = Instant::now();
    let mirrored = Mirrored::start(Site::new(), &config);
    let mut client = mirrored.kirin.connect();
    for _ in 0..COPIES {
        assert_eq!(client.get("/").text(), "abc");
        mirrored.wait_for_few_in_flight();
    }
    mirrored.wait_for_result(result, COPIES);
    // The lines of one event loop are in their order.
    assert_eq!(client.get("/gone").status, 502);
    mirrored.kirin.wait_for_log("GET /gone");
    let most = 1 + begun.elapsed().as_secs() / INTERVAL_SECONDS;
    let log = mirrored.kirin.log();
    let warnings: Vec<_> =
        log.lines().filter(|line| line.contains("WARN") && !line.contains("GET /gone")).collect();
    assert!((1..=most).contains(&(warnings.len() as u64)), "more than {most}: {log}");
    assert!(warnings.iter().all(|line| line.contains(message)), "{log}");
    mirrored
}

#[test]
fn a_dead_mirror_has_one_line_in_ten_seconds_and_a_visitor_has_each() {
    let port = LeasedPort::lease();
    let mirrored = assert_few_lines(port.address(), "failed", "request failed");
    // Visitors of the same upstream have lines of their own.
    let mut client = mirrored.kirin.connect();
    for number in 0..5 {
        assert_eq!(client.get(&format!("/direct?{number}")).status, 502);
        mirrored.kirin.wait_for_log(&format!("GET /direct?{number}"));
    }
}

#[test]
fn a_mirror_that_breaks_off_has_one_line_in_ten_seconds() {
    let broken = |serve: fn(&mut BackendConnection)| {
        Backend::start(move |mut connection| {
            let _ = connection.read_request();
            serve(&mut connection);
        })
    };
    let closes = broken(|_| {});
    let cuts = broken(|connection| {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        connection.send([b'x'; 1000]);
    });
    let talks = broken(|connection| {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc, and more");
    });
    for (mirror, result, message) in [
        (closes, "failed", "request failed"),
        (cuts, "failed", "response was cut"),
        (talks, "equal", "bytes after the end of a response"),
    ] {
        assert_few_lines(mirror.address(), result, message);
    }
}
