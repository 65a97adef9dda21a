//! An event loop: one thread with a tokio runtime, listeners, connections, open files and a router
//! of its own.
//!
//! The main thread starts one for each core. A request shares nothing with other loops but the
//! store and the queues of the applications.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, mpsc as std_mpsc};
use std::thread::JoinHandle;

use kirin_acme::Challenges;
use kirin_config::Config;
use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::places::opening::PlaceError;
use kirin_gateway::routing::operator_maintenance::OperatorMaintenance;
use kirin_gateway::routing::route_names::RouteNames;
use kirin_observe::live::observer::LiveLoop;
use kirin_observe::metrics::counters::LoopCounters;
use kirin_observe::stage::{Stage, drain_limit, wait_to_serve};
use kirin_origin::NearStore;
use kirin_proxy::Upstream;
use kirin_server::{BlockedAddresses, OpenLog};
use kirin_traces::TraceExporter;
use kirin_workers::App;
use tokio::runtime::{Handle, LocalRuntime};
use tokio::sync::{Barrier, Notify, mpsc, oneshot, watch};
use tokio::task::spawn_local;

use crate::admin::{self, Admin, default_socket};
use crate::serve::handed::{self, ConnectionSocket, Handed};
use crate::serve::http_listeners::HttpListeners;
use crate::serve::listener_settings::ListenerSettings;
use crate::serve::listeners::LoopListeners;
use crate::serve::loop_reload::{self, LoopReload};
use crate::serve::memcached;
use crate::serve::metrics;

/// The address space of a loop's stack in bytes. The kernel gives it memory only where it is used.
/// Lua functions that call each other through C need more than the usual 2 MB before Lua finds that
/// they nest too deep.
const STACK_BYTES: usize = 16 << 20;

/// What all loops share under one configuration.
#[derive(Clone)]
pub struct LoopResources {
    /// The configuration.
    pub config: Arc<Config>,
    /// The listeners, in the order of the configuration.
    pub listeners: Arc<[ListenerSettings]>,
    /// The access logs of routes, by their numbers.
    pub route_logs: Arc<[OpenLog]>,
    /// The names of the routes.
    pub route_names: Arc<RouteNames>,
    /// The paths of the routes, by their numbers.
    pub route_paths: Arc<HashMap<u32, String>>,
    /// Is held as long as requests may be answered by this configuration.
    pub in_use: Arc<()>,
    /// The store.
    pub store: NearStore,
    /// The applications.
    pub apps: Vec<Arc<App>>,
    /// The upstreams.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Exports traces, if that is configured.
    pub traces: Option<TraceExporter>,
    /// The answers to operators.
    pub admin: Admin,
    /// The answers to memcached clients.
    pub memcached: Arc<kirin_memcache::MemcachedServer>,
    /// The answers to authorities that issue certificates.
    pub challenges: Arc<Challenges>,
    /// The maintenance that an operator has begun.
    pub maintenance: Arc<OperatorMaintenance>,
    /// The addresses that an operator has blocked.
    pub blocked: Arc<BlockedAddresses>,
    /// What the loops are to do.
    pub stage: watch::Receiver<Stage>,
    /// Where all loops wait for each other when they have drained.
    pub drained: Arc<Barrier>,
    /// Where idle connections go when the loops drain.
    pub successor: watch::Receiver<ConnectionSocket>,
}

/// What one loop serves. It can be sent to the loop's thread; the router that the loop makes of it
/// cannot.
struct Assignment {
    listeners: LoopListeners,
    /// Where the loop counts what its caches do.
    cache_counters: Arc<CacheCounters>,
    /// Where it counts for metrics.
    counters: Arc<LoopCounters>,
    /// Where the loop counts its requests.
    live: Arc<LiveLoop>,
    shared: LoopResources,
    /// Other configurations, in their order.
    reloads: mpsc::UnboundedReceiver<LoopReload>,
    /// Connections of the program before this one.
    handed: mpsc::UnboundedReceiver<Handed>,
}

/// A loop that serves.
pub struct ServingLoop {
    /// Its thread.
    pub thread: JoinHandle<()>,
    /// Takes other configurations.
    pub reloads: mpsc::UnboundedSender<LoopReload>,
    /// Takes connections of the program before this one.
    pub handed: mpsc::UnboundedSender<Handed>,
}

/// A loop that could not start.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The system gives no thread or no epoll descriptor.
    #[error("cannot start an event loop: {0}")]
    Start(#[from] std::io::Error),
    /// A place of a route cannot be opened.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The thread ended.
    #[error("an event loop ended before it had started")]
    Gone,
}

/// A loop that runs and serves nothing yet.
pub struct EventLoop {
    /// The handle for tasks that are to run on this loop.
    pub handle: Handle,
    assignment: oneshot::Sender<Assignment>,
    opened: std_mpsc::Receiver<Result<(), PlaceError>>,
    thread: JoinHandle<()>,
}

