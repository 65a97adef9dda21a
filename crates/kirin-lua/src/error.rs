//! The errors of a script.

use std::path::PathBuf;

use kirin_http::StatusCode;

/// A script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LuaError {
    /// The script does not load.
    #[error("script {}: {problem}", path.display())]
    Load {
        /// The path of the script.
        path: PathBuf,
        /// The message, in the form `FILE:LINE: MESSAGE`.
        problem: String,
    },
}

/// The reason why a call gave no response. It has been logged with file and line. Clients get only
/// the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The script had an error.
    Error,
    /// The time of the call was up.
    Time,
    /// The memory of the script was used up.
    Memory,
}

impl Fault {
    /// Returns the status of the response.
    pub fn status(self) -> StatusCode {
        match self {
            Fault::Error | Fault::Memory => StatusCode::INTERNAL_SERVER_ERROR,
            Fault::Time => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}
