//! Finds out whether a watched HTTP/1 client has disconnected. The table of open connections checks
//! once a second.

use std::task::{Context, Poll, Waker};

use kirin_http::client_watch::WatchedClient;

use crate::connection::io::{Closed, Io};

/// A probe: an informational response, which an HTTP/1.1 client discards (RFC 9110 section 15.2.1).
/// If the client has closed its socket, its kernel answers with a reset.
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Whether a client is watched, and what is known about it.
#[derive(Debug, Default)]
pub(crate) enum Presence {
    /// The client is not watched.
    #[default]
    Unwatched,
    /// Wake the task when the client has disconnected.
    Watched(Waker),
    /// The same. The client has ended its side, and a probe was sent to learn whether it has closed
    /// its socket.
    Probed(Waker),
    /// Wake the task when the client ends its side or disconnects. A tunnel uses this while it does
    /// not read from the client.
    WatchedForEnd(Waker),
    /// The client has disconnected, or has ended its side if that was watched for.
    Gone,
}

impl WatchedClient for Io {
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut presence = self.presence.borrow_mut();
        match &mut *presence {
            Presence::Gone => return Poll::Ready(()),
            Presence::Watched(waker) | Presence::Probed(waker) | Presence::WatchedForEnd(waker) => {
                waker.clone_from(context.waker());
            }
            // A client that does not understand the probe is not sent one.
            Presence::Unwatched if self.takes_informational.get() => {
                *presence = Presence::Watched(context.waker().clone());
            }
            Presence::Unwatched => *presence = Presence::Probed(context.waker().clone()),
        }
        Poll::Pending
    }

    fn end_watch(&self) {
        self.presence.take();
    }

    fn is_apart_from_body(&self) -> bool {
        false
    }
}

/// Checks whether a watched client has disconnected.
pub(crate) fn check(io: &Io) {
    let presence = io.presence.take();
    let next = match (presence, io.closed()) {
        (Presence::Watched(waker) | Presence::Probed(waker), Closed::Whole)
        | (Presence::WatchedForEnd(waker), Closed::Half | Closed::Whole) => {
            waker.wake();
            Presence::Gone
        }
        (Presence::Watched(waker), Closed::Half) => {
            // The socket has room for twenty-five bytes, because nothing of a response was sent
            // yet. Nothing else writes to a client while it is watched. The next check shows the
            // result.
            let _ = io.poll_write(&mut Context::from_waker(Waker::noop()), PROBE);
            Presence::Probed(waker)
        }
        (presence, _) => presence,
    };
    io.presence.replace(next);
}