impl EventLoop {
    /// Starts a loop on a thread of its own. Applications need its handle, and the loop's routes
    /// need the applications: so it gets its routes later.
    pub fn start(index: usize) -> Result<Self, LoopError> {
        let (assignment, assigned) = oneshot::channel();
        let (report, opened) = std_mpsc::channel();
        let (built, handle) = std_mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("loop-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // A `LocalSet` would be a scheduler inside the runtime's scheduler, and each
                // wake-up would pass through both.
                let runtime = match LocalRuntime::new() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        _ = built.send(Err(error));
                        return;
                    }
                };
                _ = built.send(Ok(runtime.handle().clone()));
                runtime.block_on(async move {
                    if let Ok(assignment) = assigned.await {
                        run(assignment, &report).await;
                    }
                });
            })?;
        let handle = handle.recv().map_err(|_| LoopError::Gone)??;
        Ok(Self { handle, assignment, opened, thread })
    }

    /// Tells the loop what to serve, and waits until its routes are open.
    pub fn serve(
        self,
        listeners: LoopListeners,
        cache_counters: Arc<CacheCounters>,
        counters: Arc<LoopCounters>,
        live: Arc<LiveLoop>,
        shared: LoopResources,
    ) -> Result<ServingLoop, LoopError> {
        let (sender, reloads) = mpsc::unbounded_channel();
        let (hand, handed) = mpsc::unbounded_channel();
        let assignment =
            Assignment { listeners, cache_counters, counters, live, shared, reloads, handed };
        self.assignment.send(assignment).map_err(|_| LoopError::Gone)?;
        self.opened.recv().map_err(|_| LoopError::Gone)??;
        Ok(ServingLoop { thread: self.thread, reloads: sender, handed: hand })
    }
}

/// Opens the routes, serves all listeners, and drains them at the end.
async fn run(assignment: Assignment, report: &std_mpsc::Sender<Result<(), PlaceError>>) {
    let Assignment { listeners, cache_counters, counters, live, shared, reloads, handed } =
        assignment;
    let served = shared.config.store.memcached.clone();
    // The rest belongs to the configuration, and goes with it.
    let (admin, memcached, mut stage, drained, successor) = (
        shared.admin.clone(),
        Arc::clone(&shared.memcached),
        shared.stage.clone(),
        Arc::clone(&shared.drained),
        shared.successor.clone(),
    );
    let opened = HttpListeners::open(shared, cache_counters, &counters, live);
    let (mut http, opened) = match opened {
        Ok(http) => (Some(http), Ok(())),
        Err(error) => (None, Err(error)),
    };
    if report.send(opened).is_err() || http.is_none() {
        return;
    }
    let ends = Rc::<Notify>::default();
    let serve_memcached = |listener| {
        let (server, ends) = (Arc::clone(&memcached), Rc::clone(&ends));
        spawn_local(memcached::serve(listener, server, stage.clone(), ends))
    };
    let mut memcached_listeners: Vec<_> =
        listeners.memcached.into_iter().map(serve_memcached).collect();
    let serve_admin = |socket| spawn_local(admin::serve(socket, admin.clone(), stage.clone()));
    let serve_metrics = |socket| spawn_local(metrics::serve(socket, admin.clone(), stage.clone()));
    let mut operators: Vec<_> = listeners.admin.into_iter().map(serve_admin).collect();
    operators.extend(listeners.metrics.into_iter().map(serve_metrics));
    operators.extend(listeners.taken_admin.map(|path| {
        spawn_local(default_socket::serve_when_free(path, admin.clone(), stage.clone()))
    }));
    if wait_to_serve(&mut stage).await
        && let Some(http) = &mut http
    {
        http.accept(listeners.http, &counters);
    }
    drop(counters);
    let http = Rc::new(RefCell::new(http));
    spawn_local(loop_reload::take_over(Rc::clone(&http), reloads));
    let (clients, adopted) = mpsc::unbounded_channel();
    spawn_local(handed::adopt(Rc::clone(&http), handed, served, clients));
    let mut adopting = spawn_local(kirin_memcache::serve_adopted(Arc::clone(&memcached), adopted));
    let limit = drain_limit(stage).await;
    // No configuration comes into force from here on.
    let draining = http.borrow_mut().take();
    if let Some(http) = draining {
        let successor = successor.borrow().as_deref().and_then(handed::sender);
        http.drain(limit, successor).await;
    }
    for ended in operators {
        if let Err(error) = ended.await {
            tracing::error!(%error, "draining failed");
        }
    }
    // A response on another loop may come from a worker whose connection is registered with this
    // loop's reactor. It would be lost with the reactor.
    let _ = tokio::time::timeout(limit, drained.wait()).await;
    if memcached.has_successor() {
        // Their clients go to the next program.
        ends.notify_waiters();
        let all = async {
            for left in memcached_listeners.iter_mut().chain([&mut adopting]) {
                let _ = left.await;
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
    }
    memcached_listeners.iter().for_each(tokio::task::JoinHandle::abort);
    adopting.abort();
}
