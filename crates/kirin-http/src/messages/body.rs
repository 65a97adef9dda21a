//! Response bodies.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::trailers::Trailers;

/// The body of a response. The handler makes it, and the connection writes it.
pub enum Body {
    /// No bytes.
    Empty,
    /// One piece in memory. It is sent with the head in one vectored write.
    Bytes(Bytes),
    /// Several pieces in memory, in order (a page with its includes). They are sent in one vectored
    /// write, too.
    Segments(Vec<Bytes>),
    /// A part of an open file, which the kernel sends (sendfile).
    File(FileRange),
    /// Bytes that come over time.
    Stream(Box<dyn BodyStream>),
    /// No bytes, in the response to HEAD. A response to GET would have a body of this length in
    /// bytes.
    Withheld(u64),
    /// With status 101: the connection becomes a tunnel to this. The request must have `Upgrade`
    /// and no body, and come over HTTP/1.1. The fields must name the new protocol.
    Tunnel(Box<dyn Tunnel>),
}

/// `length` bytes of `file` from `offset` on.
#[derive(Clone)]
pub struct FileRange {
    /// The open file. The open-file cache and other responses may share it.
    pub file: Arc<File>,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// Bytes that come over time, from an application worker or an upstream.
pub trait BodyStream {
    /// Returns the next bytes (never empty), or `None` at the end. After an error the client's
    /// connection is cut, so that the client does not take a part for the complete body (RFC 9112
    /// section 8).
    fn poll_chunk(&mut self, context: &mut Context<'_>)
    -> Poll<Option<Result<Bytes, StreamError>>>;

    /// Returns the exact length in bytes, if it is known in advance.
    fn length(&self) -> Option<u64>;

    /// Returns how many of the next bytes the kernel can move from the sender's socket by
    /// [`BodyStream::poll_splice`]. 0 means that they must be taken as chunks.
    fn spliceable(&self) -> u64 {
        0
    }

    /// Moves the next bytes, at most `limit`, into `pipe`, which is empty. Returns how many, never
    /// 0. A stream that cannot do this returns an error, which no caller gets to see.
    fn poll_splice(
        &mut self,
        _: &mut Context<'_>,
        _pipe: BorrowedFd<'_>,
        _limit: usize,
    ) -> Poll<Result<usize, StreamError>> {
        Poll::Ready(Err(StreamError("the kernel cannot move it".into())))
    }

    /// Returns whether trailers may follow. Then the end must be waited for even if the length is
    /// known.
    fn may_have_trailers(&self) -> bool {
        false
    }

    /// Returns the trailers. Called once, after the end. HTTP/2 clients get them. HTTP/1.1 clients
    /// get them if they accept trailers. If the length is known, a `Trailer` field must announce
    /// them as well.
    fn take_trailers(&mut self) -> Option<Trailers> {
        None
    }
}

/// The far side of a tunnel: an application worker, or an upstream.
pub trait Tunnel: 'static {
    /// Reads the bytes that are there into `buffer`; returns 0 at the end.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>>;

    /// Writes some of `bytes`.
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Notes that the client sends no more.
    fn end_writing(&mut self);
}

/// An empty body of unknown length: for a response to HEAD, where `Content-Length: 0` would be
/// wrong.
pub struct UnknownLength;

impl BodyStream for UnknownLength {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        Poll::Ready(None)
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

/// Why a streamed body ended too early.
#[derive(Debug, thiserror::Error)]
#[error("response body was cut: {0}")]
pub struct StreamError(pub String);

impl Body {
    /// Returns the length in bytes, unless it is known only at the end.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::Segments(segments) => Some(segments.iter().map(|s| s.len() as u64).sum()),
            Body::File(range) => Some(range.length),
            Body::Stream(stream) => stream.length(),
            Body::Tunnel(_) => None,
            Body::Withheld(length) => Some(*length),
        }
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Body::Bytes(Bytes::from_static(text.as_bytes()))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Body::Bytes(Bytes::from(bytes))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self {
            Body::Empty => "Empty",
            Body::Bytes(_) => "Bytes",
            Body::Segments(_) => "Segments",
            Body::File(_) => "File",
            Body::Stream(_) => "Stream",
            Body::Withheld(_) => "Withheld",
            Body::Tunnel(_) => "Tunnel",
        };
        write!(f, "{kind}({:?})", self.length())
    }
}
