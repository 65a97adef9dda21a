//! What happens in the life of an application, as its supervisor hears of it.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::control::ControlLine;
use crate::worker::WorkerConnection;

/// What happens in the life of an application.
pub(crate) enum Event {
    /// A parent said something.
    Control { life: u64, line: ControlLine },
    /// A parent's end of the control channel is closed: it has ended.
    ControlClosed { life: u64 },
    /// A worker has taken a connection and said who it is.
    Greeted { connection: Box<WorkerConnection> },
    /// The connection in a slot is gone.
    Lost { generation: u64, slot: usize },
    /// The time is over in which a worker that took too long could say where it was.
    GraceOver { generation: u64, pid: u32 },
    /// [`crate::App::reload`].
    Reload,
    /// [`crate::App::add_worker`] and [`crate::App::remove_worker`].
    Resize { more: bool },
    /// [`crate::App::stop`].
    Stop { limit: Duration, done: oneshot::Sender<()> },
}
