//! The program's life: bind, start applications, serve, stop.
//!
//! Runs on the main thread, which supervises and serves nothing itself.

use crate::config::check::{ListenerSite, LogTarget, Site};
use crate::event_loop::{Door, EventLoop, LoopError, Parts, Stage};
use crate::run_directory::{RunDirectory, WORKERS_SOCKET};
use crate::signals::{End, Signals, Wish};
use kirin_http::listener::ListenError;
use kirin_http::{ListenAddress, Listener, LogFile};
use kirin_memcache::codec::Limits;
use kirin_memcache::{ServerOptions, SnapshotFile};
use kirin_store::{Now, Store, StoreConfig};
use kirin_workers::{App, AppConfig, AppError, LoadedParent};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;

/// How long responses in progress may take after TERM or QUIT.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// Items that the sweep looks at in a second; it holds a shard's lock for a part of them at a time.
const SWEEP_ITEMS: usize = 20_000;

/// The access logs that are open.
type Logs = HashMap<LogTarget, Arc<LogFile>>;

/// Why the program ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// An access log cannot be written.
    #[error("cannot open the access log {0}: {1}")]
    AccessLog(String, #[source] io::Error),
    /// An application does not start.
    #[error(transparent)]
    App(#[from] AppError),
    /// A loop does not start.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The temporary directory, the signals or the runtime.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

/// Serves `site` until a signal ends it.
pub fn run(site: Site) -> Result<(), ProgramError> {
    run_in(site, &RunDirectory::create()?, None)
}

/// Serves `site`, whose only application is loaded already, until a signal ends it or the application does.
pub fn run_loaded(site: Site, directory: &Path, pid: u32) -> Result<(), ProgramError> {
    let loaded = LoadedParent { pid, socket: directory.join(WORKERS_SOCKET) };
    run_in(site, &RunDirectory::take_over(directory), Some(loaded))
}

fn run_in(
    site: Site,
    run_directory: &RunDirectory,
    loaded: Option<LoadedParent>,
) -> Result<(), ProgramError> {
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(supervise(Arc::new(site), run_directory, loaded));
    // Does not wait for loops that were told to end at once.
    runtime.shutdown_background();
    ended
}

/// Every connection takes a descriptor, and the soft limit is 1,024 by tradition: takes what the hard limit allows.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit on open files stays at {:?}", limit.current);
    }
}

