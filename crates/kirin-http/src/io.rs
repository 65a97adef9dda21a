//! One client socket and what is known of it between requests. The only file that reads from or writes to a client.
//!
//! Shared (`Rc`) by the connection, the body of the request in progress and the table of open connections; all on one
//! loop.

use crate::handler::Peer;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// What a connection is doing; the table closes idle ones first and ends what waits too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Between requests.
    Idle,
    /// A request has begun and its answer is not all written.
    Busy,
}

/// A client socket.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The socket with its state.
pub(crate) struct Io {
    stream: RefCell<Stream>,
    /// Bytes received and not used yet: a part of a head, or pipelined requests. Without memory when idle.
    pub(crate) unread: RefCell<Vec<u8>>,
    /// Second (of the loop's clock) at which the table ends the connection; 0 for never.
    pub(crate) deadline: Cell<u64>,
    pub(crate) phase: Cell<Phase>,
    /// Whether the body of the request in progress has been read to its end.
    pub(crate) body_finished: Cell<bool>,
    /// The other end of the socket.
    pub(crate) peer: Peer,
    /// Whom a PROXY header has announced in its place.
    pub(crate) announced: OnceCell<Box<Peer>>,
}

impl Io {
    pub(crate) fn new(stream: Stream, peer: Peer) -> Self {
        Self {
            stream: RefCell::new(stream),
            unread: RefCell::new(Vec::new()),
            deadline: Cell::new(0),
            phase: Cell::new(Phase::Idle),
            body_finished: Cell::new(true),
            peer,
            announced: OnceCell::new(),
        }
    }

    /// Who is at the other end: whom the PROXY header names, or the socket's peer.
    pub(crate) fn client(&self) -> &Peer {
        self.announced.get().map_or(&self.peer, |announced| announced)
    }

    /// Reads what is there into `buffer`; 0 at the end. tokio remembers from a short read that the socket is empty, so
    /// that waiting for the next request costs no second `read`.
    pub(crate) fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(buffer);
        let result = match &mut *self.stream.borrow_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, &mut read),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, &mut read),
        };
        result.map_ok(|()| read.filled().len())
    }

    pub(crate) fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self.stream.borrow_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    pub(crate) fn poll_write_vectored(
        &self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self.stream.borrow_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    /// Sends `bytes` and tells the kernel that more follows (MSG_MORE), so that a head shares its packet with the start
    /// of the file behind it.
    pub(crate) fn poll_send_more(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_writable(context, |fd| {
            Ok(rustix::net::send(fd, bytes, SendFlags::MORE | SendFlags::NOSIGNAL)?)
        })
    }

    /// Lets the kernel copy from `file` to the socket; 0 when the file is shorter than thought.
    pub(crate) fn poll_sendfile(
        &self,
        context: &mut Context<'_>,
        file: &File,
        offset: &mut u64,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_writable(context, |fd| Ok(rustix::fs::sendfile(fd, file, Some(offset), count)?))
    }

    /// Receives from the socket itself, under TLS if there is any; with PEEK leaves there what it gives.
    pub(crate) fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> Poll<io::Result<usize>> {
        let stream = self.stream.borrow();
        loop {
            let mut receive = |fd: BorrowedFd<'_>| Ok(rustix::net::recv(fd, &mut *buffer, flags)?.0);
            let result = match &*stream {
                Stream::Tcp(stream) => {
                    std::task::ready!(stream.poll_read_ready(context))?;
                    stream.try_io(Interest::READABLE, || receive(stream.as_fd()))
                }
                Stream::Unix(stream) => {
                    std::task::ready!(stream.poll_read_ready(context))?;
                    stream.try_io(Interest::READABLE, || receive(stream.as_fd()))
                }
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_writable(
        &self,
        context: &mut Context<'_>,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let stream = self.stream.borrow();
        loop {
            let result = match &*stream {
                Stream::Tcp(stream) => {
                    std::task::ready!(stream.poll_write_ready(context))?;
                    stream.try_io(Interest::WRITABLE, || operation(stream.as_fd()))
                }
                Stream::Unix(stream) => {
                    std::task::ready!(stream.poll_write_ready(context))?;
                    stream.try_io(Interest::WRITABLE, || operation(stream.as_fd()))
                }
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Whether the client has sent something that nobody has read: closing now would reset the connection, and with it
    /// the response on its way (RFC 9112 section 9.6).
    pub(crate) fn has_more(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = match &*self.stream.borrow() {
            Stream::Tcp(stream) => rustix::net::recv(stream, &mut byte, flags),
            Stream::Unix(stream) => rustix::net::recv(stream, &mut byte, flags),
        };
        matches!(peeked, Ok((1.., _)))
    }

    /// Ends our side; the client still gets what was sent.
    pub(crate) fn shutdown_write(&self) {
        self.shutdown(Shutdown::Write);
    }

    /// Ends both sides. A task that waits for this socket wakes up and sees its end.
    pub(crate) fn shutdown_both(&self) {
        self.shutdown(Shutdown::Both);
    }

    fn shutdown(&self, how: Shutdown) {
        // Fails only when the client has gone already.
        let _ = match &*self.stream.borrow() {
            Stream::Tcp(stream) => rustix::net::shutdown(stream, how),
            Stream::Unix(stream) => rustix::net::shutdown(stream, how),
        };
    }
}
