//! A running upstream: what the event loops share of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use arc_swap::ArcSwap;
use kirin_balance::{Observed, QueueObserved, RetryBudget, Servers, Settings};

use crate::choose::ServerSet;
use crate::config::UpstreamConfig;
use crate::server::Server;
use crate::{health, resolve};

/// Servers that answer the same requests.
pub struct Upstream {
    config: UpstreamConfig,
    /// In the order of the configuration. Exchanged when names have new addresses.
    set: ArcSwap<ServerSet>,
    pub(crate) retries: RetryBudget,
    /// Requests that were sent to another server.
    retried: AtomicU64,
}

impl Upstream {
    /// Looks up the servers' names, and has a task on the current runtime do so again and again. A
    /// name without an address is in the log and has no server until it gets one.
    pub async fn start(config: UpstreamConfig) -> Arc<Self> {
        let now = Instant::now();
        let (balancing, health) = (&config.balancing, &config.health);
        let settings = Settings {
            max_failures: balancing.max_failures,
            ejection_time: balancing.ejection_time,
            healthy_after: health.as_ref().map_or(1, |health| health.healthy_after),
            unhealthy_after: health.as_ref().map_or(1, |health| health.unhealthy_after),
            slow_start: balancing.slow_start,
            queue_length: config.queue.length,
        };
        let known = Arc::new(Servers::new([], settings, now));
        let retries = RetryBudget::new(balancing.retry_percent, now);
        let set = ArcSwap::from_pointee(ServerSet { servers: Vec::new(), known });
        let upstream = Arc::new(Self { config, set, retries, retried: AtomicU64::new(0) });
        resolve::begin(&upstream).await;
        health::begin(&upstream);
        upstream
    }

    /// The name in routes.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// What has been seen of the servers that there are now.
    pub fn observed(&self) -> Vec<Observed> {
        self.set.load().known.observed(Instant::now())
    }

    /// What has been seen of the requests that waited for a server below its limit.
    pub fn observed_queue(&self) -> QueueObserved {
        self.set.load().known.observed_queue()
    }

    /// Requests that were sent to another server, since the start.
    pub fn retried(&self) -> u64 {
        self.retried.load(Relaxed)
    }

    /// Whether a request may be sent to another server; counts it then.
    pub(crate) fn may_retry(&self, now: Instant) -> bool {
        let may = self.retries.take(now);
        if may {
            self.retried.fetch_add(1, Relaxed);
        }
        may
    }

    /// The servers that there are now.
    pub(crate) fn set(&self) -> Arc<ServerSet> {
        self.set.load_full()
    }

    pub(crate) fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// Requests in progress keep the server that they have.
    pub(crate) fn set_servers(&self, servers: Vec<Arc<Server>>) {
        let known = self.set.load().known.exchanged(servers.iter().map(|server| server.settings()));
        let known = Arc::new(known);
        self.set.store(Arc::new(ServerSet { servers, known: Arc::clone(&known) }));
        known.begin_serving();
    }
}
