//! An event loop: one thread with a tokio runtime, listeners, connections, open files and a router
//! of its own.
//!
//! The main thread starts one for each core. A request shares nothing with other loops but the
//! store and the queues of the applications.

use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use kirin_acme::Challenges;
use kirin_config::Config;
use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::places::opening::PlaceError;
use kirin_gateway::places::status::StatusPage;
use kirin_gateway::routing::router::{Router, RouterParts};
use kirin_observe::live::observer::{LiveLoop, LiveObserver};
use kirin_observe::metrics::counters::LoopCounters;
use kirin_observe::metrics::observer::RequestMetrics;
use kirin_observe::stage::{Stage, drain_limit, wait_to_serve};
use kirin_observe::status_page;
use kirin_proxy::Upstream;
use kirin_server::{AccessLog, AccessLogs, Observers, RequestObserver, Server, listener};
use kirin_store::Store;
use kirin_traces::{TraceExporter, TraceObserver};
use kirin_workers::App;
use tokio::runtime::{Handle, LocalRuntime};
use tokio::sync::{Barrier, oneshot, watch};
use tokio::task::spawn_local;

use crate::admin::{self, Admin, default_socket};
use crate::serve::entrance::Entrance;
use crate::serve::listeners::{BoundListener, LoopListeners};
use crate::serve::memcached;
use crate::serve::metrics;

/// The address space of a loop's stack in bytes. The kernel gives it memory only where it is used.
/// Lua functions that call each other through C need more than the usual 2 MB before Lua finds that
/// they nest too deep.
const STACK_BYTES: usize = 16 << 20;

/// What all loops share.
#[derive(Clone)]
pub struct LoopResources {
    /// The configuration.
    pub config: Arc<Config>,
    /// The store.
    pub store: Arc<Store>,
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
    /// What the loops are to do.
    pub stage: watch::Receiver<Stage>,
    /// Where all loops wait for each other when they have drained.
    pub drained: Arc<Barrier>,
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
    opened: mpsc::Receiver<Result<(), PlaceError>>,
    thread: JoinHandle<()>,
}

impl EventLoop {
    /// Starts a loop on a thread of its own. Applications need its handle, and the loop's routes
    /// need the applications: so it gets its routes later.
    pub fn start(index: usize) -> Result<Self, LoopError> {
        let (assignment, assigned) = oneshot::channel();
        let (report, opened) = mpsc::channel();
        let (built, handle) = mpsc::channel();
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
    ) -> Result<JoinHandle<()>, LoopError> {
        let assignment = Assignment { listeners, cache_counters, counters, live, shared };
        self.assignment.send(assignment).map_err(|_| LoopError::Gone)?;
        self.opened.recv().map_err(|_| LoopError::Gone)??;
        Ok(self.thread)
    }
}

