//! A memcached client for raw lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::wait_limit;

/// A connection to a memcached port on a unix socket.
pub struct Memcached {
    stream: BufReader<UnixStream>,
}

impl Memcached {
    /// Connects.
    ///
    /// # Panics
    /// Panics if no process listens.
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("connect to the memcached socket");
        stream.set_read_timeout(Some(wait_limit())).expect("read timeout");
        Self { stream: BufReader::new(stream) }
    }

    /// Sends bytes unchanged.
    ///
    /// # Panics
    /// Panics if the connection is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.get_mut().write_all(bytes.as_ref()).expect("send");
        self
    }

    /// Returns one line of the answer.
    ///
    /// # Panics
    /// Panics if none arrives.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Sends a command. Returns one line of the answer, or `None` if the connection ends first.
    pub fn try_ask(&mut self, command: &str) -> Option<String> {
        self.stream.get_mut().write_all(command.as_bytes()).ok()?;
        let mut line = String::new();
        self.stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end().to_owned())
    }

    /// Stores an item.
    ///
    /// # Panics
    /// Panics if it is not stored.
    pub fn set(&mut self, key: &str, value: &[u8]) {
        self.send(format!("set {key} 0 0 {}\r\n", value.len())).send(value).send("\r\n");
        assert_eq!(self.line(), "STORED", "set {key}");
    }

    /// Deletes an item.
    pub fn delete(&mut self, key: &str) -> String {
        self.send(format!("delete {key}\r\n"));
        self.line()
    }

    /// Reads an item.
    ///
    /// # Panics
    /// Panics if the answer is malformed.
    pub fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        self.send(format!("get {key}\r\n"));
        let line = self.line();
        if line == "END" {
            return None;
        }
        let length: usize =
            line.rsplit(' ').next().and_then(|length| length.parse().ok()).expect("a length");
        let mut value = vec![0; length + 2];
        self.stream.read_exact(&mut value).expect("a value");
        value.truncate(length);
        assert_eq!(self.line(), "END");
        Some(value)
    }
}
