//! The second part of the program's life: start. The store is loaded, event loops and applications
//! start, and the program waits until they are ready. It accepts no client yet.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use kirin_config::Config;
use kirin_memcache::{ServerOptions, SnapshotFile};
use kirin_observe::live::observer::LiveLoop;
use kirin_observe::machines::Machines;
use kirin_observe::metrics::counters::ProgramCounters;
use kirin_observe::program_state::ProgramState;
use kirin_observe::stage::Stage;
use kirin_origin::StoreOrigin;
use kirin_proxy::Upstream;
use kirin_store::{Store, StoreConfig};
use kirin_traces::TraceExporter;
use kirin_workers::App;
use serde_json::{Value, json};
use tokio::sync::{Barrier, mpsc, watch};

use crate::admin::{Admin, operator_changes};
use crate::life::apps;
use crate::life::bind::Bound;
use crate::life::control_request::{ControlRequest, ControlRequests};
use crate::life::ending::ProgramEnding;
use crate::life::error::ProgramError;
use crate::life::launch::Launch;
use crate::life::origin_thread;
use crate::life::parts::Parts;
use crate::life::pid_file::PidFile;
use crate::life::run_directory::RunDirectory;
use crate::life::signals::Signals;
use crate::life::spool_space;
use crate::life::ticket_secrets;
use crate::life::upgrade::invocation;
use crate::serve::event_loop::{EventLoop, ServingLoop};
use crate::serve::handed::ConnectionSocket;

/// What the program has started.
pub struct Started {
    /// What was opened before. The event loops have its listeners now.
    pub bound: Bound,
    /// What no other configuration replaces.
    pub parts: Parts,
    /// The answers to operators.
    pub admin: Admin,
    /// The requests of operators that the main thread carries out.
    pub requests: mpsc::Receiver<ControlRequest>,
    /// Applications that no configuration has any more, and that may not have ended yet.
    pub retiring: RefCell<Vec<Arc<App>>>,
    /// The snapshot file of the store.
    pub snapshot: Option<Arc<SnapshotFile>>,
    /// Tells the event loops where idle connections go.
    pub successor: watch::Sender<ConnectionSocket>,
    /// Tells the event loops what to do.
    pub stage: watch::Sender<Stage>,
    /// The event loops.
    pub loops: Vec<ServingLoop>,
}

/// A store for items that are not needed.
const NOWHERE: StoreConfig =
    StoreConfig { memory_bytes: 1 << 20, item_limit_bytes: 1 << 10, shards: 1, evict: true };

/// Logs which password files have weak hashes.
pub fn warn_of_weak_passwords(config: &Config) {
    for warning in kirin_config::weak_passwords(config) {
        tracing::warn!("{warning}");
    }
}

