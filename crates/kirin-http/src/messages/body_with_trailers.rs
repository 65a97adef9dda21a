//! A complete body with trailers.

use std::task::{Context, Poll};

use bytes::Bytes;

use crate::body::{BodyStream, StreamError};
use crate::trailers::Trailers;

/// A complete body with trailers. It does not tell its length, so that the client gets it in
/// chunks.
pub struct BodyWithTrailers {
    data: Bytes,
    trailers: Option<Trailers>,
}

impl BodyWithTrailers {
    /// Returns the body `data` with `trailers` behind it.
    pub fn new(data: Bytes, trailers: Trailers) -> Self {
        Self { data, trailers: Some(trailers) }
    }
}

impl BodyStream for BodyWithTrailers {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        let data = std::mem::take(&mut self.data);
        Poll::Ready(if data.is_empty() { None } else { Some(Ok(data)) })
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn may_have_trailers(&self) -> bool {
        true
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        self.trailers.take()
    }
}
