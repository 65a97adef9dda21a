//! The program's life: bind, start applications, serve, stop.
//!
//! Runs on the main thread, which supervises and serves nothing itself.

use crate::config::check::{ListenerSite, LogTarget, Site};
use crate::event_loop::{Door, EventLoop, LoopError, Parts, Stage};
use crate::run_directory::RunDirectory;
use kirin_http::listener::ListenError;
use kirin_http::{ListenAddress, Listener};
use kirin_store::{Now, Store, StoreConfig};
use kirin_workers::{App, AppConfig, AppError};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long responses in progress may take after TERM or QUIT.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// Items that the sweep looks at in a second; it holds a shard's lock for a part of them at a time.
const SWEEP_ITEMS: usize = 20_000;

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
    #[error("app `{0}`: {1}")]
    App(String, #[source] AppError),
    /// A loop does not start.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The temporary directory, the signals or the runtime.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

/// Serves `site` until a signal ends it.
pub fn run(site: Site) -> Result<(), ProgramError> {
    let run_directory = RunDirectory::create()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(supervise(Arc::new(site), &run_directory))
}

async fn supervise(site: Arc<Site>, run_directory: &RunDirectory) -> Result<(), ProgramError> {
    let mut signals = Signals::new()?;
    let (doors, addresses) = open_doors(&site)?;
    let memcached = open_memcached(&site, run_directory)?;
    let store = Arc::new(Store::new(StoreConfig {
        memory_bytes: site.store.memory_bytes,
        item_limit_bytes: site.store.item_limit_bytes,
        ..StoreConfig::default()
    }));
    let memcached_server = kirin_memcache::Server::new(Arc::clone(&store), Default::default());
    let apps: Vec<Arc<App>> = site.apps.iter().map(|app| App::new(app_config(app, run_directory))).collect();

    let (stage, watching) = watch::channel(Stage::Prepare);
    let mut loops = Vec::new();
    for (index, (doors, memcached)) in doors.into_iter().zip(memcached).enumerate() {
        let (site, store) = (Arc::clone(&site), Arc::clone(&store));
        let parts = Parts {
            site,
            store,
            apps: apps.clone(),
            doors,
            memcached,
            memcached_server: Arc::clone(&memcached_server),
            stage: watching.clone(),
        };
        loops.push(EventLoop::start(index, parts)?);
    }
    let handles: Vec<Handle> = loops.iter().map(|event_loop| event_loop.handle.clone()).collect();

    // The memcached sockets must answer while an application loads: it may fill the store then.
    let supervisors: Vec<_> =
        apps.iter().map(|app| tokio::spawn(Arc::clone(app).supervise(handles.clone()))).collect();
    let started = tokio::select! {
        started = all_ready(&apps) => started.map(|()| true),
        end = signals.next() => { tracing::info!("{end:?} while starting"); Ok(false) }
    };
    if matches!(started, Ok(true)) {
        let _ = stage.send(Stage::Serve);
        for address in &addresses {
            tracing::info!("serving on {}", url(address));
        }
        let sweeping = tokio::spawn(sweep(Arc::clone(&store)));
        let end = signals.next().await;
        sweeping.abort();
        let limit = if end == End::Graceful { DRAIN_LIMIT } else { Duration::ZERO };
        tracing::info!("stopping: {end:?}");
        let _ = stage.send(Stage::Drain(limit));
    } else {
        let _ = stage.send(Stage::Drain(Duration::ZERO));
    }
    let joined = tokio::task::spawn_blocking(move || loops.into_iter().for_each(EventLoop::join));
    tokio::select! {
        _ = joined => {}
        // A second signal does not wait for responses in progress.
        _ = signals.next() => tracing::warn!("stopping at once"),
    }
    for app in &apps {
        app.stop().await;
    }
    for supervisor in supervisors {
        let _ = supervisor.await;
    }
    started.map(|_| ())
}

/// Waits until every application has reported ready; fails with the first that does not.
async fn all_ready(apps: &[Arc<App>]) -> Result<(), ProgramError> {
    for app in apps {
        app.ready().await.map_err(|error| ProgramError::App(app.name().to_owned(), error))?;
    }
    Ok(())
}

fn app_config(app: &crate::config::check::AppSite, run_directory: &RunDirectory) -> AppConfig {
    let mut env = app.env.clone();
    env.entry("KIRIN_STORE".into())
        .or_insert_with(|| format!("unix:{}", run_directory.store_socket().display()));
    AppConfig {
        name: app.name.clone(),
        load: app.load.clone(),
        directory: app.directory.clone(),
        workers: app.workers,
        env,
        queue_length: app.queue,
        queue_wait: app.queue_wait,
        request_deadline: app.deadline,
        start_limit: app.start_limit,
        max_requests: app.max_requests,
        body_limit_bytes: app.body_limit_bytes,
        sendfile_roots: app.sendfile.clone(),
        ..AppConfig::default()
    }
}

/// Binds the listeners once a loop; the outer list is by loop.
fn open_doors(site: &Site) -> Result<(Vec<Vec<Door>>, Vec<ListenAddress>), ProgramError> {
    let mut logs = HashMap::new();
    let mut by_loop: Vec<Vec<Door>> = (0..site.threads).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    for listener in &site.listeners {
        let log = match &listener.access_log {
            None => None,
            Some(target) => Some(open_log(target, &mut logs)?),
        };
        let bound = Listener::bind(&listener.address, site.threads)?;
        for (doors, listener_of_loop) in by_loop.iter_mut().zip(bound) {
            let ListenerSite { keep_alive, .. } = *listener;
            let address = listener_of_loop.address()?;
            if !addresses.contains(&address) {
                addresses.push(address.clone());
            }
            doors.push(Door { listener: listener_of_loop, address, log: log.clone(), keep_alive });
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
fn open_log(target: &LogTarget, open: &mut HashMap<LogTarget, Arc<File>>) -> Result<Arc<File>, ProgramError> {
    if let Some(file) = open.get(target) {
        return Ok(Arc::clone(file));
    }
    let (name, opened) = match target {
        LogTarget::Stdout => ("stdout".into(), io::stdout().as_fd().try_clone_to_owned().map(File::from)),
        LogTarget::Stderr => ("stderr".into(), io::stderr().as_fd().try_clone_to_owned().map(File::from)),
        LogTarget::File(path) => {
            (path.display().to_string(), File::options().append(true).create(true).open(path))
        }
    };
    let file = Arc::new(opened.map_err(|error| ProgramError::AccessLog(name, error))?);
    open.insert(target.clone(), Arc::clone(&file));
    Ok(file)
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

/// How the program is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// TERM or QUIT: responses in progress are finished.
    Graceful,
    /// INT: at once.
    Fast,
}

struct Signals {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> End {
        tokio::select! {
            _ = self.terminate.recv() => End::Graceful,
            _ = self.quit.recv() => End::Graceful,
            _ = self.interrupt.recv() => End::Fast,
        }
    }
}
