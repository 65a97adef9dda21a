//! An event loop: one thread, one tokio runtime, its own sockets, connections, open files and
//! router.
//!
//! Started by the program, once a core. Nothing on the way of a request is shared with another loop
//! but the store and the applications' queues.

use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use kirin_acme::Challenges;
use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::routing::route::PlaceError;
use kirin_gateway::routing::router::Router;
use kirin_http::{
    AccessLog, Forwarding, Limits, ListenAddress, Listener, LogFile, Server, listener,
};
use kirin_proxy::Upstream;
use kirin_store::Store;
use kirin_workers::App;
use tokio::runtime::{Handle, LocalRuntime};
use tokio::sync::{Barrier, oneshot, watch};

use crate::admin::{self, Admin};
use crate::config::check::Site;
use crate::config::tls::TlsSite;
use crate::entrance::Entrance;

/// Address space for a loop's stack; only what is used of it takes memory. Functions of a script
/// that call each other through C take more than the usual 2 MB before Lua finds that they nest too
/// deep.
const STACK_BYTES: usize = 16 << 20;

/// What all loops are to do; only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Accept nothing yet: applications are starting.
    Prepare,
    /// Accept and serve.
    Serve,
    /// End: idle connections soon, busy ones within this time.
    Drain(Duration),
}

/// A bound socket with what its connections need.
pub struct Door {
    /// The socket.
    pub listener: Listener,
    /// Its address as bound.
    pub address: ListenAddress,
    /// Where its access log goes.
    pub log: Option<Arc<LogFile>>,
    /// What its clients may take.
    pub limits: Limits,
    /// Its certificates.
    pub tls: Option<TlsSite>,
    /// The port of https to which clients are sent.
    pub redirect_to_https: Option<u16>,
    /// The proxies in front of it.
    pub forwarding: Option<Forwarding>,
    /// Whether they begin connections with a PROXY header.
    pub proxy_protocol: bool,
}

/// A bound socket of the memcached port.
pub struct StoreDoor {
    /// The socket.
    pub listener: Listener,
    /// Whether clients find another Kirin there when this one ends. They are sent to it at once
    /// then, since what they write here is lost to it. Otherwise they are served until the last
    /// response is sent: applications need the store for it.
    pub has_successor: watch::Receiver<bool>,
    /// Whether another Kirin, whose store this one will get, serves clients there until this one
    /// serves.
    pub has_predecessor: bool,
}

/// What a loop is made of. All of it can go to another thread; what it makes of it cannot.
pub struct Parts {
    /// The configuration.
    pub site: Arc<Site>,
    /// The store, shared by all loops.
    pub store: Arc<Store>,
    /// The applications, shared by all loops.
    pub apps: Vec<Arc<App>>,
    /// The upstreams, shared by all loops.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Where this loop counts what its caches do.
    pub cache_counters: Arc<CacheCounters>,
    /// HTTP listeners.
    pub doors: Vec<Door>,
    /// Listeners for operators, and what answers there.
    pub admin: (Vec<Listener>, Admin),
    /// Listeners of the memcached port.
    pub memcached: Vec<StoreDoor>,
    /// What they share.
    pub memcached_server: Arc<kirin_memcache::Server>,
    /// What authorities of certificates find.
    pub challenges: Arc<Challenges>,
    /// What to do.
    pub stage: watch::Receiver<Stage>,
    /// Where the loops, all of them, meet when they have drained.
    pub drained: Arc<Barrier>,
}

/// A loop that could not start.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// No thread or no epoll.
    #[error("cannot start an event loop: {0}")]
    Start(#[from] std::io::Error),
    /// A place of a route cannot be opened.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The thread ended.
    #[error("an event loop ended before it had started")]
    Gone,
}

/// A running loop.
pub struct EventLoop {
    /// For what is to run on this loop.
    pub handle: Handle,
    parts: oneshot::Sender<Parts>,
    opened: mpsc::Receiver<Result<(), PlaceError>>,
    thread: JoinHandle<()>,
}

