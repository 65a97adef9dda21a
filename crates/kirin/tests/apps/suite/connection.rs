//! A client's connection, which keeps the bytes of a response as they came.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use kirin_tests::wait_limit;

use super::cases::Framing;
use super::texts::shown;

/// A connection.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The method of the last request, which decides about the body of its response.
    pub method: String,
}

/// A response as it came.
#[derive(Debug)]
pub struct Received {
    pub status: u16,
    /// The head with its empty line.
    pub head: Vec<u8>,
    /// The body without its framing.
    pub body: Vec<u8>,
    pub framing: Framing,
    /// The lines behind the last chunk.
    pub trailers: Vec<Vec<u8>>,
    /// Whether the connection ended before the response did.
    pub is_cut: bool,
    /// Whether the connection can have another request.
    pub is_persistent: bool,
}

impl Received {
    /// Returns the values of a field.
    pub fn values(&self, name: &str) -> Vec<&[u8]> {
        let lines = self.head.split(|&byte| byte == b'\n').skip(1);
        let fields = lines.filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (field, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            field.eq_ignore_ascii_case(name.as_bytes()).then_some(value)
        });
        fields.collect()
    }
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// Panics if no process listens.
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(wait_limit())).expect("read timeout");
        stream.set_nodelay(true).expect("nodelay");
        Self { stream, received: Vec::new(), method: String::new() }
    }

    /// Sends bytes. The other side may have closed already: its response says more.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Ends this side.
    ///
    /// # Panics
    /// Panics if the connection is gone.
    pub fn end(&self) {
        self.stream.shutdown(Shutdown::Write).expect("shutdown");
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Reads a head, which may be that of an informational response.
    ///
    /// # Panics
    /// Panics if no complete head comes.
    pub fn read_head(&mut self) -> Received {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.fill(), "expected a head, came {} and an end", shown(&self.received));
        };
        let head: Vec<u8> = self.received.drain(..end).collect();
        let status = head.get(9..12).and_then(|text| str::from_utf8(text).ok()?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("expected a head, came {}", shown(&head)));
        let is_new = head.starts_with(b"HTTP/1.1 ");
        let mut received = Received {
            status,
            head,
            body: Vec::new(),
            framing: Framing::None,
            trailers: Vec::new(),
            is_cut: false,
            is_persistent: is_new,
        };
        let (coding, length) =
            (received.values("transfer-encoding"), received.values("content-length"));
        assert!(coding.len() + length.len() <= 1, "one framing: {}", shown(&received.head));
        received.framing = match (coding.len(), length.len()) {
            (0, 0) => Framing::None,
            (0, _) => Framing::Length,
            _ => Framing::Chunked,
        };
        received.is_persistent &= !received.values("connection").contains(&b"close".as_slice());
        received
    }

    /// Reads a response, and notes whether it was cut.
    ///
    /// # Panics
    /// Panics if there is none, or if it is malformed.
    pub fn read(&mut self) -> Received {
        let mut received = self.read_head();
        let is_bodiless = self.method == "HEAD" || matches!(received.status, 100..200 | 204 | 304);
        if is_bodiless {
            return received;
        }
        let is_whole = match received.framing {
            Framing::Chunked => self.read_chunks(&mut received.body, &mut received.trailers),
            Framing::Length => {
                let length = str::from_utf8(received.values("content-length")[0]).expect("digits");
                let length = length.parse().expect("a length");
                self.take(length, &mut received.body)
            }
            Framing::None => {
                while self.fill() {}
                received.body = std::mem::take(&mut self.received);
                received.is_persistent = false;
                true
            }
        };
        received.is_cut = !is_whole;
        received.is_persistent &= is_whole;
        received
    }

    /// Reads as many bytes as these, and returns what came up to the end of the connection.
    pub fn read_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.take(count, &mut bytes);
        bytes
    }

    /// Reads up to the end of the connection.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.received)
    }

    /// Reads chunks, and trailers behind them. Returns whether they reach their end.
    fn read_chunks(&mut self, body: &mut Vec<u8>, trailers: &mut Vec<Vec<u8>>) -> bool {
        loop {
            let Some(line) = self.line() else { return false };
            let size =
                str::from_utf8(&line).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
            let size = size.unwrap_or_else(|| panic!("chunk size {}", shown(&line)));
            if size > 0 && !self.take(size, body) {
                return false;
            }
            loop {
                match self.line() {
                    Some(rest) if rest.is_empty() => break,
                    Some(trailer) if size == 0 => trailers.push(trailer),
                    Some(rest) => panic!("expected a chunk's end, came {}", shown(&rest)),
                    None => return false,
                }
            }
            if size == 0 {
                return true;
            }
        }
    }

    /// Returns the next line without its end, or `None` if the connection ends before.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.received.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.received.drain(..at + 2).collect();
                return Some(line[..at].to_vec());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Moves `count` bytes into `bytes`, or all if the connection ends before. Returns whether they
    /// came.
    fn take(&mut self, count: usize, bytes: &mut Vec<u8>) -> bool {
        while self.received.len() < count && self.fill() {}
        let is_whole = self.received.len() >= count;
        bytes.extend(self.received.drain(..count.min(self.received.len())));
        is_whole
    }

    /// Reads more. Returns false at the end of the connection.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error} after {}", shown(&self.received)),
        }
    }
}
