//! Frames that break RFC 9113: which end the connection, which reset their stream, which are
//! ignored, and with which code.

use super::*;

/// A stream on which a request has begun, and its body is to come.
const OPEN: u32 = 1;

/// A stream whose request is complete, and whose response the application holds back.
const WAITING: u32 = 3;

/// A stream that no case has used yet.
const FRESH: u32 = 21;

/// What must follow the frames of a case.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// The connection is ended.
    Goaway(u32),
    /// The connection is ended with any of these codes. RFC 9113 leaves a choice.
    GoawayOf(&'static [u32]),
    /// The stream is reset, and the connection stays.
    Reset(u32, u32),
    /// Either of both. RFC 9113 leaves the choice.
    ResetOrGoaway(u32, u32),
    /// Nothing.
    Ignored,
}

/// Frames, and what must follow them.
type Case = (&'static str, Vec<u8>, Expected);

/// Sends each case on a connection of its own, after `opening`. Panics with all that failed.
fn check(kirin: &Kirin, opening: &[u8], cases: Vec<Case>) {
    let mut failures = Vec::new();
    for (what, bytes, expected) in cases {
        let mut connection = Connection::open(kirin.address());
        connection.send(opening).send(bytes);
        let outcome = match expected {
            Expected::Goaway(_) | Expected::GoawayOf(_) => connection.end(),
            Expected::Reset(stream, _) | Expected::ResetOrGoaway(stream, _) => {
                connection.outcome_of(stream)
            }
            Expected::Ignored => connection.send(get(FRESH, "/hello.txt")).outcome_of(FRESH),
        };
        let is_expected = match (expected, &outcome) {
            (Expected::Goaway(code), Outcome::Goaway(got)) => *got == code,
            (Expected::GoawayOf(codes), Outcome::Goaway(got)) => codes.contains(got),
            (Expected::ResetOrGoaway(_, code), Outcome::Goaway(got)) => *got == code,
            (Expected::Reset(_, code) | Expected::ResetOrGoaway(_, code), Outcome::Reset(got)) => {
                let after = connection.send(get(FRESH, "/hello.txt")).outcome_of(FRESH);
                *got == code && after.ok() == Some(b"hello\n")
            }
            (Expected::Ignored, outcome) => outcome.ok() == Some(b"hello\n"),
            _ => false,
        };
        if !is_expected {
            failures
                .push(format!("{what}: {expected:?} is expected, not {outcome:?}\n{connection}"));
        }
        // Each of them takes the longest time of a wait.
        if outcome == Outcome::Silent {
            break;
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
}

/// Returns HEADERS of a whole GET with this block.
fn head(block: &[u8]) -> Vec<u8> {
    frame(HEADERS, WHOLE, FRESH, block)
}

#[test]
fn a_bad_field_block_ends_the_connection() {
    use Expected::Goaway;
    let (_site, kirin) = serve();
    let good = block(&request("GET", "/hello.txt", &[]));
    let and = |more: &[u8]| [&good, more].concat();
    let cases = [
        ("index 0", head(&and(b"\x80"))),
        ("an index beyond both tables", head(&and(b"\xbe"))),
        ("an index of 2^63", head(&and(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))),
        ("an index that never ends", head(&and(&[[0xff].as_slice(), &[0x80; 2000]].concat()))),
        ("an index that is cut", head(&and(b"\xff"))),
        ("a name that is cut", head(&and(b"\0\x05abc"))),
        ("a value that is cut", head(&and(b"\0\x01a\x05abc"))),
        ("a literal without its value", head(&and(b"\0\x01a"))),
        ("a length of 2^32", head(&and(b"\0\x7f\x81\xff\xff\xff\x0fa"))),
        ("a name by an index that is not there", head(&and(b"\x7f\x7f\x01a"))),
        ("Huffman code with the end of string", head(&and(b"\0\x01a\x84\xff\xff\xff\xff"))),
        ("Huffman code with 8 bits of padding", head(&and(b"\0\x01a\x82\x1f\xff"))),
        ("Huffman code padded with zeros", head(&and(b"\0\x01a\x81\x18"))),
        ("a table larger than the setting", head(&[&b"\x3f\xe2\x1f"[..], &good].concat())),
        ("a change of the table's size behind a field", head(&and(b"\x20"))),
    ];
    let cases = cases.into_iter().map(|(what, bytes)| (what, bytes, Goaway(COMPRESSION_ERROR)));
    check(&kirin, b"", cases.collect());
    // A block that is not for a request must be decoded as well.
    let trailers = [post(OPEN, "/app/body"), frame(HEADERS, WHOLE, OPEN, b"\x80")].concat();
    check(&kirin, b"", vec![("trailers", trailers, Goaway(COMPRESSION_ERROR))]);
}

#[test]
fn a_frame_of_a_wrong_length_ends_the_connection() {
    let (_site, kirin) = serve();
    let large = [0; 16_385];
    let cases = [
        ("SETTINGS of 5 bytes", frame(SETTINGS, 0, 0, &[0; 5])),
        ("SETTINGS of 7 bytes", frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9, 0])),
        ("an acknowledgement with a setting", frame(SETTINGS, ACK, 0, &[0, 3, 0, 0, 0, 9])),
        ("PING of 7 bytes", frame(PING, 0, 0, &[0; 7])),
        ("PING of 9 bytes", frame(PING, 0, 0, &[0; 9])),
        ("PING of no bytes", frame(PING, ACK, 0, b"")),
        ("WINDOW_UPDATE of 3 bytes", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1])),
        ("WINDOW_UPDATE of 5 bytes", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 0, 1])),
        ("WINDOW_UPDATE of 3 bytes on a stream", frame(WINDOW_UPDATE, 0, OPEN, &[0, 0, 1])),
        ("RST_STREAM of 3 bytes", frame(RST_STREAM, 0, OPEN, &[0; 3])),
        ("RST_STREAM of 5 bytes", frame(RST_STREAM, 0, OPEN, &[0; 5])),
        ("GOAWAY of 7 bytes", frame(GOAWAY, 0, 0, &[0; 7])),
        ("HEADERS of 16385 bytes", frame(HEADERS, WHOLE, FRESH, &large)),
        ("DATA of 16385 bytes", frame(DATA, 0, OPEN, &large)),
        ("an unknown frame of 16385 bytes", frame(0xbe, 0, 0, &large)),
        ("a length of 2^24 - 1", b"\xff\xff\xff\0\0\0\0\0\x01".to_vec()),
    ];
    let expected = Expected::Goaway(FRAME_SIZE_ERROR);
    let cases = cases.into_iter().map(|(what, bytes)| (what, bytes, expected));
    check(&kirin, &post(OPEN, "/app/body"), cases.collect());
    // A frame without the bytes that its flags announce.
    let either = Expected::GoawayOf(&[PROTOCOL_ERROR, FRAME_SIZE_ERROR]);
    let cases = [
        ("padded DATA of no bytes", frame(DATA, PADDED, OPEN, b"")),
        ("padded HEADERS of no bytes", frame(HEADERS, PADDED | WHOLE, FRESH, b"")),
        ("HEADERS of 4 bytes of priority", frame(HEADERS, WITH_PRIORITY | WHOLE, FRESH, &[0; 4])),
        (
            "padded HEADERS of 5 bytes of priority",
            frame(HEADERS, PADDED | WITH_PRIORITY | WHOLE, FRESH, &[0; 5]),
        ),
    ];
    let cases = cases.into_iter().map(|(what, bytes)| (what, bytes, either));
    check(&kirin, &post(OPEN, "/app/body"), cases.collect());
}

