//! A running upstream, as all event loops share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use arc_swap::ArcSwap;
use kirin_balance::{QueueStatus, RetryBudget, ServerChange, ServerStatus, Servers, Settings};

use crate::config::UpstreamConfig;
use crate::selection::ServerSet;
use crate::server::ProxiedServer;
use crate::{health, resolve};

/// Servers that answer the same requests.
pub struct Upstream {
    config: UpstreamConfig,
    /// The servers, in the order of the configuration. Replaced when names have new addresses.
    set: ArcSwap<ServerSet>,
    pub(crate) retries: RetryBudget,
    /// Requests that were sent to another server.
    retried: AtomicU64,
}

impl Upstream {
    /// Starts an upstream: looks up the names of its servers, and starts the tasks that repeat the
    /// lookup and check the health. A name without an address is logged, and has no server until it
    /// gets one.
    pub async fn start(config: UpstreamConfig) -> Arc<Self> {
        Self::begin(config, None).await
    }

    /// Starts an upstream with another configuration of `before`. A server that is in both keeps
    /// its state: requests in flight, failures, health, times. Requests that wait for `before` wait
    /// on.
    pub async fn following(config: UpstreamConfig, before: &Self) -> Arc<Self> {
        Self::begin(config, Some(&before.set())).await
    }

    async fn begin(config: UpstreamConfig, before: Option<&ServerSet>) -> Arc<Self> {
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
        let known = match before {
            Some(before) => before.known.continued(settings),
            None => Servers::new([], settings, now),
        };
        let servers = before.map(|before| before.servers.clone()).unwrap_or_default();
        let retries = RetryBudget::new(balancing.retry_percent, now);
        let set = ArcSwap::from_pointee(ServerSet { servers, known: Arc::new(known) });
        let upstream = Arc::new(Self { config, set, retries, retried: AtomicU64::new(0) });
        resolve::begin(&upstream).await;
        health::begin(&upstream);
        upstream
    }

    /// Returns the name in routes.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns the state of each present server.
    pub fn server_status(&self) -> Vec<ServerStatus> {
        self.set.load().known.server_status(Instant::now())
    }

    /// Makes an operator's change to a server, which is named as its status shows it, or by its
    /// address alone. Returns how many servers have this name.
    pub fn change_server(&self, server: &str, change: ServerChange) -> usize {
        self.set.load().known.change(server, change, Instant::now())
    }

    /// Returns the state of the queue.
    pub fn queue_status(&self) -> QueueStatus {
        self.set.load().known.queue_status()
    }

    /// Returns how many requests were sent to another server, since the start.
    pub fn retried(&self) -> u64 {
        self.retried.load(Relaxed)
    }

    /// Returns whether a request may be sent to another server, and counts it then.
    pub(crate) fn may_retry(&self, now: Instant) -> bool {
        let may = self.retries.take(now);
        if may {
            self.retried.fetch_add(1, Relaxed);
        }
        may
    }

    /// Returns the present servers.
    pub(crate) fn set(&self) -> Arc<ServerSet> {
        self.set.load_full()
    }

    pub(crate) fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// Replaces the servers. Requests in progress keep their server.
    pub(crate) fn set_servers(&self, servers: Vec<Arc<ProxiedServer>>) {
        let known = self.set.load().known.exchanged(servers.iter().map(|server| server.settings()));
        let known = Arc::new(known);
        self.set.store(Arc::new(ServerSet { servers, known: Arc::clone(&known) }));
        known.begin_serving();
    }
}
