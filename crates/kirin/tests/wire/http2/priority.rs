//! Priorities of responses (RFC 9218): the field `priority`, and the frame PRIORITY_UPDATE.
//!
//! The client's window is used up before the requests, and opened when the heads of all responses
//! have come. So the order of DATA is the server's choice, whatever is faster.

use super::*;

/// The bytes of another stream that may come before a more urgent one. A server may have prepared
/// them before it knew.
const AHEAD_BYTES: usize = 128 * 1024;

/// The length of `/large.bin`.
const LARGE_BYTES: usize = 3_000_000;

const OPENED: u32 = 16 << 20;

/// Asks for files with a priority each, in this order, on streams 3, 5 and so on. When this
/// returns, the head of each response has come, and none has a window.
fn ask(site: &Site, kirin: &Kirin, requests: &[(&str, &str)]) -> Connection {
    std::fs::write(site.path("public/window.bin"), vec![b'w'; FIRST_WINDOW as usize])
        .expect("write");
    let mut connection = Connection::open(kirin.address());
    connection.send(settings(&[(INITIAL_WINDOW_SIZE, OPENED)])).send(get(1, "/window.bin"));
    let first = connection.outcome_of(1);
    assert_eq!(first.ok().map(<[u8]>::len), Some(FIRST_WINDOW as usize), "{connection}");
    for (stream, (path, priority)) in (3..).step_by(2).zip(requests) {
        ask_more(&mut connection, stream, path, priority);
    }
    connection
}

/// Asks for one more file, and waits for the head of the response. An empty priority is none.
fn ask_more(connection: &mut Connection, stream: u32, path: &str, priority: &str) {
    let field = [("priority", priority)];
    let more = if priority.is_empty() { &[][..] } else { &field };
    connection.send(frame(HEADERS, WHOLE, stream, &block(&request("GET", path, more))));
    while connection.head_of(stream).is_none() {
        assert!(connection.next().is_some(), "no head of stream {stream}\n{connection}");
    }
}

fn priority_update(stream: u32, value: &str) -> Vec<u8> {
    frame(PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes(), value.as_bytes()].concat())
}

/// Opens the window, and reads until all these streams have ended. Returns the streams of DATA in
/// their order, with the bytes that came together.
fn order(connection: &mut Connection, streams: &[u32]) -> Vec<(u32, usize)> {
    connection.send(window_update(0, OPENED));
    let mut order: Vec<(u32, usize)> = Vec::new();
    let mut open = streams.to_vec();
    while !open.is_empty() {
        let Some(frame) = connection.next() else { panic!("the connection ended\n{connection}") };
        assert!(frame.kind != RST_STREAM, "a reset\n{connection}");
        if frame.kind != DATA {
            continue;
        }
        match order.last_mut() {
            Some((stream, bytes)) if *stream == frame.stream => *bytes += frame.payload.len(),
            _ => order.push((frame.stream, frame.payload.len())),
        }
        if frame.flags & END_STREAM != 0 {
            open.retain(|stream| *stream != frame.stream);
        }
    }
    for stream in streams {
        assert!(connection.outcome_of(*stream).ok().is_some(), "stream {stream}\n{connection}");
    }
    order
}

/// Returns how many bytes of `other` came before the end of `stream`.
fn bytes_before_end_of(order: &[(u32, usize)], stream: u32, other: u32) -> usize {
    let end = order.iter().rposition(|(own, _)| *own == stream).expect("the stream");
    order[..end].iter().filter(|(own, _)| *own == other).map(|(_, bytes)| bytes).sum()
}

/// Asserts that nearly all of `first` came before `second`.
fn assert_first(order: &[(u32, usize)], first: u32, second: u32, what: &str) {
    let bytes = bytes_before_end_of(order, first, second);
    let shown = &order[..order.len().min(40)];
    assert!(
        bytes <= AHEAD_BYTES,
        "{what}: {bytes} bytes of stream {second} came before the end of stream {first}: {shown:?}"
    );
}

#[test]
fn a_more_urgent_response_comes_first() {
    let (site, kirin) = serve();
    for [first, second] in
        [["u=3", "u=0"], ["u=6", "u=0"], ["", "u=0"], ["u=7", ""], ["u=6, i", "u=5, i"]]
    {
        let what = format!("priority {first:?}, then {second:?}");
        let requests = [("/large.bin", first), ("/large.bin", second)];
        let mut connection = ask(&site, &kirin, &requests);
        assert_first(&order(&mut connection, &[3, 5]), 5, 3, &what);
        assert!(connection.outcome_of(3).ok() == Some(&large()), "{what}: another body");
        assert!(connection.outcome_of(5).ok() == Some(&large()), "{what}: another body");
        // The same with the requests the other way round.
        let requests = [("/large.bin", second), ("/large.bin", first)];
        let mut connection = ask(&site, &kirin, &requests);
        assert_first(&order(&mut connection, &[3, 5]), 3, 5, &what);
    }
}

