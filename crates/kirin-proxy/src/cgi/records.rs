//! FastCGI records: takes the response of a server out of them, and puts the body of a request into
//! them.
//!
//! This sits below the socket, so that an exchange reads the response as if it were alone on the
//! connection.

use std::io;
use std::task::{Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use kirin_cgi::ErrorOutput;
use kirin_cgi::fastcgi::{Decoder, FastCgiEvent, MAX_CONTENT_BYTES, stdin_header};

use crate::server::ProxiedServer;

/// Bytes read at once.
const INPUT_BYTES: usize = 32 * 1024;

/// The records on one connection.
pub(crate) struct Records {
    decoder: Decoder,
    /// Bytes that have been read and not been decoded.
    input: BytesMut,
    /// Bytes of the response that have been decoded and not been taken.
    response: Bytes,
    has_ended: bool,
    errors: ErrorLog,
}

impl Records {
    /// Returns the records of a new connection to `server`.
    pub(crate) fn new(upstream: &str, server: &ProxiedServer) -> Self {
        Self {
            decoder: Decoder::default(),
            input: BytesMut::new(),
            response: Bytes::new(),
            has_ended: false,
            errors: ErrorLog {
                upstream: upstream.into(),
                server: server.to_string(),
                output: ErrorOutput::default(),
            },
        }
    }

    /// Passes the next bytes of the response to `take`, which returns how many it has taken.
    /// Returns that number, or 0 at the end of the response.
    ///
    /// `read` appends to the input. It is an error if the connection ends before the response.
    pub(crate) fn poll_response(
        &mut self,
        mut read: impl FnMut(&mut BytesMut) -> Poll<io::Result<usize>>,
        mut take: impl FnMut(&[u8]) -> usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            self.decode()?;
            if !self.response.is_empty() {
                let count = take(&self.response);
                self.response.advance(count);
                return Poll::Ready(Ok(count));
            }
            if self.has_ended {
                return Poll::Ready(Ok(0));
            }
            self.input.reserve(INPUT_BYTES);
            if ready!(read(&mut self.input))? == 0 {
                self.errors.end();
                let reason = "without the record that ends a FastCGI request";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
            }
        }
    }

    /// Decodes the input until there are bytes of the response.
    fn decode(&mut self) -> io::Result<()> {
        while self.response.is_empty() && !self.has_ended {
            let event = self.decoder.next(&mut self.input);
            match event.map_err(|bad| io::Error::new(io::ErrorKind::InvalidData, bad))? {
                Some(FastCgiEvent::Stdout(bytes)) => self.response = bytes,
                Some(FastCgiEvent::Stderr(bytes)) => self.errors.take(&bytes),
                Some(FastCgiEvent::End) => {
                    self.has_ended = true;
                    self.errors.end();
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Returns whether the end has been read and nothing of the response is left.
    pub(crate) fn has_ended(&mut self) -> bool {
        // The next read reports the error.
        let _ = self.decode();
        self.has_ended && self.response.is_empty()
    }

    /// Prepares for another request. Returns false if bytes have followed the end.
    pub(crate) fn begin_next(&mut self) -> bool {
        self.has_ended = false;
        self.errors.output = ErrorOutput::default();
        // An idle connection must not hold a buffer.
        let is_clean = self.input.is_empty() && !self.decoder.is_inside_record();
        self.input = BytesMut::new();
        is_clean
    }
}

/// Writes the error output of a server to the log, line by line.
struct ErrorLog {
    upstream: String,
    server: String,
    output: ErrorOutput,
}

impl ErrorLog {
    fn take(&mut self, bytes: &[u8]) {
        let (upstream, server) = (self.upstream.as_str(), self.server.as_str());
        self.output.take(bytes, |line| log(upstream, server, line));
    }

    /// Ends the error output of a response.
    fn end(&mut self) {
        let (upstream, server) = (self.upstream.as_str(), self.server.as_str());
        let dropped = self.output.end(|line| log(upstream, server, line));
        if dropped > 0 {
            tracing::warn!(
                upstream,
                server,
                dropped,
                "more error output of a FastCGI server than is logged"
            );
        }
    }
}

fn log(upstream: &str, server: &str, line: &str) {
    tracing::warn!(upstream, server, line, "error output of a FastCGI server");
}

/// Returns the records of a complete request: `begin`, and then `body` in records.
pub(crate) fn in_records(begin: &[u8], body: &[u8]) -> Vec<u8> {
    let mut records = Vec::with_capacity(begin.len() + body.len() + body.len() / 4096 + 16);
    records.extend_from_slice(begin);
    for part in body.chunks(MAX_CONTENT_BYTES) {
        records.extend_from_slice(&stdin_header(part.len()));
        records.extend_from_slice(part);
    }
    records.extend_from_slice(&stdin_header(0));
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use crate::server::Endpoint;

    fn records() -> Records {
        let address = "fastcgi://127.0.0.1:9000".parse().unwrap();
        let config = ServerConfig { address, weight: 1, backup: false, max_in_flight: None };
        let endpoint = Endpoint::from_location(&config.address.location).unwrap();
        Records::new("php", &ProxiedServer::new(&config, endpoint))
    }

    fn record(kind: u8, content: &[u8]) -> Vec<u8> {
        let [.., high, low] = content.len().to_be_bytes();
        [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
    }

    /// Reads everything, in pieces of `piece` bytes, into room for `room` bytes.
    fn response(
        records: &mut Records,
        mut wire: &[u8],
        piece: usize,
        room: usize,
    ) -> io::Result<Vec<u8>> {
        let mut response = Vec::new();
        loop {
            let read = |input: &mut BytesMut| {
                let (now, later) = wire.split_at(piece.min(wire.len()));
                wire = later;
                input.extend_from_slice(now);
                Poll::Ready(Ok(now.len()))
            };
            let read = records.poll_response(read, |there| {
                let count = there.len().min(room);
                response.extend_from_slice(&there[..count]);
                count
            });
            let Poll::Ready(count) = read else { panic!("nothing waits") };
            if count? == 0 {
                return Ok(response);
            }
        }
    }

    #[test]
    fn the_response_does_not_depend_on_how_it_arrives_and_is_read() {
        let wire = [
            record(6, b"Status: 200\r\n\r\n"),
            record(7, b"oh\nno"),
            record(6, b"body"),
            record(3, &[0; 8]),
        ]
        .concat();
        for piece in [1, 7, 1000] {
            for room in [1, 3, 1000] {
                let mut records = records();
                for _ in 0..2 {
                    let read = response(&mut records, &wire, piece, room).unwrap();
                    assert_eq!(read, b"Status: 200\r\n\r\nbody", "{piece} {room}");
                    assert!(records.has_ended() && records.begin_next());
                }
            }
        }
    }

    #[test]
    fn an_unfinished_response_is_an_error_and_excess_bytes_forbid_reuse() {
        let cut = response(&mut records(), &record(6, b"body"), 1000, 1000).unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        let garbage = response(&mut records(), b"HTTP/1.1 200 OK\r\n\r\n", 1000, 1000).unwrap_err();
        assert_eq!(garbage.kind(), io::ErrorKind::InvalidData);
        let wire = [record(3, &[0; 8]), record(6, b"more")].concat();
        let mut records = records();
        assert_eq!(response(&mut records, &wire, 1000, 1000).unwrap(), b"");
        assert!(records.has_ended() && !records.begin_next());
    }

    #[test]
    fn a_body_is_in_records_that_have_an_end() {
        let whole = in_records(b"begin", &[b'x'; MAX_CONTENT_BYTES + 1]);
        assert_eq!(&whole[..5], b"begin");
        assert_eq!(whole[5..13], stdin_header(MAX_CONTENT_BYTES));
        let second = 13 + MAX_CONTENT_BYTES;
        assert_eq!(whole[second..second + 9], [&stdin_header(1)[..], b"x"].concat());
        assert_eq!(whole[second + 9..], stdin_header(0));
    }
}
