//! A client's socket and its state between requests. Only this file reads from clients and writes
//! to them, by `client_socket.rs`.
//!
//! The connection, the body of the current request and the table of open connections share it
//! (`Rc`). All of them are on one event loop.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use kirin_client_bytes::{ClientShare, Reservation};
use kirin_faults::{Errno, Point};
use kirin_http::ClientCertificate;
use kirin_http::pace::Pace;
use kirin_http::peer::Peer;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::pipe::SpliceFlags;
use rustls::ProtocolVersion;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;

use crate::clock::Clock;
use crate::connection::client_socket::ClientSocket;
use crate::connection::connection_facts::ConnectionFacts;
use crate::connection::presence::Presence;
use crate::limits::admission::{AddressPermit, Permit};
use crate::limits::deadlines::Deadlines;
use crate::tls::challenge::ChallengeCertificate;
use crate::tls::client_certificate;
use crate::tls::stream::TlsStream;
use crate::tls::{ALPN_HTTP2, Tls};

static SEND_FILE: Point = Point::new("file.send", &[Errno::IO]);

/// The activity of a connection. When the server stops, the table closes idle connections first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// It waits for a request.
    Idle,
    /// A request has begun, and its response is not completely written.
    Busy,
    /// It speaks HTTP/2. It knows itself whether it is idle, and ends by itself when the server
    /// stops.
    Streams,
}

/// The result of a TLS handshake.
#[derive(Default)]
pub(crate) struct Handshake {
    /// Whether the client has chosen HTTP/2.
    pub(crate) is_http2: bool,
    /// Whether the version is TLS 1.3, and not 1.2.
    pub(crate) is_tls13: bool,
    /// Whether an earlier session was resumed.
    pub(crate) is_resumed: bool,
    /// The certificate of the client.
    pub(crate) client: Option<Box<ClientCertificate>>,
    /// The name of which an authority wants proof. The handshake waits for
    /// [`Io::go_on_with_handshake`].
    pub(crate) asked_name: Option<Box<str>>,
}

impl Handshake {
    fn from_stream<S: AsyncRead + AsyncWrite + Unpin>(
        stream: &mut TlsStream<S>,
        tls: &Tls,
    ) -> Self {
        let client = stream.client_certificate().and_then(|certificate| {
            client_certificate::read(certificate, &tls.client_authorities()?)
        });
        Self {
            is_http2: stream.alpn_protocol() == Some(ALPN_HTTP2),
            is_tls13: stream.is_tls13(),
            is_resumed: stream.is_resumed(),
            client: client.map(Box::new),
            asked_name: stream.take_asked_name(),
        }
    }
}

/// A client's socket, with TLS or without.
pub(crate) enum Stream {
    Plain(ClientSocket),
    Tls(Box<TlsStream<ClientSocket>>),
}

impl Stream {
    /// Returns the socket, below TLS.
    pub(crate) fn socket(&self) -> &ClientSocket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.socket(),
        }
    }

    /// Returns the socket, below TLS, to wait for it.
    fn socket_mut(&mut self) -> &mut ClientSocket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.socket_mut(),
        }
    }
}

/// Does the same with a stream of either kind.
macro_rules! with_stream {
    ($stream:expr, $inner:ident => $work:expr) => {
        match $stream {
            Stream::Plain($inner) => $work,
            Stream::Tls($inner) => $work,
        }
    };
}