#[test]
fn windows_that_become_too_large_are_flow_control_errors() {
    use Expected::{Goaway, Reset};
    let (_site, kirin) = serve();
    let up_to_most = window_update(OPEN, MOST_WINDOW - FIRST_WINDOW);
    let larger = settings(&[(INITIAL_WINDOW_SIZE, FIRST_WINDOW + 1)]);
    check(
        &kirin,
        &post(OPEN, "/app/body"),
        vec![
            (
                "INITIAL_WINDOW_SIZE of 2^31",
                settings(&[(INITIAL_WINDOW_SIZE, MOST_WINDOW + 1)]),
                Goaway(FLOW_CONTROL_ERROR),
            ),
            (
                "INITIAL_WINDOW_SIZE that makes a stream's window 2^31",
                [&up_to_most[..], &larger].concat(),
                Goaway(FLOW_CONTROL_ERROR),
            ),
            (
                "the connection's window becomes 2^31",
                window_update(0, MOST_WINDOW - FIRST_WINDOW + 1),
                Goaway(FLOW_CONTROL_ERROR),
            ),
            (
                "a stream's window becomes 2^31",
                window_update(OPEN, MOST_WINDOW - FIRST_WINDOW + 1),
                Reset(OPEN, FLOW_CONTROL_ERROR),
            ),
            (
                "both windows are as large as possible",
                [&up_to_most[..], &window_update(0, MOST_WINDOW - FIRST_WINDOW)].concat(),
                Expected::Ignored,
            ),
            ("the connection's window by 0", window_update(0, 0), Goaway(PROTOCOL_ERROR)),
            ("a stream's window by 0", window_update(OPEN, 0), Reset(OPEN, PROTOCOL_ERROR)),
        ],
    );
}

