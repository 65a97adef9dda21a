//! The memcached port on an event loop.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use kirin_memcache::MemcachedServer;
use kirin_observe::stage::{Stage, drain_limit, wait_to_serve};
use kirin_server::Listener;
use tokio::sync::{Notify, watch};

use crate::serve::listeners::MemcachedListener;

/// Serves the memcached clients of one listener, from its first stage until its clients have to
/// leave, `loop_ends` is notified, or the task is dropped.
pub async fn serve(
    listener: MemcachedListener,
    server: Arc<MemcachedServer>,
    mut stage: watch::Receiver<Stage>,
    loop_ends: Rc<Notify>,
) {
    let leave = clients_leave(stage.clone(), listener.has_successor);
    let clients_leave = async move {
        tokio::select! {
            () = leave => {}
            () = loop_ends.notified() => {}
        }
    };
    // An application may fill the store while it loads.
    if listener.has_predecessor && !wait_to_serve(&mut stage).await {
        return;
    }
    match into_tokio(listener.socket) {
        Ok(socket) => kirin_memcache::serve(socket, server, clients_leave).await,
        Err(error) => tracing::error!(%error, "the memcached port cannot be used"),
    }
}

/// Waits until clients have to connect to another Kirin.
async fn clients_leave(stage: watch::Receiver<Stage>, mut has_successor: watch::Receiver<bool>) {
    drain_limit(stage).await;
    if has_successor.wait_for(|has_successor| *has_successor).await.is_err() {
        std::future::pending().await
    }
}

fn into_tokio(socket: Listener) -> io::Result<kirin_memcache::MemcachedSocket> {
    Ok(match socket {
        Listener::Tcp(socket) => {
            kirin_memcache::MemcachedSocket::Tcp(tokio::net::TcpListener::from_std(socket)?)
        }
        Listener::Unix(socket, _) => {
            kirin_memcache::MemcachedSocket::Unix(tokio::net::UnixListener::from_std(socket)?)
        }
    })
}
