//! The right to put a request into a ring, and what the pool hands out: such a place, or the
//! connection of a worker without a ring.

use std::sync::Arc;
use std::thread::ThreadId;

use crate::pool::Pooled;
use crate::ring::shared_ring::SharedRing;
use crate::worker::WorkerConnection;

/// The right to put one request into a ring. Dropping it gives it up.
pub(crate) struct RingPlace {
    ring: Arc<SharedRing>,
    /// Whether a request has it.
    is_kept: bool,
}

impl RingPlace {
    /// Returns a place that `ring` has counted.
    pub(super) fn counted(ring: Arc<SharedRing>) -> Self {
        Self { ring, is_kept: false }
    }

    pub(crate) fn ring(&self) -> &Arc<SharedRing> {
        &self.ring
    }

    /// Gives the place to a request in the ring, which goes on counting it.
    pub(super) fn keep_counted(mut self) {
        self.is_kept = true;
    }
}

impl Drop for RingPlace {
    fn drop(&mut self) {
        if !self.is_kept {
            self.ring.uncount_place();
        }
    }
}

/// What a request needs to get to a worker.
pub(crate) enum Capacity {
    /// A place in the ring of the generation that serves.
    Ring(RingPlace),
    /// The connection of a worker that does not use the ring.
    Connection(WorkerConnection),
}

impl Pooled for Capacity {
    type Home = ThreadId;

    fn is_near(&self, home: ThreadId) -> bool {
        match self {
            Self::Ring(_) => true,
            Self::Connection(connection) => connection.home() == home,
        }
    }

    fn is_leaving(&self) -> bool {
        match self {
            Self::Ring(place) => place.ring.is_retired(),
            Self::Connection(connection) => connection.handle.is_leaving(),
        }
    }
}
