//! How the program comes to its end.

use std::time::Duration;

use kirin_workers::AppError;

use crate::life::error::ProgramError;
use crate::life::signals::Stop;
use crate::life::upgrade::Succession;

/// How long responses in progress may take after TERM or QUIT, or after an upgrade.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// How the program comes to its end.
pub enum ProgramEnding {
    /// The program could not start.
    NotStarted(ProgramError),
    /// A signal asked for the end before the program served.
    StoppedAtStart,
    /// A signal asked for the end.
    Stopped(Stop),
    /// Another program serves now.
    Succeeded(Succession),
    /// An application failed for good.
    AppFailed(AppError),
}

impl ProgramEnding {
    /// Returns how long responses in progress may take.
    pub fn drain_limit(&self) -> Duration {
        match self {
            Self::Stopped(Stop::Graceful) | Self::Succeeded(_) => DRAIN_LIMIT,
            Self::Stopped(Stop::Fast)
            | Self::NotStarted(_)
            | Self::StoppedAtStart
            | Self::AppFailed(_) => Duration::ZERO,
        }
    }

    /// Logs the end of serving, if the program has served.
    pub fn log(&self) {
        match self {
            Self::NotStarted(_) | Self::StoppedAtStart => {}
            Self::Stopped(stop) => tracing::info!("stopping: {}", stop.description()),
            Self::AppFailed(_) => tracing::info!("stopping: {}", Stop::Fast.description()),
            Self::Succeeded(Succession { pid, .. }) => tracing::info!(
                pid,
                "upgraded: the new program serves, responses in progress are finished here"
            ),
        }
    }

    /// Returns the error that the program ends with, if it ends with one.
    pub fn into_result(self) -> Result<(), ProgramError> {
        match self {
            Self::NotStarted(error) => Err(error),
            Self::AppFailed(error) => Err(error.into()),
            Self::StoppedAtStart | Self::Stopped(_) | Self::Succeeded(_) => Ok(()),
        }
    }
}