#[test]
fn frames_on_wrong_streams_end_the_connection() {
    let (_site, kirin) = serve();
    let good = block(&request("GET", "/hello.txt", &[]));
    let (start, end) = good.split_at(9);
    let unended = frame(HEADERS, END_STREAM, FRESH, start);
    let after_start = |more: Vec<u8>| [&unended[..], &more].concat();
    let continuation = |stream| frame(CONTINUATION, END_HEADERS, stream, end);
    let promise = frame(PUSH_PROMISE, END_HEADERS, OPEN, &[&[0, 0, 0, 2], &good[..]].concat());
    let cases = [
        ("HEADERS of an even stream", frame(HEADERS, WHOLE, 2, &good)),
        ("HEADERS of stream 0", frame(HEADERS, WHOLE, 0, &good)),
        ("DATA of stream 0", frame(DATA, 0, 0, b"x")),
        ("PRIORITY of stream 0", frame(PRIORITY, 0, 0, &[0, 0, 0, 0, 1])),
        ("RST_STREAM of stream 0", rst_stream(0)),
        ("DATA of an idle stream", frame(DATA, 0, FRESH, b"x")),
        ("RST_STREAM of an idle stream", rst_stream(FRESH)),
        ("WINDOW_UPDATE of an idle stream", window_update(FRESH, 1)),
        ("SETTINGS of a stream", frame(SETTINGS, 0, OPEN, b"")),
        ("PING of a stream", frame(PING, 0, OPEN, &[0; 8])),
        ("GOAWAY of a stream", frame(GOAWAY, 0, OPEN, &[0; 8])),
        ("PUSH_PROMISE from a client", promise),
        ("CONTINUATION without HEADERS", continuation(OPEN)),
        ("CONTINUATION of stream 0", frame(CONTINUATION, END_HEADERS, 0, end)),
        ("CONTINUATION behind a complete block", [get(FRESH, "/"), continuation(FRESH)].concat()),
        ("CONTINUATION of another stream", after_start(continuation(FRESH + 2))),
        ("PING inside a block", after_start(frame(PING, 0, 0, &[0; 8]))),
        ("SETTINGS inside a block", after_start(settings(&[]))),
        ("DATA inside a block", after_start(frame(DATA, 0, OPEN, b"x"))),
        ("HEADERS inside a block", after_start(get(FRESH + 2, "/"))),
        ("HEADERS of the same stream inside a block", after_start(get(FRESH, "/"))),
        ("WINDOW_UPDATE inside a block", after_start(window_update(0, 1))),
        ("RST_STREAM inside a block", after_start(rst_stream(FRESH))),
        ("an unknown frame inside a block", after_start(frame(0xbe, 0, 0, b""))),
        ("a lower stream that was never used", [get(FRESH, "/"), get(FRESH - 2, "/")].concat()),
        ("ENABLE_PUSH of 2", settings(&[(2, 2)])),
        ("MAX_FRAME_SIZE of 100", settings(&[(5, 100)])),
        ("MAX_FRAME_SIZE of 16383", settings(&[(5, 16_383)])),
        ("MAX_FRAME_SIZE of 2^24", settings(&[(5, 1 << 24)])),
        ("DATA of only a padding that is longer", frame(DATA, PADDED, OPEN, &[1])),
        ("DATA with a padding that is longer", frame(DATA, PADDED, OPEN, &[5, 0, 0, 0, 0])),
        ("HEADERS with a padding that is longer", frame(HEADERS, PADDED | WHOLE, FRESH, &[9; 9])),
    ];
    let expected = Expected::Goaway(PROTOCOL_ERROR);
    let cases = cases.into_iter().map(|(what, bytes)| (what, bytes, expected));
    check(&kirin, &post(OPEN, "/app/body"), cases.collect());
}

