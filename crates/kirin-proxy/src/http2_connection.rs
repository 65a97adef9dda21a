//! The HTTP/2 connections to one server, on one event loop.
//!
//! Requests share the first connection that has room for another stream. A new connection is opened
//! only when all others have as many streams as the server allows. A connection that takes no
//! further requests is retired, and its present streams continue.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Mutex;

use crate::failure::ProxyFailure;
use crate::socket::ServerStream;

/// Body bytes that a server may send before a client has taken them: of one stream, and of all
/// streams. The second window is large enough for all streams at once, so that a slow client holds
/// up only itself.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * STREAMS as u32;

/// The most streams that share a connection, even if the server allows more.
const STREAMS: usize = 100;

/// Stands for the server's limit of streams before the server has announced it. The server cannot
/// announce this number.
const UNANNOUNCED_STREAMS: usize = usize::MAX - 1;

/// The most connections to one server. Requests beyond their streams wait.
const CONNECTIONS: usize = 8;

/// The longest response head in bytes.
const HEAD_BYTES: u32 = 64 * 1024;

/// The most bytes of a stream that wait to be sent.
const SEND_BUFFER_BYTES: usize = 128 * 1024;

/// Bytes that a connection reads before the tasks of the streams run.
const TURN_BYTES: usize = 64 * 1024;

/// A socket that yields to other tasks now and then.
///
/// The h2 crate keeps heads without a limit until the streams take them. So the tasks of the
/// streams must run between the reads, to refuse what is too much.
struct YieldingStream {
    stream: ServerStream,
    /// Bytes read since other tasks could run.
    read: usize,
}

impl AsyncRead for YieldingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= TURN_BYTES {
            self.read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.read =
            if result.is_pending() { 0 } else { self.read + buffer.filled().len() - before };
        result
    }
}

impl AsyncWrite for YieldingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The connections to one server.
#[derive(Default)]
pub(crate) struct Http2Connections {
    connections: RefCell<Vec<Http2Connection>>,
    next_number: Cell<u64>,
    /// Whether the server is known to speak HTTP/2. Then requests wait for a connection that is
    /// being opened, instead of opening their own.
    pub(crate) is_known: Cell<bool>,
    /// Locked by the request that opens a connection.
    pub(crate) connecting: Mutex<()>,
}

struct Http2Connection {
    sender: SendRequest<Bytes>,
    number: u64,
    streams: Rc<Cell<usize>>,
    created_at: u64,
    last_used: Cell<u64>,
}

/// Starts a stream of one connection.
pub(crate) struct StreamSender {
    pub(crate) requests: SendRequest<Bytes>,
    /// The number of the connection.
    pub(crate) number: u64,
    pub(crate) slot: StreamSlot,
}

/// One of the streams of a connection, from the start of a request to the end of its response.
pub(crate) struct StreamSlot(Rc<Cell<usize>>);

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Http2Connection {
    fn begin(&self, now: u64) -> StreamSender {
        self.last_used.set(now);
        self.streams.set(self.streams.get() + 1);
        let slot = StreamSlot(Rc::clone(&self.streams));
        StreamSender { requests: self.sender.clone(), number: self.number, slot }
    }

    fn has_room(&self) -> bool {
        self.streams.get() < self.sender.current_max_send_streams().min(STREAMS)
    }
}

impl Http2Connections {
    /// Returns a connection that takes another stream; `None` if a new one is to be opened.
    pub(crate) async fn take(&self, now: u64) -> Option<StreamSender> {
        self.drop_ended().await;
        let connections = self.connections.borrow();
        let with_room = connections.iter().find(|connection| connection.has_room());
        match with_room {
            None if connections.len() >= CONNECTIONS => self.take_full(now),
            with_room => with_room.map(|connection| connection.begin(now)),
        }
    }

    /// Returns the connection with the fewest streams. A request waits there until a stream ends.
    pub(crate) fn take_full(&self, now: u64) -> Option<StreamSender> {
        self.connections
            .borrow()
            .iter()
            .min_by_key(|connection| connection.streams.get())
            .map(|connection| connection.begin(now))
    }

    /// Drops connections that have ended.
    async fn drop_ended(&self) {
        poll_fn(|context| {
            let mut connections = self.connections.borrow_mut();
            connections.retain_mut(|connection| {
                !matches!(connection.sender.poll_ready(context), Poll::Ready(Err(_)))
            });
            Poll::Ready(())
        })
        .await;
    }

    /// Starts HTTP/2 on `stream`. Call this on an event loop.
    ///
    /// Waits until the server has announced how many streams it takes, which it does first (RFC
    /// 9113 section 3.4). The server would refuse streams beyond that number.
    pub(crate) async fn begin(
        &self,
        stream: ServerStream,
        now: u64,
    ) -> Result<StreamSender, ProxyFailure> {
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_max_send_streams(UNANNOUNCED_STREAMS)
            .max_header_list_size(HEAD_BYTES)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .enable_push(false)
            .handshake(YieldingStream { stream, read: 0 });
        let failed = |error: h2::Error| ProxyFailure::Connect(io::Error::other(error));
        let (sender, mut connection) = handshake.await.map_err(failed)?;
        poll_fn(|context| match Pin::new(&mut connection).poll(context) {
            Poll::Ready(Ok(())) => {
                Poll::Ready(Err(ProxyFailure::Connect(io::ErrorKind::UnexpectedEof.into())))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(failed(error))),
            Poll::Pending if sender.current_max_send_streams() == UNANNOUNCED_STREAMS => {
                Poll::Pending
            }
            Poll::Pending => Poll::Ready(Ok(())),
        })
        .await?;
        tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "HTTP/2 connection to a server ended");
            }
        });
        self.is_known.set(true);
        let number = self.next_number.replace(self.next_number.get() + 1);
        let opened = Http2Connection {
            sender,
            number,
            streams: Rc::default(),
            created_at: now,
            last_used: Cell::new(now),
        };
        let sender = opened.begin(now);
        self.connections.borrow_mut().push(opened);
        Ok(sender)
    }

    /// Prevents further requests on this connection. It closes after its present streams.
    pub(crate) fn retire(&self, number: u64) {
        self.connections.borrow_mut().retain(|connection| connection.number != number);
    }

    /// Retires all connections.
    pub(crate) fn retire_all(&self) {
        self.connections.borrow_mut().clear();
    }

    /// Retires connections that are old or have been idle too long.
    pub(crate) fn sweep(&self, now: u64, idle_time: u64, max_age: Option<u64>) {
        self.connections.borrow_mut().retain(|connection| {
            if connection.streams.get() > 0 {
                connection.last_used.set(now);
            }
            let is_idle = now.saturating_sub(connection.last_used.get()) > idle_time;
            !is_idle && max_age.is_none_or(|age| now.saturating_sub(connection.created_at) < age)
        });
    }
}
