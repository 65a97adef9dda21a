//! The connection to one server by HTTP/2, on one loop. All requests share it; when it cannot take more it is given up, and the
//! requests that it has go on.

use crate::failure::Failure;
use crate::socket::Stream;
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::sync::Mutex;

/// Body bytes of one stream, and of all, that a server may send before a client has taken them. The second is large enough for
/// all streams at once, so that slow clients hold up only themselves.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * STREAMS as u32;

/// Streams at once, before the server has said how many it takes.
const STREAMS: usize = 100;

/// The longest response head.
const HEAD_BYTES: u32 = 64 * 1024;

/// Bytes of a stream that wait to be sent.
const SEND_BUFFER_BYTES: usize = 128 * 1024;

/// By which requests are begun.
pub(crate) type Sender = SendRequest<Bytes>;

/// The connection, if there is one.
#[derive(Default)]
pub(crate) struct Http2Connection {
    sender: RefCell<Option<Held>>,
    /// Whether the server is known to speak HTTP/2, so that requests wait for one connection instead of making their own.
    pub(crate) is_known: Cell<bool>,
    /// Held by who connects.
    pub(crate) connecting: Mutex<()>,
}

struct Held {
    sender: Sender,
    born: u64,
    last_used: Cell<u64>,
}

impl Http2Connection {
    /// The connection, if it takes requests.
    pub(crate) async fn take(&self, now: u64) -> Option<Sender> {
        let mut sender = {
            let held = self.sender.borrow();
            let held = held.as_ref()?;
            held.last_used.set(now);
            held.sender.clone()
        };
        // Only whether it has ended: it waits its turn later.
        let ended =
            poll_fn(|context| Poll::Ready(matches!(sender.poll_ready(context), Poll::Ready(Err(_))))).await;
        if ended {
            self.give_up();
            return None;
        }
        Some(sender)
    }

    /// Begins to speak HTTP/2 on `stream`. Call on a `LocalSet`.
    pub(crate) async fn begin(&self, stream: Stream, now: u64) -> Result<Sender, Failure> {
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_max_send_streams(STREAMS)
            .max_header_list_size(HEAD_BYTES)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .enable_push(false)
            .handshake(stream);
        let (sender, connection) =
            handshake.await.map_err(|error| Failure::Connect(io::Error::other(error)))?;
        tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "HTTP/2 connection to a server ended");
            }
        });
        self.is_known.set(true);
        let held = Held { sender: sender.clone(), born: now, last_used: Cell::new(now) };
        self.sender.replace(Some(held));
        Ok(sender)
    }

    /// Begins no more requests on the connection. It ends with those that it has.
    pub(crate) fn give_up(&self) {
        self.sender.take();
    }

    /// Gives the connection up if it is old or has been idle for long.
    pub(crate) fn sweep(&self, now: u64, idle_time: u64, max_age: Option<u64>) {
        let is_over = self.sender.borrow().as_ref().is_some_and(|held| {
            now.saturating_sub(held.last_used.get()) > idle_time
                || max_age.is_some_and(|age| now.saturating_sub(held.born) >= age)
        });
        if is_over {
            self.give_up();
        }
    }
}
