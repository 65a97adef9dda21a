//! The connections to one server by HTTP/2, on one loop. Requests share the first that has room for
//! one more; there is another only while those that are there have as many streams as the server
//! takes. One that cannot take more requests is given up, and those that it has go on.

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

use crate::failure::Failure;
use crate::socket::Stream;

/// Body bytes of one stream, and of all, that a server may send before a client has taken them. The
/// second is large enough for all streams at once, so that slow clients hold up only themselves.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * STREAMS as u32;

/// Streams that share a connection, also when the server takes more.
const STREAMS: usize = 100;

/// What stands for the number that a server takes before it has said it. It cannot say this one.
const UNSAID_STREAMS: usize = usize::MAX - 1;

/// Connections at once. Requests beyond what all of them take wait.
const CONNECTIONS: usize = 8;

/// The longest response head.
const HEAD_BYTES: u32 = 64 * 1024;

/// Bytes of a stream that wait to be sent.
const SEND_BUFFER_BYTES: usize = 128 * 1024;

/// Bytes that a connection reads before the streams have their turn.
const TURN_BYTES: usize = 64 * 1024;

/// A socket that lets others go on now and then. The h2 crate keeps heads until their streams take
/// them, without a bound: the tasks of the streams have to see them come, to refuse what is too
/// much.
struct InTurns {
    stream: Stream,
    /// Bytes since the last turn of the others.
    read: usize,
}

impl AsyncRead for InTurns {
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

impl AsyncWrite for InTurns {
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

/// The connections, if there are some.
#[derive(Default)]
pub(crate) struct Http2Connections {
    held: RefCell<Vec<Held>>,
    next_number: Cell<u64>,
    /// Whether the server is known to speak HTTP/2, so that requests wait for a connection instead
    /// of making their own.
    pub(crate) is_known: Cell<bool>,
    /// Held by who connects.
    pub(crate) connecting: Mutex<()>,
}

struct Held {
    sender: SendRequest<Bytes>,
    number: u64,
    streams: Rc<Cell<usize>>,
    born: u64,
    last_used: Cell<u64>,
}

/// By which a request is begun.
pub(crate) struct Sender {
    pub(crate) requests: SendRequest<Bytes>,
    /// Which connection it is.
    pub(crate) number: u64,
    pub(crate) place: StreamPlace,
}

/// Among the streams of a connection, from the beginning of a request to the end of its response.
pub(crate) struct StreamPlace(Rc<Cell<usize>>);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Held {
    fn begin(&self, now: u64) -> Sender {
        self.last_used.set(now);
        self.streams.set(self.streams.get() + 1);
        let place = StreamPlace(Rc::clone(&self.streams));
        Sender { requests: self.sender.clone(), number: self.number, place }
    }

    fn has_room(&self) -> bool {
        self.streams.get() < self.sender.current_max_send_streams().min(STREAMS)
    }
}

impl Http2Connections {
    /// A connection that takes requests; none if another is to be made.
    pub(crate) async fn take(&self, now: u64) -> Option<Sender> {
        self.drop_ended().await;
        let held = self.held.borrow();
        let with_room = held.iter().find(|held| held.has_room());
        match with_room {
            None if held.len() >= CONNECTIONS => self.take_full(now),
            with_room => with_room.map(|held| held.begin(now)),
        }
    }

    /// The connection with the fewest streams, where a request waits for its turn.
    pub(crate) fn take_full(&self, now: u64) -> Option<Sender> {
        self.held.borrow().iter().min_by_key(|held| held.streams.get()).map(|held| held.begin(now))
    }

    /// Only whether they have ended: a request waits its turn later.
    async fn drop_ended(&self) {
        poll_fn(|context| {
            let mut held = self.held.borrow_mut();
            held.retain_mut(|held| !matches!(held.sender.poll_ready(context), Poll::Ready(Err(_))));
            Poll::Ready(())
        })
        .await;
    }

    /// Begins to speak HTTP/2 on `stream`, and waits until the server has said how many streams it
    /// takes, which is the first thing that it says (RFC 9113 section 3.4): what it has not room
    /// for it would refuse. Call on an event loop.
    pub(crate) async fn begin(&self, stream: Stream, now: u64) -> Result<Sender, Failure> {
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_max_send_streams(UNSAID_STREAMS)
            .max_header_list_size(HEAD_BYTES)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .enable_push(false)
            .handshake(InTurns { stream, read: 0 });
        let failed = |error: h2::Error| Failure::Connect(io::Error::other(error));
        let (sender, mut connection) = handshake.await.map_err(failed)?;
        poll_fn(|context| match Pin::new(&mut connection).poll(context) {
            Poll::Ready(Ok(())) => {
                Poll::Ready(Err(Failure::Connect(io::ErrorKind::UnexpectedEof.into())))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(failed(error))),
            Poll::Pending if sender.current_max_send_streams() == UNSAID_STREAMS => Poll::Pending,
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
        let held =
            Held { sender, number, streams: Rc::default(), born: now, last_used: Cell::new(now) };
        let sender = held.begin(now);
        self.held.borrow_mut().push(held);
        Ok(sender)
    }

    /// Begins no more requests on this connection. It ends with those that it has.
    pub(crate) fn give_up(&self, number: u64) {
        self.held.borrow_mut().retain(|held| held.number != number);
    }

    /// The same with all of them.
    pub(crate) fn give_up_all(&self) {
        self.held.borrow_mut().clear();
    }

    /// Gives up what is old or has been idle for long.
    pub(crate) fn sweep(&self, now: u64, idle_time: u64, max_age: Option<u64>) {
        self.held.borrow_mut().retain(|held| {
            if held.streams.get() > 0 {
                held.last_used.set(now);
            }
            let is_idle = now.saturating_sub(held.last_used.get()) > idle_time;
            !is_idle && max_age.is_none_or(|age| now.saturating_sub(held.born) < age)
        });
    }
}
