//! What an HTTP/2 connection waits for. It decides when the connection is ended.

use crate::connection::io::Io;

/// Seconds for a client to disconnect after its last stream has ended.
const DISCONNECT_SECONDS: u64 = 2;

/// The event that a connection waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitingOn {
    /// A client that has no open stream.
    Request,
    /// Streams that are being answered. Each has limits of its own.
    Work,
    /// A socket that takes nothing more.
    Socket,
}

pub(super) struct Waiting {
    /// `None` after a request has ended the wait for one.
    on: Option<WaitingOn>,
    is_stopping: bool,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self { on: Some(WaitingOn::Request), is_stopping: false }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Notes that a request has come. This gives no further time to a client that does not read.
    pub(super) fn accept(&mut self) {
        if self.on == Some(WaitingOn::Request) {
            self.on = None;
        }
    }

    /// Sets a new deadline if there is another reason to wait, or if the client has taken bytes
    /// since the last one.
    pub(super) fn begin(&mut self, on: WaitingOn, progress: bool, io: &Io) {
        let taken = progress && on == WaitingOn::Socket;
        if self.on.replace(on) == Some(on) && !taken {
            return;
        }
        let deadlines = io.deadlines();
        match on {
            WaitingOn::Request if self.is_stopping => io.set_deadline(DISCONNECT_SECONDS),
            WaitingOn::Request => io.set_deadline(deadlines.keep_alive),
            WaitingOn::Work => io.clear_deadline(),
            WaitingOn::Socket => io.set_deadline(deadlines.writing.silence),
        }
    }

    /// Notes that no further requests will be accepted.
    pub(super) fn stop(&mut self, io: &Io) {
        self.is_stopping = true;
        if self.on == Some(WaitingOn::Request) {
            io.set_deadline(DISCONNECT_SECONDS);
        }
    }
}