impl EventLoop {
    /// Starts a loop on a thread of its own. It runs what is given to its handle, and serves
    /// nothing yet: applications need the handle to be made, and the routes need the applications.
    pub fn start(index: usize) -> Result<Self, LoopError> {
        let (parts, given) = oneshot::channel();
        let (report, opened) = mpsc::channel();
        let (built, handle) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("loop-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // Not a `LocalSet`: that would be a scheduler of tasks inside the scheduler, and
                // each wake-up would pass by both.
                let runtime = match LocalRuntime::new() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        _ = built.send(Err(error));
                        return;
                    }
                };
                _ = built.send(Ok(runtime.handle().clone()));
                runtime.block_on(async move {
                    if let Ok(parts) = given.await {
                        run(parts, &report).await;
                    }
                });
            })?;
        let handle = handle.recv().map_err(|_| LoopError::Gone)??;
        Ok(Self { handle, parts, opened, thread })
    }

    /// Gives the loop what it serves, and waits until its routes are open.
    pub fn serve(self, parts: Parts) -> Result<JoinHandle<()>, LoopError> {
        self.parts.send(parts).map_err(|_| LoopError::Gone)?;
        self.opened.recv().map_err(|_| LoopError::Gone)??;
        Ok(self.thread)
    }
}

async fn run(parts: Parts, report: &mpsc::Sender<Result<(), PlaceError>>) {
    let Parts { site, store, apps, upstreams, cache_counters, .. } = &parts;
    let opened =
        Router::open(&site.gateway, Arc::clone(store), apps, upstreams, Arc::clone(cache_counters));
    let (router, opened) = match opened {
        Ok(router) => (Some(Rc::new(router)), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let (Some(router), Ok(())) = (router, report.send(opened)) else { return };
    let mut stage = parts.stage;
    // An application may fill the store while it loads.
    let memcached: Vec<_> = parts
        .memcached
        .into_iter()
        .map(|door| {
            let server = Arc::clone(&parts.memcached_server);
            let (mut begin, end) = (stage.clone(), leaves(stage.clone(), door.has_successor));
            tokio::task::spawn_local(async move {
                let begins = if door.has_predecessor { Stage::Serve } else { Stage::Prepare };
                if begin.wait_for(|stage| *stage >= begins).await.is_ok() {
                    crate::serve::memcached::serve(door.listener, server, end).await;
                }
            })
        })
        .collect();
    let (listeners, answering) = parts.admin;
    let admin = |listener| {
        tokio::task::spawn_local(admin::serve(listener, answering.clone(), stage.clone()))
    };
    let admin: Vec<_> = listeners.into_iter().map(admin).collect();
    if stage.wait_for(|stage| *stage >= Stage::Serve).await.is_err() {
        return;
    }
    let mut accepting = Vec::new();
    let mut servers = Vec::new();
    for door in parts.doors {
        let entrance = Entrance {
            router: Rc::clone(&router),
            redirect_to_https: door.redirect_to_https,
            challenges: Arc::clone(&parts.challenges),
            hsts: door.tls.as_ref().and_then(|tls| tls.hsts.as_deref()).map(Rc::from),
        };
        let mut server =
            Server::new(Rc::new(entrance), door.address, door.limits, door.log.map(AccessLog::new));
        if let Some(forwarding) = door.forwarding {
            server = server.behind_proxies(forwarding, door.proxy_protocol);
        }
        if let Some(site) = door.tls {
            server = server.with_tls(site.tls);
        }
        let server = Rc::new(server);
        tokio::task::spawn_local(listener::keep_house(Rc::clone(&server)));
        let ending = drains(stage.clone());
        let stop = async move { _ = ending.await };
        let accept = listener::accept_until(door.listener, Rc::clone(&server), stop);
        accepting.push(tokio::task::spawn_local(async move {
            if let Err(error) = accept.await {
                tracing::error!(%error, "a listener cannot be used");
            }
        }));
        servers.push(server);
    }
    let limit = drains(stage).await;
    for accepting in accepting {
        if let Err(error) = accepting.await {
            tracing::error!(%error, "accepting failed");
        }
    }
    let draining: Vec<_> = servers
        .into_iter()
        .map(|server| tokio::task::spawn_local(listener::drain(server, limit)))
        .collect();
    for drained in draining.into_iter().chain(admin) {
        if let Err(error) = drained.await {
            tracing::error!(%error, "draining failed");
        }
    }
    // A response on another loop may come from a worker whose connection is registered with this
    // one's reactor: it would be lost with it.
    let _ = tokio::time::timeout(limit, parts.drained.wait()).await;
    memcached.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Waits for the end, and says how long it may take.
pub async fn drains(mut stage: watch::Receiver<Stage>) -> Duration {
    match stage.wait_for(|stage| matches!(stage, Stage::Drain(_))).await.as_deref() {
        Ok(Stage::Drain(limit)) => *limit,
        _ => Duration::ZERO,
    }
}

/// Waits until it is time for clients of the store to go over to another Kirin.
async fn leaves(stage: watch::Receiver<Stage>, mut has_successor: watch::Receiver<bool>) {
    drains(stage).await;
    if has_successor.wait_for(|has| *has).await.is_err() {
        std::future::pending().await
    }
}
