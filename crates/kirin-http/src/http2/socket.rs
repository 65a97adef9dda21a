//! A client's socket as the h2 crate wants it.

use crate::io::Io;
use crate::server::Deadlines;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The socket of a connection. What was read before it was known for HTTP/2 comes first.
pub(super) struct Socket {
    io: Rc<Io>,
    deadlines: Rc<Deadlines>,
    stalls: Rc<Stalls>,
}

/// Whether the client takes what it is sent.
#[derive(Default)]
pub(super) struct Stalls {
    stalled: Cell<bool>,
    progress: Cell<bool>,
}

impl Stalls {
    /// Whether the socket took nothing at the last try.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.get()
    }

    /// Whether it has taken something since this was last asked.
    pub(super) fn take_progress(&self) -> bool {
        self.progress.take()
    }

    fn see<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.stalled.set(result.is_pending());
        if result.is_ready() {
            self.progress.set(true);
        }
        result
    }
}

impl Socket {
    pub(super) fn new(io: &Rc<Io>, deadlines: &Rc<Deadlines>) -> Self {
        Self { io: Rc::clone(io), deadlines: Rc::clone(deadlines), stalls: Rc::default() }
    }

    pub(super) fn stalls(&self) -> Rc<Stalls> {
        Rc::clone(&self.stalls)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut unread = self.io.unread.borrow_mut();
        if !unread.is_empty() {
            let fits = unread.len().min(buffer.remaining());
            buffer.put_slice(&unread[..fits]);
            unread.drain(..fits);
            if unread.is_empty() {
                *unread = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        let count = std::task::ready!(self.io.poll_read(context, buffer.initialize_unfilled()))?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stalls.see(self.io.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stalls.see(self.io.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.io.poll_flush(context);
        self.stalls.stalled.set(result.is_pending());
        result
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.io.poll_flush(context))?;
        self.io.shutdown_write();
        self.deadlines.set(&self.io, super::GOING_SECONDS);
        Poll::Ready(Ok(()))
    }
}
