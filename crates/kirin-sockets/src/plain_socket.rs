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
    /// Calls `operation` until it does not say that it would block, or that a signal has
    /// interrupted it.
    pub fn poll_readable(
        &self,
        context: &mut Context<'_>,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let result = match self {
                Self::Tcp(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_io(Interest::READABLE, || operation(stream.as_fd()))
                }
                Self::Unix(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_io(Interest::READABLE, || operation(stream.as_fd()))
                }
            };
            if !must_retry(&result) {
                return Poll::Ready(result);
            }
        }
    }

    /// Does the same for an operation that writes.
    pub fn poll_writable(
        &self,
        context: &mut Context<'_>,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let result = match self {
                Self::Tcp(stream) => {
                    ready!(stream.poll_write_ready(context))?;
                    stream.try_io(Interest::WRITABLE, || operation(stream.as_fd()))
                }
                Self::Unix(stream) => {
                    ready!(stream.poll_write_ready(context))?;
                    stream.try_io(Interest::WRITABLE, || operation(stream.as_fd()))
                }
            };
            if !must_retry(&result) {
                return Poll::Ready(result);
            }
        }
    }
}

fn must_retry(result: &io::Result<usize>) -> bool {
    let kind = result.as_ref().err().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted))
}