#[test]
fn responses_that_are_not_incremental_come_one_after_the_other() {
    let (site, kirin) = serve();
    for priority in ["u=3", "u=0", "u=7"] {
        let request = ("/large.bin", priority);
        let mut connection = ask(&site, &kirin, &[request, request, request]);
        let order = order(&mut connection, &[3, 5, 7]);
        assert_first(&order, 3, 5, priority);
        assert_first(&order, 3, 7, priority);
        assert_first(&order, 5, 7, priority);
    }
}

#[test]
fn incremental_responses_share_the_connection() {
    let (site, kirin) = serve();
    for priority in ["u=3, i", "i", "u=1,i=?1"] {
        let request = ("/large.bin", priority);
        let mut connection = ask(&site, &kirin, &[request, request]);
        let order = order(&mut connection, &[3, 5]);
        let shown = &order[..order.len().min(40)];
        assert!(order.len() >= 10, "{priority}: they do not alternate: {shown:?}");
        for (stream, other) in [(3, 5), (5, 3)] {
            let bytes = bytes_before_end_of(&order, stream, other);
            assert!(
                bytes >= LARGE_BYTES / 2,
                "{priority}: {bytes} bytes of stream {other} before the end of {stream}: {shown:?}"
            );
        }
    }
}

#[test]
fn a_priority_update_changes_the_order() {
    let (site, kirin) = serve();
    for (priorities, update) in [
        (["u=3", "u=3"], priority_update(5, "u=0")),
        (["u=3", "u=3"], priority_update(3, "u=7")),
        (["u=0", "u=3"], priority_update(3, "u=4")),
        // The last one is in force. A value that is no priority is the default.
        (["u=2", "u=3"], [priority_update(5, "u=6"), priority_update(5, "u=1")].concat()),
        (["u=4", "u=5"], priority_update(5, "")),
    ] {
        let what = format!("{priorities:?}, then {:?}", frames(&update));
        let requests = priorities.map(|priority| ("/large.bin", priority));
        let mut connection = ask(&site, &kirin, &requests);
        connection.send(update);
        assert_first(&order(&mut connection, &[3, 5]), 5, 3, &what);
    }
}

#[test]
fn a_priority_update_before_its_request_is_kept() {
    let (site, kirin) = serve();
    let mut connection = ask(&site, &kirin, &[("/large.bin", "u=3")]);
    connection.send(priority_update(5, "u=0"));
    // The frame is the client's last word, and the field may be from a cache of the browser.
    ask_more(&mut connection, 5, "/large.bin", "u=6");
    assert_first(&order(&mut connection, &[3, 5]), 5, 3, "PRIORITY_UPDATE, then the request");
}

#[test]
fn a_small_response_comes_before_the_end_of_a_large_one() {
    let (site, kirin) = serve();
    for [large, small] in [["u=3, i", "u=3"], ["i", ""], ["", "u=2"], ["u=5", ""]] {
        let what = format!("priority {large:?} of the large one, {small:?} of the small one");
        let mut connection = ask(&site, &kirin, &[("/large.bin", large)]);
        // The large response is in progress when the request for the small one comes.
        connection.send(window_update(0, 200_000));
        while connection.body_bytes(3) < 200_000 {
            assert!(connection.next().is_some(), "{what}\n{connection}");
        }
        ask_more(&mut connection, 5, "/hello.txt", small);
        let order = order(&mut connection, &[3, 5]);
        let before = bytes_before_end_of(&order, 5, 3);
        let shown = &order[..order.len().min(40)];
        assert!(before < LARGE_BYTES / 2, "{what}: {before} bytes came before it: {shown:?}");
    }
}

#[test]
fn priorities_that_are_not_understood_change_nothing() {
    let (site, kirin) = serve();
    for value in ["u=8", "u=-1", "u=a", "i=3", "u", ",", "\"", "u=99999999"] {
        // A urgency of 3 is meant, which comes before 4.
        let mut connection = ask(&site, &kirin, &[("/large.bin", "u=4")]);
        connection.send(priority_update(5, value));
        ask_more(&mut connection, 5, "/large.bin", value);
        let order = order(&mut connection, &[3, 5]);
        let before = bytes_before_end_of(&order, 5, 3);
        assert!(before <= AHEAD_BYTES, "{value:?}: {before} bytes came before it");
    }
}

#[test]
fn a_malformed_priority_update_ends_the_connection() {
    let (_site, kirin) = serve();
    for (what, bytes, code) in [
        ("on a stream", frame(PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01u=1"), PROTOCOL_ERROR),
        ("for stream 0", priority_update(0, "u=1"), PROTOCOL_ERROR),
        ("of 3 bytes", frame(PRIORITY_UPDATE, 0, 0, &[0; 3]), FRAME_SIZE_ERROR),
        ("of no bytes", frame(PRIORITY_UPDATE, 0, 0, b""), FRAME_SIZE_ERROR),
    ] {
        let mut connection = Connection::open(kirin.address());
        let end = connection.send(post(1, "/app/body")).send(bytes).end();
        assert_eq!(end, Outcome::Goaway(code), "PRIORITY_UPDATE {what}\n{connection}");
    }
}
