//! What follows a response head.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::trailers::Trailers;

/// The body of a response. Places in a route make it; the connection writes it.
pub enum Body {
    /// No bytes.
    Empty,
    /// One piece in memory; leaves with the head in one vectored write.
    Bytes(Bytes),
    /// Several pieces in memory (a page with its includes), in order; leave in one vectored write
    /// too.
    Segments(Vec<Bytes>),
    /// A part of an open file, sent by the kernel (sendfile).
    File(FileRange),
    /// Bytes that come over time.
    Stream(Box<dyn BodyStream>),
    /// The answer to HEAD by a place that knows how long the body would be, in bytes.
    Withheld(u64),
    /// With status 101: the connection becomes a tunnel to this. Only for a request with `Upgrade`,
    /// without a body, over HTTP/1.1; the fields must say to what.
    Tunnel(Box<dyn Tunnel>),
}

/// `length` bytes of `file` from `offset` on.
#[derive(Clone)]
pub struct FileRange {
    /// The open file; the open-file cache and other responses may share it.
    pub file: Arc<File>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// Bytes that come over time, from an application worker or an upstream.
pub trait BodyStream {
    /// The next bytes (never empty), or `None` at the end. After an error the client's connection
    /// is cut, so that it cannot take a part for the whole (RFC 9112 section 8).
    fn poll_chunk(&mut self, context: &mut Context<'_>)
    -> Poll<Option<Result<Bytes, StreamError>>>;

    /// The exact length in bytes, when it is known before.
    fn length(&self) -> Option<u64>;

    /// How many of the next bytes the kernel can move from the sender's socket by
    /// [`BodyStream::poll_splice`]; 0 if they are to be asked for as chunks.
    fn spliceable(&self) -> u64 {
        0
    }

    /// Moves the next bytes, at most `limit`, into `pipe`, which is empty; returns how many, never
    /// 0. For who cannot do so an error, which is for nobody to see.
    fn poll_splice(
        &mut self,
        _: &mut Context<'_>,
        _pipe: BorrowedFd<'_>,
        _limit: usize,
    ) -> Poll<Result<usize, StreamError>> {
        Poll::Ready(Err(StreamError("the kernel cannot move it".into())))
    }

    /// Whether trailers may follow the end, so that it is to be waited for even if the length is
    /// known.
    fn may_have_trailers(&self) -> bool {
        false
    }

    /// Fields that follow the end. Asked for once, after the end. HTTP/2 clients get them, and
    /// HTTP/1.1 clients that say that they take them; where the length is known, only if a
    /// `Trailer` field announces them.
    fn take_trailers(&mut self) -> Option<Trailers> {
        None
    }
}

/// The far side of a tunnel: an application worker, or an upstream.
pub trait Tunnel: 'static {
    /// Reads what is there into `buffer`; 0 at the end.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>>;

    /// Writes some of `bytes`.
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// The client sends no more.
    fn end_writing(&mut self);
}

/// No bytes, of a body whose length nobody has said: the answer to a HEAD, for which
/// `Content-Length: 0` would be a lie.
pub struct UnknownLength;

impl BodyStream for UnknownLength {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        Poll::Ready(None)
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

/// Why a streamed body ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("response body was cut: {0}")]
pub struct StreamError(pub String);

impl Body {
    /// Length in bytes, unless it is only known at the end.
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
