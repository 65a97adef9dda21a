//! System calls on a connected socket that tokio has no method for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// A connected socket, below TLS if there is any.
pub enum PlainSocket<'a> {
    /// A TCP socket.
    Tcp(&'a TcpStream),
    /// A unix socket.
    Unix(&'a UnixStream),
}

impl PlainSocket<'_> {
    /// Calls `operation` when the socket is readable, until it does not say that it would block, or
    /// that a signal has interrupted it.
    pub fn poll_readable(
        &self,
        context: &mut Context<'_>,
        operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_io(context, Interest::READABLE, operation)
    }

    /// Does the same when the socket is writable.
    pub fn poll_writable(
        &self,
        context: &mut Context<'_>,
        operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_io(context, Interest::WRITABLE, operation)
    }

    fn poll_io(
        &self,
        context: &mut Context<'_>,
        interest: Interest,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_ready(context, interest))?;
            let result = match self {
                Self::Tcp(stream) => stream.try_io(interest, || operation(stream.as_fd())),
                Self::Unix(stream) => stream.try_io(interest, || operation(stream.as_fd())),
            };
            let kind = result.as_ref().err().map(io::Error::kind);
            if !matches!(kind, Some(io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_ready(&self, context: &mut Context<'_>, interest: Interest) -> Poll<io::Result<()>> {
        match (self, interest.is_readable()) {
            (Self::Tcp(stream), true) => stream.poll_read_ready(context),
            (Self::Tcp(stream), false) => stream.poll_write_ready(context),
            (Self::Unix(stream), true) => stream.poll_read_ready(context),
            (Self::Unix(stream), false) => stream.poll_write_ready(context),
        }
    }
}
