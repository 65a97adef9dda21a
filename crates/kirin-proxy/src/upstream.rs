//! A running upstream: what the event loops share of it.

use crate::config::UpstreamConfig;
use crate::resolve;
use crate::server::Server;
use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;

/// Servers that answer the same requests.
pub struct Upstream {
    config: UpstreamConfig,
    /// In the order of the configuration. Exchanged when names have new addresses.
    servers: ArcSwap<Vec<Arc<Server>>>,
}

impl Upstream {
    /// Looks up the servers' names, and has a task on the current runtime do so again and again. A name without an address is
    /// in the log and has no server until it gets one.
    pub async fn start(config: UpstreamConfig) -> Arc<Self> {
        let upstream = Arc::new(Self { config, servers: ArcSwap::default() });
        resolve::begin(&upstream).await;
        upstream
    }

    /// The name in routes.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The servers that there are now.
    pub fn servers(&self) -> Guard<Arc<Vec<Arc<Server>>>> {
        self.servers.load()
    }

    pub(crate) fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// Requests in progress keep the server that they have.
    pub(crate) fn set_servers(&self, servers: Vec<Arc<Server>>) {
        self.servers.store(Arc::new(servers));
    }
}
