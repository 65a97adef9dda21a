//! A server behind Kirin whose bytes a test controls.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::{wait_for, wait_limit};

/// A listening socket. A function serves each of its connections, each on its own thread.
pub struct Backend {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

/// A connection to the server.
pub struct BackendConnection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The number of earlier connections.
    pub number: usize,
}

/// A request as it arrived.
#[derive(Debug)]
pub struct ReceivedRequest {
    /// Request line and fields, without the empty line.
    pub head: String,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// The lines of the trailer section.
    pub trailers: Vec<String>,
}

impl ReceivedRequest {
    /// Returns the first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// Returns the request target.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Backend {
    /// Serves on a free port until the test ends.
    ///
    /// # Panics
    /// Panics if there is none.
    pub fn start(serve: impl Fn(BackendConnection) + Send + Sync + 'static) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").expect("a port"), serve)
    }

    /// Serves on `listener` until the test ends.
    ///
    /// # Panics
    /// Panics if it does not.
    pub fn start_on(
        listener: TcpListener,
        serve: impl Fn(BackendConnection) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("its address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, serve) = (Arc::clone(&connections), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let number = count.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(BackendConnection::new(stream, number)));
            }
        });
        Self { address, connections }
    }

    /// Answers every request with the result of `answer`, on connections that stay open.
    pub fn answering(answer: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static) -> Self {
        Self::start(move |mut connection| {
            while let Some(asked) = connection.read_request() {
                connection.send(answer(&asked));
            }
        })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl BackendConnection {
    fn new(stream: TcpStream, number: usize) -> Self {
        let _ = stream.set_read_timeout(Some(wait_limit()));
        let _ = stream.set_nodelay(true);
        Self { stream, received: Vec::new(), number }
    }

    /// Reads a request. Returns `None` if there is no more.
    pub fn read_request(&mut self) -> Option<ReceivedRequest> {
        let head = self.read_head()?;
        let mut trailers = Vec::new();
        let body = match (field(&head, "transfer-encoding"), field(&head, "content-length")) {
            (Some(_), _) => self.read_chunks(&mut trailers)?,
            (None, Some(length)) => self.take(length.parse().ok()?)?,
            (None, None) => Vec::new(),
        };
        Some(ReceivedRequest { head, body, trailers })
    }

    /// Reads only a head.
    pub fn read_head(&mut self) -> Option<String> {
        let end = self.find(b"\r\n\r\n")?;
        let head = self.take(end + 4)?;
        Some(String::from_utf8_lossy(&head[..end]).into_owned())
    }

    /// Reads `length` bytes.
    pub fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.received.len() < length {
            self.fill()?;
        }
        let rest = self.received.split_off(length);
        Some(std::mem::replace(&mut self.received, rest))
    }

    /// Sends bytes. Returns false if the other side has gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Waits until the other side has ended or reset the connection. Drops the bytes before that.
    pub fn wait_for_end(&mut self) {
        self.received.clear();
        while self.fill().is_some() {
            self.received.clear();
        }
    }

    /// Waits until the other side, a process of this machine, has read all that was sent, or has
    /// closed the connection.
    ///
    /// # Panics
    /// Panics if it does not.
    pub fn wait_until_read(&self) {
        let (Ok(own), Ok(other)) = (self.stream.local_addr(), self.stream.peer_addr()) else {
            return;
        };
        wait_for("the other side to read", || (unread(own, other) == 0).then_some(()));
    }

    /// Returns another handle of the socket.
    ///
    /// # Panics
    /// Panics if there is no descriptor.
    pub fn socket(&self) -> TcpStream {
        self.stream.try_clone().expect("a descriptor")
    }

    /// Ends this side of the connection.
    pub fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes the connection with a reset.
    pub fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    fn read_chunks(&mut self, trailers: &mut Vec<String>) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.read_line()?, 16).ok()?;
            if size == 0 {
                break;
            }
            let chunk = self.take(size + 2)?;
            body.extend_from_slice(&chunk[..size]);
        }
        loop {
            match self.read_line()? {
                line if line.is_empty() => return Some(body),
                line => trailers.push(line),
            }
        }
    }

    fn read_line(&mut self) -> Option<String> {
        let end = self.find(b"\r\n")?;
        let line = self.take(end + 2)?;
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    fn find(&mut self, end: &[u8]) -> Option<usize> {
        loop {
            if let Some(at) = self.received.windows(end.len()).position(|window| window == end) {
                return Some(at);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Option<()> {
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(count @ 1..) => self.received.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
        Some(())
    }
}

/// Returns the number of bytes from `sender` to `receiver` that are in the kernel (proc(5)).
fn unread(sender: SocketAddr, receiver: SocketAddr) -> u64 {
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let (sender, receiver) = (port(sender), port(receiver));
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("proc(5)");
    let count = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    let of_socket = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (local, remote) = (fields.get(1)?, fields.get(2)?);
        let (to_send, to_read) = fields.get(4)?.split_once(':')?;
        if local.ends_with(&sender) && remote.ends_with(&receiver) {
            Some(count(to_send))
        } else if local.ends_with(&receiver) && remote.ends_with(&sender) {
            Some(count(to_read))
        } else {
            None
        }
    };
    sockets.lines().skip(1).filter_map(of_socket).sum()
}
