//! HTTP/2 (RFC 9113) on the `h2` crate. The streams of a connection become the same requests, for
//! the same handler, as those of HTTP/1.
//!
//! A connection comes here from [`crate::http1::connection`], after a TLS handshake that chose `h2`
//! or when its first bytes are the preface. Its task handles the frames. Each stream that must wait
//! is a task of its own, so that it does not delay the others.
//!
//! Limits protect the server: on concurrent streams, on the size of a header section, on unread
//! body bytes and on bytes that wait to be sent. Frames that ask for nothing have a budget
//! (`frame_budget`). A client that resets stream after stream loses its connection.

mod body;
mod frame_budget;
mod head;
mod prepared_heads;
mod responder;
mod response;
mod send;
mod socket;
mod stream;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, SendResponse};
use http::Request;
use kirin_http::handler::Handler;
use tokio::task::JoinSet;

use crate::connection::io::{ConnectionPhase, Io};
use crate::http1::sending;
use crate::server::{InForce, Server};
use socket::{Backlog, Http2Socket};
use stream::{Ended, Progress};

/// The first bytes of an HTTP/2 connection (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of `PRI * HTTP/2`, the part of the preface with which no HTTP/1 request can begin.
const PREFACE_START_BYTES: usize = 12;

/// The most concurrent streams.
const STREAMS: u32 = 128;

/// Body bytes of one stream, and of all streams, that a client may send before they are read.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;

/// The most bytes of a stream that wait to be sent.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// The most streams that a client may reset in excess of those that it lets end. A "rapid reset"
/// (CVE-2023-44487) causes work and does not count as a concurrent stream.
const RESETS: u32 = 100;

/// Streams that the client resets before we have seen them, and streams that we reset for their
/// errors.
const UNSEEN_RESETS: usize = 20;
const ERROR_RESETS: usize = 100;

/// Seconds for a client to disconnect after its last stream has ended.
const DISCONNECT_SECONDS: u64 = 2;

/// Returns whether a connection that begins with `received` speaks HTTP/2.
pub(crate) fn is_preface(received: &[u8]) -> bool {
    let length = received.len().min(PREFACE.len());
    length >= PREFACE_START_BYTES && received.get(..length) == PREFACE.get(..length)
}

