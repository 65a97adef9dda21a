//! The socket of one connection to a server. Only this file reads from and writes to servers.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use bytes::BytesMut;
use bytes::buf::Limit;
use kirin_faults::{Errno, Point};
use kirin_sockets::PlainSocket;
use rustix::net::Shutdown;
use rustix::pipe::SpliceFlags;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::cgi::Records;

static READ: Point = Point::new("server.read", &[Errno::CONNRESET, Errno::TIMEDOUT]);
static WRITE: Point = Point::new("server.write", &[Errno::CONNRESET, Errno::PIPE]);

/// A connected socket.
pub(crate) enum ServerStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Runs an expression for a stream of any kind.
macro_rules! with_stream {
    ($stream:expr, $inner:ident => $work:expr) => {
        match $stream {
            ServerStream::Tcp($inner) => $work,
            ServerStream::Unix($inner) => $work,
            ServerStream::Tls($inner) => $work,
        }
    };
}

impl ServerStream {
    /// Returns whether the TLS handshake has chosen HTTP/2.
    pub(crate) fn has_chosen_http2(&self) -> bool {
        match self {
            ServerStream::Tcp(_) | ServerStream::Unix(_) => false,
            ServerStream::Tls(stream) => {
                stream.get_ref().1.alpn_protocol() == Some(crate::tls::ALPN_HTTP2)
            }
        }
    }
}

/// The h2 crate needs these traits.
impl AsyncRead for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}

/// A socket with its deadlines. The sender of the request and the reader of the response share it.
pub(crate) struct Socket {
    stream: RefCell<ServerStream>,
    /// The seconds on the upstream's clock at which reading and writing become overdue; 0 for no
    /// deadline.
    pub(crate) read_deadline: Cell<u64>,
    pub(crate) write_deadline: Cell<u64>,
    overdue: Cell<bool>,
    /// Takes the response out of FastCGI records. `None` for other protocols.
    records: Option<RefCell<Records>>,
}

impl Socket {
    pub(crate) fn new(stream: ServerStream, records: Option<Records>) -> Self {
        Self {
            stream: RefCell::new(stream),
            read_deadline: Cell::new(0),
            write_deadline: Cell::new(0),
            overdue: Cell::new(false),
            records: records.map(RefCell::new),
        }
    }

    /// Returns the FastCGI records, if the server speaks FastCGI.
    pub(crate) fn records(&self) -> Option<&RefCell<Records>> {
        self.records.as_ref()
    }

