//! The body of a request on its way to a server: how it is framed, and whether it can be sent a second time.

use crate::failure::Failure;
use crate::request_head::OutgoingFraming;
use bytes::Bytes;
use kirin_http::{BodyLength, RequestBody, SpooledBody};
use std::fs::File;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// What follows a request's head.
pub(crate) enum Content {
    Nothing,
    /// All of it is here.
    Memory(Bytes),
    /// All of it is here, in a file.
    File {
        file: Rc<File>,
        length: u64,
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
    /// Looks at `body`. With a `spool` directory it is read whole first; otherwise what is there already is taken, and nothing
    /// is waited for. Nor is anything taken from a client that waits for a `100 Continue`.
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
            return Ok(match SpooledBody::read(&mut body, directory).await? {
                SpooledBody::Memory(bytes) if bytes.is_empty() => Content::Nothing,
                SpooledBody::Memory(bytes) => Content::Memory(bytes),
                SpooledBody::File { file, length } => Content::File { file: Rc::new(file), length },
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
            Some(None) => Content::Nothing,
            Some(Some(first)) if length == BodyLength::Exact(first.len() as u64) => Content::Memory(first),
            first => Content::Streamed { first: first.flatten(), body: Box::new(body) },
        })
    }

    pub(crate) fn framing(&self) -> OutgoingFraming {
        match self {
            Content::Nothing | Content::Spent => OutgoingFraming::Nothing,
            Content::Memory(bytes) => OutgoingFraming::Length(bytes.len() as u64),
            Content::File { length, .. } => OutgoingFraming::Length(*length),
            Content::Streamed { body, .. } => match body.length() {
                BodyLength::Exact(length) => OutgoingFraming::Length(length),
                BodyLength::None | BodyLength::Chunked => OutgoingFraming::Chunked,
            },
        }
    }

    /// How long it is; 0 if nobody knows.
    pub(crate) fn length(&self) -> u64 {
        match self.framing() {
            OutgoingFraming::Length(length) => length,
            OutgoingFraming::Nothing | OutgoingFraming::Chunked => 0,
        }
    }

    /// Whether all of it is still here.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self, Content::Spent)
    }
}