/// Starts the store, the applications and the event loops.
pub async fn start(
    mut bound: Bound,
    launch: &Launch,
    run_directory: &RunDirectory,
) -> Result<Started, ProgramError> {
    if let Some(predecessor) = &mut bound.predecessor {
        predecessor.greet().await?;
    }
    let config = Arc::clone(&bound.configured.borrow().config);
    let program = invocation(launch).and_then(|invocation| invocation.file());
    let program = Arc::new(ProgramState::new(program));
    spool_space::check(&config);
    warn_of_weak_passwords(&config);
    let store = Arc::new(Store::new(config.store.engine.clone()));
    if let Some(predecessor) = &bound.predecessor {
        store.number_from(predecessor.first_sequence());
    }
    let snapshot = match &config.store.snapshot {
        Some(path) => Some(Arc::new(SnapshotFile::new(path.clone())?)),
        None => None,
    };
    if let (Some(snapshot), None) = (&snapshot, &bound.predecessor) {
        snapshot.load(&store);
    }
    let origin = config.store.origin.clone();
    let origin = origin.map(|origin| StoreOrigin::new(origin, Arc::clone(&store)));
    let origin_runtime = match &origin {
        Some(origin) => Some(origin_thread::start(Arc::clone(origin))?),
        None => None,
    };
    let mut protocol = ServerOptions {
        snapshot: snapshot.clone(),
        origin: origin.clone(),
        ..config.store.protocol.clone()
    };
    if let Some(address) = bound.memcached_addresses.last() {
        protocol.description.tcp_port = address.port();
    }
    let memcached = kirin_memcache::MemcachedServer::new(Arc::clone(&store), protocol);
    let loops = (0..config.threads).map(EventLoop::start).collect::<Result<Vec<_>, _>>()?;
    let handles: Vec<_> = loops.iter().map(|event_loop| event_loop.handle.clone()).collect();
    let apps = config.apps.iter();
    let apps = apps.map(|app| apps::start(app, launch, run_directory, &handles));
    bound.configured.get_mut().apps = apps.collect::<Result<_, _>>()?;
    let mut upstreams = Vec::new();
    for upstream in &config.upstreams {
        upstreams.push(Upstream::start(upstream.clone()).await);
    }
    bound.configured.get_mut().upstreams = upstreams;
    let traces = config.traces.as_ref().map(TraceExporter::start).transpose()?;
    bound.configured.get_mut().traces = traces;
    let started = Instant::now();
    let new_live = || {
        let sites = Arc::clone(&bound.configured.borrow().route_sites);
        Arc::new(LiveLoop::new(started, config.url_patterns.clone(), sites))
    };
    let (stage, watched) = watch::channel(Stage::Prepare);
    let (successor, watched_successor) = watch::channel(None);
    let serving = serving(launch);
    let machines = origin.as_ref();
    let machines = machines.map(|origin| Arc::new(Machines::new(Arc::clone(origin), &serving)));
    let parts = Parts {
        store,
        origin,
        machines,
        cache_counters: loops.iter().map(|_| Arc::default()).collect(),
        live: loops.iter().map(|_| new_live()).collect(),
        memcached,
        challenges: bound.acme.borrow().challenges(),
        connections: Arc::clone(&bound.connections),
        maintenance: Arc::default(),
        blocked: Arc::default(),
        program,
        given_up: Arc::default(),
        counters: Arc::new(ProgramCounters::new(bound.predecessor.is_some())),
        serving,
        advise: Arc::default(),
        started,
        started_at: SystemTime::now(),
        handles,
        stage: watched,
        drained: Arc::new(Barrier::new(loops.len())),
        successor: watched_successor,
    };
    let (sender, requests) = ControlRequests::channel();
    let admin = Admin::new(parts.admin_parts(&bound.configured.borrow()), sender);
    if let (Some(runtime), Some(machines)) = (&origin_runtime, &parts.machines) {
        origin_thread::join(runtime, machines, &admin, &parts.stage);
    }
    if let (Some(runtime), Some(origin)) = (&origin_runtime, &parts.origin) {
        origin_thread::follow_blocks(runtime, origin, &parts.blocked);
    }
    let resources = parts.loop_resources(&bound.configured.borrow(), admin.clone());
    let listeners = std::mem::take(&mut bound.loops);
    let mut serving = Vec::new();
    for (at, (event_loop, listeners)) in loops.into_iter().zip(listeners).enumerate() {
        let counters = Arc::clone(&bound.configured.borrow().counters[at]);
        let (caches, live) = (Arc::clone(&parts.cache_counters[at]), Arc::clone(&parts.live[at]));
        serving.push(event_loop.serve(listeners, caches, counters, live, resources.clone())?);
    }
    let retiring = RefCell::default();
    Ok(Started {
        bound,
        parts,
        admin,
        requests,
        retiring,
        snapshot,
        successor,
        stage,
        loops: serving,
    })
}

/// Returns the part of the status that says what this program serves.
fn serving(launch: &Launch) -> Value {
    let started_in = std::env::current_dir().ok();
    let served = launch.served.as_ref();
    served.map_or_else(|| json!({}), |served| served.status(started_in.as_deref()))
}

/// Waits until the program can serve: applications are loaded, and the store of a predecessor is
/// carried over. Fails if the program has to end before.
pub async fn wait_until_ready(
    started: &mut Started,
    launch: &Launch,
    signals: &mut Signals,
) -> Result<(), ProgramEnding> {
    tokio::select! {
        ready = get_ready(started, launch) => ready.map_err(ProgramEnding::NotStarted),
        stop = signals.stop() => {
            tracing::info!("stopping while starting: {}", stop.description());
            Err(ProgramEnding::StoppedAtStart)
        }
    }
}

async fn get_ready(started: &mut Started, launch: &Launch) -> Result<(), ProgramError> {
    let Started { bound, parts: Parts { store, .. }, admin, loops, .. } = started;
    let apps = &bound.configured.get_mut().apps.clone();
    let Some(predecessor) = &mut bound.predecessor else { return Ok(apps::all_ready(apps).await?) };
    tokio::select! {
        ready = apps::all_ready(apps) => ready?,
        // It was killed, as a rule, and its store is lost. The service manager starts it again.
        gone = predecessor.gone() => return Err(gone.into()),
    }
    let store = match bound.configured.get_mut().config.store.origin {
        // Nothing proves the copies of another process. The items are at the origin.
        Some(_) => Arc::new(Store::new(NOWHERE)),
        None => Arc::clone(store),
    };
    let (tickets, changes) = predecessor.carry_over(&store).await?;
    ticket_secrets::take_over(tickets, &bound.configured.get_mut().config.listeners);
    operator_changes::apply(changes, &admin.current());
    let handed = loops.iter().map(|event_loop| event_loop.handed.clone()).collect();
    predecessor.wait_for_go(handed).await?;
    // This program can still be given up, if the file cannot be written.
    if let Some(path) = &launch.pid_file {
        bound.pid_file = Some(PidFile::write(path, None)?);
    }
    Ok(())
}
