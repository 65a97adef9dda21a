//! A request on its way to a server.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use crate::server::Servers;

/// One request to one server. It holds a slot of the server until it is dropped, which happens when
/// the response has been passed on completely.
#[derive(Debug)]
pub struct Attempt {
    servers: Arc<Servers>,
    index: usize,
    began: Cell<Instant>,
    /// Whether this is the request that tries an ejected server.
    is_trial: Cell<bool>,
}

impl Attempt {
    /// Takes a slot of the server `index`. Returns `None` if the server is at its limit.
    pub fn begin(servers: &Arc<Servers>, index: usize, now: Instant) -> Option<Self> {
        let is_trial = Cell::new(servers.began(index, now)?);
        Some(Self { servers: Arc::clone(servers), index, began: Cell::new(now), is_trial })
    }

    /// Returns the index of the server.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Notes that the request is sent. The server's latency counts from here.
    pub fn sent(&self, now: Instant) {
        self.began.set(now);
    }

    /// Notes that the response has begun, with any status.
    pub fn answered(&self, now: Instant) {
        if self.is_trial.take() {
            self.servers.tried(self.index);
        }
        self.servers.answered(self.index, now.saturating_duration_since(self.began.get()), now);
    }

    /// Notes that there is no response, or only a part of one. Returns whether that has ejected the
    /// server.
    pub fn failed(&self, now: Instant) -> bool {
        self.servers.failed(self.index, now)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.servers.ended(self.index, self.is_trial.get());
    }
}
