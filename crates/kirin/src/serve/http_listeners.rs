//! The HTTP listeners of one event loop, and the routes that they share.

use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::places::opening::PlaceError;
use kirin_gateway::places::status::StatusPage;
use kirin_gateway::routing::router::{Router, RouterParts};
use kirin_http::ListenAddress;
use kirin_observe::live::observer::{LiveLoop, LiveObserver};
use kirin_observe::metrics::counters::LoopCounters;
use kirin_observe::metrics::observer::RequestMetrics;
use kirin_observe::stage::Stage;
use kirin_observe::status_page;
use kirin_server::{
    AccessLog, AccessLogs, DatagramListener, EndpointEnd, IdleConnection, InForce, Limits,
    Observers, RequestObserver, Server, datagrams, listener,
};
use kirin_traces::TraceObserver;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_local};

use crate::serve::entrance::Entrance;
use crate::serve::event_loop::LoopResources;
use crate::serve::handed::{self, ConnectionSender};
use crate::serve::listener_settings::ListenerSettings;
use crate::serve::listeners::BoundListener;

/// How long the responses of a closed listener may take: a year.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The routes and the listeners of one event loop.
pub struct HttpListeners {
    resources: LoopResources,
    router: Rc<Router>,
    cache_counters: Arc<CacheCounters>,
    metrics: Rc<RequestMetrics>,
    live: Rc<LiveObserver>,
    listeners: Vec<OpenListener>,
    /// Those that accept no more. Their connections end when their responses have, and hold their
    /// configuration until then.
    closing: Vec<Weak<InForce<Entrance>>>,
}

/// A listener that accepts.
struct OpenListener {
    address: ListenAddress,
    /// Its index in the configuration.
    number: usize,
    in_force: Rc<InForce<Entrance>>,
    accepting: JoinHandle<()>,
    /// Serves HTTP/3.
    datagrams: Vec<JoinHandle<()>>,
    /// Whether its clients are told of HTTP/3. Another socket of the listener may serve it.
    has_http3: bool,
    /// Ends the accepting.
    close: watch::Sender<bool>,
    upkeep: JoinHandle<()>,
}