/// The socket with its state.
pub(crate) struct Io {
    stream: RefCell<Stream>,
    /// Whether the stream is encrypted.
    pub(crate) is_secure: bool,
    /// Bytes that were received and not used yet: a part of a head, or pipelined requests. It has
    /// no memory while the connection is idle.
    pub(crate) unread: RefCell<Vec<u8>>,
    /// Number of bytes that the socket has taken, of all responses.
    pub(crate) sent: Cell<u64>,
    /// The clock of the event loop.
    pub(crate) clock: Rc<Clock>,
    /// The time limits of the listener: those that were in force when the current request came.
    deadlines: RefCell<Rc<Deadlines>>,
    /// The second (of the loop's clock) at which the table ends the connection; 0 for never.
    pub(crate) deadline: Cell<u64>,
    pub(crate) phase: Cell<ConnectionPhase>,
    /// Whether the body of the current request has been read to its end.
    pub(crate) body_finished: Cell<bool>,
    /// Number of bytes of the current request's body that have been received.
    pub(crate) received_body: Cell<u64>,
    /// Whether a request has arrived already. HTTP/2 can begin only before the first.
    pub(crate) has_begun: Cell<bool>,
    /// Whether the client of the current request understands informational responses, that is,
    /// speaks HTTP/1.1.
    pub(crate) takes_informational: Cell<bool>,
    /// The other end of the socket.
    pub(crate) peer: Peer,
    /// The client that a PROXY header has named.
    pub(crate) announced: OnceCell<Box<Peer>>,
    /// The certificate that the client has presented.
    pub(crate) client: OnceCell<Box<ClientCertificate>>,
    /// Whether something waits for the client to disconnect.
    pub(crate) presence: RefCell<Presence>,
    /// The client for which bytes of the current request are counted.
    pub(crate) share: RefCell<ClientShare>,
    /// Counts the memory of `unread` if there is much of it.
    pub(crate) unread_memory: Cell<Option<Box<Reservation>>>,
    /// The right to this connection, given back with the socket.
    pub(crate) permit: Option<Permit>,
    /// The same for the client's address.
    pub(crate) address_permit: OnceCell<AddressPermit>,
    /// The task that serves the connection.
    pub(crate) task: OnceCell<AbortHandle>,
}

/// The directions that the other end has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// None.
    Nothing,
    /// It has ended its side.
    Half,
    /// It has reset the connection, or takes nothing any more.
    Whole,
}

impl Io {
    pub(crate) fn new(stream: Stream, peer: Peer, deadlines: &Rc<Deadlines>) -> Self {
        Self {
            is_secure: matches!(stream, Stream::Tls(_)),
            stream: RefCell::new(stream),
            unread: RefCell::new(Vec::new()),
            clock: Rc::clone(&deadlines.clock),
            deadlines: RefCell::new(Rc::clone(deadlines)),
            deadline: Cell::new(0),
            phase: Cell::new(ConnectionPhase::Idle),
            body_finished: Cell::new(true),
            received_body: Cell::new(0),
            has_begun: Cell::new(false),
            takes_informational: Cell::new(false),
            sent: Cell::new(0),
            peer,
            announced: OnceCell::new(),
            client: OnceCell::new(),
            presence: RefCell::default(),
            share: RefCell::default(),
            unread_memory: Cell::default(),
            permit: None,
            address_permit: OnceCell::new(),
            task: OnceCell::new(),
        }
    }

