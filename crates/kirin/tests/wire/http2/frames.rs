//! Frames and field blocks that no library would send.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;

use kirin_tests::{Kirin, wait_limit};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
/// Changes the priority of a stream (RFC 9218 section 7.1).
pub const PRIORITY_UPDATE: u8 = 0x10;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
/// The flag of HEADERS with five bytes of priority.
pub const WITH_PRIORITY: u8 = 0x20;
/// The flags of the HEADERS of a request without a body.
pub const WHOLE: u8 = END_STREAM | END_HEADERS;

pub const PROTOCOL_ERROR: u32 = 1;
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const STREAM_CLOSED: u32 = 5;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const COMPRESSION_ERROR: u32 = 9;
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// The largest window (RFC 9113 section 6.9.1), and the one of a connection at its start.
pub const MOST_WINDOW: u32 = 0x7fff_ffff;
pub const FIRST_WINDOW: u32 = 65_535;

/// The setting of the window of new streams.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// The first bytes of a client, with empty settings.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Returns a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a length").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let bytes = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &values.iter().flat_map(bytes).collect::<Vec<u8>>())
}

pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

pub fn rst_stream(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// Returns a field block of literals that are neither indexed nor compressed.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let literal = |(name, value): &(&str, &str)| [&b"\0"[..], &text(name), &text(value)].concat();
    fields.iter().flat_map(literal).collect()
}

/// Returns a string of HPACK (RFC 7541 section 5.2) without its Huffman code.
pub fn text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match u8::try_from(text.len()) {
        Ok(length) if length < 127 => bytes.push(length),
        _ => {
            bytes.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                bytes.push(u8::try_from(rest % 128).expect("7 bits") | 128);
                rest /= 128;
            }
            bytes.push(u8::try_from(rest).expect("7 bits"));
        }
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Returns the fields that each request needs, and more fields.
pub fn request<'a>(
    method: &'a str,
    path: &'a str,
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let own = [(":method", method), (":scheme", "http"), (":authority", "test"), (":path", path)];
    [&own[..], more].concat()
}

/// Returns a GET in one frame.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, WHOLE, stream, &block(&request("GET", path, &[])))
}

/// Returns the head of a POST whose body follows.
pub fn post(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block(&request("POST", path, &[])))
}

/// A frame that was sent or received.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// Takes the first frame of `bytes` out of it. Returns `None` if it is not complete.
    pub fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<9>()?;
        let &[a, b, c, kind, flags, ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = rest.get(..length)?.to_vec();
        let stream = u32::from_be_bytes(head[5..].try_into().expect("4 bytes"));
        bytes.drain(..9 + length);
        Some(Self { kind, flags, stream, payload })
    }

    /// Returns the number at a place of the payload: an error code, a window.
    pub fn number(&self, at: usize) -> Option<u32> {
        self.payload.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub fn is(&self, kind: u8, stream: u32) -> bool {
        self.kind == kind && self.stream == stream
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 10] = [
            "DATA",
            "HEADERS",
            "PRIORITY",
            "RST_STREAM",
            "SETTINGS",
            "PUSH_PROMISE",
            "PING",
            "GOAWAY",
            "WINDOW_UPDATE",
            "CONTINUATION",
        ];
        let name = NAMES.get(usize::from(self.kind)).copied().unwrap_or("type");
        let (kind, flags, stream) = (self.kind, self.flags, self.stream);
        let shown = &self.payload[..self.payload.len().min(48)];
        let (length, shown) = (self.payload.len(), shown.escape_ascii());
        write!(output, "{name}({kind}) flags={flags:#x} stream={stream} {length} bytes \"{shown}\"")
    }
}

/// Parses all complete frames. The preface may be before them.
pub fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut bytes = bytes.strip_prefix(&PREFACE[..24]).unwrap_or(bytes).to_vec();
    std::iter::from_fn(|| Frame::take(&mut bytes)).collect()
}

/// Returns the error codes of the GOAWAY frames in `bytes`.
pub fn goaways(bytes: &[u8]) -> Vec<u32> {
    frames(bytes)
        .iter()
        .filter(|frame| frame.kind == GOAWAY)
        .filter_map(|frame| frame.number(4))
        .collect()
}

/// Sends the bytes of `more` until the server closes, and returns the server's answer.
pub fn flood(kirin: &Kirin, start: &[u8], more: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(kirin.address()).expect("connect");
    socket.write_all(&[PREFACE, start].concat()).expect("send");
    let mut reader = socket.try_clone().expect("clone");
    reader.set_read_timeout(Some(wait_limit())).expect("timeout");
    let reading = std::thread::spawn(move || {
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            received.extend_from_slice(&buffer[..count]);
        }
        received
    });
    let mut sent = 0;
    while socket.write_all(more).is_ok() {
        sent += more.len();
        assert!(sent < 256 << 20, "256 MB of {:?} were taken", frames(more).first());
    }
    reading.join().expect("no panic")
}
