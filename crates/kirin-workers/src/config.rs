//! What an application needs to be run. The program makes it from `[app.NAME]` in the configuration
//! file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Workers of one application at most.
pub const MAX_WORKERS: usize = 4096;

/// Whether workers are forked from a process that has loaded the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preload {
    /// Unless the application has opened connections while it was loaded.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Each worker loads it.
    Never,
}

impl Preload {
    /// As the adapter is told.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "true",
            Self::Never => "false",
        }
    }
}

/// One application.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// Its name in routes and log lines.
    pub name: String,
    /// The file to load: `app.psgi`. Relative to `directory`.
    pub load: PathBuf,
    /// Working directory of parent and workers. Default: Kirin's own.
    pub directory: Option<PathBuf>,
    /// Environment variables added to Kirin's own. `PLACK_ENV` is `deployment` unless it is set
    /// here or there.
    pub env: Vec<(String, String)>,
    /// Number of workers, up to [`MAX_WORKERS`]. Default: 5.
    pub workers: usize,
    /// Who loads the application. Default: [`Preload::Auto`].
    pub preload: Preload,
    /// The Perl to run. Default: `perl` in `PATH`.
    pub perl: Option<PathBuf>,
    /// Directory of the Perl adapter (with `bin` and `lib`). Default: searched beside the program,
    /// in its source tree and in Perl's `@INC`.
    pub adapter: Option<PathBuf>,
    /// Requests after which a worker is replaced; up to a tenth less by lot. Default: never.
    pub max_requests: Option<u64>,
    /// Age at which a worker is replaced; up to a tenth less by lot. Default: never.
    pub max_age: Option<Duration>,
    /// Resident memory, in bytes, at which a worker is replaced. Default: never.
    pub max_memory_bytes: Option<u64>,
    /// Longest request body, in bytes. Default: 1 GiB.
    pub body_limit_bytes: u64,
    /// What a worker may be read ahead of a slow client, in bytes of a file, for each response;
    /// past that the worker waits for the client. Default: 1 GiB.
    pub response_spool_bytes: u64,
    /// Where request bodies of more than 1 MiB are kept while they are read, and responses that
    /// slow clients have not taken. Default: the system's directory for temporary files.
    pub spool_directory: Option<PathBuf>,
    /// Where the directory of the workers' socket is made; the socket's path must stay below 108
    /// bytes. Default: the system's directory for temporary files.
    pub run_directory: Option<PathBuf>,
    /// Requests that wait for a worker at most; one more is answered 503. Default: 1,024.
    pub queue_length: usize,
    /// How long a request may wait for a worker before it is answered 503. Default: 30 s.
    pub queue_wait: Duration,
    /// How long a worker may take from request to response before it is killed and the client gets
    /// 504. For a response that is streamed, to its head. Default: 60 s.
    pub request_deadline: Duration,
    /// How long loading and the first worker may take; in a reload, all workers. Default: 60 s.
    pub start_limit: Duration,
    /// Directories below which files may be that the application names with `X-Sendfile`. Default:
    /// none.
    pub sendfile_roots: Vec<PathBuf>,
    /// A process that has the application loaded already; `load`, `directory`, `env`, `perl` and
    /// `adapter` are not used then. Default: Kirin starts one.
    pub loaded: Option<LoadedParent>,
}

impl AppConfig {
    /// The application in `load`, with the defaults.
    pub fn new(name: impl Into<String>, load: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            load: load.into(),
            directory: None,
            env: Vec::new(),
            workers: 5,
            preload: Preload::Auto,
            perl: None,
            adapter: None,
            max_requests: None,
            max_age: None,
            max_memory_bytes: None,
            body_limit_bytes: 1 << 30,
            response_spool_bytes: 1 << 30,
            spool_directory: None,
            run_directory: None,
            queue_length: 1024,
            queue_wait: Duration::from_secs(30),
            request_deadline: Duration::from_secs(60),
            start_limit: Duration::from_secs(60),
            sendfile_roots: Vec::new(),
            loaded: None,
        }
    }
}

/// A child process that has the application loaded and speaks for it. Its control channel is
/// Kirin's standard input.
#[derive(Clone, Debug)]
pub struct LoadedParent {
    /// Its process id, which is that of its process group too.
    pub pid: u32,
    /// The socket on which its workers accept.
    pub socket: PathBuf,
    /// How the program was started that had loaded it, if that can be done again.
    pub invocation: Option<ParentInvocation>,
}

/// A command that loads an application and becomes its parent, if `KIRIN_APP_PARENT` says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentInvocation {
    /// Where it runs.
    pub directory: PathBuf,
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
}
