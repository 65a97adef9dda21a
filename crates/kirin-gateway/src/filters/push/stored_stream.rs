//! A response that is stored while it is sent to the client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kirin_http::{BodyStream, StreamError, Trailers};

use super::Destination;

/// A body that is stored before the client has its end. One that is cut, or that the client did not
/// wait for, is not stored.
pub struct StoredStream {
    source: Box<dyn BodyStream>,
    /// None when the copy is being stored, or if it cannot be.
    copy: Option<BodyCopy>,
    storing: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// What the client gets when the copy is stored: the last chunk, or the end.
    held_back: Option<Bytes>,
}

struct BodyCopy {
    destination: Destination,
    /// The head, and the body so far.
    value: Vec<u8>,
    /// The length of the complete value, if it is known.
    length: Option<u64>,
}

impl StoredStream {
    /// Stores the response with this head and the body that `source` gives.
    pub fn new(source: Box<dyn BodyStream>, destination: Destination, head: Vec<u8>) -> Self {
        let length = source.length().map(|length| length + head.len() as u64);
        let copy = Some(BodyCopy { destination, value: head, length });
        Self { source, copy, storing: None, held_back: None }
    }

    /// Copies a chunk. Returns whether the body is complete with it.
    fn copy(&mut self, chunk: &Bytes) -> bool {
        let Some(copy) = &mut self.copy else { return false };
        let length = (copy.value.len() + chunk.len()) as u64;
        if !copy.destination.has_room(length) {
            copy.destination.warn_too_large();
            self.copy = None;
            return false;
        }
        copy.value.extend_from_slice(chunk);
        copy.length == Some(length)
    }

    /// Begins to store the copy, if there is one.
    fn store(&mut self) {
        self.storing = self.copy.take().map(|copy| {
            let store = async move { copy.destination.store(copy.value, &[]).await };
            Box::pin(store) as Pin<Box<dyn Future<Output = ()>>>
        });
    }

    fn poll_stored(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(storing) = &mut self.storing {
            ready!(storing.as_mut().poll(context));
            self.storing = None;
        }
        Poll::Ready(())
    }
}

impl BodyStream for StoredStream {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        if self.storing.is_none() {
            match ready!(self.source.poll_chunk(context)) {
                Some(Ok(chunk)) => {
                    if !self.copy(&chunk) {
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                    self.held_back = Some(chunk);
                }
                Some(Err(error)) => {
                    self.copy = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {}
            }
            self.store();
        }
        ready!(self.poll_stored(context));
        Poll::Ready(self.held_back.take().map(Ok))
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
