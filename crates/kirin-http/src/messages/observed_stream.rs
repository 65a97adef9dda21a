//! A body stream whose bytes are seen on their way to the client.

use std::task::{Context, Poll};

use bytes::Bytes;

use crate::body::{BodyStream, StreamError};
use crate::trailers::Trailers;

/// Sees what a stream returns.
pub trait StreamObserver: 'static {
    /// Notes what one poll of the stream has returned.
    fn note(&mut self, polled: &Poll<Option<Result<Bytes, StreamError>>>);
}

/// Returns what `source` returns, and shows it to an observer.
pub struct ObservedStream<O> {
    source: Box<dyn BodyStream>,
    observer: O,
}

impl<O: StreamObserver> ObservedStream<O> {
    /// Creates the stream.
    pub fn new(source: Box<dyn BodyStream>, observer: O) -> Self {
        Self { source, observer }
    }
}

impl<O: StreamObserver> BodyStream for ObservedStream<O> {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let polled = self.source.poll_chunk(context);
        self.observer.note(&polled);
        polled
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
