//! Tests of the crowd with servers that lose requests in known ways. The crowd must find these
//! failures.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::{Crowd, Failure, Outcome, run};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn crowd(address: SocketAddr) -> Crowd {
    Crowd {
        address,
        visitors: 2,
        requests: 3,
        path: "/".to_owned(),
        keep_alive: true,
        pause: Duration::ZERO,
        timeout: Duration::from_secs(10),
        limit: Duration::from_secs(20),
        slow_readers: 0,
        slow_path: String::new(),
    }
}

/// Starts a server that runs `serve` for each connection.
fn server(serve: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || serve(connection));
        }
    });
    address
}

/// Reads one request. Returns whether there was one.
fn read_request(connection: &mut TcpStream) -> bool {
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !received.ends_with(b"\r\n\r\n") {
        match connection.read(&mut buffer) {
            Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
            _ => return false,
        }
    }
    true
}

fn keep(mut connection: TcpStream) {
    while read_request(&mut connection) {
        connection.write_all(ANSWER).expect("sent");
    }
}

fn count(outcome: &Outcome, failure: Failure) -> usize {
    outcome.failures[failure as usize]
}

#[test]
fn every_request_is_answered_on_kept_and_on_new_connections() {
    let address = server(keep);
    for keep_alive in [true, false] {
        let outcome = run(Crowd { keep_alive, ..crowd(address) }).expect("a run");
        assert_eq!((outcome.latencies.len(), outcome.failed(), outcome.left_over), (6, 0, 0));
    }
}

#[test]
fn requests_that_a_server_drops_are_failures_of_their_kind() {
    let unanswered = server(|mut connection| {
        read_request(&mut connection);
    });
    let cut = server(|mut connection| {
        read_request(&mut connection);
        let _ = connection.write_all(&ANSWER[..ANSWER.len() - 1]);
    });
    let busy = server(|mut connection| {
        while read_request(&mut connection) {
            let _ = connection.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let refused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    for (address, failure) in [
        (unanswered, Failure::Unanswered),
        (cut, Failure::Cut),
        (busy, Failure::Status),
        (refused, Failure::Connect),
    ] {
        let outcome = run(crowd(address)).expect("a run");
        assert_eq!((count(&outcome, failure), outcome.latencies.len()), (6, 0), "{failure:?}");
    }
}

#[test]
fn silence_is_a_timeout_and_what_the_limit_leaves_is_counted() {
    let silent = server(|mut connection| while read_request(&mut connection) {});
    let short = Duration::from_millis(50);
    let outcome = run(Crowd { timeout: short, ..crowd(silent) }).expect("a run");
    assert_eq!((count(&outcome, Failure::Timeout), outcome.left_over), (6, 0));
    let outcome = run(Crowd { limit: short, ..crowd(silent) }).expect("a run");
    assert_eq!((outcome.failed(), outcome.left_over), (0, 6));
}

#[test]
fn a_connection_that_was_ended_between_requests_is_no_failure() {
    let once = server(|mut connection| {
        read_request(&mut connection);
        connection.write_all(ANSWER).expect("sent");
    });
    let pause = Duration::from_millis(200);
    let outcome = run(Crowd { visitors: 1, pause, ..crowd(once) }).expect("a run");
    assert_eq!((outcome.latencies.len(), outcome.reconnects, outcome.failed()), (3, 2, 0));
}

#[test]
fn slow_readers_are_counted_while_visitors_are_served() {
    let address = server(|mut connection| {
        while read_request(&mut connection) {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
            if connection.write_all(&vec![b'x'; 1_000_000]).is_err() {
                return;
            }
        }
    });
    let many = Crowd { visitors: 1, requests: 2, slow_readers: 3, ..crowd(address) };
    let outcome = run(many).expect("a run");
    assert_eq!((outcome.latencies.len(), outcome.slow_served, outcome.slow_open), (2, 3, 3));
}
