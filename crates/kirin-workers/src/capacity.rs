//! What the pool hands out: a place in a ring, or the connection of a worker without a ring.

use std::thread::ThreadId;

use crate::pool::Pooled;
use crate::ring::RingPlace;
use crate::worker::WorkerConnection;

/// What a request needs to get to a worker.
pub(crate) enum Capacity {
    /// A place in the ring of the generation that serves.
    Ring(RingPlace<WorkerConnection>),
    /// The connection of a worker that does not use the ring.
    Connection(WorkerConnection),
}

impl Capacity {
    /// Returns the generation of the worker, or of the workers of the ring.
    pub(crate) fn generation(&self) -> u64 {
        match self {
            Self::Ring(place) => place.ring().generation(),
            Self::Connection(connection) => connection.handle.generation,
        }
    }

    /// Returns whether the worker handles several requests at once.
    pub(crate) fn is_concurrent(&self) -> bool {
        match self {
            Self::Ring(_) => false,
            Self::Connection(connection) => connection.handle.process.is_concurrent(),
        }
    }

    /// Returns the process id of the worker of a connection, if the worker has no request.
    pub(crate) fn idle_worker(&self) -> Option<u32> {
        match self {
            Self::Connection(connection) if self.load() == 0 => Some(connection.handle.pid),
            Self::Connection(_) | Self::Ring(_) => None,
        }
    }
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
            Self::Ring(place) => place.ring().is_retired(),
            Self::Connection(connection) => connection.handle.is_leaving(),
        }
    }

    fn process(&self) -> u32 {
        match self {
            Self::Connection(connection) if connection.handle.process.is_concurrent() => {
                connection.handle.pid
            }
            Self::Connection(_) | Self::Ring(_) => 0,
        }
    }

    fn load(&self) -> usize {
        match self {
            Self::Ring(_) => 0,
            Self::Connection(connection) => connection.handle.process.running(),
        }
    }
}
