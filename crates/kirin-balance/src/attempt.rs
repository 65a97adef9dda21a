//! A request on its way to a server: counted as long as this lives.

use crate::server::Servers;
use std::sync::Arc;
use std::time::Instant;

/// One request to one server. Kept until the response has been passed on whole, so that who is busy is known.
#[derive(Debug)]
pub struct Attempt {
    servers: Arc<Servers>,
    index: usize,
    began: Instant,
}

impl Attempt {
    /// A request to the server `index` begins.
    pub fn begin(servers: &Arc<Servers>, index: usize, now: Instant) -> Self {
        servers.began(index);
        Self { servers: Arc::clone(servers), index, began: now }
    }

    /// Which server it is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The response has begun, whatever its status.
    pub fn answered(&self, now: Instant) {
        self.servers.answered(self.index, now.saturating_duration_since(self.began), now);
    }

    /// There is no response, or only a part of one. Returns whether the server is ejected by that.
    pub fn failed(&self, now: Instant) -> bool {
        self.servers.failed(self.index, now)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.servers.ended(self.index);
    }
}
