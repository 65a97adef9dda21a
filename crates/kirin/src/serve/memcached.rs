//! The memcached port on an event loop.

use std::io;
use std::sync::Arc;

use kirin_http::Listener;
use kirin_memcache::Server;

/// Serves memcached clients until `stop` completes, which ends their connections, or the task is
/// dropped.
pub async fn serve(listener: Listener, server: Arc<Server>, stop: impl Future<Output = ()>) {
    match into_tokio(listener) {
        Ok(listener) => kirin_memcache::serve(listener, server, stop).await,
        Err(error) => tracing::error!(%error, "the memcached port cannot be used"),
    }
}

fn into_tokio(listener: Listener) -> io::Result<kirin_memcache::Listener> {
    Ok(match listener {
        Listener::Tcp(listener) => {
            kirin_memcache::Listener::Tcp(tokio::net::TcpListener::from_std(listener)?)
        }
        Listener::Unix(listener, _) => {
            kirin_memcache::Listener::Unix(tokio::net::UnixListener::from_std(listener)?)
        }
    })
}
