//! A request on its way to a server: counted as long as this lives.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use crate::server::Servers;

/// One request to one server. Kept until the response has been passed on whole, so that who is busy
/// is known; dropping it frees the server for another.
#[derive(Debug)]
pub struct Attempt {
    servers: Arc<Servers>,
    index: usize,
    began: Cell<Instant>,
    /// Whether it is the one that tries an ejected server.
    is_trial: Cell<bool>,
}

impl Attempt {
    /// A request to the server `index` begins; none if the server is at its limit.
    pub fn begin(servers: &Arc<Servers>, index: usize, now: Instant) -> Option<Self> {
        let is_trial = Cell::new(servers.began(index, now)?);
        Some(Self { servers: Arc::clone(servers), index, began: Cell::new(now), is_trial })
    }

    /// Which server it is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The request is sent: from here on the server is waited for.
    pub fn sent(&self, now: Instant) {
        self.began.set(now);
    }

    /// The response has begun, whatever its status.
    pub fn answered(&self, now: Instant) {
        if self.is_trial.take() {
            self.servers.tried(self.index);
        }
        self.servers.answered(self.index, now.saturating_duration_since(self.began.get()), now);
    }

    /// There is no response, or only a part of one. Returns whether the server is ejected by that.
    pub fn failed(&self, now: Instant) -> bool {
        self.servers.failed(self.index, now)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.servers.ended(self.index, self.is_trial.get());
    }
}