#[test]
fn a_client_that_begins_without_settings_loses_its_connection() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client.send(&PREFACE[..24]).send(get(1, "/hello.txt"));
    let received = client.read_to_end();
    let shown = frames(&received);
    assert_eq!(goaways(&received).last(), Some(&PROTOCOL_ERROR), "GET before SETTINGS: {shown:?}");
}

#[test]
fn errors_of_a_stream_leave_the_connection_alone() {
    use Expected::{Reset, ResetOrGoaway};
    let (site, kirin) = serve();
    let on_itself = |stream: u32| [&stream.to_be_bytes()[..], &[15]].concat();
    let get_on_itself = [on_itself(FRESH - 2), block(&request("GET", "/hello.txt", &[]))].concat();
    check(
        &kirin,
        &[post(OPEN, "/app/body"), get(WAITING, "/app/wait")].concat(),
        vec![
            (
                "PRIORITY of 4 bytes",
                frame(PRIORITY, 0, OPEN, &[0; 4]),
                Reset(OPEN, FRAME_SIZE_ERROR),
            ),
            (
                "PRIORITY of 6 bytes",
                frame(PRIORITY, 0, WAITING, &[0; 6]),
                Reset(WAITING, FRAME_SIZE_ERROR),
            ),
            (
                "PRIORITY of a stream that depends on itself",
                frame(PRIORITY, 0, WAITING, &on_itself(WAITING)),
                Reset(WAITING, PROTOCOL_ERROR),
            ),
            (
                "HEADERS of a stream that depends on itself",
                frame(HEADERS, WITH_PRIORITY | WHOLE, FRESH - 2, &get_on_itself),
                Reset(FRESH - 2, PROTOCOL_ERROR),
            ),
            (
                "DATA behind the end of a request",
                frame(DATA, 0, WAITING, b"x"),
                Reset(WAITING, STREAM_CLOSED),
            ),
            (
                "empty DATA behind the end of a request",
                frame(DATA, END_STREAM, WAITING, b""),
                Reset(WAITING, STREAM_CLOSED),
            ),
            (
                "HEADERS behind the end of a request",
                frame(HEADERS, WHOLE, WAITING, &block(&[("a", "b")])),
                ResetOrGoaway(WAITING, STREAM_CLOSED),
            ),
        ],
    );
    std::fs::write(site.path("go"), "").expect("write");
}