    /// Returns whether the marked end of a response has been read. Only FastCGI marks it.
    pub(crate) fn has_ended_response(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.borrow_mut().has_ended())
    }

    /// Returns whether the socket was shut down because a deadline passed.
    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue.get()
    }

    /// Shuts the socket down if a deadline has passed at second `now`. Then the task that waits for
    /// the socket wakes up and sees the end.
    pub(crate) fn end_if_overdue(&self, now: u64) {
        let is_over = |deadline: u64| deadline != 0 && deadline <= now;
        if is_over(self.read_deadline.get()) || is_over(self.write_deadline.get()) {
            self.overdue.set(true);
            self.shutdown(Shutdown::Both);
        }
    }

    /// Returns whether nothing has arrived, not even the end. Makes no system call while that is
    /// so.
    pub(crate) fn is_waiting(&self, context: &mut Context<'_>) -> bool {
        let stream = &*self.stream.borrow();
        loop {
            let ready = match stream {
                ServerStream::Tcp(stream) => stream.poll_read_ready(context),
                ServerStream::Unix(stream) => stream.poll_read_ready(context),
                ServerStream::Tls(stream) => stream.get_ref().0.poll_read_ready(context),
            };
            match ready {
                Poll::Pending => return true,
                Poll::Ready(Err(_)) => return false,
                Poll::Ready(Ok(())) => {}
            }
            // The socket may look ready after a read that took exactly what was there.
            let read = match stream {
                ServerStream::Tcp(stream) => stream.try_read(&mut [0]),
                ServerStream::Unix(stream) => stream.try_read(&mut [0]),
                ServerStream::Tls(stream) => stream.get_ref().0.try_read(&mut [0]),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return false,
            }
        }
    }

    /// Reads into `buffer`, which must have room. Returns 0 at the end.
    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(records) = &self.records {
            let read = |input: &mut BytesMut| self.poll_input(context, input);
            return records.borrow_mut().poll_response(read, |there| {
                let count = there.len().min(buffer.len());
                buffer[..count].copy_from_slice(&there[..count]);
                count
            });
        }
        ready!(READ.poll(context))?;
        let most = READ.shorten(buffer.len());
        let mut read = ReadBuf::new(&mut buffer[..most]);
        ready!(
            with_stream!(&mut *self.stream.borrow_mut(), stream => Pin::new(stream).poll_read(context, &mut read))
        )?;
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Appends to `buffer`, within its limit. Returns 0 at the end.
    pub(crate) fn poll_read_behind(
        &self,
        context: &mut Context<'_>,
        buffer: &mut Limit<BytesMut>,
    ) -> Poll<io::Result<usize>> {
        if let Some(records) = &self.records {
            let read = |input: &mut BytesMut| self.poll_input(context, input);
            return records.borrow_mut().poll_response(read, |there| {
                let count = there.len().min(buffer.remaining_mut());
                buffer.put_slice(&there[..count]);
                count
            });
        }
        ready!(READ.poll(context))?;
        with_stream!(&mut *self.stream.borrow_mut(), stream => pin!(stream.read_buf(buffer)).poll(context))
    }

    /// Returns whether the kernel can move the bytes: they are neither encrypted nor in records.
    pub(crate) fn is_plain(&self) -> bool {
        self.records.is_none() && !matches!(&*self.stream.borrow(), ServerStream::Tls(_))
    }

    /// Moves at most `count` bytes into `pipe` inside the kernel. Returns 0 at the end.
    pub(crate) fn poll_splice(
        &self,
        context: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        ready!(READ.poll(context))?;
        let count = READ.shorten(count);
        let stream = &*self.stream.borrow();
        let socket = match stream {
            ServerStream::Tcp(stream) => PlainSocket::Tcp(stream),
            ServerStream::Unix(stream) => PlainSocket::Unix(stream),
            ServerStream::Tls(_) => return Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        };
        socket.poll_readable(context, |socket| {
            Ok(rustix::pipe::splice(socket, None, pipe, None, count, SpliceFlags::NONBLOCK)?)
        })
    }

    /// Appends bytes of records to `input`.
    fn poll_input(
        &self,
        context: &mut Context<'_>,
        input: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        ready!(READ.poll(context))?;
        with_stream!(&mut *self.stream.borrow_mut(), stream => pin!(stream.read_buf(input)).poll(context))
    }

    /// Writes some of the slices. Encrypted bytes may stay in a buffer until [`Socket::poll_flush`]
    /// sends them.
    pub(crate) fn poll_write(
        &self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // After such an error of the kernel nothing is read either.
        ready!(WRITE.poll(context)).inspect_err(|_| self.shutdown(Shutdown::Both))?;
        let stream = &mut *self.stream.borrow_mut();
        match &slices[..WRITE.shorten(slices.len())] {
            [slice] => {
                let bytes = &slice[..WRITE.shorten(slice.len())];
                with_stream!(stream, stream => Pin::new(stream).poll_write(context, bytes))
            }
            slices => {
                with_stream!(stream, stream => Pin::new(stream).poll_write_vectored(context, slices))
            }
        }
    }

    /// Sends what is buffered. Ready when the kernel has everything.
    pub(crate) fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(&mut *self.stream.borrow_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    /// Tells the server that nothing more will be sent.
    pub(crate) fn end_writing(&self) {
        if let ServerStream::Tls(stream) = &mut *self.stream.borrow_mut() {
            stream.get_mut().1.send_close_notify();
            // These few bytes fit into the socket's buffer, unless the server does not read at all.
            let _ = Pin::new(stream).poll_flush(&mut Context::from_waker(std::task::Waker::noop()));
        }
        self.shutdown(Shutdown::Write);
    }

    fn shutdown(&self, how: Shutdown) {
        // Fails only if the server has disconnected already.
        let _ = match &*self.stream.borrow() {
            ServerStream::Tcp(stream) => rustix::net::shutdown(stream.as_fd(), how),
            ServerStream::Unix(stream) => rustix::net::shutdown(stream.as_fd(), how),
            ServerStream::Tls(stream) => rustix::net::shutdown(stream.get_ref().0.as_fd(), how),
        };
    }
}