/// Another configuration, ready to come into force on this event loop.
pub struct Prepared {
    resources: LoopResources,
    router: Rc<Router>,
    /// The servers of the open listeners, in their order, and the indices of these listeners in the
    /// configuration. `None` for a listener that closes.
    servers: Vec<Option<(usize, Server<Entrance>)>>,
    /// The listeners that open.
    opening: Vec<(BoundListener, Server<Entrance>)>,
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
        let metrics = Rc::new(RequestMetrics::new(counters, resources.apps.iter()));
        let live = Rc::new(LiveObserver::new(live));
        let (listeners, closing) = (Vec::new(), Vec::new());
        Ok(Self { resources, router, cache_counters, metrics, live, listeners, closing })
    }

    /// Accepts connections on these sockets until the loops drain.
    pub fn accept(&mut self, bound: Vec<BoundListener>, counters: &LoopCounters) {
        let setting = Setting::of(&self.resources, &self.router, &self.metrics, &self.live);
        for bound in bound {
            if let Some(server) = setting.server_of(&bound, counters) {
                let stage = self.resources.stage.clone();
                self.listeners.push(OpenListener::new(bound, server, stage));
            }
        }
    }

    /// Opens the routes of another configuration. Nothing changes before [`HttpListeners::commit`].
    /// `numbers` are the indices of the present listeners in the other configuration, and `bound`
    /// are the sockets of those that it has besides.
    pub fn prepare(
        &self,
        resources: LoopResources,
        counters: &LoopCounters,
        numbers: &[Option<usize>],
        bound: Vec<BoundListener>,
    ) -> Result<Prepared, PlaceError> {
        let router = open_router(&resources, &self.cache_counters, Some(&self.router))?;
        let setting = Setting::of(&resources, &router, &self.metrics, &self.live);
        let continued = |open: &OpenListener| {
            let number = numbers.get(open.number).copied().flatten()?;
            let server = setting.server(number, &open.address, open.has_http3, counters)?;
            Some((number, server.continuing(&open.in_force.current())))
        };
        let servers = self.listeners.iter().map(continued).collect();
        let opening = bound.into_iter().filter_map(|bound| {
            let server = setting.server_of(&bound, counters)?;
            Some((bound, server))
        });
        let opening = opening.collect();
        Ok(Prepared { router, servers, opening, resources })
    }

    /// Puts a configuration into force. The next request is answered by it.
    pub fn commit(&mut self, prepared: Prepared) {
        let Prepared { resources, router, servers, opening } = prepared;
        let before = std::mem::replace(&mut self.resources, resources);
        self.router = router;
        self.closing.retain(|closing| closing.strong_count() > 0);
        let present = std::mem::take(&mut self.listeners);
        for (mut open, server) in present.into_iter().zip(servers) {
            match server {
                Some((number, server)) => {
                    open.in_force.replace(server);
                    open.number = number;
                    self.listeners.push(open);
                }
                None => self.closing.push(open.close()),
            }
        }
        for (bound, server) in opening {
            let stage = self.resources.stage.clone();
            self.listeners.push(OpenListener::new(bound, server, stage));
        }
        self.metrics.forget_other_routes(&before.route_names, &self.resources.route_names);
        self.metrics.set_apps(before.apps.iter().chain(&self.resources.apps));
    }

    /// Goes on to serve a connection of the listener with this bound address, which another process
    /// has handed over. Closes it if there is no such listener any more.
    pub fn adopt(&self, address: &str, connection: IdleConnection) {
        let listener = self.listeners.iter().find(|open| open.address.to_string() == address);
        if let Some(listener) = listener
            && let Err(error) = listener::adopt(&listener.in_force, connection)
        {
            tracing::debug!(address, %error, "a connection that was handed over is lost");
        }
    }

    /// Waits until nothing is accepted any more, and ends all connections within `limit`. Idle ones
    /// go to `successor`, if there is one.
    pub async fn drain(self, limit: Duration, successor: Option<Rc<ConnectionSender>>) {
        let (mut accepting, mut servers, mut sending) = (Vec::new(), Vec::new(), Vec::new());
        let mut datagrams = Vec::new();
        for open in self.listeners {
            accepting.push(open.accepting);
            datagrams.extend(open.datagrams);
            let idle = successor.as_ref().map(|successor| {
                // Each connection on its way takes a descriptor more.
                let (idle, handed) = mpsc::channel(1);
                let address = open.address.to_string();
                let send = handed::send_http(address, handed, Rc::clone(successor));
                sending.push(spawn_local(send));
                idle
            });
            servers.push((open.in_force, idle));
        }
        for accepting in accepting {
            if let Err(error) = accepting.await {
                tracing::error!(%error, "accepting failed");
            }
        }
        let closing = self.closing.iter().filter_map(Weak::upgrade);
        servers.extend(closing.map(|in_force| (in_force, None)));
        let drain = |(in_force, idle)| spawn_local(listener::drain(in_force, limit, idle));
        let draining: Vec<_> = servers.into_iter().map(drain).collect();
        let began = Instant::now();
        for drained in draining {
            if let Err(error) = drained.await {
                tracing::error!(%error, "draining failed");
            }
        }
        for served in datagrams {
            // It ends within the limit, too.
            if let Err(error) = served.await {
                tracing::error!(%error, "HTTP/3 failed");
            }
        }
        // A successor that hangs does not keep this program.
        let left = limit.saturating_sub(began.elapsed());
        let sent = async {
            for sent in sending {
                // It has no panic.
                _ = sent.await;
            }
        };
        _ = tokio::time::timeout(left, sent).await;
    }
}

impl OpenListener {
    /// Accepts connections until the listener closes or the loops drain.
    fn new(bound: BoundListener, server: Server<Entrance>, stage: watch::Receiver<Stage>) -> Self {
        let BoundListener { socket, address, number, is_inherited, has_http3, datagrams } = bound;
        let in_force = InForce::new(server);
        let upkeep = spawn_local(listener::maintain_connections(Rc::clone(&in_force)));
        let (close, closes) = watch::channel(false);
        let serve = |socket| {
            let ends = stops_datagrams(stage.clone(), closes.clone());
            spawn_local(serve_datagrams(socket, Rc::clone(&in_force), ends))
        };
        let datagrams = datagrams.into_iter().map(serve).collect();
        let ends = stops_accepting(stage, closes, is_inherited);
        let accepting = spawn_local(accept(socket, Rc::clone(&in_force), ends));
        Self { address, number, in_force, accepting, datagrams, has_http3, close, upkeep }
    }

    /// Accepts no more. Connections end: idle ones soon, and others when their responses have, for
    /// which there is no limit but that of the program's own end.
    fn close(self) -> Weak<InForce<Entrance>> {
        let Self { in_force, accepting, datagrams, close, upkeep, .. } = self;
        let closing = Rc::downgrade(&in_force);
        spawn_local(async move {
            _ = close.send(true);
            if let Err(error) = accepting.await {
                tracing::error!(%error, "accepting failed");
            }
            for served in datagrams {
                if let Err(error) = served.await {
                    tracing::error!(%error, "HTTP/3 failed");
                }
            }
            listener::drain(in_force, NO_LIMIT, None).await;
            upkeep.abort();
        });
        closing
    }
}

