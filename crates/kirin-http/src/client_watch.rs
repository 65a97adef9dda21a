//! The client of a request that waits for something: is it still there?
//!
//! A handler whose request waits in a queue asks, so that nothing is done for those who have gone.
//! The table of open connections looks once a second.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::io::{Closed, Io};

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

/// The client of one request.
#[derive(Clone)]
pub struct ClientWatch(Way);

#[derive(Clone)]
enum Way {
    Http1 {
        io: Rc<Io>,
        /// Whether it takes informational responses: it speaks HTTP/1.1.
        takes_informational: bool,
    },
    /// Whether the stream was reset. Its task looks, and polls then the one that waits for it.
    Http2(Rc<Cell<bool>>),
}

impl ClientWatch {
    pub(crate) fn http1(io: &Rc<Io>, takes_informational: bool) -> Self {
        Self(Way::Http1 { io: Rc::clone(io), takes_informational })
    }

    pub(crate) fn http2(is_gone: &Rc<Cell<bool>>) -> Self {
        Self(Way::Http2(Rc::clone(is_gone)))
    }

    /// Whether it can be watched while its body is read. An HTTP/1 client's socket has one reader.
    pub fn is_apart_from_body(&self) -> bool {
        matches!(self.0, Way::Http2(_))
    }

    /// Waits until the client has gone, within a second or two.
    ///
    /// The end of its sending alone does not mean that: a client may end its side after the request
    /// and wait for the response. Only one that has closed its socket answers the probe with a
    /// reset. HTTP/1.0 has no response that could be a probe, so there only a reset counts.
    ///
    /// To be waited for only while nothing is written to the client.
    pub async fn gone(&self) {
        match &self.0 {
            Way::Http1 { io, takes_informational } => {
                let _watch = Watch(io);
                std::future::poll_fn(|context| poll_gone(io, *takes_informational, context)).await;
            }
            Way::Http2(is_gone) => {
                std::future::poll_fn(
                    |_| if is_gone.get() { Poll::Ready(()) } else { Poll::Pending },
                )
                .await;
            }
        }
    }
}

fn poll_gone(io: &Io, takes_informational: bool, context: &mut Context<'_>) -> Poll<()> {
    let mut presence = io.presence.borrow_mut();
    match &mut *presence {
        Presence::Gone => return Poll::Ready(()),
        Presence::Watched(waker) | Presence::Asked(waker) | Presence::Ending(waker) => {
            waker.clone_from(context.waker());
        }
        // Of no use is asking where the answer is not understood.
        Presence::Unwatched if takes_informational => {
            *presence = Presence::Watched(context.waker().clone());
        }
        Presence::Unwatched => *presence = Presence::Asked(context.waker().clone()),
    }
    Poll::Pending
}

/// Ends the watching when nobody waits any more.
struct Watch<'a>(&'a Io);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.presence.take();
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