/// Opens the routes, serves all listeners, and drains them at the end.
async fn run(assignment: Assignment, report: &mpsc::Sender<Result<(), PlaceError>>) {
    let Assignment { listeners, cache_counters, counters, live, shared } = assignment;
    let LoopResources { config, store, apps, upstreams, .. } = &shared;
    let admin = shared.admin.clone();
    let sampling = Arc::clone(&admin.advise.sampling);
    let status_page: StatusPage = Rc::new(move |head| status_page::answer(admin.snapshot(), head));
    let opening = RouterParts {
        store: Arc::clone(store),
        apps,
        upstreams,
        counters: cache_counters,
        sampling: &sampling,
        status_page,
    };
    let router = Router::open(&config.gateway, opening);
    let (router, opened) = match router {
        Ok(router) => (Some(Rc::new(router)), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let (Some(router), Ok(())) = (router, report.send(opened)) else { return };
    let mut stage = shared.stage.clone();
    let serve_memcached = |listener| {
        spawn_local(memcached::serve(listener, Arc::clone(&shared.memcached), stage.clone()))
    };
    let memcached: Vec<_> = listeners.memcached.into_iter().map(serve_memcached).collect();
    let serve_admin =
        |socket| spawn_local(admin::serve(socket, shared.admin.clone(), stage.clone()));
    let serve_metrics = |socket| {
        let metrics = Arc::clone(&shared.admin.metrics);
        spawn_local(metrics::serve(socket, metrics, stage.clone()))
    };
    let mut operators: Vec<_> = listeners.admin.into_iter().map(serve_admin).collect();
    operators.extend(listeners.metrics.into_iter().map(serve_metrics));
    operators.extend(listeners.taken_admin.map(|path| {
        spawn_local(default_socket::serve_when_free(path, shared.admin.clone(), stage.clone()))
    }));
    let http = if wait_to_serve(&mut stage).await { listeners.http } else { Vec::new() };
    let mut accepting = Vec::new();
    let mut servers = Vec::new();
    let route_logs: Rc<[AccessLog]> =
        listeners.route_logs.into_iter().map(AccessLog::new).collect();
    let others = observers(&shared, &counters, live);
    for BoundListener { socket, address, log, number, config } in http {
        let entrance = Entrance {
            router: Rc::clone(&router),
            redirect_to_https: config.redirect_to_https,
            challenges: Arc::clone(&shared.challenges),
            hsts: config.tls.as_ref().and_then(|tls| tls.hsts.as_deref()).map(Rc::from),
        };
        let (of_listener, of_routes) = (log.map(AccessLog::new), Rc::clone(&route_logs));
        let logs = AccessLogs::new(of_listener, of_routes);
        let observers = Observers { logs, others: Rc::clone(&others) };
        let mut server = Server::new(Rc::new(entrance), address, config.limits, observers);
        if let Some(connections) = counters.connections.get(number) {
            server = server.counting(Arc::clone(connections));
        }
        if let Some(forwarding) = config.forwarding {
            server = server.behind_proxies(forwarding, config.proxy_protocol);
        }
        if let Some(traces) = &shared.config.traces {
            server = server.traced(traces.sampling);
        }
        if let Some(tls) = config.tls {
            server = server.with_tls(tls.tls);
        }
        let server = Rc::new(server);
        spawn_local(listener::maintain_connections(Rc::clone(&server)));
        accepting.push(spawn_local(accept(socket, Rc::clone(&server), stage.clone())));
        servers.push(server);
    }
    let limit = drain_limit(stage).await;
    for accepting in accepting {
        if let Err(error) = accepting.await {
            tracing::error!(%error, "accepting failed");
        }
    }
    let drain = |server| spawn_local(listener::drain(server, limit));
    let draining: Vec<_> = servers.into_iter().map(drain).collect();
    for drained in draining.into_iter().chain(operators) {
        if let Err(error) = drained.await {
            tracing::error!(%error, "draining failed");
        }
    }
    // A response on another loop may come from a worker whose connection is registered with this
    // loop's reactor. It would be lost with the reactor.
    let _ = tokio::time::timeout(limit, shared.drained.wait()).await;
    memcached.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Returns those who learn about each request besides the access logs.
fn observers(
    shared: &LoopResources,
    counters: &LoopCounters,
    live: Arc<LiveLoop>,
) -> Rc<[Rc<dyn RequestObserver>]> {
    let mut observers: Vec<Rc<dyn RequestObserver>> = vec![
        Rc::new(RequestMetrics::new(counters, &shared.apps)),
        Rc::new(LiveObserver::new(live)),
    ];
    if let Some(traces) = &shared.traces {
        let paths = shared.config.gateway.route_paths().collect();
        observers.push(TraceObserver::new(traces.clone(), paths));
    }
    observers.into()
}

/// Accepts connections until the loops drain.
async fn accept(
    socket: kirin_server::Listener,
    server: Rc<Server<Entrance>>,
    stage: watch::Receiver<Stage>,
) {
    let drains = async move { _ = drain_limit(stage).await };
    if let Err(error) = listener::accept_until(socket, server, drains).await {
        tracing::error!(%error, "a listener cannot be used");
    }
}