#[test]
fn a_stream_that_has_ended_cannot_be_used_again() {
    let (_site, kirin) = serve();
    let mut failures = Vec::new();
    for (what, bytes) in [
        ("HEADERS", get(1, "/hello.txt")),
        ("HEADERS of a POST", post(1, "/app/body")),
        ("DATA", frame(DATA, 0, 1, b"x")),
        ("DATA that ends it again", frame(DATA, END_STREAM, 1, b"x")),
    ] {
        let mut connection = Connection::open(kirin.address());
        let first = connection.send(get(1, "/hello.txt")).outcome_of(1);
        assert_eq!(first.ok(), Some(&b"hello\n"[..]), "{what}\n{connection}");
        // DATA may have been sent before the client knew. So the connection may also stay, and the
        // stream is reset once more.
        let end = match connection.send(bytes).wait_for("an answer", is_refusal) {
            frame if frame.kind == GOAWAY => frame.number(4),
            frame if what.starts_with("DATA") => frame.number(0),
            _ => None,
        };
        if end != Some(STREAM_CLOSED) {
            failures.push(format!("{what}: {end:?}\n{connection}"));
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
}

fn is_refusal(frame: &Frame) -> bool {
    matches!(frame.kind, GOAWAY | RST_STREAM)
}

#[test]
fn frames_that_mean_nothing_or_come_late_are_ignored() {
    let (_site, kirin) = serve();
    let reserved = 1 << 31;
    let cases = [
        ("PRIORITY of an idle stream", frame(PRIORITY, 0, 15, &[0, 0, 0, 0, 1])),
        ("PRIORITY of an even stream", frame(PRIORITY, 0, 2, &[0, 0, 0, 0, 1])),
        ("PRIORITY of an ended stream", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])),
        ("WINDOW_UPDATE of an ended stream", window_update(1, 1)),
        ("RST_STREAM of an ended stream", rst_stream(1)),
        ("an unknown frame", frame(0xbe, 0xff, 0, b"hello")),
        ("an unknown frame of an idle stream", frame(0xbe, 0xff, 15, b"hello")),
        ("an unknown setting", settings(&[(0xbeef, 1)])),
        ("every flag that PING has not", frame(PING, 0xfe, 0, &[0; 8])),
        ("the reserved bit of a stream", frame(PING, 0, reserved, &[0; 8])),
        ("the reserved bit of a window", window_update(0, reserved | 1)),
        ("an answer to no ping", frame(PING, ACK, 0, &[0; 8])),
    ];
    let mut failures = Vec::new();
    for (what, bytes) in cases {
        let mut connection = Connection::open(kirin.address());
        let first = connection.send(get(1, "/hello.txt")).outcome_of(1);
        let after = connection.send(bytes).send(get(FRESH, "/hello.txt")).outcome_of(FRESH);
        if first.ok() != Some(b"hello\n") || after.ok() != Some(b"hello\n") {
            failures.push(format!("{what}: {after:?}\n{connection}"));
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn unusual_frames_of_a_good_request_are_answered() {
    let (_site, kirin) = serve();
    let block = block(&request("GET", "/hello.txt", &[]));
    let (first, rest) = block.split_at(5);
    let in_pieces = [
        frame(HEADERS, END_STREAM, 9, b""),
        frame(CONTINUATION, 0, 9, first),
        frame(CONTINUATION, 0, 9, b""),
        frame(CONTINUATION, END_HEADERS, 9, rest),
    ];
    let padded = [&[255], &block[..], &[0; 255]].concat();
    for (what, bytes) in [
        ("every flag that HEADERS has not", frame(HEADERS, WHOLE | 0xd2, 9, &block)),
        ("a block in four pieces", in_pieces.concat()),
        ("padding as long as it can be", frame(HEADERS, PADDED | WHOLE, 9, &padded)),
    ] {
        let mut connection = Connection::open(kirin.address());
        let outcome = connection.send(bytes).outcome_of(9);
        assert_eq!(outcome.ok(), Some(&b"hello\n"[..]), "{what}: {outcome:?}\n{connection}");
    }
}
