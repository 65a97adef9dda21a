//! What can go wrong with a script.

use std::path::PathBuf;

use kirin_http::StatusCode;

/// A script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LuaError {
    /// It does not load.
    #[error("script {}: {problem}", path.display())]
    Load {
        /// The script.
        path: PathBuf,
        /// `FILE:LINE: MESSAGE`
        problem: String,
    },
}

/// How a call ended that gave no response. It has been logged with file and line; clients get the
/// status alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error of the script.
    Error,
    /// Its time was up.
    Time,
    /// Its memory was used up.
    Memory,
}

impl Fault {
    /// The status to answer with.
    pub fn status(self) -> StatusCode {
        match self {
            Fault::Error | Fault::Memory => StatusCode::INTERNAL_SERVER_ERROR,
            Fault::Time => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}
