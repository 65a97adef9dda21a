//! The content of a request on its way to a server: how it is framed, and whether it can be sent
//! again.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use kirin_client_bytes::Reservation;
use kirin_http::chunked::{write_chunk_head, write_end};
use kirin_http::{BodyLength, RequestBody, Trailers};
use kirin_spool::SpooledBody;

use crate::failure::ProxyFailure;
use crate::request_head::OutgoingFraming;

/// The content of a request (RFC 9110 section 6.4).
pub(crate) enum Content {
    Nothing,
    /// All bytes are in memory.
    Memory {
        bytes: Bytes,
        trailers: Option<Trailers>,
        /// Counts the bytes for the client.
        _reserved: Option<Reservation>,
    },
    /// All bytes are in a file.
    File {
        file: Rc<File>,
        length: u64,
        trailers: Option<Trailers>,
        /// Counts the file for the client.
        _reserved: Reservation,
    },
    /// The bytes arrive from the client while they are sent.
    Streamed {
        first: Option<Bytes>,
        body: Box<RequestBody>,
    },
    /// The content was streamed, so it cannot be sent again.
    Spent,
}

impl Content {
    /// Prepares `body` for sending. With a `spool` directory, the body is read completely first.
    ///
    /// Without one, this takes what has arrived and does not wait. It takes nothing from a client
    /// that waits for `100 Continue`.
    pub(crate) async fn prepare(
        mut body: RequestBody,
        spool: Option<&Path>,
        expects_continue: bool,
    ) -> Result<Self, ProxyFailure> {
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

    /// Drops the trailers, for servers that cannot receive them.
    pub(crate) fn drop_trailers(&mut self) {
        match self {
            Content::Memory { bytes, .. } if bytes.is_empty() => *self = Content::Nothing,
            Content::Memory { trailers, .. } | Content::File { trailers, .. } => *trailers = None,
            Content::Nothing | Content::Streamed { .. } | Content::Spent => {}
        }
    }

    /// Returns the framing for HTTP/1.1. Content with trailers is sent in chunks, even if its
    /// length is known. The same holds if trailers are `announced` and may still come.
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

    /// Returns the framing for HTTP/2, which does not depend on trailers.
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

    /// Returns the length in bytes; 0 if it is not known.
    pub(crate) fn length(&self) -> u64 {
        match self.announced() {
            OutgoingFraming::Length(length) => length,
            OutgoingFraming::Nothing | OutgoingFraming::Chunked => 0,
        }
    }

    /// Returns whether the content can be sent again.
    pub(crate) fn is_replayable(&self) -> bool {
        !matches!(self, Content::Spent)
    }
}

/// Encodes bytes and trailers in the chunked transfer coding.
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
