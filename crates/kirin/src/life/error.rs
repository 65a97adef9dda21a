//! Why the program ends with an error.

use std::io;

use kirin_acme::AcmeError;
use kirin_memcache::SnapshotFileError;
use kirin_server::listener::ListenError;
use kirin_traces::TraceExporterError;
use kirin_user::UserError;
use kirin_workers::AppError;

use crate::admin;
use crate::life::pid_file::PidFileError;
use crate::life::port_file::PortFileError;
use crate::life::read_again::Unreadable;
use crate::life::upgrade_channel::UpgradeError;
use crate::serve::event_loop::LoopError;
use crate::serve::listeners::ListenerOpenError;
use crate::serve::logs::LogError;
use crate::serve::metrics;
use crate::serve::sockets::SocketError;

/// Why the program ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// An access log cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listener(#[from] ListenerOpenError),
    /// A socket that was handed over cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The file for the process id cannot be written.
    #[error(transparent)]
    PidFile(#[from] PidFileError),
    /// The file for the ports of the memcached listeners cannot be written.
    #[error(transparent)]
    PortFile(#[from] PortFileError),
    /// The predecessor of this program does not hand over.
    #[error("upgrade: {0}")]
    Upgrade(#[from] UpgradeError),
    /// The program cannot become the user that serves.
    #[error(transparent)]
    User(#[from] UserError),
    /// The user that serves cannot read a file that is read again.
    #[error(transparent)]
    ReadAgain(#[from] Unreadable),
    /// The admin listener cannot be opened.
    #[error(transparent)]
    Admin(#[from] admin::AdminOpenError),
    /// The address of metrics cannot be opened.
    #[error(transparent)]
    Metrics(#[from] metrics::MetricsOpenError),
    /// Certificates cannot be kept.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// The snapshot of the store cannot be a file.
    #[error(transparent)]
    Snapshot(#[from] SnapshotFileError),
    /// An application does not start, or failed for good.
    #[error(transparent)]
    App(#[from] AppError),
    /// Traces cannot be exported.
    #[error(transparent)]
    Traces(#[from] TraceExporterError),
    /// An event loop does not start.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The system gives no temporary directory, signal handler or runtime.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

impl ProgramError {
    /// Returns the address that cannot be listened on, and the reason, if that is the error.
    pub fn listen_error(&self) -> Option<&ListenError> {
        match self {
            Self::Listener(
                ListenerOpenError::Listen(error)
                | ListenerOpenError::Socket(SocketError::Listen(error)),
            ) => Some(error),
            _ => None,
        }
    }
}
