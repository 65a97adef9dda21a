//! Requests on a connection, read as the engine reads them: heads, bodies, and pipelined requests
//! behind them.
//!
//! No input panics. The pieces in which it arrives make no difference. Accepted input has one
//! reading.
#![no_main]

use std::mem::MaybeUninit;

use kirin_http::BodyLength;
use kirin_http::Version;
use kirin_http::chunked::{ChunkedDecoder, Event};
use kirin_http::request::{HeadLimits, MAX_FIELDS, Parsed, RequestHead, escape_target, parse};
use libfuzzer_sys::fuzz_target;

/// Small limits, so that the fuzzer reaches them.
const LIMITS: HeadLimits = HeadLimits { head_bytes: 600, request_line_bytes: 120 };

/// The reading of a connection so far.
#[derive(Default, PartialEq, Debug)]
struct Read {
    requests: Vec<Request>,
    /// The status of the refusal that ended it.
    refused: Option<u16>,
    /// The number of bytes of an unfinished head.
    unread: usize,
}

#[derive(PartialEq, Debug)]
struct Request {
    head: String,
    body: Vec<u8>,
    finished: bool,
}

enum State {
    Head(Vec<u8>),
    Exact(u64),
    Chunked(ChunkedDecoder),
    Refused,
}

/// Reads the bytes that arrive in `pieces`.
fn read(pieces: &[&[u8]]) -> Read {
    let mut read = Read::default();
    let mut state = State::Head(Vec::new());
    for piece in pieces {
        let mut input = piece.to_vec();
        while !input.is_empty() {
            state = advance(state, &mut input, &mut read);
        }
    }
    if let State::Head(unread) = &state {
        read.unread = unread.len();
    }
    read
}

/// Takes a part of `input`, or all of it if it needs more.
fn advance(state: State, input: &mut Vec<u8>, read: &mut Read) -> State {
    match state {
        State::Head(mut unread) => {
            unread.append(input);
            let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
            match parse(&unread, &mut storage, &LIMITS) {
                Ok(Parsed::Complete(head, length)) => {
                    check(&head, &unread[..length]);
                    let next = match head.body {
                        BodyLength::None => State::Head(Vec::new()),
                        BodyLength::Exact(length) => State::Exact(length),
                        BodyLength::Chunked => State::Chunked(ChunkedDecoder::new()),
                    };
                    let finished = head.body == BodyLength::None;
                    read.requests.push(Request {
                        head: format!("{head:?}"),
                        body: Vec::new(),
                        finished,
                    });
                    *input = unread[length..].to_vec();
                    next
                }
                Ok(Parsed::Partial) => State::Head(unread),
                Ok(Parsed::RawTarget) => {
                    *input = escape_target(&unread).0;
                    advance(State::Head(Vec::new()), input, read)
                }
                Err(reject) => refuse(input, read, reject.status().as_u16()),
            }
        }
        State::Exact(left) => {
            let Some(request) = read.requests.last_mut() else { unreachable!("a body has a head") };
            let taken = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
            request.body.extend(input.drain(..taken));
            request.finished = taken as u64 == left;
            if request.finished {
                State::Head(Vec::new())
            } else {
                State::Exact(left - taken as u64)
            }
        }
        State::Chunked(mut decoder) => {
            let Some(request) = read.requests.last_mut() else { unreachable!("a body has a head") };
            match decoder.decode(input) {
                Ok(Event::Data { start, end }) => {
                    request.body.extend_from_slice(&input[start..end]);
                    input.drain(..end);
                    State::Chunked(decoder)
                }
                Ok(Event::NeedMore) => {
                    input.clear();
                    if decoder.is_done() {
                        request.finished = true;
                        return State::Head(Vec::new());
                    }
                    State::Chunked(decoder)
                }
                Ok(Event::End { consumed }) => {
                    input.drain(..consumed);
                    request.finished = true;
                    State::Head(Vec::new())
                }
                Err(_) => refuse(input, read, 400),
            }
        }
        State::Refused => {
            input.clear();
            State::Refused
        }
    }
}

fn refuse(input: &mut Vec<u8>, read: &mut Read, status: u16) -> State {
    input.clear();
    read.refused = Some(status);
    State::Refused
}

/// Checks the properties of every accepted head.
fn check(head: &RequestHead<'_>, bytes: &[u8]) {
    let bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    assert!(bytes.ends_with(b"\r\n\r\n") && bytes.len() <= LIMITS.head_bytes);
    let is_control = |byte: &u8| *byte < b' ' && *byte != b'\t' || *byte == 0x7f;
    for line in bytes[..bytes.len() - 4].split(|byte| *byte == b'\n') {
        assert!(!line.strip_suffix(b"\r").unwrap_or(line).iter().any(is_control), "{head:?}");
    }
    // The head without its last line end is not a head, and the bytes behind it are no part of it.
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    assert!(matches!(parse(&bytes[..bytes.len() - 1], &mut storage, &LIMITS), Ok(Parsed::Partial)));
    assert!(head.path.starts_with('/') || head.path == "*");
    assert!(!head.host.is_empty() || head.version == Version::Http10);
    let count = |name: &str| {
        head.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).count()
    };
    assert!(
        count("host") <= 1 && count("content-length") + count("transfer-encoding") <= 1,
        "{head:?}"
    );
    match head.body {
        BodyLength::Chunked => {
            assert!(count("transfer-encoding") == 1 && head.version == Version::Http11)
        }
        BodyLength::Exact(length) => assert!(count("content-length") == 1 && length > 0),
        BodyLength::None => assert!(count("transfer-encoding") == 0),
    }
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let whole = read(&[bytes]);
    let (first, second) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    assert_eq!(whole, read(&[first, second]), "cut at {}", first.len());
    if bytes.len() <= 300 {
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(whole, read(&single), "byte by byte");
    }
});
