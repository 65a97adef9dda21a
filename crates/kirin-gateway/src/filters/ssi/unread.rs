//! Reads bodies that must be in memory before directives can be found in them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use kirin_http::{Body, BodyStream, Response, StreamError, Trailers};

use crate::request::collected_body::collect;

/// The largest page in which directives are looked for, in bytes.
pub const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Reads the body into memory, without its trailers: they would be about another page. A body that
/// is too large, or is cut, is returned as it would have been sent.
pub async fn read(response: Response) -> Result<Response, Response> {
    let Response { status, mut fields, body, answered_by } = response;
    match body {
        Body::Stream(mut stream) => {
            let (mut pieces, mut length) = (VecDeque::new(), 0);
            let rest = loop {
                match poll_fn(|context| stream.poll_chunk(context)).await {
                    None => break None,
                    Some(Err(error)) => break Some(Rest::Cut(error)),
                    Some(Ok(chunk)) => {
                        length += chunk.len();
                        pieces.push_back(chunk);
                    }
                }
                if length > MAX_PAGE_BYTES {
                    tracing::warn!(
                        limit_bytes = MAX_PAGE_BYTES,
                        "a page is too large to be looked at for includes"
                    );
                    break Some(Rest::Stream(stream));
                }
            };
            match rest {
                None => {
                    fields.remove("trailer");
                    Ok(Response {
                        status,
                        fields,
                        body: Body::Segments(pieces.into()),
                        answered_by,
                    })
                }
                Some(rest) => {
                    let body = Body::Stream(Box::new(Resumed { pieces, rest: Some(rest) }));
                    Err(Response { status, fields, body, answered_by })
                }
            }
        }
        body => match collect(body, MAX_PAGE_BYTES).await {
            Ok(pieces) => {
                Ok(Response { status, fields, body: Body::Segments(pieces), answered_by })
            }
            Err(error) => {
                tracing::error!(%error, "a page cannot be read");
                Err(Response { answered_by, ..Response::error(StatusCode::INTERNAL_SERVER_ERROR) })
            }
        },
    }
}

/// A stream of which the first pieces have been read.
struct Resumed {
    pieces: VecDeque<Bytes>,
    /// None after the end.
    rest: Option<Rest>,
}

enum Rest {
    Stream(Box<dyn BodyStream>),
    Cut(StreamError),
}

impl BodyStream for Resumed {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        match &mut self.rest {
            Some(Rest::Stream(stream)) => stream.poll_chunk(context),
            _ => Poll::Ready(match self.rest.take() {
                Some(Rest::Cut(error)) => Some(Err(error)),
                _ => None,
            }),
        }
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn may_have_trailers(&self) -> bool {
        matches!(&self.rest, Some(Rest::Stream(stream)) if stream.may_have_trailers())
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        match &mut self.rest {
            Some(Rest::Stream(stream)) => stream.take_trailers(),
            _ => None,
        }
    }
}
