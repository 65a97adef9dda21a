//! An upstream as one event loop sees it: its connections, buffers and clock.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_balance::SlotClaim;

use crate::cgi::ScriptFiles;
use crate::config::UpstreamConfig;
use crate::deadlines::SocketDeadlines;
use crate::http2_connection::Http2Connections;
use crate::pool::ConnectionPool;
use crate::pooled_buffer::BufferPool;
use crate::selection::{Selection, Selector, ServerSet};
use crate::server::ProxiedServer;
use crate::upstream::Upstream;

/// The state that the requests to one upstream share on one event loop.
pub(crate) struct LocalUpstream {
    pub(crate) upstream: Arc<Upstream>,
    /// The name, for the steps of requests.
    pub(crate) label: Arc<str>,
    selector: Selector,
    /// The connections to each server, by the server's number.
    connections: RefCell<HashMap<u64, Rc<ServerConnections>, foldhash::fast::RandomState>>,
    pub(crate) deadlines: Rc<SocketDeadlines>,
    pub(crate) buffers: BufferPool,
    pub(crate) scripts: ScriptFiles,
    /// Whether the task that sweeps once a second has been started.
    is_swept: Cell<bool>,
}

/// The connections to one server.
#[derive(Default)]
pub(crate) struct ServerConnections {
    /// Idle connections of HTTP/1, FastCGI, SCGI and uwsgi.
    pub(crate) idle: ConnectionPool,
    pub(crate) http2: Http2Connections,
}

impl LocalUpstream {
    pub(crate) fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            label: upstream.name().into(),
            upstream,
            selector: Selector::new(),
            connections: RefCell::default(),
            deadlines: Rc::default(),
            buffers: BufferPool::default(),
            scripts: ScriptFiles::default(),
            is_swept: Cell::new(false),
        }
    }

    pub(crate) fn config(&self) -> &UpstreamConfig {
        self.upstream.config()
    }

    /// Chooses a server of `set` for a request, and claims a slot of it.
    pub(crate) fn select(&self, set: &ServerSet, selection: &Selection) -> SlotClaim {
        self.selector.begin(set, &self.config().balancing, selection)
    }

    /// Returns the servers that the upstream has now.
    pub(crate) fn servers(&self) -> Arc<ServerSet> {
        self.upstream.set()
    }

    /// Returns the connections to `server`.
    pub(crate) fn connections(&self, server: &ProxiedServer) -> Rc<ServerConnections> {
        Rc::clone(self.connections.borrow_mut().entry(server.id).or_default())
    }

    /// Starts the task that looks after the connections once a second, unless it runs already.
    pub(crate) fn start_sweeping(self: &Rc<Self>) {
        if !self.is_swept.replace(true) {
            tokio::task::spawn_local(sweep_every_second(Rc::downgrade(self)));
        }
    }

    /// Ends overdue requests, closes old idle connections, and drops the connections of removed
    /// servers.
    fn sweep(&self) {
        self.deadlines.tick();
        let set = self.servers();
        set.known.queue().serve_all(Instant::now());
        let (now, limits) = (self.deadlines.now(), &self.config().pool);
        self.connections.borrow_mut().retain(|id, connections| {
            connections.idle.sweep(now, limits);
            connections.http2.sweep(
                now,
                limits.idle_time.as_secs(),
                limits.max_age.map(|age| age.as_secs()),
            );
            let is_there = set.servers.iter().any(|server| server.id == *id);
            if !is_there {
                connections.idle.clear();
                connections.http2.retire_all();
            }
            is_there
        });
    }
}

async fn sweep_every_second(local: Weak<LocalUpstream>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    second.tick().await;
    loop {
        second.tick().await;
        let Some(local) = local.upgrade() else { return };
        // A panic in one round must not end the task.
        let _ = kirin_http::panics::catch(|| local.sweep());
    }
}
