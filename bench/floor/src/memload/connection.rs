//! A turn of one connection: it sends a batch and receives the replies.

use std::io::{self, Read, Write};
use std::time::Instant;

use kirin_floor::reply::{Element, next_element};
use socket2::Socket;

use crate::workload::Expected;

/// A non-blocking connection with one batch in progress.
pub struct Connection {
    pub socket: Socket,
    request: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    /// `received[consumed..filled]` are replies that have not been parsed yet.
    consumed: usize,
    filled: usize,
    expected: Expected,
    answered: Expected,
    since: Instant,
}

/// The result of a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// A part of the batch has not been sent. The connection waits until the socket takes more.
    Sending,
    /// Replies are missing. The connection waits for them.
    Waiting,
    /// All replies have arrived. Holds the numbers of commands and values in them.
    Answered(Expected),
}

const READ_BYTES: usize = 64 * 1024;

impl Connection {
    /// Takes over a connected socket and makes it non-blocking.
    pub fn new(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            request: Vec::new(),
            sent: 0,
            received: vec![0; READ_BYTES],
            consumed: 0,
            filled: 0,
            expected: Expected::default(),
            answered: Expected::default(),
            since: Instant::now(),
        })
    }

    /// Starts a batch, which `render` writes.
    pub fn begin(
        &mut self,
        now: Instant,
        render: impl FnOnce(&mut Vec<u8>) -> Expected,
    ) -> io::Result<Progress> {
        self.expected = render(&mut self.request);
        self.answered = Expected::default();
        self.sent = 0;
        self.since = now;
        self.send()
    }

    /// Returns the time when the batch began.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Returns whether a part of the batch has not been sent yet.
    pub fn is_sending(&self) -> bool {
        self.sent < self.request.len()
    }

    /// Returns the number of values that the batch asked for.
    pub fn expected_values(&self) -> usize {
        self.expected.values
    }

    /// Continues the batch after the socket has become ready. Every value must have `value_bytes`
    /// bytes.
    pub fn proceed(&mut self, value_bytes: usize) -> io::Result<Progress> {
        if self.is_sending() && self.send()? == Progress::Sending {
            // The server may wait for this client to read before it takes more.
            self.receive(value_bytes)?;
            return Ok(Progress::Sending);
        }
        self.receive(value_bytes)?;
        Ok(if self.answered.commands == self.expected.commands {
            Progress::Answered(self.answered)
        } else {
            Progress::Waiting
        })
    }

    fn send(&mut self) -> io::Result<Progress> {
        match self.socket.write(&self.request[self.sent..]) {
            Ok(count) => self.sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(if self.is_sending() { Progress::Sending } else { Progress::Waiting })
    }

    /// Reads once, and takes every complete element out of what has been read.
    fn receive(&mut self, value_bytes: usize) -> io::Result<()> {
        self.make_room();
        match self.socket.read(&mut self.received[self.filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        while let Some((element, length)) =
            next_element(&self.received[self.consumed..self.filled]).map_err(io::Error::other)?
        {
            self.consumed += length;
            match element {
                Element::Value { bytes, .. } if bytes == value_bytes => self.answered.values += 1,
                Element::Value { bytes, .. } => {
                    return Err(io::Error::other(format!(
                        "a value of {bytes} bytes instead of {value_bytes}"
                    )));
                }
                Element::End | Element::Stored => self.answered.commands += 1,
            }
        }
        Ok(())
    }

    /// Moves the unread bytes to the front. Doubles the buffer if one incomplete element fills it.
    fn make_room(&mut self) {
        self.received.copy_within(self.consumed..self.filled, 0);
        self.filled -= self.consumed;
        self.consumed = 0;
        if self.filled == self.received.len() {
            self.received.resize(self.received.len() * 2, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, Progress};
    use crate::workload::Expected;
    use socket2::{Domain, Socket, Type};
    use std::io::{Read, Write};
    use std::time::Instant;

    const BATCH: Expected = Expected { commands: 2, values: 2 };

    /// Creates a connection with a batch in progress. Returns it with the socket of the server.
    fn begun(request: &[u8]) -> (Connection, Socket, Progress) {
        let (client, server) = Socket::pair(Domain::UNIX, Type::STREAM, None).expect("a pair");
        let mut connection = Connection::new(client).expect("non-blocking");
        let render = |buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(request);
            BATCH
        };
        let progress = connection.begin(Instant::now(), render).expect("sent");
        (connection, server, progress)
    }

    #[test]
    fn a_batch_is_answered_by_its_last_reply_however_the_replies_are_cut() {
        let replies = b"VALUE a 0 2\r\nvv\r\nEND\r\nVALUE b 0 2\r\nvv\r\nEND\r\n";
        for cut in 1..replies.len() {
            let (mut connection, mut server, progress) = begun(b"get a\r\nget b\r\n");
            assert_eq!(progress, Progress::Waiting);
            server.write_all(&replies[..cut]).expect("written");
            assert_eq!(connection.proceed(2).expect("replies"), Progress::Waiting, "cut at {cut}");
            server.write_all(&replies[cut..]).expect("written");
            assert_eq!(
                connection.proceed(2).expect("replies"),
                Progress::Answered(BATCH),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_missing_value_is_seen() {
        let (mut connection, mut server, _) = begun(b"get a\r\nget b\r\n");
        server.write_all(b"END\r\nVALUE b 0 2\r\nvv\r\nEND\r\n").expect("written");
        let progress = connection.proceed(2).expect("replies");
        assert_eq!(progress, Progress::Answered(Expected { commands: 2, values: 1 }));
        assert_eq!(connection.expected_values(), 2);
    }

    #[test]
    fn a_value_of_another_size_is_an_error() {
        let (mut connection, mut server, _) = begun(b"get a\r\nget b\r\n");
        server.write_all(b"VALUE a 0 3\r\nvvv\r\nEND\r\n").expect("written");
        let error = connection.proceed(2).expect_err("three bytes instead of two");
        assert!(error.to_string().contains("3 bytes instead of 2"), "{error}");
    }

    #[test]
    fn a_server_that_closes_is_an_error() {
        let (mut connection, server, _) = begun(b"get a\r\nget b\r\n");
        drop(server);
        assert!(connection.proceed(2).is_err());
    }

    #[test]
    fn a_batch_larger_than_the_socket_goes_out_in_turns() {
        let request = vec![b'x'; 4 * 1024 * 1024];
        let (mut connection, mut server, mut progress) = begun(&request);
        assert_eq!(progress, Progress::Sending);
        server.set_nonblocking(true).expect("a socket");
        let mut received = 0;
        let mut chunk = vec![0; 64 * 1024];
        while received < request.len() {
            received += server.read(&mut chunk).expect("the connection has sent something");
            progress = connection.proceed(2).expect("more to send");
        }
        assert_eq!(progress, Progress::Waiting);
        assert!(!connection.is_sending());
    }
}
