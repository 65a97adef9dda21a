//! A connection of which a test sees all frames.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use kirin_tests::wait_limit;
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::frames::*;

/// The end of a request.
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The field block of the response's head, and its body.
    Answered(Vec<u8>, Vec<u8>),
    /// The server has reset the stream with this code.
    Reset(u32),
    /// The server has ended the connection with this code.
    Goaway(u32),
    /// The connection has ended without a GOAWAY.
    Lost,
    /// The server says nothing more.
    Silent,
}

impl Outcome {
    /// Returns the body of a response with status 200, which is entry 8 of HPACK's static table.
    pub fn ok(&self) -> Option<&[u8]> {
        match self {
            Outcome::Answered(head, body) if is_ok(head) => Some(body),
            _ => None,
        }
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Answered(head, body) => {
                let (shown, bytes) = (body[..body.len().min(48)].escape_ascii(), body.len());
                write!(output, "Answered({}, {bytes} bytes \"{shown}\")", head.escape_ascii())
            }
            Outcome::Reset(code) => write!(output, "Reset({code})"),
            Outcome::Goaway(code) => write!(output, "Goaway({code})"),
            Outcome::Lost => write!(output, "Lost"),
            Outcome::Silent => write!(output, "Silent"),
        }
    }
}

/// Returns whether a field block begins with the status 200. Changes of the table's size may be
/// before it.
fn is_ok(mut block: &[u8]) -> bool {
    while let [first, rest @ ..] = block
        && first & 0xe0 == 0x20
    {
        let is_long = first & 0x1f == 0x1f;
        let more = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
        block = if is_long { rest.get(more..).unwrap_or_default() } else { rest };
    }
    block.first() == Some(&0x88)
}

/// The frames of a stream that have arrived.
#[derive(Default)]
struct Arrived {
    head: Vec<u8>,
    body: Vec<u8>,
    outcome: Option<Outcome>,
}

/// A connection by prior knowledge. It acknowledges settings, and does nothing else by itself.
pub struct Connection {
    socket: TcpStream,
    received: Vec<u8>,
    sent: Vec<u8>,
    /// The first frames that have come, for the message of a failure.
    seen: Vec<Frame>,
    streams: BTreeMap<u32, Arrived>,
    ended: Option<Outcome>,
    /// The last stream that a GOAWAY has named.
    last_stream: Option<u32>,
}

impl Connection {
    /// Connects, and sends the preface.
    pub fn open(address: SocketAddr) -> Self {
        Self::begin(TcpStream::connect(address).expect("connect"))
    }

    /// Opens a connection whose kernel takes a few KB at a time from the server.
    pub fn open_narrow(address: SocketAddr) -> Self {
        let socket =
            rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        sockopt::set_socket_recv_buffer_size(&socket, 4096).expect("a size");
        rustix::net::connect(&socket, &address).expect("connect");
        Self::begin(socket.into())
    }

