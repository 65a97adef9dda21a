//! The HTTP listeners of one event loop, and the routes that they share.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::places::opening::PlaceError;
use kirin_gateway::places::status::StatusPage;
use kirin_gateway::routing::router::{Router, RouterParts};
use kirin_http::ListenAddress;
use kirin_observe::live::observer::{LiveLoop, LiveObserver};
use kirin_observe::metrics::counters::LoopCounters;
use kirin_observe::metrics::observer::RequestMetrics;
use kirin_observe::stage::{Stage, drain_limit};
use kirin_observe::status_page;
use kirin_server::{AccessLog, AccessLogs, InForce, Observers, RequestObserver, Server, listener};
use kirin_traces::TraceObserver;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};

use crate::serve::entrance::Entrance;
use crate::serve::event_loop::LoopResources;
use crate::serve::listener_settings::ListenerSettings;
use crate::serve::listeners::BoundListener;

/// The routes and the listeners of one event loop.
pub struct HttpListeners {
    resources: LoopResources,
    router: Rc<Router>,
    cache_counters: Arc<CacheCounters>,
    metrics: Rc<RequestMetrics>,
    live: Rc<LiveObserver>,
    listeners: Vec<OpenListener>,
}

/// A listener that accepts.
struct OpenListener {
    address: ListenAddress,
    /// Its index in the configuration.
    number: usize,
    in_force: Rc<InForce<Entrance>>,
    accepting: JoinHandle<()>,
}

/// Another configuration, ready to come into force on this event loop.
pub struct Prepared {
    resources: LoopResources,
    router: Rc<Router>,
    /// The servers of the open listeners, in their order.
    servers: Vec<Server<Entrance>>,
    /// The indices of these listeners in the configuration.
    numbers: Vec<usize>,
}

impl HttpListeners {
    /// Opens the routes. The counters are those of this loop.
    pub fn open(
        resources: LoopResources,
        cache_counters: Arc<CacheCounters>,
        counters: &LoopCounters,
        live: Arc<LiveLoop>,
    ) -> Result<Self, PlaceError> {
        let router = open_router(&resources, &cache_counters, None)?;
        let metrics = Rc::new(RequestMetrics::new(counters, &resources.apps));
        let live = Rc::new(LiveObserver::new(live));
        let listeners = Vec::new();
        Ok(Self { resources, router, cache_counters, metrics, live, listeners })
    }

    /// Accepts connections on these sockets until the loops drain.
    pub fn accept(&mut self, bound: Vec<BoundListener>, counters: &LoopCounters) {
        let setting = Setting::of(&self.resources, &self.router, &self.metrics, &self.live);
        for BoundListener { socket, address, number } in bound {
            let Some(server) = setting.server(number, &address, counters) else { continue };
            let in_force = InForce::new(server);
            spawn_local(listener::maintain_connections(Rc::clone(&in_force)));
            let stage = self.resources.stage.clone();
            let accepting = spawn_local(accept(socket, Rc::clone(&in_force), stage));
            self.listeners.push(OpenListener { address, number, in_force, accepting });
        }
    }

    /// Opens the routes of another configuration. Nothing changes before [`HttpListeners::commit`].
    /// `numbers` are the indices of the present listeners in the other configuration.
    pub fn prepare(
        &self,
        resources: LoopResources,
        counters: &LoopCounters,
        numbers: &[Option<usize>],
    ) -> Result<Prepared, PlaceError> {
        let router = open_router(&resources, &self.cache_counters, Some(&self.router))?;
        let setting = Setting::of(&resources, &router, &self.metrics, &self.live);
        let (mut servers, mut new_numbers) = (Vec::new(), Vec::new());
        for open in &self.listeners {
            let number = numbers.get(open.number).copied().flatten().unwrap_or(usize::MAX);
            if let Some(server) = setting.server(number, &open.address, counters) {
                servers.push(server.continuing(&open.in_force.current()));
                new_numbers.push(number);
            }
        }
        Ok(Prepared { router, servers, numbers: new_numbers, resources })
    }

    /// Puts a configuration into force. The next request is answered by it.
    pub fn commit(&mut self, prepared: Prepared) {
        let Prepared { resources, router, servers, numbers } = prepared;
        let before = std::mem::replace(&mut self.resources, resources);
        self.router = router;
        for ((open, server), number) in self.listeners.iter_mut().zip(servers).zip(numbers) {
            open.in_force.replace(server);
            open.number = number;
        }
        self.metrics.forget_other_routes(&before.route_names, &self.resources.route_names);
    }

