//! A client's socket, below TLS if there is any. The event loop learns of it only when it must wait
//! for it.
//!
//! A client mostly sends its request together with the last packet of its handshake, and the
//! response fits into the socket. Then a connection for one request costs neither a registration
//! (epoll_ctl(2)) nor a wake-up.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use kirin_faults::{Errno, Point};
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

static READ: Point = Point::new("client.read", &[Errno::CONNRESET, Errno::TIMEDOUT]);
static WRITE: Point = Point::new("client.write", &[Errno::CONNRESET, Errno::PIPE]);
static WATCH: Point = Point::new("client.watch", &[Errno::NOSPC, Errno::NOMEM]);

/// A connected stream socket that does not block.
pub(crate) struct ClientSocket {
    registration: Option<AsyncFd<Rc<OwnedFd>>>,
    descriptor: Rc<OwnedFd>,
    /// Whether a read has taken everything that was there, before the event loop knew of the
    /// socket. The next one waits.
    is_drained: bool,
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

impl Direction {
    fn point(self) -> &'static Point {
        match self {
            Direction::Read => &READ,
            Direction::Write => &WRITE,
        }
    }
}

impl ClientSocket {
    /// Takes a socket that does not block.
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self { registration: None, descriptor: Rc::new(descriptor), is_drained: false }
    }

    /// Calls `operation` when the socket may be readable, until it does not say that it would
    /// block, or that a signal has interrupted it.
    pub(crate) fn poll_readable(
        &mut self,
        context: &mut Context<'_>,
        operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_io(context, Direction::Read, None, operation)
    }

    /// Does the same when the socket may be writable.
    pub(crate) fn poll_writable(
        &mut self,
        context: &mut Context<'_>,
        operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_io(context, Direction::Write, None, operation)
    }

    /// Reads the bytes that are there into `buffer`; returns 0 at the end.
    pub(crate) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let most = READ.shorten(buffer.len());
        self.poll_io(context, Direction::Read, Some(most), |fd| {
            Ok(rustix::net::recv(fd, &mut buffer[..most], RecvFlags::empty())?.0)
        })
    }

    /// Calls `operation`, which moves up to `wanted` bytes, if that is known. After fewer bytes the
    /// socket is empty, or full: epoll(7) tells of the next ones, so that waiting costs no system
    /// call.
    #[inline]
    fn poll_io(
        &mut self,
        context: &mut Context<'_>,
        direction: Direction,
        wanted: Option<usize>,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(direction.point().poll(context))?;
        let is_short = |moved: usize| 0 < moved && wanted.is_some_and(|wanted| moved < wanted);
        let registration = match &self.registration {
            Some(registration) => registration,
            None => {
                if let Some(moved) = ready!(self.poll_apart(context, direction, &mut operation))? {
                    self.is_drained |= is_short(moved) && matches!(direction, Direction::Read);
                    return Poll::Ready(Ok(moved));
                }
                WATCH.pass()?;
                // The loop is told at once of what the socket is ready for already.
                #[expect(
                    deprecated,
                    reason = "the other constructor is unsafe, for types that close early"
                )]
                let registration = AsyncFd::new(Rc::clone(&self.descriptor))?;
                self.registration.insert(registration)
            }
        };
        loop {
            let mut ready = match direction {
                Direction::Read => ready!(registration.poll_read_ready(context))?,
                Direction::Write => ready!(registration.poll_write_ready(context))?,
            };
            match operation(self.descriptor.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Ok(moved) if is_short(moved) => {
                    ready.clear_ready();
                    return Poll::Ready(Ok(moved));
                }
                done => return Poll::Ready(done),
            }
        }
    }

    /// Calls `operation` before the event loop knows of the socket. Returns `None` if it would
    /// block.
    fn poll_apart(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<Option<usize>>> {
        if self.is_drained && matches!(direction, Direction::Read) {
            return Poll::Ready(Ok(None));
        }
        // A client that always has more does not keep the event loop from the others.
        let turn = ready!(tokio::task::coop::poll_proceed(context));
        turn.made_progress();
        loop {
            match operation(self.descriptor.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Ok(None));
                }
                done => return Poll::Ready(done.map(Some)),
            }
        }
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// For TLS.
impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = ready!(self.poll_receive(context, buffer.initialize_unfilled()))?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let bytes = &bytes[..WRITE.shorten(bytes.len())];
        self.poll_io(context, Direction::Write, Some(bytes.len()), |fd| {
            Ok(rustix::net::send(fd, bytes, SendFlags::NOSIGNAL)?)
        })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let slices = &slices[..WRITE.shorten(slices.len())];
        self.poll_io(context, Direction::Write, None, |fd| Ok(rustix::io::writev(fd, slices)?))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Returns at once: the kernel has the bytes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&self.descriptor, Shutdown::Write).map_err(Into::into))
    }
}
