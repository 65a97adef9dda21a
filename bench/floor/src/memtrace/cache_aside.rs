//! The client. It gets a batch of keys and sets those that were missing.
//!
//! The sets have `noreply` and are sent in one write with the next get, so a batch costs one round
//! trip. The server executes commands in order. It has therefore stored the missing objects before
//! it looks up the next batch.

use std::io::{self, Read, Write};

use kirin_floor::objects::{KEY_BYTES, ValueSizes, append_key, object_of};
use kirin_floor::reply::{Element, next_element};

/// The numbers of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The number of requests.
    pub requests: usize,
    /// The number of requests whose object was missing.
    pub misses: usize,
    /// The number of requests in the second half of the trace, when the server is full.
    pub later_requests: usize,
    /// The number of misses in the second half.
    pub later_misses: usize,
    /// The number of bytes in all requested values.
    pub requested_bytes: usize,
    /// The number of bytes in the missing values.
    pub missed_bytes: usize,
    /// The number of misses of an object that another request of the same batch had missed. Most of
    /// these would be hits for a client that makes one request after the other.
    pub repeated_misses: usize,
}

/// Plays the complete trace.
pub fn play(
    server: impl Read + Write,
    requests: &[u32],
    values: ValueSizes,
    batch: usize,
) -> io::Result<Outcome> {
    let mut client = Client::new(server, values);
    let mut outcome = Outcome::default();
    let mut missing = Vec::new();
    let mut done = 0;
    for objects in requests.chunks(batch.max(1)) {
        client.send(&missing, objects)?;
        let missed = client.receive_missing(objects)?;
        missing.clear();
        for &object in &missed {
            if missing.contains(&object) {
                outcome.repeated_misses += 1;
            } else {
                missing.push(object);
            }
        }
        outcome.requests += objects.len();
        outcome.misses += missed.len();
        outcome.requested_bytes += objects.iter().map(|&object| values.of(object)).sum::<usize>();
        outcome.missed_bytes += missed.iter().map(|&object| values.of(object)).sum::<usize>();
        if done >= requests.len() / 2 {
            outcome.later_requests += objects.len();
            outcome.later_misses += missed.len();
        }
        done += objects.len();
    }
    Ok(outcome)
}

struct Client<S> {
    server: S,
    values: ValueSizes,
    /// The content of every value. It is as long as the largest value.
    content: Vec<u8>,
    request: Vec<u8>,
    received: Vec<u8>,
    /// `received[..filled]` has arrived and has not been parsed yet.
    filled: usize,
}

const READ_BYTES: usize = 256 * 1024;

impl<S: Read + Write> Client<S> {
    fn new(server: S, values: ValueSizes) -> Self {
        Self {
            server,
            values,
            content: vec![b'v'; values.largest_bytes()],
            request: Vec::new(),
            received: vec![0; READ_BYTES.max(2 * values.largest_bytes())],
            filled: 0,
        }
    }

    /// Sends the sets and the get.
    fn send(&mut self, missing: &[u32], objects: &[u32]) -> io::Result<()> {
        self.request.clear();
        for &object in missing {
            let bytes = self.values.of(object);
            self.request.extend_from_slice(b"set ");
            append_key(object, &mut self.request);
            write!(self.request, " 0 0 {bytes} noreply\r\n")?;
            self.request.extend_from_slice(&self.content[..bytes]);
            self.request.extend_from_slice(b"\r\n");
        }
        self.request.reserve(objects.len() * (KEY_BYTES + 1));
        self.request.extend_from_slice(b"get");
        for &object in objects {
            self.request.push(b' ');
            append_key(object, &mut self.request);
        }
        self.request.extend_from_slice(b"\r\n");
        self.server.write_all(&self.request)
    }

    /// Reads the values up to `END`. Values come in the order of the keys, so a key that is skipped
    /// is missing.
    fn receive_missing(&mut self, objects: &[u32]) -> io::Result<Vec<u32>> {
        let mut missing = Vec::new();
        let mut waiting = objects.iter().copied();
        loop {
            let mut consumed = 0;
            while let Some((element, length)) =
                next_element(&self.received[consumed..self.filled]).map_err(io::Error::other)?
            {
                consumed += length;
                match element {
                    Element::Value { key, bytes } => {
                        let found =
                            object_of(key).filter(|&object| self.values.of(object) == bytes);
                        loop {
                            match waiting.next() {
                                Some(object) if Some(object) == found => break,
                                Some(object) => missing.push(object),
                                None => return Err(not_asked_for(key, bytes)),
                            }
                        }
                    }
                    Element::End => {
                        missing.extend(waiting);
                        self.received.copy_within(consumed..self.filled, 0);
                        self.filled -= consumed;
                        return Ok(missing);
                    }
                    Element::Stored => {
                        return Err(io::Error::other("an answer to a set that asked for none"));
                    }
                }
            }
            self.received.copy_within(consumed..self.filled, 0);
            self.filled -= consumed;
            match self.server.read(&mut self.received[self.filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.filled += count,
            }
        }
    }
}

fn not_asked_for(key: &[u8], bytes: usize) -> io::Error {
    let key = String::from_utf8_lossy(key);
    io::Error::other(format!("{key} with {bytes} bytes was not asked for, or not in this order"))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, play};
    use kirin_floor::objects::{ValueSizes, object_of};
    use std::collections::VecDeque;
    use std::io::{self, Read, Write};

