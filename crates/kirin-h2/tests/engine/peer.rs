//! A server that answers each request, and frames as a client writes and reads them.

use std::cell::RefCell;

use kirin_h2::hpack::{Encoder, FieldBuffer};
use kirin_h2::{Connection, Event, Failure, Limits, PREFACE};

pub const LIMITS: Limits = Limits {
    streams: 100,
    header_list_bytes: 16_384,
    header_fields: 100,
    stream_window_bytes: 100_000,
    connection_window_bytes: 300_000,
    extended_connect: false,
};

/// A server that echoes the bodies of requests, and whose log has all events.
pub struct Echo {
    pub connection: Connection<RefCell<Vec<u8>>>,
    pub fields: FieldBuffer,
    pub log: Vec<String>,
    pub output: Vec<u8>,
}

impl Echo {
    pub fn new() -> Self {
        Self {
            connection: Connection::new(LIMITS, 0),
            fields: FieldBuffer::default(),
            log: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Takes bytes of the client and answers.
    pub fn take(&mut self, input: &[u8]) -> Result<(), Failure> {
        let mut at = 0;
        while at < input.len() {
            let received = match self.connection.receive(&input[at..], 0, &mut self.fields) {
                Ok(received) => received,
                Err(failure) => {
                    self.take_output();
                    return Err(failure);
                }
            };
            let event = received.event;
            assert!(received.used > 0, "nothing was used of {:?}", &input[at..]);
            if let Some(event) = event {
                self.handle(event, &input[at..]);
            }
            at += received.used;
            self.send();
        }
        Ok(())
    }

    fn handle(&mut self, event: Event<RefCell<Vec<u8>>>, input: &[u8]) {
        match event {
            Event::Request { stream, ended, is_too_large } => {
                let text: Vec<String> = self.fields.iter().map(line).collect();
                self.log.push(format!("request {stream} {is_too_large} {}", text.join("|")));
                self.connection.open(RefCell::default());
                if ended {
                    self.answer(stream);
                }
            }
            Event::Data { stream, data, ended } => {
                let data = &input[data];
                self.body(stream).borrow_mut().extend_from_slice(data);
                self.connection.release(stream, data.len());
                if ended {
                    self.log_body(stream);
                    self.answer(stream);
                }
            }
            Event::Trailers { stream } => {
                self.log_body(stream);
                let text: Vec<String> = self.fields.iter().map(line).collect();
                self.log.push(format!("trailers {stream} {}", text.join("|")));
                self.answer(stream);
            }
            Event::Reset { stream, .. } => self.log.push(format!("reset {stream}")),
        }
    }

    /// Collects what the engine has written.
    pub fn take_output(&mut self) {
        self.output.extend_from_slice(self.connection.output().as_slice());
        self.connection.output().clear();
    }

    fn body(&self, stream: u32) -> &RefCell<Vec<u8>> {
        self.connection.state(stream).expect("an open stream")
    }

    fn log_body(&mut self, stream: u32) {
        let body = String::from_utf8_lossy(&self.body(stream).borrow()).into_owned();
        self.log.push(format!("body {stream} {body:?}"));
    }

    fn answer(&mut self, stream: u32) {
        let length = self.body(stream).borrow().len();
        self.connection.head(stream, 200, length == 0, |writer| {
            writer.field(b"Content-Type", b"text/plain");
            writer.content_length(length as u64);
        });
        self.connection.set_ready(stream, true);
    }

    /// Lets streams send.
    fn send(&mut self) {
        while let Some(stream) = self.connection.next_sender() {
            let mut left = self.body(stream).take();
            let sent = self.connection.fill(stream, |out, most| {
                let count = most.min(left.len());
                out.extend_from_slice(&left[..count]);
                left.drain(..count);
                Ok(left.is_empty())
            });
            sent.expect("memory does not fail");
            if !left.is_empty() {
                self.body(stream).replace(left);
            }
        }
        self.take_output();
    }
}

fn line(field: kirin_h2::hpack::Field<'_>) -> String {
    format!("{}: {}", String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.value))
}

/// Returns a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the preface and empty SETTINGS.
pub fn begin() -> Vec<u8> {
    [PREFACE, &frame(4, 0, 0, b"")].concat()
}

/// Returns a header block of these fields.
pub fn block(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

/// Returns the block of a request that needs no table.
pub fn simple_request(method: &str) -> Vec<u8> {
    let fields =
        [(":method", method), (":scheme", "http"), (":path", "/a"), (":authority", "test")];
    block(&mut Encoder::new(0), &fields)
}

/// Returns type, flags, stream and payload of all frames.
pub fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        frames.push((head[3], head[4], stream, rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty(), "a part of a frame: {bytes:?}");
    frames
}
