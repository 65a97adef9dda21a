//! What a client can do too often, and errors that end a stream only.

use kirin_h2::hpack::Encoder;
use kirin_h2::{Excess, Failure, Reason};

use crate::peer::{Echo, begin, block, frame, frames, simple_request};

/// Sends `more` with each odd stream from 1 on, until the connection ends.
fn flood(more: impl Fn(u32) -> Vec<u8>) -> Option<(u32, Failure)> {
    let mut echo = Echo::new();
    echo.take(&begin()).expect("a good start");
    (0..20_000).find_map(|count| {
        let failure = echo.take(&more(2 * count + 1)).err()?;
        assert!(echo.connection.held_bytes() < 100_000, "{}", echo.connection.held_bytes());
        let (kind, _, _, payload) = frames(&echo.output).pop().expect("GOAWAY");
        assert_eq!((kind, &payload[4..]), (7, &failure.reason.code().to_be_bytes()[..]));
        Some((count, failure))
    })
}

#[test]
fn streams_that_the_client_ends_early_have_a_budget() {
    let post = simple_request("POST");
    let open = |stream| frame(1, 4, stream, &post);
    type Attack = Box<dyn Fn(u32) -> Vec<u8>>;
    let attacks: [(&str, Attack); 6] = [
        ("reset", Box::new(|stream| frame(3, 0, stream, &[0, 0, 0, 8]))),
        ("window of 0", Box::new(|stream| frame(8, 0, stream, &[0; 4]))),
        ("window overflow", Box::new(|stream| frame(8, 0, stream, &[0x7f, 255, 255, 255]))),
        ("priority of 4 bytes", Box::new(|stream| frame(2, 0, stream, &[0; 4]))),
        (
            "depends on itself",
            Box::new(|stream| frame(2, 0, stream, &[&stream.to_be_bytes()[..], &[1]].concat())),
        ),
        ("bad trailers", Box::new(|stream| frame(1, 4, stream, &[0x82]))),
    ];
    for (name, attack) in attacks {
        let ended = flood(|stream| [open(stream), attack(stream)].concat());
        let (count, failure) = ended.unwrap_or_else(|| panic!("{name} goes on"));
        assert!(count < 110, "{name}: {count}");
        assert_eq!(failure.excess, Some(Excess::EarlyEnds), "{name}: {failure}");
    }
}

#[test]
fn malformed_requests_have_a_budget() {
    let malformed = frame_of_malformed();
    let (count, failure) = flood(|stream| frame(1, 5, stream, &malformed)).expect("an end");
    assert!(count < 110 && failure.excess == Some(Excess::EarlyEnds), "{count} {failure}");
}

fn frame_of_malformed() -> Vec<u8> {
    block(&mut Encoder::new(0), &[(":method", "GET"), (":scheme", "http"), (":path", "")])
}

#[test]
fn good_requests_pay_for_streams_that_end_early() {
    let (post, get) = (simple_request("POST"), simple_request("GET"));
    let ended = flood(|stream| {
        let first = 2 * stream - 1;
        [frame(1, 4, first, &post), frame(3, 0, first, &[0, 0, 0, 8]), frame(1, 5, first + 2, &get)]
            .concat()
    });
    assert_eq!(ended, None);
}

#[test]
fn frames_that_ask_for_nothing_have_a_budget() {
    let cases: [(&str, Vec<u8>); 7] = [
        ("ping", frame(6, 0, 0, &[0; 8])),
        ("settings", frame(4, 0, 0, &[])),
        ("window", frame(8, 0, 0, &[0, 0, 0, 1])),
        ("priority", frame(2, 0, 1, &[0; 5])),
        ("priority update", frame(16, 0, 0, &[0, 0, 0, 1, b'u', b'=', b'1'])),
        ("unknown", frame(99, 0, 0, &[0; 8])),
        ("reset of what has ended", frame(3, 0, 1, &[0; 4])),
    ];
    let get = frame(1, 5, 1, &simple_request("GET"));
    for (name, more) in cases {
        let ended = flood(|stream| if stream == 1 { get.clone() } else { more.clone() });
        let (count, failure) = ended.unwrap_or_else(|| panic!("{name} goes on"));
        assert!((500..1500).contains(&count), "{name}: {count}");
        assert_eq!(failure.excess, Some(Excess::Frames), "{name}: {failure}");
    }
}

#[test]
fn a_header_block_without_end_ends_the_connection() {
    let start = frame(1, 0, 1, &simple_request("GET"));
    let field = [&b"\x00\x01x\x64"[..], &[b'v'; 100]].concat().repeat(100);
    for (name, most, more) in [("bytes", 10, field), ("empty frames", 1100, Vec::new())] {
        let (count, _) =
            flood(|stream| if stream == 1 { start.clone() } else { frame(9, 0, 1, &more) })
                .unwrap_or_else(|| panic!("{name} go on"));
        assert!(count < most, "{name}: {count}");
    }
}

#[test]
fn a_table_entry_that_is_repeated_is_not_copied_for_ever() {
    let value = "v".repeat(3900);
    let mut start = simple_request("GET");
    // A literal that goes into the table, then references to it.
    start.extend([0x40, 1, b'x', 0x7f, 0xbd, 0x1d]);
    start.extend(value.as_bytes());
    for (references, is_taken) in [(0, true), (10, true), (250, true), (300, false)] {
        let block = [&start[..], &vec![0xbe; references]].concat();
        let mut echo = Echo::new();
        let taken = echo.take(&[begin(), frame(1, 5, 1, &block)].concat());
        match taken {
            Ok(()) => {
                let is_too_large = format!("request 1 {} ", references > 3);
                assert!(echo.log[0].starts_with(&is_too_large), "{}", &echo.log[0][..40]);
                assert!(echo.log[0].len() < 20_000, "{} bytes are kept", echo.log[0].len());
            }
            Err(failure) => assert_eq!(failure.reason, Reason::EnhanceYourCalm, "{failure}"),
        }
        assert_eq!(taken.is_ok(), is_taken, "{references}");
    }
}

#[test]
fn a_body_that_nobody_needs_does_not_cut_its_response() {
    let mut echo = Echo::new();
    echo.take(&[begin(), frame(1, 4, 1, &simple_request("POST"))].concat()).expect("a request");
    echo.connection.head(1, 200, false, |_| {});
    echo.connection.drop_rest(1, 100);
    echo.take(&frame(0, 0, 1, &[b'x'; 1000])).expect("data");
    assert!(echo.connection.state(1).is_some(), "the stream goes on");
    // The client is told to stop when it has the response.
    echo.connection.data(1, b"response", true);
    echo.take(&frame(0, 0, 1, b"x")).expect("data");
    let sent = frames(&echo.output);
    assert_eq!(sent.last(), Some(&(3, 0, 1, vec![0; 4])), "RST_STREAM with NO_ERROR: {sent:?}");
    assert!(echo.connection.state(1).is_none());
}

#[test]
fn two_errors_at_once_still_tell_the_server_of_a_reset() {
    let mut echo = Echo::new();
    echo.take(&[begin(), frame(1, 4, 1, &simple_request("POST"))].concat()).expect("a request");
    // Trailers that do not end the stream, and that depend on it.
    let trailers = [&[0, 0, 0, 1, 15][..], &[0x82]].concat();
    echo.take(&frame(1, 4 | 32, 1, &trailers)).expect("a stream error");
    assert_eq!(echo.log.last().map(String::as_str), Some("reset 1"), "{:?}", echo.log);
}
