//! The watch over the connection of a worker that is attached to a ring. Nobody reads from it while
//! requests go through the ring, so the end of the worker would not be seen.

use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::ring::owner::{Parked, RingOwner};
use crate::ring::workers::RingSeat;
use crate::worker_handle::WorkerHandle;

/// Waits for the end of the connection. Call this on an event loop.
pub(crate) async fn watch_connection<C: Parked>(
    app: Arc<impl RingOwner<C>>,
    seat: RingSeat<C>,
    worker: Arc<WorkerHandle>,
) {
    if let Err(error) = wait_for_end(&worker).await {
        // Without descriptors the end of the process is still reported by its parent.
        tracing::warn!(pid = worker.pid, %error, "the end of a worker may be seen late");
        return;
    }
    seat.ring.worker_lost(&*app, seat.number, &worker);
}

async fn wait_for_end(worker: &WorkerHandle) -> io::Result<()> {
    let socket = StdUnixStream::from(worker.socket().try_clone_to_owned()?);
    let socket = UnixStream::from_std(socket)?;
    // Data that arrives does not count for this interest, but a hang-up always does.
    while !socket.ready(Interest::PRIORITY).await?.is_read_closed() {
        // Urgent data counts too. This forgets it, so that the loop does not spin.
        let nothing = || -> io::Result<()> { Err(io::ErrorKind::WouldBlock.into()) };
        let _ = socket.try_io(Interest::PRIORITY, nothing);
    }
    Ok(())
}