/// Serves a connection until it ends.
pub(crate) async fn serve<H: Handler>(in_force: Rc<InForce<H>>, io: Rc<Io>) {
    let server = in_force.current();
    io.phase.set(ConnectionPhase::Streams);
    server.counters.http2_connections.add();
    io.set_deadline(server.deadlines.head);
    let share = server.share(io.client_peer());
    io.share.replace(share.clone());
    let backlog = Rc::new(Backlog::new(share));
    let socket = Http2Socket::new(&io, &backlog);
    let header_bytes = u32::try_from(server.limits.head.head_bytes).unwrap_or(u32::MAX);
    let handshake = Builder::new()
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(header_bytes)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(UNSEEN_RESETS)
        .max_local_error_reset_streams(Some(ERROR_RESETS))
        .handshake::<_, Bytes>(socket.clone());
    let mut handshake = pin!(handshake);
    let shaken = poll_fn(|context| {
        let shaken = handshake.as_mut().poll(context);
        if shaken.is_pending() {
            // If sending fails, reading fails as well.
            let _ = socket.poll_send_and_wait(context);
        }
        shaken
    });
    let mut connection = match shaken.await {
        Ok(connection) => connection,
        Err(error) => return tracing::debug!(peer = %io.peer, %error, "HTTP/2 connection failed"),
    };
    let resets = Rc::new(Resets(Cell::new(RESETS)));
    let mut streams = Streams { tasks: JoinSet::new(), resets, backlog };
    let mut is_calmed = false;
    let mut waiting = Waiting { on: Some(WaitingOn::Request), is_over: true, is_stopping: false };
    let (state, counters) = (Rc::clone(&server.state), Arc::clone(&server.counters));
    // Each stream is answered by the settings that are in force when it begins.
    drop(server);
    let mut stopping = pin!(state.stop.notified());
    stopping.as_mut().enable();
    let ended = loop {
        let next = poll_fn(|context| {
            if streams.resets.are_too_many() && !is_calmed {
                is_calmed = true;
                counters.http2_resets.add();
                tracing::info!(peer = %io.peer, "HTTP/2 connection is ended: its client resets stream after stream");
                connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
            if waiting.is_over() {
                if !waiting.is_stopping
                    && (state.stopping.get() || stopping.as_mut().poll(context).is_ready())
                {
                    connection.graceful_shutdown();
                    waiting.stop(&io);
                }
                streams.reap(context);
            }
            if let Poll::Ready(accepted) = connection.poll_accept(context) {
                waiting.accept();
                return Poll::Ready(accepted.transpose().map_err(Http2Failure::from));
            }
            if socket.is_flooded() && !is_calmed {
                is_calmed = true;
                counters.http2_floods.add();
                tracing::info!(peer = %io.peer, "HTTP/2 connection is ended: its client floods it with frames that ask for nothing");
                connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                if let Poll::Ready(accepted) = connection.poll_accept(context) {
                    return Poll::Ready(accepted.transpose().map_err(Http2Failure::from));
                }
            }
            if let Poll::Ready(Err(error)) = socket.poll_send_and_wait(context) {
                return Poll::Ready(Err(error.into()));
            }
            let on = if socket.is_stalled() {
                WaitingOn::Socket
            } else if !streams.tasks.is_empty() {
                WaitingOn::Work
            } else if connection.has_streams() {
                WaitingOn::Reader
            } else {
                WaitingOn::Request
            };
            waiting.begin(on, socket.take_progress(), &io);
            Poll::Pending
        });
        match next.await {
            Ok(Some((request, respond))) => {
                streams.begin(&in_force.current(), &io, request, respond).await;
            }
            Ok(None) => break Ok(()),
            Err(failure) => {
                // Sends the responses to earlier requests.
                poll_fn(|context| Poll::Ready(socket.poll_send_and_wait(context).is_ready())).await;
                break Err(failure);
            }
        }
    };
    // From here on, sending fails in the streams that send. A stream that waits for an application
    // continues to wait, as in HTTP/1. Cutting the exchange would lose the worker, and clients
    // disconnect too often for that.
    drop(connection);
    streams.tasks.detach_all();
    match ended {
        Err(error) if error.is_io() => tracing::debug!(peer = %io.peer, %error, "connection lost"),
        ended => {
            if let Err(error) = ended {
                if error.is_calmed_by_h2() && !is_calmed {
                    tracing::info!(peer = %io.peer, %error, "HTTP/2 connection is ended: too many of its streams were reset");
                }
                tracing::debug!(peer = %io.peer, %error, "HTTP/2 connection ended");
            }
            sending::linger_shortly(&io).await;
        }
    }
}

/// The reason why a connection ended early.
#[derive(Debug, thiserror::Error)]
enum Http2Failure {
    #[error(transparent)]
    Http2(#[from] h2::Error),
    #[error(transparent)]
    Socket(#[from] std::io::Error),
}

impl Http2Failure {
    /// Returns whether h2 has ended the connection because of too many resets.
    fn is_calmed_by_h2(&self) -> bool {
        match self {
            Http2Failure::Http2(error) => {
                error.is_library() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM)
            }
            Http2Failure::Socket(_) => false,
        }
    }

    /// Returns whether the socket failed, so that nothing can be sent any more.
    fn is_io(&self) -> bool {
        match self {
            Http2Failure::Http2(error) => error.is_io(),
            Http2Failure::Socket(_) => true,
        }
    }
}

/// The streams of a connection that are being answered.
struct Streams {
    tasks: JoinSet<()>,
    resets: Rc<Resets>,
    backlog: Rc<Backlog>,
}

/// The number of streams that a client may still reset. Each stream that it lets end adds one.
struct Resets(Cell<u32>);

impl Resets {
    fn count_reset(&self) {
        self.0.set(self.0.get().saturating_sub(1));
    }

    fn count(&self, ended: &Ended) {
        match ended {
            Ended::Answered => {
                debug_assert!(self.0.get() <= RESETS, "{} resets are left", self.0.get());
                self.0.set(RESETS.min(self.0.get() + 1));
            }
            Ended::ResetByClient => self.count_reset(),
            Ended::Abandoned | Ended::Cut => {}
        }
    }

    fn are_too_many(&self) -> bool {
        self.0.get() == 0
    }
}

impl Streams {
    /// Answers a request: at once if no waiting is needed, or else by a task of its own.
    async fn begin<H: Handler>(
        &mut self,
        server: &Rc<Server<H>>,
        io: &Io,
        request: Request<h2::RecvStream>,
        respond: SendResponse<Bytes>,
    ) {
        server.counters.http2_streams.add();
        io.set_deadlines(&server.deadlines);
        let rest = match stream::begin(server, io, (request, respond), &self.resets, &self.backlog)
        {
            Progress::Ended(ended) => return self.resets.count(&ended),
            Progress::Waiting(rest) => rest,
        };
        let resets = Rc::clone(&self.resets);
        let mut rest = Box::pin(async move { resets.count(&rest.await) });
        let ended = poll_fn(|context| Poll::Ready(rest.as_mut().poll(context))).await;
        if ended.is_pending() {
            self.tasks.spawn_local(rest);
        }
    }

    /// Removes the streams that have ended.
    fn reap(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some(ended)) = self.tasks.poll_join_next(context) {
            if let Err(error) = ended {
                tracing::error!(%error, "a stream ended by a panic");
            }
        }
    }
}

/// The event that a connection waits for. It decides when the connection is ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitingOn {
    /// A client that has no open stream.
    Request,
    /// Streams that are being answered. Each has limits of its own.
    Work,
    /// A client that does not take the bytes that are ready.
    Reader,
    /// A socket that takes nothing more.
    Socket,
}

