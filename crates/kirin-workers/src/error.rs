//! Why an application does not run.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why an application does not run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppError {
    /// The file to load cannot be read.
    #[error("app `{app}`: {} cannot be read: {reason}", path.display())]
    NoSuchFile {
        /// The application's name.
        app: String,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// Perl is not installed, or not where the configuration says.
    #[error(
        "app `{app}`: there is no `{perl}` in PATH; install perl, or set `perl` to where it is"
    )]
    NoPerl {
        /// The application's name.
        app: String,
        /// The Perl that was looked for.
        perl: String,
    },
    /// The Perl adapter was not found.
    #[error(
        "app `{app}`: the Perl adapter was not found in {searched}, nor is Kirin::AppParent in Perl's @INC; \
         set `adapter` to the directory `adapters/perl` of Kirin's sources"
    )]
    NoAdapter {
        /// The application's name.
        app: String,
        /// The directories that were searched.
        searched: String,
    },
    /// A system call failed while the application was started.
    #[error("app `{app}`: {what}: {reason}")]
    System {
        /// The application's name.
        app: String,
        /// The action that failed.
        what: String,
        /// The error of the system.
        reason: String,
    },
    /// The application died while it was loaded.
    #[error("app `{app}` cannot be loaded: {message}")]
    Load {
        /// The application's name.
        app: String,
        /// The message with which it died.
        message: String,
    },
    /// The parent ended before the application was loaded, or cannot be started again.
    #[error("app `{app}`: its parent process ended: {status}")]
    Ended {
        /// The application's name.
        app: String,
        /// The exit status of the parent.
        status: ExitStatus,
    },
    /// The application was not loaded in time.
    #[error("app `{app}` was not ready within {limit:?}")]
    TooSlow {
        /// The application's name.
        app: String,
        /// The limit.
        limit: Duration,
    },
    /// The application was loaded before Kirin started, and cannot be loaded again.
    #[error(
        "app `{app}` was loaded before Kirin started, by a process that was forked or has changed its name; it cannot be loaded again: restart the server"
    )]
    LoadedBefore {
        /// The application's name.
        app: String,
    },
    /// The application has been stopped.
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
