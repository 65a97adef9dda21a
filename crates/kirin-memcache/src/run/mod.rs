//! Starts the store alone: `kirin memcached`.
//!
//! What a memcached does around its protocol: sockets, threads, user, background, pid file. The
//! order is that of memcached: become the user, then bind, so that what is created belongs to it.

mod bind;
mod daemon;
mod user;

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kirin_store::{Now, SnapshotError, Store, StoreConfig};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use crate::codec::Limits;
use crate::execute::VERSION;
use crate::memcached_options::{HELP, Invocation, Options};
use crate::serve::serve;
use crate::server::{Description, Server, ServerOptions};
use crate::snapshot_file::{SnapshotFile, SnapshotFileError};
use bind::Sockets;

/// Places for items that one sweep looks at: a million items are gone through in a quarter of an
/// hour, a thousand in a second.
const SWEEP_ITEMS: usize = 1000;

/// Descriptors beside those of connections: listeners, event queues, a snapshot.
const SPARE_DESCRIPTORS: u64 = 64;

/// Why the store did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot listen on {address}: {source}")]
    Bind { address: String, source: std::io::Error },
    #[error("nothing to listen on: -p is 0 and there is no -s")]
    NothingToListenOn,
    #[error("can't find the user {0} to switch to")]
    NoUser(String),
    #[error("failed to assume identity of user {user}: {source}")]
    User { user: String, source: std::io::Error },
    #[error("cannot write {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("cannot go to the background: {0}")]
    Daemon(std::io::Error),
    #[error("in the background: {0}")]
    InBackground(String),
    #[error("cannot start an event loop: {0}")]
    Loop(std::io::Error),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    SnapshotFile(#[from] SnapshotFileError),
}

/// Carries out a command line; returns when the store has been told to stop. `has_user` is called
/// when the process is the user that it is to be, and may have threads.
pub fn run(invocation: Invocation, has_user: fn()) -> ExitCode {
    let options = match invocation {
        Invocation::Help => return print(HELP),
        Invocation::Version => return print(&format!("memcached {VERSION}\n")),
        Invocation::Run(options) => *options,
    };
    let started = if options.daemon && !daemon::is_background() {
        daemon::start_in_background()
    } else {
        run_here(options, has_user)
    };
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            daemon::report(Err(&error.to_string()));
            // It may be closed, or its disk full.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run_here(options: Options, has_user: fn()) -> Result<(), StartError> {
    raise_descriptor_limit(options.connection_limit);
    if let Some(user) = &options.user {
        user::assume(user)?;
    }
    has_user();
    // The process in the background leaves this directory, paths stay what they were.
    let directory = env::current_dir().map_err(StartError::Daemon)?;
    // Whoever sees a socket may already ask the program to end.
    let runtime = event_loop()?;
    let signals = Signals::new(&runtime)?;
    let sockets = Sockets::bind(&options)?;
    let store = Arc::new(Store::new(StoreConfig {
        memory_bytes: options.memory_bytes,
        item_limit_bytes: options.item_size_bytes,
        evict: !options.no_evictions,
        ..StoreConfig::default()
    }));
    let snapshot = match &options.snapshot {
        Some(path) => Some(Arc::new(SnapshotFile::new(directory.join(path))?)),
        None => None,
    };
    if let Some(snapshot) = &snapshot {
        snapshot.load(&store);
    }
    let server =
        Server::new(Arc::clone(&store), server_options(&options, &sockets, snapshot.clone()));
    let pid_file = options.pid_file.as_deref().map(PidFile::write).transpose()?;
    let (stop, stopped) = watch::channel(false);
    let mut loops = Vec::new();
    for number in 1..options.threads {
        let (sockets, server, stopped) = (sockets.share()?, Arc::clone(&server), stopped.clone());
        let runtime = event_loop()?;
        let spawned = thread::Builder::new().name(format!("memcached-{number}")).spawn(move || {
            LocalSet::new().block_on(&runtime, serve_all(sockets, server, stopped));
        });
        loops.push(spawned.map_err(StartError::Loop)?);
    }
    daemon::report(Ok(()));
    LocalSet::new().block_on(&runtime, async {
        let serving = tokio::task::spawn_local(serve_all(sockets, Arc::clone(&server), stopped));
        let housekeeping = tokio::task::spawn_local(housekeeping(Arc::clone(&store)));
        signals.wait().await;
        housekeeping.abort();
        stop.send_replace(true);
        if let Err(error) = serving.await {
            tracing::error!(%error, "the event loop failed");
        }
    });
    for handle in loops {
        if handle.join().is_err() {
            tracing::error!("an event loop failed");
        }
    }
    bind::remove_unix(&options, &directory);
    if let Some(snapshot) = &snapshot {
        snapshot.save(&store)?;
    }
    drop(pid_file);
    Ok(())
}

