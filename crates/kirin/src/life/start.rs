//! The second part of the program's life: start. The store is loaded, event loops and applications
//! start, and the program waits until they are ready. It accepts no client yet.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::routing::site_names::SiteNames;
use kirin_memcache::{ServerOptions, SnapshotFile};
use kirin_observe::live::observer::LiveLoop;
use kirin_observe::live::route_sites::RouteSites;
use kirin_observe::metrics::counters::{LoopCounters, ProgramCounters};
use kirin_observe::metrics::{Metrics, NamedParts, WorkerReadings};
use kirin_observe::observed::{ObservedParts, ProcessCounts};
use kirin_observe::stage::Stage;
use kirin_proxy::Upstream;
use kirin_store::Store;
use kirin_traces::TraceExporter;
use kirin_workers::App;
use serde_json::{Value, json};
use tokio::sync::{Barrier, watch};

use crate::admin::Admin;
use crate::life::apps;
use crate::life::bind::Bound;
use crate::life::ending::ProgramEnding;
use crate::life::error::ProgramError;
use crate::life::launch::Launch;
use crate::life::pid_file::PidFile;
use crate::life::run_directory::RunDirectory;
use crate::life::signals::Signals;
use crate::life::{panics, program_log, spool_space};
use crate::serve::event_loop::{EventLoop, LoopResources};

/// What the program counts in statics.
const PROCESS_COUNTS: ProcessCounts =
    ProcessCounts { panics: panics::count, lost_log_lines: program_log::lost_lines };

/// What the program has started.
pub struct Started {
    /// What was opened before. The event loops have its listeners now.
    pub bound: Bound,
    /// The store.
    pub store: Arc<Store>,
    /// The snapshot file of the store.
    pub snapshot: Option<Arc<SnapshotFile>>,
    /// The applications.
    pub apps: Vec<Arc<App>>,
    /// Exports traces, if that is configured.
    pub traces: Option<TraceExporter>,
    /// What the main thread counts for metrics.
    pub counters: Arc<ProgramCounters>,
    /// Tells the event loops what to do.
    pub stage: watch::Sender<Stage>,
    /// The threads of the event loops.
    pub threads: Vec<JoinHandle<()>>,
}