struct Waiting {
    /// `None` after a request has ended the wait for one.
    on: Option<WaitingOn>,
    /// Whether the task has waited, and continues now.
    is_over: bool,
    is_stopping: bool,
}

impl Waiting {
    /// Returns whether the task has waited since the last call.
    fn is_over(&mut self) -> bool {
        std::mem::replace(&mut self.is_over, false)
    }

    /// Notes that a request has come. This gives no further time to a client that does not read.
    fn accept(&mut self) {
        if self.on == Some(WaitingOn::Request) {
            self.on = None;
        }
    }

    /// Sets a new deadline if there is another reason to wait, or if the client has taken bytes
    /// since the last one.
    fn begin(&mut self, on: WaitingOn, progress: bool, io: &Io) {
        self.is_over = true;
        let taken = progress && matches!(on, WaitingOn::Reader | WaitingOn::Socket);
        if self.on.replace(on) == Some(on) && !taken {
            return;
        }
        let deadlines = io.deadlines();
        match on {
            WaitingOn::Request if self.is_stopping => io.set_deadline(DISCONNECT_SECONDS),
            WaitingOn::Request => io.set_deadline(deadlines.keep_alive),
            WaitingOn::Work => io.clear_deadline(),
            WaitingOn::Reader | WaitingOn::Socket => io.set_deadline(deadlines.writing.silence),
        }
    }

    /// Notes that no further requests will be accepted.
    fn stop(&mut self, io: &Io) {
        self.is_stopping = true;
        if self.on == Some(WaitingOn::Request) {
            io.set_deadline(DISCONNECT_SECONDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_is_recognized_by_its_first_line() {
        assert!(is_preface(PREFACE));
        assert!(is_preface(b"PRI * HTTP/2"));
        assert!(is_preface(&[PREFACE, b"\0\0\0\x04\0"].concat()));
        for other in [
            &b"PRI * HTTP/"[..],
            b"PRI * HTTP/2.1",
            b"PRI * HTTP/2.0\r\n\r\nSX",
            b"GET / HTTP/2.0\r\n\r\n",
            b"",
        ] {
            assert!(!is_preface(other), "{other:?}");
        }
    }
}