fn event_loop() -> Result<Runtime, StartError> {
    Builder::new_current_thread().enable_all().build().map_err(StartError::Loop)
}

async fn serve_all(sockets: Sockets, server: Arc<Server>, stopped: watch::Receiver<bool>) {
    let mut listeners = JoinSet::new();
    match sockets.into_listeners() {
        Ok(all) => {
            for listener in all {
                let mut stopped = stopped.clone();
                let stopped = async move {
                    // An error means that the sender is gone, and the program with it.
                    let _ = stopped.wait_for(|stopped| *stopped).await;
                };
                listeners.spawn_local(serve(listener, Arc::clone(&server), stopped));
            }
        }
        Err(error) => tracing::error!(%error, "a socket cannot be served"),
    }
    while listeners.join_next().await.is_some() {}
}

/// Frees what expired, a little each second.
async fn housekeeping(store: Arc<Store>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        store.sweep(now(), SWEEP_ITEMS);
    }
}

/// The signals that end the program.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new(runtime: &Runtime) -> Result<Self, StartError> {
        let _context = runtime.enter();
        let listen = |kind| signal(kind).map_err(StartError::Loop);
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn wait(mut self) {
        let name = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!("stopping on {name}");
    }
}

fn now() -> Now {
    Now::from_unix_seconds(kirin_clock::steady_seconds())
}

fn server_options(
    options: &Options,
    sockets: &Sockets,
    snapshot: Option<Arc<SnapshotFile>>,
) -> ServerOptions {
    let interfaces: Vec<_> = options.listen.iter().map(|address| address.host.as_str()).collect();
    ServerOptions {
        limits: Limits {
            item_size_bytes: options.item_size_bytes,
            flush_enabled: !options.no_flush_all,
        },
        connection_limit: options.connection_limit,
        idle_timeout: options.idle_timeout,
        stampede_guard: options.stampede_guard,
        verbosity: options.verbosity,
        snapshot,
        description: Description {
            tcp_port: sockets.tcp_port(),
            interfaces: (!interfaces.is_empty()).then(|| interfaces.join(",")),
            unix_socket: options.unix_socket.as_ref().map(|path| path.display().to_string()),
            unix_mode: options.unix_mode,
            threads: options.threads,
            backlog: options.backlog,
            evict: !options.no_evictions,
        },
        ..ServerOptions::default()
    }
}

/// Takes as many descriptors as the connection limit needs, as far as the system lets us.
fn raise_descriptor_limit(connections: usize) {
    let wanted = connections as u64 + SPARE_DESCRIPTORS;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let allowed = limit.maximum.unwrap_or(wanted);
    limit.current = Some(wanted.min(allowed));
    if wanted > allowed {
        tracing::warn!(
            connections,
            descriptors = allowed,
            "fewer file descriptors than -c asks for"
        );
    }
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// The file with our process id; removed when we stop.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: &Path) -> Result<PidFile, StartError> {
        let wrong = |source| StartError::File { path: path.to_owned(), source };
        let path = std::path::absolute(path).map_err(wrong)?;
        fs::write(&path, format!("{}\n", std::process::id())).map_err(wrong)?;
        Ok(PidFile(path))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "cannot remove the pid file");
        }
    }
}
