//! Why an application cannot be run.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// An application that is not running.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppError {
    /// There is nothing to load.
    #[error("app `{app}`: {} cannot be read: {reason}", path.display())]
    NoSuchFile {
        /// The application's name.
        app: String,
        /// What was to be loaded.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// There is no Perl.
    #[error(
        "app `{app}`: there is no `{perl}` in PATH; install perl, or set `perl` to where it is"
    )]
    NoPerl {
        /// The application's name.
        app: String,
        /// What was looked for.
        perl: String,
    },
    /// The Perl half of Kirin is missing.
    #[error(
        "app `{app}`: the Perl adapter was not found in {searched}, nor is Kirin::AppParent in Perl's @INC; \
         set `adapter` to the directory `adapters/perl` of Kirin's sources"
    )]
    NoAdapter {
        /// The application's name.
        app: String,
        /// The directories looked at.
        searched: String,
    },
    /// The socket or the process could not be made.
    #[error("app `{app}`: {what}: {reason}")]
    System {
        /// The application's name.
        app: String,
        /// What was attempted.
        what: String,
        /// What the system said.
        reason: String,
    },
    /// The application died while it was loaded.
    #[error("app `{app}` cannot be loaded: {message}")]
    Load {
        /// The application's name.
        app: String,
        /// What it died with.
        message: String,
    },
    /// The parent process ended before the application was loaded, or nobody can start it again.
    #[error("app `{app}`: its parent process ended: {status}")]
    Ended {
        /// The application's name.
        app: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// Loading took too long.
    #[error("app `{app}` was not ready within {limit:?}")]
    TooSlow {
        /// The application's name.
        app: String,
        /// The limit.
        limit: Duration,
    },
    /// A second start of what only the process that has become Kirin could load.
    #[error(
        "app `{app}` was loaded before Kirin started, by a process that was forked or has changed its name; it cannot be loaded anew: start the server again"
    )]
    LoadedBefore {
        /// The application's name.
        app: String,
    },
    /// It has been stopped.
    #[error("app `{app}` has been stopped")]
    Stopped {
        /// The application's name.
        app: String,
    },
}

impl AppError {
    pub(crate) fn system(app: &str, what: impl Into<String>, error: &io::Error) -> Self {
        AppError::System { app: app.to_owned(), what: what.into(), reason: error.to_string() }
    }
}
