//! The events that the supervisor of an application receives.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::config::TrialDecision;
use crate::control::ControlLine;
use crate::worker::WorkerConnection;

/// An event in the life of an application.
pub(crate) enum Event {
    /// A parent has sent a line.
    Control { incarnation: u64, line: ControlLine },
    /// A parent has closed its end of the control channel, because it has ended.
    ControlClosed { incarnation: u64 },
    /// A worker has taken a connection and sent its greeting.
    Greeted { connection: Box<WorkerConnection> },
    /// A request has found no free connection, and the workers can take more.
    Crowded,
    /// The connection in a vacancy has ended.
    Lost { generation: u64, vacancy: usize },
    /// A worker that took too long has had its time to log a stack trace.
    GraceOver { generation: u64, pid: u32 },
    /// [`crate::App::reload`] was called.
    Reload,
    /// [`crate::App::add_worker`] or [`crate::App::remove_worker`] was called.
    Resize { more: bool },
    /// [`crate::App::set_workers`] was called.
    SetWorkers { workers: usize },
    /// The counts of a trial show that the new code is worse.
    TrialFault,
    /// An operator decides about the code that is on trial. The answer is false if there is none.
    DecideTrial { decision: TrialDecision, done: oneshot::Sender<bool> },
    /// [`crate::App::stop`] was called.
    Stop { limit: Duration, done: oneshot::Sender<()> },
}
