//! An idle connection that another process goes on to serve. The client does not notice.

use std::os::fd::{AsFd, OwnedFd};

use kirin_http::peer::Peer;

use crate::connection::io::{ConnectionPhase, Io, Stream};

/// An idle connection without its event loop. Only one without TLS can be such: the state of a TLS
/// session cannot leave the process.
#[derive(Debug)]
pub struct IdleConnection {
    /// Its socket.
    pub descriptor: OwnedFd,
    /// The client that a PROXY header has named.
    pub announced: Option<Peer>,
    /// Whether a request has come on it.
    pub has_begun: bool,
}

impl Io {
    /// Returns whether another process could serve this connection when it is idle.
    pub(crate) fn can_move(&self) -> bool {
        !self.is_secure && self.phase.get() != ConnectionPhase::Streams
    }

    /// Takes the connection out of this process if it is idle: its task ends without a word to the
    /// client. With `needs_header` it begins with a PROXY header.
    pub(crate) fn take_idle(&self, needs_header: bool) -> Option<IdleConnection> {
        let idle = self.leave_idle(needs_header)?;
        // The task does not run any more, even if it is to be woken already.
        self.task.get()?.abort();
        Some(idle)
    }

    /// Does the same for the task itself, which then ends.
    pub(crate) fn leave_idle(&self, needs_header: bool) -> Option<IdleConnection> {
        let has_begun = self.has_begun.get();
        let announced = self.announced.get().map(|peer| Peer::clone(peer));
        // A part of the header may have been read.
        let awaits_header = needs_header && !has_begun && announced.is_none();
        if self.phase.get() != ConnectionPhase::Idle
            || !self.unread.borrow().is_empty()
            || awaits_header
        {
            return None;
        }
        let descriptor = self.copy_of_socket()?;
        // Nobody takes it twice.
        self.phase.set(ConnectionPhase::Busy);
        Some(IdleConnection { descriptor, announced, has_begun })
    }

    fn copy_of_socket(&self) -> Option<OwnedFd> {
        let stream = self.stream();
        let Stream::Plain(socket) = &*stream else { return None };
        // Without a descriptor, the connection ends here as others do.
        socket.as_fd().try_clone_to_owned().ok()
    }
}
