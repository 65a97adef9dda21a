//! The body of a request on its way to a server: how it is framed, and whether it can be sent a
//! second time.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use kirin_http::chunked::{write_chunk_head, write_end};
use kirin_http::{BodyLength, RequestBody, Reservation, SpooledBody, Trailers};

use crate::failure::Failure;
use crate::request_head::OutgoingFraming;

/// What follows a request's head.
pub(crate) enum Content {
    Nothing,
    /// All of it is here.
    Memory {
        bytes: Bytes,
        trailers: Option<Trailers>,
        /// Counts the bytes for the client.
        _reserved: Option<Reservation>,
    },
    /// All of it is here, in a file.
    File {
        file: Rc<File>,
        length: u64,
        trailers: Option<Trailers>,
        /// Counts the file for the client.
        _reserved: Reservation,
    },
    /// It comes from the client while it is sent.
    Streamed {
        first: Option<Bytes>,
        body: Box<RequestBody>,
    },
    /// It was streamed, and is gone.
    Spent,
}

impl Content {
    /// Looks at `body`. With a `spool` directory it is read whole first; otherwise what is there
    /// already is taken, and nothing is waited for. Nor is anything taken from a client that waits
    /// for a `100 Continue`.
    pub(crate) async fn prepare(
        mut body: RequestBody,
        spool: Option<&Path>,
        expects_continue: bool,
    ) -> Result<Self, Failure> {
        let length = body.length();
        if length == BodyLength::None {
            return Ok(Content::Nothing);
        }
        if let Some(directory) = spool {
            let spooled = SpooledBody::read(&mut body, directory).await?;
            let trailers = body.take_trailers();
            return Ok(match spooled {
                SpooledBody::Memory { bytes, reserved } => {
                    Self::of_memory(bytes, trailers, reserved)
                }
                SpooledBody::File { file, length, reserved } => {
                    Content::File { file: Rc::new(file), length, trailers, _reserved: reserved }
                }
            });
        }
        if expects_continue {
            return Ok(Content::Streamed { first: None, body: Box::new(body) });
        }
        let there = {
            let mut next = pin!(body.chunk());
            poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(chunk) => Poll::Ready(Some(chunk)),
                Poll::Pending => Poll::Ready(None),
            })
            .await
        };
        Ok(match there.transpose()? {
            Some(None) => Self::of_memory(Bytes::new(), body.take_trailers(), None),
            Some(Some(first)) if body.has_ended_with(first.len() as u64) => {
                Content::Memory { bytes: first, trailers: None, _reserved: body.take_reservation() }
            }
            first => Content::Streamed { first: first.flatten(), body: Box::new(body) },
        })
    }

    fn of_memory(bytes: Bytes, trailers: Option<Trailers>, reserved: Option<Reservation>) -> Self {
        if bytes.is_empty() && trailers.is_none() {
            Content::Nothing
        } else {
            Content::Memory { bytes, trailers, _reserved: reserved }
        }
    }

    /// Leaves out trailers, for servers that have no place for them.
    pub(crate) fn drop_trailers(&mut self) {
        match self {
            Content::Memory { bytes, .. } if bytes.is_empty() => *self = Content::Nothing,
            Content::Memory { trailers, .. } | Content::File { trailers, .. } => *trailers = None,
            Content::Nothing | Content::Streamed { .. } | Content::Spent => {}
        }
    }

    /// How it is framed in HTTP/1.1. A length that is known gives way to trailers if there are
    /// some, or if they are `announced`.
    pub(crate) fn framing(&self, announced: bool) -> OutgoingFraming {
        match self {
            Content::Memory { trailers: Some(_), .. } | Content::File { trailers: Some(_), .. } => {
                OutgoingFraming::Chunked
            }
            Content::Streamed { body, .. } if announced && body.may_have_trailers() => {
                OutgoingFraming::Chunked
            }
            other => other.announced(),
        }
    }

    /// How its length is announced where that does not depend on trailers, which is in HTTP/2.
    pub(crate) fn announced(&self) -> OutgoingFraming {
        match self {
            Content::Nothing | Content::Spent => OutgoingFraming::Nothing,
            Content::Memory { bytes, .. } => OutgoingFraming::Length(bytes.len() as u64),
            Content::File { length, .. } => OutgoingFraming::Length(*length),
            Content::Streamed { body, .. } => match body.length() {
                BodyLength::Exact(length) => OutgoingFraming::Length(length),
                BodyLength::None | BodyLength::Chunked => OutgoingFraming::Chunked,
            },
        }
    }

    /// How long it is; 0 if nobody knows.
    pub(crate) fn length(&self) -> u64 {
        match self.announced() {
            OutgoingFraming::Length(length) => length,
            OutgoingFraming::Nothing | OutgoingFraming::Chunked => 0,
        }
    }

    /// Whether all of it is still here.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self, Content::Spent)
    }
}

/// A body that is here in chunks, or rather in one.
pub(crate) fn in_chunks(bytes: &[u8], trailers: &Trailers) -> Bytes {
    let mut chunks = Vec::with_capacity(bytes.len() + 64);
    if !bytes.is_empty() {
        write_chunk_head(bytes.len(), &mut chunks);
        chunks.extend_from_slice(bytes);
        chunks.extend_from_slice(b"\r\n");
    }
    write_end(trailers, &mut chunks);
    Bytes::from(chunks)
}