    fn begin(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(wait_limit())).expect("read timeout");
        socket.set_write_timeout(Some(wait_limit())).expect("write timeout");
        socket.set_nodelay(true).expect("nodelay");
        let (received, sent, seen) = (Vec::new(), Vec::new(), Vec::new());
        let mut connection = Self {
            socket,
            received,
            sent,
            seen,
            streams: BTreeMap::new(),
            ended: None,
            last_stream: None,
        };
        connection.send(PREFACE);
        connection
    }

    /// Sends bytes. The server may have closed already.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.socket.write_all(bytes.as_ref());
        if self.sent.len() < 16 * 1024 {
            self.sent.extend_from_slice(bytes.as_ref());
        }
        self
    }

    /// Reads the next frame. Returns `None` if the connection has ended, or nothing comes.
    pub fn next(&mut self) -> Option<Frame> {
        let frame = loop {
            if let Some(frame) = Frame::take(&mut self.received) {
                break frame;
            }
            let mut buffer = [0; 64 * 1024];
            match self.socket.read(&mut buffer) {
                Ok(count @ 1..) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.ended = Some(Outcome::Silent);
                    return None;
                }
                Ok(_) | Err(_) => {
                    self.ended.get_or_insert(Outcome::Lost);
                    return None;
                }
            }
        };
        if self.seen.len() < 200 {
            self.seen.push(frame.clone());
        }
        self.note(&frame);
        Some(frame)
    }

    /// Keeps what a frame says about its stream or the connection.
    fn note(&mut self, frame: &Frame) {
        let is_last = frame.flags & END_STREAM != 0;
        let arrived = self.streams.entry(frame.stream).or_default();
        match frame.kind {
            SETTINGS if frame.flags & ACK == 0 => {
                let _ = self.socket.write_all(&super::frame(SETTINGS, ACK, 0, b""));
            }
            GOAWAY => {
                self.ended = frame.number(4).map(Outcome::Goaway);
                self.last_stream = frame.number(0);
            }
            RST_STREAM => {
                let code = frame.number(0).expect("an error code");
                arrived.outcome.get_or_insert(Outcome::Reset(code));
            }
            HEADERS if arrived.head.is_empty() => arrived.head.clone_from(&frame.payload),
            DATA => arrived.body.extend_from_slice(&frame.payload),
            _ => {}
        }
        if matches!(frame.kind, HEADERS | DATA) && is_last {
            let (head, body) = (arrived.head.clone(), arrived.body.clone());
            arrived.outcome.get_or_insert(Outcome::Answered(head, body));
        }
    }

    /// Waits for a frame.
    ///
    /// # Panics
    /// Panics if the connection ends before.
    pub fn wait_for(&mut self, what: &str, is_it: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            match self.next() {
                Some(frame) if is_it(&frame) => return frame,
                Some(_) => {}
                None => panic!("the connection ended before {what}\n{self}"),
            }
        }
    }

    /// Waits for the end of a stream: the response, a reset, or the end of the connection.
    pub fn outcome_of(&mut self, stream: u32) -> Outcome {
        loop {
            let arrived = self.streams.get(&stream);
            if let Some(outcome) = arrived.and_then(|arrived| arrived.outcome.clone()) {
                return outcome;
            }
            match &self.ended {
                None | Some(Outcome::Goaway(0)) => {}
                Some(ended) => return ended.clone(),
            }
            if self.next().is_none() {
                return self.ended.clone().unwrap_or(Outcome::Lost);
            }
        }
    }

    /// Waits until the server has closed. Returns the last thing that it said about the connection.
    pub fn end(&mut self) -> Outcome {
        while self.next().is_some() {}
        self.ended.clone().unwrap_or(Outcome::Lost)
    }

    /// Returns the head of the response on a stream, if it has come.
    pub fn head_of(&self, stream: u32) -> Option<&[u8]> {
        let head = &self.streams.get(&stream)?.head;
        (!head.is_empty()).then_some(head)
    }

    /// Returns how many bytes of the response on a stream have come.
    pub fn body_bytes(&self, stream: u32) -> usize {
        self.streams.get(&stream).map_or(0, |arrived| arrived.body.len())
    }

    /// Returns how many streams the server has reset.
    pub fn resets(&self) -> usize {
        let is_reset = |arrived: &&Arrived| matches!(arrived.outcome, Some(Outcome::Reset(_)));
        self.streams.values().filter(is_reset).count()
    }

    /// Returns how many requests the server has begun, by its GOAWAY.
    pub fn begun(&self) -> Option<u32> {
        self.last_stream.map(|stream| stream.div_ceil(2))
    }

    /// Sends bytes until the other side takes no more. Returns how many it has taken.
    pub fn send_until_stuck(&mut self, bytes: &[u8], most: usize) -> usize {
        self.socket.set_nonblocking(true).expect("nonblocking");
        let (mut taken, mut waits) = (0, 0);
        while waits < 50 && taken < most {
            match self.socket.write(&bytes[taken % bytes.len()..]) {
                Ok(count) => (taken, waits) = (taken + count, 0),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    waits += 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(_) => break,
            }
        }
        self.socket.set_nonblocking(false).expect("blocking");
        taken
    }
}

impl fmt::Display for Connection {
    /// Writes what was sent and what came back.
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(output, "sent:")?;
        frames(&self.sent).iter().take(30).try_for_each(|frame| writeln!(output, "  {frame:?}"))?;
        writeln!(output, "came back:")?;
        self.seen.iter().try_for_each(|frame| writeln!(output, "  {frame:?}"))?;
        write!(output, "  end: {:?}", self.ended)
    }
}