    /// A memcached in memory. It keeps the last `capacity` objects, and answers in pieces.
    struct Fifo {
        capacity: usize,
        kept: VecDeque<(u32, usize)>,
        replies: VecDeque<u8>,
        piece_bytes: usize,
    }

    impl Fifo {
        fn new(capacity: usize, piece_bytes: usize) -> Self {
            Self { capacity, kept: VecDeque::new(), replies: VecDeque::new(), piece_bytes }
        }
    }

    impl Write for Fifo {
        fn write(&mut self, request: &[u8]) -> io::Result<usize> {
            for line in str::from_utf8(request).expect("ASCII").lines() {
                let words: Vec<&str> = line.split(' ').collect();
                match words.as_slice() {
                    ["set", key, "0", "0", bytes, "noreply"] => {
                        let object = object_of(key.as_bytes()).expect("a key");
                        self.kept.push_back((object, bytes.parse().expect("a size")));
                        if self.kept.len() > self.capacity {
                            self.kept.pop_front();
                        }
                    }
                    ["get", keys @ ..] => {
                        for key in keys {
                            let object = object_of(key.as_bytes()).expect("a key");
                            if let Some((_, bytes)) =
                                self.kept.iter().find(|(kept, _)| *kept == object)
                            {
                                let value = "v".repeat(*bytes);
                                self.replies.extend(
                                    format!("VALUE {key} 0 {bytes}\r\n{value}\r\n").bytes(),
                                );
                            }
                        }
                        self.replies.extend(b"END\r\n");
                    }
                    [value] => assert!(value.bytes().all(|byte| byte == b'v'), "{value}"),
                    other => panic!("unexpected: {other:?}"),
                }
            }
            Ok(request.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Fifo {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.piece_bytes.min(buffer.len()).min(self.replies.len());
            for (to, from) in buffer.iter_mut().zip(self.replies.drain(..count)) {
                *to = from;
            }
            Ok(count)
        }
    }

    #[test]
    fn misses_are_stored_and_hit_from_then_on() {
        for piece_bytes in [1, 7, 1000] {
            let values: ValueSizes = "1-50".parse().expect("sizes");
            let requests = [1, 2, 3, 1, 4, 2, 2, 5];
            let outcome = play(Fifo::new(10, piece_bytes), &requests, values, 2).expect("played");
            let bytes = |objects: &[u32]| objects.iter().map(|&object| values.of(object)).sum();
            let expected = Outcome {
                requests: 8,
                misses: 5,
                later_requests: 4,
                later_misses: 2,
                requested_bytes: bytes(&requests),
                missed_bytes: bytes(&[1, 2, 3, 4, 5]),
                repeated_misses: 0,
            };
            assert_eq!(outcome, expected, "pieces of {piece_bytes}");
        }
    }

    #[test]
    fn an_evicted_key_misses_again() {
        let values = "5".parse().expect("a size");
        let outcome = play(Fifo::new(2, 100), &[1, 2, 3, 1], values, 1).expect("played");
        assert_eq!(outcome.misses, 4);
    }

    #[test]
    fn an_object_missed_twice_in_a_batch_is_stored_once_and_counted_apart() {
        let values = "5".parse().expect("a size");
        let outcome = play(Fifo::new(9, 100), &[1, 1, 1, 2, 1], values, 4).expect("played");
        assert_eq!((outcome.misses, outcome.repeated_misses), (4, 2));
    }

    #[test]
    fn a_value_that_nobody_asked_for_or_of_a_wrong_size_is_an_error() {
        for reply in
            ["VALUE trace:0000000009 0 5\r\nvvvvv\r\n", "VALUE trace:0000000001 0 6\r\nvvvvvv\r\n"]
        {
            let mut server = Fifo::new(9, 100);
            server.replies.extend(reply.bytes());
            let values = "5".parse().expect("a size");
            let error = play(server, &[1, 2], values, 2).expect_err(reply);
            assert!(error.to_string().contains("was not asked for"), "{error}");
        }
    }
}
