//! The program's life: bind, start applications, serve, stop.
//!
//! Runs on the main thread, which supervises and serves nothing itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kirin_acme::{Acme, AcmeConfig, AcmeError};
use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_http::listener::ListenError;
use kirin_http::panics::{catch, catch_in};
use kirin_http::{ConnectionCount, Tls};
use kirin_memcache::codec::Limits;
use kirin_memcache::{ServerOptions, SnapshotFile, SnapshotFileError};
use kirin_proxy::Upstream;
use kirin_sockets::{Inherited, Source};
use kirin_store::{Now, Store, StoreConfig};
use kirin_user::{ParentDirectory, User, UserError};
use kirin_workers::{App, AppConfig, AppError, LoadedParent};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Handle;
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;

use crate::admin::{self, Admin};
use crate::config::check::{ListenerSite, Site};
use crate::life::loaded_invocation;
use crate::life::pid_file::PidFile;
use crate::life::program_log;
use crate::life::run_directory::{self, INVOCATION, RunDirectory, WORKERS_SOCKET};
use crate::life::serving::{Ending, Serving};
use crate::life::signals::{End, Signals};
use crate::life::systemd::Systemd;
use crate::life::upgrade::{self, Invocation, Predecessor, Upgrade, UpgradeError};
use crate::serve::client_accounts::ClientAccounts;
use crate::serve::doors::{open_doors, open_memcached};
use crate::serve::event_loop::{EventLoop, LoopError, Parts, Stage};
use crate::serve::logs::{LogError, Logs};
use crate::serve::sockets::{SocketError, Sockets};

/// How long responses in progress may take after TERM or QUIT.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// How long the end waits for an access log that takes no lines, such as a FIFO that nobody reads.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Items that the sweep looks at in a second; it holds a shard's lock for a part of them at a time.
const SWEEP_ITEMS: usize = 20_000;