async fn supervise(
    site: Arc<Site>,
    run_directory: &RunDirectory,
    loaded: Option<LoadedParent>,
) -> Result<(), ProgramError> {
    let mut signals = Signals::new()?;
    let mut logs = Logs::new();
    let (doors, addresses) = open_doors(&site, &mut logs)?;
    let memcached = open_memcached(&site, run_directory)?;
    let store = Arc::new(Store::new(StoreConfig {
        memory_bytes: site.store.memory_bytes,
        item_limit_bytes: site.store.item_limit_bytes,
        ..StoreConfig::default()
    }));
    let snapshot = site.store.snapshot.clone().map(|path| Arc::new(SnapshotFile::new(path)));
    if let Some(snapshot) = &snapshot {
        snapshot.load(&store);
    }
    let memcached_options = ServerOptions {
        limits: Limits { item_size_bytes: site.store.item_limit_bytes, ..Limits::default() },
        stampede_guard: site.store.stampede_guard,
        snapshot: snapshot.clone(),
        ..ServerOptions::default()
    };
    let memcached_server = kirin_memcache::Server::new(Arc::clone(&store), memcached_options);
    let mut loops = Vec::new();
    for index in 0..site.threads {
        loops.push(EventLoop::start(index)?);
    }
    let handles: Vec<Handle> = loops.iter().map(|event_loop| event_loop.handle.clone()).collect();
    let mut apps = Vec::new();
    for app in &site.apps {
        let config = AppConfig { loaded: loaded.clone(), ..app_config(app, run_directory) };
        apps.push(App::start(config, handles.clone())?);
    }
    let (stage, watching) = watch::channel(Stage::Prepare);
    let drained = Arc::new(Barrier::new(loops.len()));
    let mut threads = Vec::new();
    for ((event_loop, doors), memcached) in loops.into_iter().zip(doors).zip(memcached) {
        threads.push(event_loop.serve(Parts {
            site: Arc::clone(&site),
            store: Arc::clone(&store),
            apps: apps.clone(),
            doors,
            memcached,
            memcached_server: Arc::clone(&memcached_server),
            stage: watching.clone(),
            drained: Arc::clone(&drained),
        })?);
    }

    let mut started = tokio::select! {
        started = all_ready(&apps) => started.map(|()| true),
        end = signals.end() => {
            tracing::info!("stopping while starting: {}", end.description());
            Ok(false)
        }
    };
    let mut limit = Duration::ZERO;
    if matches!(started, Ok(true)) {
        let _ = stage.send(Stage::Serve);
        for address in &addresses {
            tracing::info!("serving on {}", url(address));
        }
        let sweeping = tokio::spawn(sweep(Arc::clone(&store)));
        let end = tokio::select! {
            end = serve_wishes(&mut signals, &apps, &logs) => end,
            // One that can be started again is, so this is rare.
            error = first_failure(&apps) => {
                started = Err(error.into());
                End::Fast
            }
        };
        sweeping.abort();
        if end == End::Graceful {
            limit = DRAIN_LIMIT;
        }
        tracing::info!("stopping: {}", end.description());
    }
    let _ = stage.send(Stage::Drain(limit));
    let drained =
        tokio::task::spawn_blocking(move || threads.into_iter().all(|thread| thread.join().is_ok()));
    tokio::select! {
        drained = drained => if !matches!(drained, Ok(true)) {
            tracing::error!("an event loop ended by a panic");
        },
        // A second signal does not wait for responses in progress.
        _ = signals.end() => {
            tracing::warn!("stopping at once");
            limit = Duration::ZERO;
        }
    }
    for app in &apps {
        app.stop(limit).await;
    }
    if let Some(snapshot) = &snapshot
        && let Err(error) = snapshot.save(&store)
    {
        tracing::error!(%error, "snapshot not written; the one before is kept");
    }
    started.map(|_| ())
}

/// Does what signals ask for until one asks to end.
async fn serve_wishes(signals: &mut Signals, apps: &[Arc<App>], logs: &Logs) -> End {
    loop {
        match signals.next().await {
            Wish::End(end) => return end,
            Wish::Reload => {
                tracing::info!("reloading applications");
                apps.iter().for_each(|app| app.reload());
            }
            Wish::MoreWorkers => apps.iter().for_each(|app| app.add_worker()),
            Wish::FewerWorkers => apps.iter().for_each(|app| app.remove_worker()),
            Wish::ReopenLogs => reopen_logs(logs),
        }
    }
}

/// Waits until every application is loaded; fails with the first that cannot be.
async fn all_ready(apps: &[Arc<App>]) -> Result<(), ProgramError> {
    for app in apps {
        app.ready().await?;
    }
    Ok(())
}

/// The first application that fails for good, if one ever does.
async fn first_failure(apps: &[Arc<App>]) -> AppError {
    let mut failures = JoinSet::new();
    for app in apps {
        let app = Arc::clone(app);
        failures.spawn(async move { app.failed().await });
    }
    match failures.join_next().await {
        Some(Ok(error)) => error,
        _ => std::future::pending().await,
    }
}