/// Returns the value of Alt-Svc that names the UDP port of a listener. Browsers remember it for a
/// day.
fn alt_svc(address: &ListenAddress) -> Option<Rc<str>> {
    let ListenAddress::Tcp(address) = address else { return None };
    Some(format!("h3=\":{}\"; ma=86400", address.port()).into())
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
        store: resources.store.clone(),
        apps: &resources.apps,
        upstreams: &resources.upstreams,
        counters: Arc::clone(cache_counters),
        sampling: &sampling,
        maintenance: Arc::clone(&resources.maintenance),
        status_page,
        in_use: Arc::clone(&resources.in_use),
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

    /// Returns the server of a listener that opens.
    fn server_of(
        &self,
        bound: &BoundListener,
        counters: &LoopCounters,
    ) -> Option<Server<Entrance>> {
        self.server(bound.number, &bound.address, bound.has_http3, counters)
    }

    /// Returns the server of the listener with this index in the configuration.
    fn server(
        &self,
        number: usize,
        address: &ListenAddress,
        has_http3: bool,
        counters: &LoopCounters,
    ) -> Option<Server<Entrance>> {
        let resources = self.resources;
        let ListenerSettings { config, log, .. } = resources.listeners.get(number)?.clone();
        let limits = Limits { blocked: Arc::clone(&resources.blocked), ..config.limits };
        let entrance = Entrance {
            router: Rc::clone(self.router),
            blocked: Arc::clone(&resources.blocked),
            redirect_to_https: config.redirect_to_https,
            challenges: Arc::clone(&resources.challenges),
            alt_svc: alt_svc(address).filter(|_| has_http3 && config.tls.is_some()),
            hsts: config.tls.as_ref().and_then(|tls| tls.hsts.as_deref()).map(Rc::from),
        };
        let logs = AccessLogs::new(log.map(AccessLog::new), Rc::clone(&self.route_logs));
        let observers = Observers { logs, others: Rc::clone(&self.observers) };
        let mut server = Server::new(Rc::new(entrance), address.clone(), limits, observers);
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
            let challenges = Arc::clone(&resources.challenges);
            server = server.with_tls(tls.tls).with_challenge_certificates(challenges);
        }
        Some(server)
    }
}

/// Waits until a listener accepts no more. Returns how long clients that have connected may begin a
/// request: others accept them if the socket stays open.
async fn stops_accepting(
    mut stage: watch::Receiver<Stage>,
    mut closes: watch::Receiver<bool>,
    is_inherited: bool,
) -> Duration {
    let drains = stage.wait_for(|stage| *stage > Stage::Serve);
    tokio::select! {
        stage = drains => match stage.as_deref() {
            Ok(Stage::Drain(limit)) if !is_inherited => *limit,
            _ => Duration::ZERO,
        },
        // Without this word, the program ends, and the listener is dropped.
        Ok(_) = closes.wait_for(|closes| *closes) => NO_LIMIT,
    }
}

/// Waits until a listener serves no new HTTP/3 connections.
async fn stops_datagrams(
    mut stage: watch::Receiver<Stage>,
    mut closes: watch::Receiver<bool>,
) -> EndpointEnd {
    let drains = stage.wait_for(|stage| *stage > Stage::Serve);
    let (limit, has_successor) = tokio::select! {
        stage = drains => match stage.as_deref() {
            Ok(Stage::Drain(limit)) => (*limit, false),
            Ok(Stage::HandOver(limit)) => (*limit, true),
            _ => (Duration::ZERO, false),
        },
        Ok(_) = closes.wait_for(|closes| *closes) => (NO_LIMIT, false),
    };
    EndpointEnd { limit, has_successor }
}

async fn serve_datagrams(
    socket: DatagramListener,
    in_force: Rc<InForce<Entrance>>,
    ends: impl Future<Output = EndpointEnd>,
) {
    if let Err(error) = datagrams::serve(socket, in_force, ends).await {
        tracing::error!(%error, "a UDP socket cannot be used");
    }
}

async fn accept(
    socket: kirin_server::Listener,
    in_force: Rc<InForce<Entrance>>,
    ends: impl Future<Output = Duration>,
) {
    if let Err(error) = listener::accept_until(socket, in_force, ends).await {
        tracing::error!(%error, "a listener cannot be used");
    }
}
