//! A response that is stored while it is sent to the client.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kirin_http::Trailers;
use kirin_http::body::{BodyStream, StreamError};

use super::Destination;

/// Returns what `source` returns and keeps a copy, which is stored at the end. A body that is cut,
/// or that the client did not wait for, is not stored.
pub struct PushedStream {
    source: Box<dyn BodyStream>,
    /// None after the end, or if it cannot be stored.
    copy: Option<Copy>,
}

struct Copy {
    destination: Destination,
    /// The head, and the body so far.
    value: Vec<u8>,
}

impl PushedStream {
    /// Creates the stream of a response with this head.
    pub fn new(source: Box<dyn BodyStream>, destination: Destination, head: Vec<u8>) -> Self {
        Self { source, copy: Some(Copy { destination, value: head }) }
    }
}

impl BodyStream for PushedStream {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let next = ready!(self.source.poll_chunk(context));
        match (&next, self.copy.take()) {
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
        Poll::Ready(next)
    }

    fn length(&self) -> Option<u64> {
        self.source.length()
    }

    fn may_have_trailers(&self) -> bool {
        self.source.may_have_trailers()
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        self.source.take_trailers()
    }
}
