//! The configuration of an application. The program builds it from `[[app]]` of the
//! configuration file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::app_code::AppCode;
use crate::ring::SLOT_BYTES;

/// The most workers of one application.
pub const MAX_WORKERS: usize = 4096;

/// The most memory of a ring in bytes.
pub const MAX_SHARED_MEMORY_BYTES: u64 = 4 << 30;

/// Whether workers are forked from a process that has loaded the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preload {
    /// Workers are forked from it, unless the application opened connections while it was loaded.
    #[default]
    Auto,
    /// Workers are always forked from it.
    Always,
    /// Each worker loads the application itself.
    Never,
}

impl Preload {
    /// Returns the argument for the adapter.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "true",
            Self::Never => "false",
        }
    }
}

/// How new code is tried before it serves everybody.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialConfig {
    /// The part of the visitors that get the new code, in percent: more than 0, at most 50.
    pub percent: f64,
    /// How long the trial lasts if the new code does no worse than the old code.
    pub time: Duration,
}

impl TrialConfig {
    /// Returns the part of the visitors as a probability.
    pub(crate) fn share(&self) -> f64 {
        self.percent / 100.0
    }
}

/// What an operator decides about code that is on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialDecision {
    /// The new code serves everybody.
    Promote,
    /// The old code keeps serving, and the new one leaves.
    GiveUp,
}

/// The configuration of an application.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// The name in routes and in the log.
    pub name: String,
    /// What the workers load. A relative path is relative to `directory`.
    pub code: AppCode,
    /// The working directory of parent and workers. Default: Kirin's own.
    pub directory: Option<PathBuf>,
    /// Environment variables in addition to Kirin's own. `PLACK_ENV` is `deployment` unless it is
    /// set here or there.
    pub env: Vec<(String, String)>,
    /// The number of workers, up to [`MAX_WORKERS`]. Default: 5.
    pub workers: usize,
    /// Whether the parent loads the application. Default: [`Preload::Auto`].
    pub preload: Preload,
    /// The program that runs the adapter. Default: `perl` or `ruby` in `PATH`; the Python of a
    /// virtual environment, or `python3` in `PATH`. The adapter of another language runs itself.
    pub interpreter: Option<PathBuf>,
    /// The directory of the adapter, which has `bin/kirin-worker`. Default: searched beside the
    /// program, in its source tree and among the modules that the interpreter finds.
    pub adapter: Option<PathBuf>,
    /// Requests after which a worker is replaced, less a random part of up to a tenth. Default:
    /// never.
    pub max_requests: Option<u64>,
    /// The age at which a worker is replaced, less a random part of up to a tenth. Default: never.
    pub max_age: Option<Duration>,
    /// The resident memory in bytes at which a worker is replaced. Default: never.
    pub max_memory_bytes: Option<u64>,
    /// The longest request body in bytes. Default: 64 MiB.
    pub body_limit_bytes: u64,
    /// The most bytes of one response that are spooled to a file for a slow client. Beyond that the
    /// worker waits for the client. Default: 1 GiB.
    pub response_spool_bytes: u64,
    /// The directory for request bodies of more than 1 MiB, and for responses to slow clients.
    /// Default: the system's directory for temporary files.
    pub spool_directory: Option<PathBuf>,
    /// The directory for the workers' socket. The path of the socket must be shorter than 108
    /// bytes. Default: the system's directory for temporary files.
    pub run_directory: Option<PathBuf>,
    /// The most requests that wait for a worker. Further requests are answered with 503. Default:
    /// 1,024.
    pub queue_length: usize,
    /// How long a request may wait for a worker before it is answered with 503. Default: 30 s.
    pub queue_wait: Duration,
    /// How long a worker may take from request to response. After that it is killed, and the client
    /// gets 504. A streamed response must only begin in time. Default: 60 s.
    pub request_deadline: Duration,
    /// How long a worker may take before its stack is logged. The request continues. Default: no
    /// limit.
    pub slow: Option<Duration>,
    /// How long loading and the first worker may take; after a reload, all workers. Default: 60 s.
    pub start_limit: Duration,
    /// The most bytes of memory that Kirin and the workers of one generation share for requests and
    /// answers; 0 for none. Default: 64 KiB for each of four requests a worker and 64 more.
    pub shared_memory_bytes: Option<u64>,
    /// How new code is tried after a reload. Default: it serves everybody at once.
    pub trial: Option<TrialConfig>,
    /// The directories for files that the application names with `X-Sendfile`. Default: none.
    pub sendfile_roots: Vec<PathBuf>,
    /// A process that has loaded the application already. Then `code`, `directory`, `env`,
    /// `interpreter` and `adapter` are not used. Default: Kirin starts one.
    pub loaded: Option<LoadedParent>,
}

impl AppConfig {
    /// Returns the configuration of an application, with the defaults.
    pub fn new(name: impl Into<String>, code: AppCode) -> Self {
        Self {
            name: name.into(),
            code,
            directory: None,
            env: Vec::new(),
            workers: 5,
            preload: Preload::Auto,
            interpreter: None,
            adapter: None,
            max_requests: None,
            max_age: None,
            max_memory_bytes: None,
            body_limit_bytes: 64 << 20,
            response_spool_bytes: 1 << 30,
            spool_directory: None,
            run_directory: None,
            queue_length: 1024,
            queue_wait: Duration::from_secs(30),
            request_deadline: Duration::from_secs(60),
            slow: None,
            start_limit: Duration::from_secs(60),
            shared_memory_bytes: None,
            trial: None,
            sendfile_roots: Vec::new(),
            loaded: None,
        }
    }

    /// Returns the most bytes of a generation's ring.
    pub(crate) fn ring_bytes(&self) -> u64 {
        let slots = (4 * self.workers + 64) as u64;
        self.shared_memory_bytes.unwrap_or(slots * SLOT_BYTES)
    }
}

/// A child process that has loaded the application and is its parent. Its control channel is
/// Kirin's standard input.
#[derive(Clone, Debug)]
pub struct LoadedParent {
    /// The process id, and the id of its process group.
    pub pid: u32,
    /// The socket on which its workers accept connections.
    pub socket: PathBuf,
    /// The command that had loaded the application, if it can be repeated.
    pub invocation: Option<ParentInvocation>,
}

/// A command that loads an application and becomes its parent if `KIRIN_APP_PARENT` is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentInvocation {
    /// The working directory.
    pub directory: PathBuf,
    /// The program.
    pub program: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
}