    /// Waits until nothing is accepted any more, and ends all connections within `limit`.
    pub async fn drain(self, limit: Duration) {
        let (mut accepting, mut servers) = (Vec::new(), Vec::new());
        for open in self.listeners {
            accepting.push(open.accepting);
            servers.push(open.in_force);
        }
        for accepting in accepting {
            if let Err(error) = accepting.await {
                tracing::error!(%error, "accepting failed");
            }
        }
        let drain = |in_force| spawn_local(listener::drain(in_force, limit));
        let draining: Vec<_> = servers.into_iter().map(drain).collect();
        for drained in draining {
            if let Err(error) = drained.await {
                tracing::error!(%error, "draining failed");
            }
        }
    }
}

fn open_router(
    resources: &LoopResources,
    cache_counters: &Arc<CacheCounters>,
    before: Option<&Router>,
) -> Result<Rc<Router>, PlaceError> {
    let admin = resources.admin.clone();
    let sampling = admin.sampling();
    let status_page: StatusPage = Rc::new(move |head| status_page::answer(admin.snapshot(), head));
    let parts = RouterParts {
        store: Arc::clone(&resources.store),
        apps: &resources.apps,
        upstreams: &resources.upstreams,
        counters: Arc::clone(cache_counters),
        sampling: &sampling,
        status_page,
    };
    Router::open(&resources.config.gateway, parts, before).map(Rc::new)
}

/// What the listeners of one event loop have in common under one configuration.
struct Setting<'a> {
    resources: &'a LoopResources,
    router: &'a Rc<Router>,
    route_logs: Rc<[AccessLog]>,
    observers: Rc<[Rc<dyn RequestObserver>]>,
}

impl<'a> Setting<'a> {
    fn of(
        resources: &'a LoopResources,
        router: &'a Rc<Router>,
        metrics: &Rc<RequestMetrics>,
        live: &Rc<LiveObserver>,
    ) -> Self {
        let metrics: Rc<dyn RequestObserver> = Rc::clone(metrics) as _;
        let mut observers = vec![metrics, Rc::clone(live) as _];
        if let Some(traces) = &resources.traces {
            let paths = Arc::clone(&resources.route_paths);
            observers.push(TraceObserver::new(traces.clone(), paths));
        }
        let route_logs = resources.route_logs.iter().cloned().map(AccessLog::new);
        Self { resources, router, route_logs: route_logs.collect(), observers: observers.into() }
    }

    /// Returns the server of the listener with this index in the configuration.
    fn server(
        &self,
        number: usize,
        address: &ListenAddress,
        counters: &LoopCounters,
    ) -> Option<Server<Entrance>> {
        let resources = self.resources;
        let ListenerSettings { config, log, .. } = resources.listeners.get(number)?.clone();
        let entrance = Entrance {
            router: Rc::clone(self.router),
            redirect_to_https: config.redirect_to_https,
            challenges: Arc::clone(&resources.challenges),
            hsts: config.tls.as_ref().and_then(|tls| tls.hsts.as_deref()).map(Rc::from),
        };
        let logs = AccessLogs::new(log.map(AccessLog::new), Rc::clone(&self.route_logs));
        let observers = Observers { logs, others: Rc::clone(&self.observers) };
        let mut server = Server::new(Rc::new(entrance), address.clone(), config.limits, observers);
        if let Some(connections) = counters.connections.get(number) {
            server = server.counting(Arc::clone(connections));
        }
        if let Some(forwarding) = config.forwarding {
            server = server.behind_proxies(forwarding, config.proxy_protocol);
        }
        if let Some(traces) = &resources.config.traces {
            server = server.traced(traces.sampling);
        }
        if let Some(tls) = config.tls {
            server = server.with_tls(tls.tls);
        }
        Some(server)
    }
}

/// Accepts connections until the loops drain.
async fn accept(
    socket: kirin_server::Listener,
    in_force: Rc<InForce<Entrance>>,
    stage: watch::Receiver<Stage>,
) {
    let drains = async move { _ = drain_limit(stage).await };
    if let Err(error) = listener::accept_until(socket, in_force, drains).await {
        tracing::error!(%error, "a listener cannot be used");
    }
}