/// Starts the store, the applications and the event loops.
pub async fn start(
    mut bound: Bound,
    launch: &Launch,
    run_directory: &RunDirectory,
) -> Result<Started, ProgramError> {
    let config = Arc::clone(&bound.config);
    spool_space::check(&config);
    let store = Arc::new(Store::new(config.store.engine.clone()));
    let snapshot = match &config.store.snapshot {
        Some(path) => Some(Arc::new(SnapshotFile::new(path.clone())?)),
        None => None,
    };
    if let (Some(snapshot), None) = (&snapshot, &bound.predecessor) {
        snapshot.load(&store);
    }
    let mut protocol =
        ServerOptions { snapshot: snapshot.clone(), ..config.store.protocol.clone() };
    if let Some(address) = bound.memcached_addresses.last() {
        protocol.description.tcp_port = address.port();
    }
    let memcached = kirin_memcache::MemcachedServer::new(Arc::clone(&store), protocol);
    let loops = (0..config.threads).map(EventLoop::start).collect::<Result<Vec<_>, _>>()?;
    let handles = loops.iter().map(|event_loop| event_loop.handle.clone()).collect();
    let apps = apps::start(&config, launch.loaded.as_ref(), run_directory, handles)?;
    let mut upstreams = Vec::new();
    for upstream in &config.upstreams {
        upstreams.push(Upstream::start(upstream.clone()).await);
    }
    let cache_counters: Vec<Arc<CacheCounters>> = loops.iter().map(|_| Arc::default()).collect();
    let traces = config.traces.as_ref().map(TraceExporter::start).transpose()?;
    let loop_counters: Vec<_> =
        loops.iter().map(|_| LoopCounters::new(config.listeners.len())).collect();
    let is_successor = bound.predecessor.is_some();
    let counters = Arc::new(ProgramCounters::new(is_successor));
    let metrics = Arc::new(Metrics {
        store: Arc::clone(&store),
        apps: apps.clone(),
        upstreams: upstreams.clone(),
        cache_counters: cache_counters.clone(),
        loops: loop_counters.clone(),
        program: Arc::clone(&counters),
        access_logs: bound.logs.values().cloned().collect(),
        connections: Arc::clone(&bound.connections),
        accounts: bound.accounts.clone(),
        named: NamedParts::from_config(&config),
        workers: WorkerReadings::default(),
        process: PROCESS_COUNTS,
        started: SystemTime::now(),
    });
    let started = Instant::now();
    let route_sites = Arc::new(RouteSites::from_config(&config.gateway));
    let new_live = || {
        let (patterns, sites) = (config.url_patterns.clone(), Arc::clone(&route_sites));
        Arc::new(LiveLoop::new(started, patterns, sites))
    };
    let live: Vec<Arc<LiveLoop>> = loops.iter().map(|_| new_live()).collect();
    let (stage, watched) = watch::channel(Stage::Prepare);
    let shared = LoopResources {
        admin: Admin {
            observed: ObservedParts {
                store: Arc::clone(&store),
                apps: apps.clone(),
                upstreams: upstreams.clone(),
                cache_counters: cache_counters.clone(),
                live: live.clone(),
                access_logs: bound.logs.values().cloned().collect(),
                connections: Arc::clone(&bound.connections),
                accounts: bound.accounts.clone(),
                listeners: config
                    .listeners
                    .iter()
                    .map(|listener| listener.address.to_string())
                    .collect(),
                serving: serving(launch, &bound.urls),
                started,
                process: PROCESS_COUNTS,
            },
            sites: Arc::new(SiteNames::from_config(&config.gateway)),
            metrics,
            advise: Arc::default(),
            site_labels: config.gateway.site_labels().into(),
            session_cookies: config
                .gateway
                .session_cookie
                .iter()
                .map(ToString::to_string)
                .collect(),
        },
        traces: traces.clone(),
        config,
        store: Arc::clone(&store),
        apps: apps.clone(),
        upstreams,
        memcached,
        challenges: bound.acme.challenges(),
        stage: watched,
        drained: Arc::new(Barrier::new(loops.len())),
    };
    let mut threads = Vec::new();
    let listeners = std::mem::take(&mut bound.loops);
    let all_counters = cache_counters.into_iter().zip(loop_counters).zip(live);
    for ((event_loop, listeners), ((of_caches, of_loop), live)) in
        loops.into_iter().zip(listeners).zip(all_counters)
    {
        threads.push(event_loop.serve(listeners, of_caches, of_loop, live, shared.clone())?);
    }
    Ok(Started { bound, store, snapshot, apps, traces, counters, stage, threads })
}

/// Returns the part of the status that says what this program serves.
fn serving(launch: &Launch, urls: &[String]) -> Value {
    let started_in = std::env::current_dir().ok();
    let served = launch.served.as_ref();
    let mut serving =
        served.map_or_else(|| json!({}), |served| served.status(started_in.as_deref()));
    serving["urls"] = urls.into();
    serving
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
    let Started { bound, store, apps, .. } = started;
    let Some(predecessor) = &mut bound.predecessor else { return Ok(apps::all_ready(apps).await?) };
    tokio::select! {
        ready = apps::all_ready(apps) => ready?,
        // It was killed, as a rule, and its store is lost. The service manager starts it again.
        gone = predecessor.gone() => return Err(gone.into()),
    }
    predecessor.carry_over(store).await?;
    // This program can still be given up without harm, if the file cannot be written.
    if let Some(path) = &launch.pid_file {
        bound.pid_file = Some(PidFile::write(path, None)?);
    }
    Ok(())
}
