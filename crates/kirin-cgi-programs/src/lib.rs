#![forbid(unsafe_code)]
//! CGI programs (RFC 3875): `cgi:PROGRAM` and `cgi:DIR` in a route. Each request starts a process,
//! without a shell.
//!
//! The way of a request:
//!
//! - `answer` encodes the variables (`environment`) and reads the body (`input`).
//! - `pool` waits until a process may be started. All event loops share it.
//! - `process` starts the process, in a process group of its own.
//! - `keeper` is a task that watches the process until it has ended, or ends it.
//! - `running` has all processes, for the end of Kirin.
//! - `response` reads the head, and `response_body` the body as the client takes it.
//! - `error_log` writes the error output to the log.

mod answer;
mod environment;
mod error_log;
mod failure;
mod input;
mod keeper;
mod pool;
mod process;
mod response;
mod response_body;
mod running;
mod time_left;

pub use answer::{CgiPrograms, ProgramRequest};
pub use pool::{PoolLimits, PoolStatus, ProgramPool};
pub use running::kill_all;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The label of responses by CGI programs.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_http::AnsweredBy::new("cgi");

/// The largest request body, if the route has no limit.
pub const BODY_LIMIT_BYTES: u64 = 64 << 20;

/// The settings of a route for its programs.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The pool of the route.
    pub pool: Arc<ProgramPool>,
    /// How long a program may take for a request.
    pub deadline: Duration,
    /// Environment variables of all programs.
    pub environment: Vec<(String, String)>,
    /// The directory for large request bodies.
    pub spool_directory: PathBuf,
}

impl ProgramSettings {
    /// The default of `deadline`.
    pub const DEADLINE: Duration = Duration::from_secs(60);
}