    pub(crate) fn stream(&self) -> Ref<'_, Stream> {
        self.stream.borrow()
    }

    /// Returns the time limits that hold for the current request.
    pub(crate) fn deadlines(&self) -> Rc<Deadlines> {
        Rc::clone(&self.deadlines.borrow())
    }

    /// Sets the time limits for a request that begins now.
    pub(crate) fn set_deadlines(&self, deadlines: &Rc<Deadlines>) {
        if !Rc::ptr_eq(&self.deadlines.borrow(), deadlines) {
            self.deadlines.replace(Rc::clone(deadlines));
        }
    }

    /// Sets the deadline to `seconds` from now. The table of open connections then ends this
    /// connection.
    pub(crate) fn set_deadline(&self, seconds: u64) {
        self.deadline.set(self.clock.now() + seconds);
    }

    /// Does the same by the last time that was read from the clock.
    pub(crate) fn set_deadline_by_last(&self, seconds: u64) {
        self.deadline.set(self.clock.last() + seconds);
    }

    /// Removes the deadline.
    pub(crate) fn clear_deadline(&self) {
        self.deadline.set(0);
    }

    /// Begins to wait for the client.
    pub(crate) fn begin_wait(&self, pace: &mut Pace) {
        self.deadline.set(pace.begin(self.clock.now()));
    }

    /// Notes the number of bytes that the client has moved while the server waited for it.
    pub(crate) fn progress(&self, pace: &mut Pace, bytes: usize) {
        if bytes > 0 {
            self.deadline.set(pace.moved(bytes as u64, self.clock.now()));
        }
    }

    /// Ends the wait for the client.
    pub(crate) fn end_wait(&self, pace: &mut Pace) {
        pace.end(self.clock.now());
        self.deadline.set(0);
    }

    /// Returns the client: the one that the PROXY header names, or the socket's peer.
    pub(crate) fn client_peer(&self) -> &Peer {
        self.announced.get().map_or(&self.peer, |announced| announced)
    }

    /// Reads the bytes that are there into `buffer`; returns 0 at the end.
    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self.stream.borrow_mut() {
            Stream::Plain(socket) => socket.poll_receive(context, buffer),
            Stream::Tls(stream) => {
                let mut read = ReadBuf::new(buffer);
                Pin::new(stream).poll_read(context, &mut read).map_ok(|()| read.filled().len())
            }
        }
    }

    /// Takes some of `bytes`. Encrypted bytes may wait in the stream until [`Io::poll_flush`] sends
    /// them.
    pub(crate) fn poll_write(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = with_stream!(&mut *self.stream.borrow_mut(), stream => Pin::new(stream).poll_write(context, bytes));
        self.count_sent(written)
    }

    fn count_sent(&self, sent: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &sent {
            self.sent.set(self.sent.get() + *count as u64);
        }
        sent
    }

    pub(crate) fn poll_write_vectored(
        &self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = with_stream!(&mut *self.stream.borrow_mut(), stream => Pin::new(stream).poll_write_vectored(context, slices));
        self.count_sent(written)
    }

    /// Returns ready when the kernel has taken all bytes that were written.
    #[inline]
    pub(crate) fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.stream.borrow_mut() {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream) => stream.poll_send(context),
        }
    }

    /// Continues the handshake for the listener's `tls`, and returns its result. Ready at once
    /// without TLS.
    pub(crate) fn poll_handshake(
        &self,
        context: &mut Context<'_>,
        tls: &Tls,
    ) -> Poll<io::Result<Handshake>> {
        match &mut *self.stream.borrow_mut() {
            Stream::Plain(_) => Poll::Ready(Ok(Handshake::default())),
            Stream::Tls(stream) => {
                stream.poll_handshake(context).map_ok(|()| Handshake::from_stream(stream, tls))
            }
        }
    }

    /// Lets the handshake of an authority go on, with `certificate` if there is one. After an error
    /// there are bytes to flush.
    pub(crate) fn go_on_with_handshake(
        &self,
        certificate: Option<ChallengeCertificate>,
    ) -> io::Result<()> {
        let config = certificate.map(|certificate| certificate.config());
        match &mut *self.stream.borrow_mut() {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(stream) => stream.go_on(config),
        }
    }

    /// Returns whether the connection is encrypted, so that the kernel cannot send files to the
    /// client.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(&*self.stream.borrow(), Stream::Tls(_))
    }

    /// Returns what the connection tells of its client.
    pub(crate) fn facts(&self) -> ConnectionFacts<'_> {
        ConnectionFacts {
            peer: self.client_peer(),
            certificate: self.client.get().map(|certificate| &**certificate),
            is_secure: self.is_secure,
            tls_version: self.is_secure.then(|| self.tls_version()).flatten(),
        }
    }

    /// Returns the version of TLS, as nginx names it.
    fn tls_version(&self) -> Option<&'static str> {
        let version = match &*self.stream.borrow() {
            Stream::Plain(_) => None,
            Stream::Tls(stream) => stream.protocol_version(),
        };
        match version? {
            ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
            ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
            _ => None,
        }
    }

    /// Sends `bytes` and tells the kernel that more follows (MSG_MORE), so that a head shares its
    /// packet with the start of the file behind it.
    pub(crate) fn poll_send_more(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = self.poll_writable(context, |fd| {
            Ok(rustix::net::send(fd, bytes, SendFlags::MORE | SendFlags::NOSIGNAL)?)
        });
        self.count_sent(sent)
    }

    /// Has the kernel copy from `file` to the socket; returns 0 if the file has become shorter.
    pub(crate) fn poll_sendfile(
        &self,
        context: &mut Context<'_>,
        file: &File,
        offset: &mut u64,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        let count = SEND_FILE.shorten(count);
        let sent = self.poll_writable(context, |fd| {
            SEND_FILE.pass()?;
            Ok(rustix::fs::sendfile(fd, file, Some(offset), count)?)
        });
        self.count_sent(sent)
    }

    /// Has the kernel move up to `count` bytes from `pipe` to the socket.
    pub(crate) fn poll_splice(
        &self,
        context: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        let sent = self.poll_writable(context, |fd| {
            Ok(rustix::pipe::splice(pipe, None, fd, None, count, SpliceFlags::NONBLOCK)?)
        });
        self.count_sent(sent)
    }

    /// Receives from the socket itself, below TLS. With PEEK, the bytes stay in the socket.
    pub(crate) fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.borrow_mut();
        stream
            .socket_mut()
            .poll_readable(context, |fd| Ok(rustix::net::recv(fd, &mut *buffer, flags)?.0))
    }

    /// Drops the next bytes of the client, below TLS: a session that has failed must not see more
    /// bytes. Returns how many they were; 0 at the end. Sends what TLS could not send yet, such as
    /// an alert, because the client may read it only now.
    pub(crate) fn poll_drop(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Err(error)) = self.poll_flush(context) {
            return Poll::Ready(Err(error));
        }
        self.poll_receive(context, buffer, RecvFlags::empty())
    }

    fn poll_writable(
        &self,
        context: &mut Context<'_>,
        operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        match &mut *self.stream.borrow_mut() {
            Stream::Plain(socket) => socket.poll_writable(context, operation),
            Stream::Tls(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Has the kernel end the connection if the client acknowledges nothing for so long
    /// (TCP_USER_TIMEOUT, tcp(7)).
    pub(crate) fn limit_unacknowledged(&self, time: Duration) {
        if matches!(self.peer, Peer::Unix) {
            return;
        }
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let stream = self.stream.borrow();
        let limited = rustix::net::sockopt::set_tcp_user_timeout(stream.socket(), milliseconds);
        if let Err(error) = limited {
            tracing::debug!(peer = %self.peer, %error, "TCP_USER_TIMEOUT");
        }
    }

    /// Has the kernel take no more bytes while this many were not sent (TCP_NOTSENT_LOWAT, tcp(7)).
    /// So a short response need not wait behind megabytes of a long one.
    pub(crate) fn limit_unsent(&self, bytes: u32) {
        if matches!(self.peer, Peer::Unix) {
            return;
        }
        let stream = self.stream.borrow();
        if let Err(error) = SockRef::from(stream.socket()).set_tcp_notsent_lowat(bytes) {
            tracing::debug!(peer = %self.peer, %error, "TCP_NOTSENT_LOWAT");
        }
    }

    /// Returns which directions the client has closed. The bytes that it sent before stay unread.
    pub(crate) fn closed(&self) -> Closed {
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        let stream = self.stream.borrow();
        let mut events = [PollFd::new(stream.socket(), PollFlags::RDHUP)];
        let polled = rustix::event::poll(&mut events, Some(&no_time));
        let events = polled.map_or(PollFlags::empty(), |_| events[0].revents());
        if events.intersects(PollFlags::HUP | PollFlags::ERR) {
            Closed::Whole
        } else if events.contains(PollFlags::RDHUP) {
            Closed::Half
        } else {
            Closed::Nothing
        }
    }

    /// Returns whether the client has sent bytes that are still unread. Closing the socket now
    /// would reset the connection, and the client could lose the response (RFC 9112 section 9.6).
    pub(crate) fn has_more(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = match &*self.stream.borrow() {
            Stream::Plain(socket) => rustix::net::recv(socket, &mut byte, flags),
            // An encrypted connection needs more than a closed socket to end well.
            Stream::Tls(_) => return true,
        };
        matches!(peeked, Ok((1.., _)))
    }

    /// Ends our side. The client still gets the bytes that were sent.
    pub(crate) fn shutdown_write(&self) {
        self.end_tls();
        self.shutdown(Shutdown::Write);
    }

    /// Ends both sides. A task that waits for this socket wakes up and sees the end.
    pub(crate) fn shutdown_both(&self) {
        // The end of a response that was cut must not look like a regular end.
        if self.phase.get() == ConnectionPhase::Idle {
            self.end_tls();
        }
        self.shutdown(Shutdown::Both);
    }

    /// Tells the client that no further bytes will be sent, if the connection uses TLS.
    pub(crate) fn end_tls(&self) {
        match &mut *self.stream.borrow_mut() {
            Stream::Plain(_) => {}
            Stream::Tls(stream) => stream.end(),
        }
    }

    fn shutdown(&self, how: Shutdown) {
        // This fails only if the client has disconnected already.
        let _ = rustix::net::shutdown(self.stream.borrow().socket(), how);
    }
}
