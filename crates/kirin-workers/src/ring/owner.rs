//! What a ring asks of the application that it belongs to, and of the connections that it keeps.

use std::sync::Arc;

use crate::ring::place::RingPlace;
use crate::worker_handle::WorkerHandle;

/// The application of a ring.
pub(crate) trait RingOwner<C: Parked>: Send + Sync + 'static {
    /// Gives a place to a request that waits for one, or keeps it for the next.
    fn release_place(&self, place: RingPlace<C>);

    /// Takes away the idle places for which `is_surplus` is true.
    fn remove_places(&self, is_surplus: impl Fn(&RingPlace<C>) -> bool);

    /// Returns how many requests may wait in the ring and in the queue together.
    fn queue_length(&self) -> usize;

    /// Lets at most `length` requests wait in the queue for the workers of a generation.
    fn set_queue_length(&self, generation: u64, length: usize);

    /// Logs that a worker is killed because its cleanup takes too long.
    fn log_slow_cleanup(&self, pid: u32);

    /// Logs that a worker is killed because it has not looked for a request in time.
    fn log_silent(&self, pid: u32);
}

/// The connection of a worker, which a ring keeps while no request needs it.
pub(crate) trait Parked: Send + Sized + 'static {
    /// Returns the worker.
    fn handle(&self) -> &Arc<WorkerHandle>;

    /// Returns the place of the request that goes over the connection.
    fn place(&mut self) -> &mut Option<RingPlace<Self>>;
}
