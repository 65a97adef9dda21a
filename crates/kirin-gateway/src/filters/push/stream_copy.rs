//! A response that is stored while it is sent to the client.

use std::task::Poll;

use bytes::Bytes;
use kirin_http::{StreamError, StreamObserver};

use super::Destination;

/// Keeps a copy of a response while it is sent, and stores it at the end. A body that is cut, or
/// that the client did not wait for, is not stored.
pub struct StreamCopy {
    /// None after the end, or if it cannot be stored.
    copy: Option<Copy>,
}

struct Copy {
    destination: Destination,
    /// The head, and the body so far.
    value: Vec<u8>,
}

impl StreamCopy {
    /// Creates the copy of a response with this head.
    pub fn new(destination: Destination, head: Vec<u8>) -> Self {
        Self { copy: Some(Copy { destination, value: head }) }
    }
}

impl StreamObserver for StreamCopy {
    fn note(&mut self, polled: &Poll<Option<Result<Bytes, StreamError>>>) {
        let Poll::Ready(next) = polled else { return };
        match (next, self.copy.take()) {
            (_, None) | (Some(Err(_)), _) => {}
            (None, Some(copy)) => copy.destination.store(copy.value, &[]),
            (Some(Ok(chunk)), Some(mut copy)) => {
                if copy.destination.has_room((copy.value.len() + chunk.len()) as u64) {
                    copy.value.extend_from_slice(chunk);
                    self.copy = Some(copy);
                } else {
                    copy.destination.warn_too_large();
                }
            }
        }
    }
}
