//! HPACK against that of nghttp2, in both directions, with tables whose size changes.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use kirin_h2::hpack::{Decoder, Encoder, FieldBuffer};
use proptest::prelude::*;

type Fields = Vec<(String, Vec<u8>)>;

/// A process with an encoder and a decoder of nghttp2.
struct Nghttp2 {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Nghttp2 {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/nghttp2_hpack.py");
        let mut command = Command::new("python3");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python3");
        let commands = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, commands, answers }
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").expect("libnghttp2.so.14: install libnghttp2-14");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("an answer");
        assert!(answer.ends_with('\n'), "no answer to {command}");
        answer.trim_end().to_owned()
    }

    /// Decodes a block.
    fn inflate(&mut self, block: &[u8]) -> String {
        self.ask(&format!("inflate {}", hex(block)))
    }

    /// Encodes fields.
    fn deflate(&mut self, fields: &Fields) -> Vec<u8> {
        let block = self.ask(&format!("deflate {}", words(fields)));
        assert!(!block.starts_with("error"), "{block}");
        (0..block.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&block[at..at + 2], 16).unwrap())
            .collect()
    }
}

impl Drop for Nghttp2 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string");
        text
    })
}

/// Returns fields as the script reads and writes them.
fn words(fields: &Fields) -> String {
    let words: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{}={}", hex(name.as_bytes()), hex(value)))
        .collect();
    words.join(" ")
}

/// One thing that happens on a connection.
#[derive(Clone, Debug)]
enum Step {
    /// The client allows a table of so many octets.
    Limit(u32),
    /// A header block.
    Block(Fields),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => proptest::sample::select(vec![
            "content-type", "date", "etag", "cache-control", "set-cookie", "server", "vary", "location",
            "x-request-id", "x-frame-options", "content-security-policy", "link", "age", "authorization",
        ]).prop_map(str::to_owned),
        2 => "x-[a-c]{1,2}",
        1 => "[a-z][a-z0-9-]{0,30}",
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        // Values that repeat, so that they are found in the tables.
        6 => proptest::sample::select(vec!["", "0", "text/html; charset=utf-8", "no-cache", "nosniff"])
            .prop_map(|value| value.as_bytes().to_vec()),
        3 => "[a-c]{1,3}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(0x21..=0xff_u8, 0..60),
        1 => (0..6000_usize).prop_map(|length| vec![b'v'; length]),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fields = proptest::collection::vec((name(), value()), 0..12);
    let limit = prop_oneof![Just(0), Just(4096), 0..200_u32, 0..10_000_u32];
    let step = prop_oneof![1 => limit.prop_map(Step::Limit), 6 => fields.prop_map(Step::Block)];
    proptest::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    // nghttp2 refuses a block without the size update that a smaller limit demands, and one with a
    // size above the limit. So this also proves which size updates our encoder sends.
    #[test]
    fn nghttp2_decodes_what_we_encode(steps in steps(), most in prop_oneof![Just(4096), 0..6000_u32]) {
        let mut nghttp2 = Nghttp2::start();
        let mut encoder = Encoder::new(most);
        for step in steps {
            match step {
                Step::Limit(bytes) => {
                    encoder.set_client_limit(bytes);
                    nghttp2.ask(&format!("limit {bytes}"));
                }
                Step::Block(fields) => {
                    let mut block = Vec::new();
                    encoder.begin(&mut block);
                    fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value, &mut block));
                    prop_assert_eq!(nghttp2.inflate(&block), words(&fields), "{:02x?}", block);
                }
            }
        }
    }

    #[test]
    fn we_decode_what_nghttp2_encodes(steps in steps()) {
        let mut nghttp2 = Nghttp2::start();
        let mut decoder = Decoder::new(4096);
        for step in steps {
            match step {
                // Our table never allows more.
                Step::Limit(bytes) => _ = nghttp2.ask(&format!("limit {}", bytes.min(4096))),
                Step::Block(fields) => {
                    let block = nghttp2.deflate(&fields);
                    let mut list = FieldBuffer::default();
                    let decoded = decoder.decode(&block, 1 << 20, 1000, &mut list);
                    prop_assert!(decoded.is_ok(), "{:?} {:02x?}", decoded, block);
                    let decoded: Fields = list.iter()
                        .map(|field| (field.name_str().to_owned(), field.value.to_vec()))
                        .collect();
                    prop_assert_eq!(decoded, fields);
                }
            }
        }
    }
}
