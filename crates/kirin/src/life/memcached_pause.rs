//! A pause of all memcached clients, while the last changes go to a new program.

use std::sync::Arc;

use kirin_memcache::MemcachedServer;
use tokio::runtime::Handle;

/// A pause. It ends when this is dropped.
pub struct MemcachedPause(Arc<MemcachedServer>);

impl MemcachedPause {
    /// Begins a pause. When this returns, no command is being carried out on any event loop.
    pub async fn begin(server: &Arc<MemcachedServer>, loops: &[Handle]) -> Self {
        let pause = Self(Arc::clone(server));
        server.pause();
        for event_loop in loops {
            // A command is carried out between two turns of its loop. A loop that has ended does
            // nothing any more.
            _ = event_loop.spawn(async {}).await;
        }
        pause
    }
}

impl Drop for MemcachedPause {
    fn drop(&mut self) {
        self.0.resume();
    }
}