fn app_config(app: &crate::config::check::AppSite, run_directory: &RunDirectory) -> AppConfig {
    let mut env = app.env.clone();
    env.entry("KIRIN_STORE".into())
        .or_insert_with(|| format!("unix:{}", run_directory.store_socket().display()));
    AppConfig {
        directory: Some(app.directory.clone()),
        run_directory: Some(run_directory.path().to_owned()),
        workers: app.workers,
        env: env.into_iter().collect(),
        queue_length: app.queue,
        queue_wait: app.queue_wait,
        request_deadline: app.deadline,
        start_limit: app.start_limit,
        max_requests: (app.max_requests > 0).then_some(app.max_requests),
        max_age: app.max_age,
        max_memory_bytes: app.max_memory_bytes,
        body_limit_bytes: app.body_limit_bytes,
        sendfile_roots: app.sendfile.clone(),
        ..AppConfig::new(&app.name, &app.load)
    }
}

/// Binds the listeners once a loop; the outer list is by loop.
fn open_doors(site: &Site, logs: &mut Logs) -> Result<(Vec<Vec<Door>>, Vec<ListenAddress>), ProgramError> {
    let mut by_loop: Vec<Vec<Door>> = (0..site.threads).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    for listener in &site.listeners {
        let log = match &listener.access_log {
            None => None,
            Some(target) => Some(open_log(target, logs)?),
        };
        let bound = Listener::bind(&listener.address, site.threads)?;
        for (doors, listener_of_loop) in by_loop.iter_mut().zip(bound) {
            let ListenerSite { keep_alive, proxy_protocol, .. } = *listener;
            let forwarding = listener.forwarding.clone();
            let address = listener_of_loop.address()?;
            if !addresses.contains(&address) {
                addresses.push(address.clone());
            }
            let log = log.clone();
            doors.push(Door {
                listener: listener_of_loop,
                address,
                log,
                keep_alive,
                forwarding,
                proxy_protocol,
            });
        }
    }
    Ok((by_loop, addresses))
}

/// Binds the memcached port once a loop, and the unix socket for applications that Kirin starts.
fn open_memcached(site: &Site, run_directory: &RunDirectory) -> Result<Vec<Vec<Listener>>, ProgramError> {
    let mut by_loop: Vec<Vec<Listener>> = (0..site.threads).map(|_| Vec::new()).collect();
    let own = (!site.apps.is_empty()).then(|| ListenAddress::Unix(run_directory.store_socket()));
    for address in site.store.memcached.iter().chain(&own) {
        for (listeners, listener) in by_loop.iter_mut().zip(Listener::bind(address, site.threads)?) {
            listeners.push(listener);
        }
        tracing::debug!("memcached protocol on {address}");
    }
    Ok(by_loop)
}

/// Opens a log once, however many listeners write to it.
fn open_log(target: &LogTarget, open: &mut Logs) -> Result<Arc<LogFile>, ProgramError> {
    if let Some(file) = open.get(target) {
        return Ok(Arc::clone(file));
    }
    let stream = |stream: io::Result<OwnedFd>| stream.map(|stream| LogFile::stream(File::from(stream)));
    let (name, opened) = match target {
        LogTarget::Stdout => ("stdout".into(), stream(io::stdout().as_fd().try_clone_to_owned())),
        LogTarget::Stderr => ("stderr".into(), stream(io::stderr().as_fd().try_clone_to_owned())),
        LogTarget::File(path) => (path.display().to_string(), LogFile::open(path)),
    };
    let file = Arc::new(opened.map_err(|error| ProgramError::AccessLog(name, error))?);
    open.insert(target.clone(), Arc::clone(&file));
    Ok(file)
}

/// Opens logs anew after they have been renamed. One that cannot be opened is written on under its old name.
fn reopen_logs(logs: &Logs) {
    for log in logs.values() {
        let Some(path) = log.path() else { continue };
        match log.reopen() {
            Ok(()) => tracing::info!("access log {} is opened anew", path.display()),
            Err(error) => tracing::error!(%error, "access log {} cannot be opened anew", path.display()),
        }
    }
}

/// Takes expired items out of the store, a bounded number each second.
async fn sweep(store: Arc<Store>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        second.tick().await;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        store.sweep(Now::from_unix_seconds(now), SWEEP_ITEMS);
    }
}

fn url(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) => format!("http://{address}/"),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}
