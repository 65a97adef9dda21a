//! An HTTP/1 client that sends exactly the given bytes and returns exactly the received ones.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::wait_limit;

/// A connection.
pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The head as received, without the empty line.
    pub head: String,
    /// The body without its framing.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns the first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    /// Connects.
    ///
    /// # Panics
    /// Panics if no process listens.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(wait_limit())).expect("read timeout");
        stream.set_nodelay(true).expect("nodelay");
        Self { stream, received: Vec::new() }
    }

    /// Sends bytes unchanged.
    ///
    /// # Panics
    /// Panics if the connection is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).expect("send");
        self
    }

    /// Sends bytes to a server that may have closed already.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends bytes as long as the other side takes them quickly. Returns false when it takes no
    /// more.
    ///
    /// # Panics
    /// Panics if the socket takes no time limit.
    pub fn try_send_now(&mut self, bytes: &[u8]) -> bool {
        self.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("write timeout");
        self.stream.write_all(bytes).is_ok()
    }

    /// Ends this side of the connection.
    pub fn end(&mut self) -> &mut Self {
        self.stream.shutdown(Shutdown::Write).expect("shutdown");
        self
    }

    /// Sends bytes. Returns whether the other side has ended the connection.
    ///
    /// # Panics
    /// Panics if an answer comes that is no refusal.
    pub fn is_ended_after_sending(&mut self, bytes: &[u8]) -> bool {
        if self.stream.write_all(bytes).is_err() {
            return true;
        }
        let mut buffer = [0; 1024];
        self.stream.set_nonblocking(true).expect("nonblocking");
        let read = self.stream.read(&mut buffer);
        self.stream.set_nonblocking(false).expect("blocking");
        match read {
            Ok(count) => {
                assert!(!buffer[..count].starts_with(b"HTTP/1.1 2"), "an answer");
                true
            }
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }

    /// Reads and drops up to `bytes` bytes. Returns how many there were.
    pub fn read_some(&mut self, bytes: usize) -> usize {
        self.stream.read(&mut vec![0; bytes]).unwrap_or(0)
    }

    /// Ends the connection with a reset, as a killed process with unread bytes does.
    ///
    /// # Panics
    /// Panics if there is no other socket to take the place.
    pub fn reset(&mut self) {
        let linger = Some(Duration::ZERO);
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, linger);
        let unconnected = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        );
        self.stream = TcpStream::from(unconnected.expect("a socket"));
    }

    /// Sends GET for `target` and returns the response.
    pub fn get(&mut self, target: &str) -> Reply {
        self.request("GET", target, "")
    }

    /// Sends a request without a body and returns the response. `fields` are lines that end in CR
    /// LF.
    pub fn request(&mut self, method: &str, target: &str, fields: &str) -> Reply {
        self.send(format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
        if method == "HEAD" { self.read_head_reply() } else { self.read_reply() }
    }

    /// Sends POST with `body` and returns the response. Head and body are one write.
    pub fn post(&mut self, target: &str, media_type: &str, body: &[u8]) -> Reply {
        let length = body.len();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: test\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        self.send([head.as_bytes(), body].concat());
        self.read_reply()
    }

    /// Reads one response.
    ///
    /// # Panics
    /// Panics if it is cut or malformed.
    pub fn read_reply(&mut self) -> Reply {
        let mut reply = self.read_head_reply();
        let bodiless = reply.status < 200 || reply.status == 204 || reply.status == 304;
        reply.body = match (reply.field("transfer-encoding"), reply.field("content-length")) {
            _ if bodiless => Vec::new(),
            (Some(_), _) => self.read_chunks(),
            (None, Some(length)) => {
                let length = length.parse().expect("a length");
                self.take(length, &reply.head)
            }
            (None, None) => self.read_to_end(),
        };
        reply
    }

    /// Reads the head of a response, as after a HEAD request.
    ///
    /// # Panics
    /// Panics if it is cut or malformed.
    pub fn read_head_reply(&mut self) -> Reply {
        let end = self.find(b"\r\n\r\n");
        let head = String::from_utf8_lossy(&self.received[..end]).into_owned();
        self.received.drain(..end + 4);
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        Reply {
            status: status.unwrap_or_else(|| panic!("not a response: {head:?}")),
            head,
            body: Vec::new(),
        }
    }

    /// Reads up to the end of `bytes`, and returns everything up to there.
    ///
    /// # Panics
    /// Panics if they do not arrive.
    pub fn read_until(&mut self, bytes: &[u8]) -> Vec<u8> {
        let end = self.find(bytes) + bytes.len();
        self.take(end, "expected bytes")
    }

    /// Reads up to the end of `bytes`. Returns false if the connection ends before.
    pub fn try_read_until(&mut self, bytes: &[u8]) -> bool {
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = self.received.windows(bytes.len()).position(|window| window == bytes)
            {
                self.received.drain(..at + bytes.len());
                return true;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return false,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// Reads exactly these bytes.
    ///
    /// # Panics
    /// Panics if others arrive.
    pub fn read_exactly(&mut self, bytes: &[u8]) {
        let got = self.take(bytes.len(), "expected bytes");
        assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(bytes));
    }

    /// Reads everything up to the end of the connection.
    ///
    /// # Panics
    /// Panics if it does not end.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return std::mem::take(&mut self.received),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return std::mem::take(&mut self.received);
                }
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&self.received)),
            }
        }
    }

    /// Reads a chunked body, or the rest of one, to its end.
    ///
    /// # Panics
    /// Panics if it is cut or malformed.
    pub fn read_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let end = self.find(b"\r\n");
            let line = String::from_utf8_lossy(&self.received[..end]).into_owned();
            self.received.drain(..end + 2);
            let size =
                usize::from_str_radix(&line, 16).unwrap_or_else(|_| panic!("chunk size {line:?}"));
            let mut chunk = self.take(size + 2, "a chunk");
            assert_eq!(chunk.split_off(size), b"\r\n", "a chunk's end");
            if size == 0 {
                return body;
            }
            body.append(&mut chunk);
        }
    }

    fn take(&mut self, length: usize, what: &str) -> Vec<u8> {
        while self.received.len() < length {
            self.fill(what);
        }
        let rest = self.received.split_off(length);
        std::mem::replace(&mut self.received, rest)
    }

    fn find(&mut self, end: &[u8]) -> usize {
        loop {
            if let Some(at) = self.received.windows(end.len()).position(|window| window == end) {
                return at;
            }
            self.fill("a line end");
        }
    }

    fn fill(&mut self, what: &str) {
        let mut buffer = [0; 64 * 1024];
        let count = self.stream.read(&mut buffer).unwrap_or_else(|error| {
            panic!(
                "{error} while waiting for {what}; got {:?}",
                String::from_utf8_lossy(&self.received)
            )
        });
        assert!(
            count > 0,
            "the connection ended inside {what}; got {:?}",
            String::from_utf8_lossy(&self.received)
        );
        self.received.extend_from_slice(&buffer[..count]);
    }
}