/// Why the program ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A socket that was handed over cannot be used, or one that should have been was not.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The file for the process id cannot be written.
    #[error("cannot write the process id to {0}: {1}{hint}", hint = kirin_user::what_to_do(.0.as_ref(), .1))]
    PidFile(String, #[source] io::Error),
    /// The program that this one was to follow does not hand over.
    #[error("upgrade: {0}")]
    Upgrade(#[from] UpgradeError),
    /// An access log cannot be written.
    #[error(transparent)]
    AccessLog(#[from] LogError),
    /// It cannot become the user that is to serve.
    #[error(transparent)]
    User(#[from] UserError),
    /// There is no admin listener.
    #[error(transparent)]
    Admin(#[from] admin::OpenError),
    /// There is no place for certificates.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// The snapshot of the store cannot be a file.
    #[error(transparent)]
    Snapshot(#[from] SnapshotFileError),
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

/// How the program was started.
pub struct Start {
    /// What it has got from who started it.
    pub inherited: Inherited,
    /// Whether it listens on the sockets it has got, instead of the listener of its configuration.
    pub listens_where_told: bool,
    /// Where its process id is to be written.
    pub pid_file: Option<PathBuf>,
}

/// Serves `site` until a signal ends it.
pub fn run(site: Site, start: Start) -> Result<(), ProgramError> {
    run_in(site, start, &RunDirectory::create()?, None)
}

/// Serves `site`, whose only application is loaded already, until a signal ends it or the
/// application does.
pub fn run_loaded(
    site: Site,
    directory: &Path,
    pid: u32,
    start: Start,
) -> Result<(), ProgramError> {
    let invocation = loaded_invocation::read(&directory.join(INVOCATION));
    let loaded = LoadedParent { pid, socket: directory.join(WORKERS_SOCKET), invocation };
    run_in(site, start, &RunDirectory::take_over(directory)?, Some(loaded))
}

fn run_in(
    site: Site,
    start: Start,
    run_directory: &RunDirectory,
    loaded: Option<LoadedParent>,
) -> Result<(), ProgramError> {
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(supervise(site, start, run_directory, loaded));
    // Does not wait for loops that were told to end at once.
    runtime.shutdown_background();
    ended
}

/// Every connection takes a descriptor, and the soft limit is 1,024 by tradition: takes what the
/// hard limit allows.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit on open files stays at {:?}", limit.current);
    }
}

/// Descriptors that are not for clients, if there are so many: for files, workers and what the
/// libraries open.
const OTHER_DESCRIPTORS: u64 = 512;

/// The descriptors but an eighth, or but [`OTHER_DESCRIPTORS`].
fn default_connections() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors - OTHER_DESCRIPTORS.min(descriptors / 8)).unwrap_or(usize::MAX)
}

async fn supervise(
    mut site: Site,
    mut start: Start,
    run_directory: &RunDirectory,
    loaded: Option<LoadedParent>,
) -> Result<(), ProgramError> {
    let mut signals = Signals::new()?;
    let mut sockets = Sockets::new(&mut start.inherited, site.user.as_ref())?;
    if start.listens_where_told {
        listen_where_told(&mut site, &sockets);
    }
    let site = Arc::new(site);
    let mut logs = Logs::new();
    let connections = ConnectionCount::new(site.connections.unwrap_or_else(default_connections));
    let accounts = ClientAccounts::new(&site);
    let (doors, urls) = open_doors(&site, &mut sockets, &mut logs, &connections, &accounts)?;
    let mut admin_listeners = admin::open(&site, &mut sockets)?;
    let (succeeded, has_successor) = watch::channel(false);
    let mut predecessor = start.inherited.predecessor.take().map(Predecessor::new).transpose()?;
    let upgrades = predecessor.is_some();
    let memcached = open_memcached(&site, &mut sockets, run_directory, &has_successor, upgrades)?;
    sockets.refuse_unwanted()?;
    // Dropped at the end, also by an error.
    let mut socket_files = sockets.take_files();
    let mut pid_file = None;
    if predecessor.is_none() {
        pid_file = write_pid_file(start.pid_file.as_deref(), site.user.as_ref())?;
    }
    let acme = Acme::open(acme_certificates(&site), site.user.as_ref())?;
    if let Some(user) = &site.user {
        user.serve_as(&run_directory.paths())?;
    }
    program_log::start_thread();
    run_directory::remove_abandoned();
    let store = Arc::new(Store::new(StoreConfig {
        memory_bytes: site.store.memory_bytes,
        item_limit_bytes: site.store.item_limit_bytes,
        ..StoreConfig::default()
    }));
    let snapshot = match &site.store.snapshot {
        Some(path) => Some(Arc::new(SnapshotFile::new(path.clone())?)),
        None => None,
    };
    if let (Some(snapshot), None) = (&snapshot, &predecessor) {
        snapshot.load(&store);
    }
    let memcached_options = ServerOptions {
        limits: Limits { item_size_bytes: site.store.item_limit_bytes, ..Limits::default() },
        // What serves other things as well has its memory from the configuration, and not from a
        // client.
        memory_ceiling_bytes: site.store.memory_bytes,
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
    let mut upstreams = Vec::new();
    for upstream in &site.upstreams {
        upstreams.push(Upstream::start(upstream.clone()).await);
    }
    let (stage, watching) = watch::channel(Stage::Prepare);
    let drained = Arc::new(Barrier::new(loops.len()));
    let cache_counters: Vec<Arc<CacheCounters>> = loops.iter().map(|_| Arc::default()).collect();
    let admin = Admin {
        store: Arc::clone(&store),
        apps: apps.clone(),
        upstreams: upstreams.clone(),
        cache_counters: cache_counters.clone(),
        access_logs: logs.values().cloned().collect(),
        connections,
        accounts,
        listeners: site.listeners.iter().map(|listener| listener.address.to_string()).collect(),
        started: std::time::Instant::now(),
    };
    let mut threads = Vec::new();
    let parts = loops.into_iter().zip(doors).zip(memcached).zip(cache_counters);
    for (((event_loop, doors), memcached), cache_counters) in parts {
        threads.push(event_loop.serve(Parts {
            site: Arc::clone(&site),
            store: Arc::clone(&store),
            apps: apps.clone(),
            upstreams: upstreams.clone(),
            cache_counters,
            doors,
            // The first loop has them all.
            admin: (std::mem::take(&mut admin_listeners), admin.clone()),
            memcached,
            memcached_server: Arc::clone(&memcached_server),
            challenges: acme.challenges(),
            stage: watching.clone(),
            drained: Arc::clone(&drained),
        })?);
    }

    let systemd = Systemd::new(start.inherited.notify.take());
    let mut started = tokio::select! {
        started = get_ready(&apps, predecessor.as_mut(), &store) => started.map(|()| true),
        end = signals.end() => {
            tracing::info!("stopping while starting: {}", end.description());
            Ok(false)
        }
    };
    let mut limit = Duration::ZERO;
    let mut ended = None;
    if matches!(started, Ok(true)) && predecessor.is_some() {
        // While this program can still be given up without harm.
        match write_pid_file(start.pid_file.as_deref(), None) {
            Ok(file) => pid_file = file,
            Err(error) => started = Err(error),
        }
    }
    if matches!(started, Ok(true)) {
        // Not earlier: until now the predecessor alone has all contents.
        if let (Some(snapshot), true) = (&snapshot, upgrades) {
            snapshot.own();
        }
        socket_files.own();
        let _ = stage.send(Stage::Serve);
        for url in &urls {
            tracing::info!("serving on {url}");
        }
        match predecessor {
            // Systemd hears of it from the one that ends, which alone it listens to until then.
            Some(predecessor) => {
                if let Err(error) = predecessor.dismiss().await {
                    tracing::warn!(%error, "serving nevertheless");
                }
            }
            None => systemd.ready(),
        }
        let ask_again = acme.wish();
        let certificates = acme.keep();
        let sweeping = tokio::spawn(sweep(Arc::clone(&store)));
        let upgrade = plan_upgrade(&site, sockets, run_directory, &systemd, loaded.as_ref());
        let serving = Serving {
            site: &site,
            apps: &apps,
            logs: &logs,
            store: &store,
            ask_again: &ask_again,
            systemd: &systemd,
            upgrade,
        };
        let ending = loop {
            tokio::select! {
                ending = catch_in(serving.do_wishes(&mut signals)) => match ending {
                    Ok(ending) => break ending,
                    Err(_) => tracing::error!("serving goes on, an upgrade that was going on does not"),
                },
                // One that can be started again is, so this is rare.
                error = first_failure(&apps) => {
                    started = Err(error.into());
                    break Ending::Signal(End::Fast);
                }
            }
        };
        sweeping.abort();
        drop(certificates);
        match ending {
            Ending::Signal(end) => {
                systemd.stopping();
                if end == End::Graceful {
                    limit = DRAIN_LIMIT;
                }
            }
            Ending::Successor(pid) => {
                systemd.main_process_is(pid);
                limit = DRAIN_LIMIT;
                // The program that follows writes its own.
                if let Some(snapshot) = &snapshot {
                    snapshot.disown();
                }
                socket_files.disown();
                succeeded.send_replace(true);
            }
        }
        ended = Some(ending);
    }
    let _ = stage.send(Stage::Drain(limit));
    // After the loops have been told, so that who waits for the line finds them stopping.
    match ended {
        Some(Ending::Signal(end)) => tracing::info!("stopping: {}", end.description()),
        Some(Ending::Successor(pid)) => {
            tracing::info!(
                pid,
                "upgraded: the new program serves, responses in progress are finished here"
            );
        }
        None => {}
    }
    let drained = tokio::task::spawn_blocking(move || {
        threads.into_iter().all(|thread| thread.join().is_ok())
    });
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
    drop(pid_file);
    for log in logs.values() {
        log.flush(LAST_LINES);
    }
    started.map(|_| ())
}

/// Waits until the applications are loaded and, in an upgrade, the store is.
async fn get_ready(
    apps: &[Arc<App>],
    predecessor: Option<&mut Predecessor>,
    store: &Arc<Store>,
) -> Result<(), ProgramError> {
    let Some(predecessor) = predecessor else { return all_ready(apps).await };
    tokio::select! {
        ready = all_ready(apps) => ready?,
        // Killed, as a rule: its store is lost. Who watches over the service starts it again.
        gone = predecessor.gone() => return Err(gone.into()),
    }
    Ok(predecessor.carry_over(store).await?)
}

/// How another Kirin could take the place of this one, or why it cannot.
fn plan_upgrade(
    site: &Site,
    sockets: Sockets,
    run_directory: &RunDirectory,
    systemd: &Systemd,
    loaded: Option<&LoadedParent>,
) -> Result<Upgrade, String> {
    if sockets.source() == Some(Source::ServerStarter) {
        return Err("start_server would start a third program; send HUP to start_server".into());
    }
    let invocation = match loaded {
        None => Invocation::of_this_process(),
        Some(loaded) => loaded.invocation.clone().map(Invocation::from),
    };
    let invocation =
        invocation.ok_or("how this program was started is not known, or cannot be done again")?;
    // Where there is room for it, if somebody has said so.
    let store_file = match &site.store.snapshot {
        None => run_directory.store_file(),
        Some(path) => path.with_added_extension("upgrade"),
    };
    let loading = site.apps.iter().map(|app| app.start_limit).max().unwrap_or_default();
    Ok(Upgrade {
        invocation,
        sockets: sockets.into_kept(),
        store_file,
        notify: systemd.socket().cloned(),
        limit: loading + upgrade::LIMIT,
    })
}

/// The listeners are what the program was started with, each as the one of the configuration.
fn listen_where_told(site: &mut Site, sockets: &Sockets) {
    let addresses = sockets.inherited_addresses();
    if let (Some(listener), false) = (site.listeners.first().cloned(), addresses.is_empty()) {
        site.listeners = addresses
            .into_iter()
            .map(|address| ListenerSite { address, ..listener.clone() })
            .collect();
    }
}

fn write_pid_file(
    path: Option<&Path>,
    user: Option<&User>,
) -> Result<Option<PidFile>, ProgramError> {
    let Some(path) = path else { return Ok(None) };
    ParentDirectory::check(path, user)
        .and_then(|()| PidFile::write(path))
        .map(Some)
        .map_err(|error| ProgramError::PidFile(path.display().to_string(), error))
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
        preload: app.preload,
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

/// Returns the certificates that listeners get from an authority, and who serves them.
fn acme_certificates(site: &Site) -> impl Iterator<Item = (&AcmeConfig, &Arc<Tls>)> {
    let tls = site.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    tls.filter_map(|tls| Some((tls.acme.as_ref()?, &tls.tls)))
}

/// Takes expired items out of the store, a bounded number each second.
async fn sweep(store: Arc<Store>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        second.tick().await;
        let now = Now::from_unix_seconds(kirin_clock::steady_seconds());
        // A mistake in one round does not end the others.
        let _ = catch(|| store.sweep(now, SWEEP_ITEMS));
    }
}
