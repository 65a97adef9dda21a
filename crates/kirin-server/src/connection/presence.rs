//! Finds out whether an HTTP/1 client that somebody waits for has gone. The table of open
//! connections looks once a second.

use std::task::{Context, Poll, Waker};

use crate::connection::io::{Closed, Io};
use kirin_http::client_watch::WatchedClient;

/// What tells a client that is still there nothing, and makes the kernel of one that has gone say
/// so: an informational response, which HTTP/1.1 clients discard (RFC 9110 section 15.2.1).
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Whether somebody wants to know that the client goes.
#[derive(Debug, Default)]
pub(crate) enum Presence {
    /// Nobody does.
    #[default]
    Unwatched,
    /// To be woken when it has gone.
    Watched(Waker),
    /// The same. It has ended its side, and was asked whether that was all.
    Asked(Waker),
    /// To be woken when it ends its side, and when it has gone. For a tunnel, which does not read
    /// from it just now.
    Ending(Waker),
    /// It has gone, or ended its side if that was watched for.
    Gone,
}

impl WatchedClient for Io {
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut presence = self.presence.borrow_mut();
        match &mut *presence {
            Presence::Gone => return Poll::Ready(()),
            Presence::Watched(waker) | Presence::Asked(waker) | Presence::Ending(waker) => {
                waker.clone_from(context.waker());
            }
            // A client that does not understand the probe is not sent one.
            Presence::Unwatched if self.takes_informational.get() => {
                *presence = Presence::Watched(context.waker().clone());
            }
            Presence::Unwatched => *presence = Presence::Asked(context.waker().clone()),
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

/// Looks whether a watched client has gone.
pub(crate) fn look(io: &Io) {
    let presence = io.presence.take();
    let next = match (presence, io.closed()) {
        (Presence::Watched(waker) | Presence::Asked(waker), Closed::Whole)
        | (Presence::Ending(waker), Closed::Half | Closed::Whole) => {
            waker.wake();
            Presence::Gone
        }
        (Presence::Watched(waker), Closed::Half) => {
            // Twenty-five bytes to a client that has been sent nothing yet: there is room, and
            // whether it worked will be seen. Nobody else writes while it is watched.
            let _ = io.poll_write(&mut Context::from_waker(Waker::noop()), PROBE);
            Presence::Asked(waker)
        }
        (presence, _) => presence,
    };
    io.presence.replace(next);
}
