//! The pieces in which the input comes change nothing.

use kirin_h2::hpack::Encoder;
use proptest::prelude::*;

use crate::peer::{Echo, begin, block, frame, frames};

/// One thing that a client does on a stream.
#[derive(Clone, Debug)]
enum Action {
    Request { method: &'static str, value: String, has_body: bool, padding: u8, cut: usize },
    Data { stream: u32, length: usize, padding: u8, ended: bool },
    Trailers { stream: u32, name: &'static str },
    Reset(u32),
    Ping,
    Window { stream: u32, bytes: u32 },
    Settings { name: u16, value: u32 },
    Unknown { kind: u8, stream: u32, length: usize },
    Garbage(Vec<u8>),
}

fn stream() -> impl Strategy<Value = u32> {
    (0..12_u32).prop_map(|index| index.min(11))
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (
            prop_oneof![Just("GET"), Just("POST"), Just("G T")],
            "[ -~]{0,40}",
            any::<bool>(),
            0..20_u8,
            0..60_usize,
        ).prop_map(|(method, value, has_body, padding, cut)| {
            Action::Request { method, value, has_body, padding, cut }
        }),
        8 => (stream(), 0..40_000_usize, 0..20_u8, any::<bool>())
            .prop_map(|(stream, length, padding, ended)| {
                Action::Data { stream, length: length.min(16_000), padding, ended }
            }),
        2 => (stream(), prop_oneof![Just("x-sum"), Just(":path"), Just("connection")])
            .prop_map(|(stream, name)| Action::Trailers { stream, name }),
        1 => stream().prop_map(Action::Reset),
        1 => Just(Action::Ping),
        2 => (stream(), 0..100_000_u32).prop_map(|(stream, bytes)| Action::Window { stream, bytes }),
        1 => (0..10_u16, 0..100_000_u32).prop_map(|(name, value)| Action::Settings { name, value }),
        1 => (16..60_u8, stream(), 0..500_usize)
            .prop_map(|(kind, stream, length)| Action::Unknown { kind, stream, length }),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Action::Garbage),
    ]
}

/// Returns the bytes that a client sends.
fn bytes(actions: &[Action]) -> Vec<u8> {
    let mut out = begin();
    let mut encoder = Encoder::new(4096);
    let mut next = 1;
    for action in actions {
        match action {
            Action::Request { method, value, has_body, padding, cut } => {
                let fields = [
                    (":method", *method),
                    (":scheme", "https"),
                    (":path", "/a/b?c"),
                    (":authority", "a.test"),
                    ("x-value", value),
                    ("cookie", "a=b"),
                ];
                let block = block(&mut encoder, &fields);
                let (first, rest) = block.split_at(block.len() - cut.min(&block.len()));
                let padded = [&[*padding], first, &vec![0; usize::from(*padding)]].concat();
                let flags = 8 | u8::from(!has_body) | if rest.is_empty() { 4 } else { 0 };
                out.extend(frame(1, flags, next, &padded));
                if !rest.is_empty() {
                    let (one, two) = rest.split_at(rest.len() / 2);
                    out.extend(frame(9, 0, next, one));
                    out.extend(frame(9, 4, next, two));
                }
                next += 2;
            }
            Action::Data { stream, length, padding, ended } => {
                let data = vec![b'd'; *length];
                let payload = [&[*padding], &data[..], &vec![0; usize::from(*padding)]].concat();
                out.extend(frame(0, 8 | u8::from(*ended), *stream, &payload));
            }
            Action::Trailers { stream, name } => {
                let block = block(&mut encoder, &[(name, "1")]);
                out.extend(frame(1, 5, *stream, &block));
            }
            Action::Reset(stream) => out.extend(frame(3, 0, *stream, &[0, 0, 0, 8])),
            Action::Ping => out.extend(frame(6, 0, 0, b"12345678")),
            Action::Window { stream, bytes } => {
                out.extend(frame(8, 0, *stream, &bytes.to_be_bytes()));
            }
            Action::Settings { name, value } => {
                let setting = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
                out.extend(frame(4, 0, 0, &setting));
            }
            Action::Unknown { kind, stream, length } => {
                out.extend(frame(*kind, 255, *stream, &vec![7; *length]));
            }
            Action::Garbage(garbage) => out.extend(garbage),
        }
    }
    out
}

/// Returns what is seen of a connection: its events, its frames without the cut of data, and how it
/// ended.
fn seen(input: &[u8], piece: impl Fn(usize) -> usize) -> (Vec<String>, Vec<String>, String) {
    let mut echo = Echo::new();
    let mut at = 0;
    let mut ended = String::from("open");
    while at < input.len() {
        let end = (at + piece(at).max(1)).min(input.len());
        if let Err(failure) = echo.take(&input[at..end]) {
            ended = format!("{failure:?}");
            break;
        }
        at = end;
    }
    assert!(echo.connection.held_bytes() < 120_000, "{} are held", echo.connection.held_bytes());
    let mut shown: Vec<String> = Vec::new();
    let mut data = std::collections::BTreeMap::<u32, (usize, u8)>::new();
    for (kind, flags, stream, payload) in frames(&echo.output) {
        match kind {
            // Streams send whenever bytes have come, so their frames are cut in other ways.
            0 => {
                let sum = data.entry(stream).or_default();
                *sum = (sum.0 + payload.len(), flags);
            }
            8 => {}
            _ => shown.push(format!("{kind} {flags} {stream} {payload:?}")),
        }
    }
    shown.extend(data.iter().map(|(stream, sum)| format!("data {stream} {sum:?}")));
    (echo.log, shown, ended)
}

proptest! {
    #[test]
    fn any_split_of_the_input_gives_the_same_events(
        actions in proptest::collection::vec(action(), 0..30),
        sizes in proptest::collection::vec(1..2000_usize, 1..10),
    ) {
        let input = bytes(&actions);
        let whole = seen(&input, |_| usize::MAX / 2);
        let single = seen(&input, |_| 1);
        prop_assert_eq!(&whole, &single);
        let mixed = seen(&input, |at| sizes[at % sizes.len()]);
        prop_assert_eq!(&whole, &mixed);
    }

    #[test]
    fn no_bytes_make_the_engine_panic(input in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let whole = seen(&[begin(), input.clone()].concat(), |_| usize::MAX / 2);
        prop_assert_eq!(whole, seen(&[begin(), input].concat(), |_| 1));
    }
}
