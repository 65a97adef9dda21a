//! The bound listeners of the program, for each event loop: those of HTTP, of operators, and of
//! memcached clients.
//!
//! The main thread opens them at the start, before the loops run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kirin_config::{Config, ListenerConfig};
use kirin_http::ListenAddress;
use kirin_observe::client_accounts::ClientAccounts;
use kirin_server::listener::ListenError;
use kirin_server::{
    BindOptions, ConnectionAdmission, ConnectionCount, Limits as HttpLimits, Listener, OpenLog,
};
use tokio::sync::watch;

use crate::serve::logs::{self, LogError, Logs};
use crate::serve::sockets::{SocketError, Sockets};

/// A bound socket for HTTP, with the settings of its connections.
pub struct BoundListener {
    /// The socket.
    pub socket: Listener,
    /// The address of the socket, with the port that was free if any port was asked for.
    pub address: ListenAddress,
    /// The access log.
    pub log: Option<OpenLog>,
    /// The index of the listener in the configuration.
    pub number: usize,
    /// The settings; their limits count the connections and bytes of all loops.
    pub config: ListenerConfig,
}

/// A bound socket for memcached clients.
pub struct MemcachedListener {
    /// The socket.
    pub socket: Listener,
    /// Whether clients find another Kirin on this socket when this one ends. They are disconnected
    /// at once then, since this program's store is lost. Otherwise they are served until the last
    /// response is sent, because applications need the store for it.
    pub has_successor: watch::Receiver<bool>,
    /// Whether another Kirin serves clients on this socket until this one serves, and then hands
    /// its store over.
    pub has_predecessor: bool,
}

/// The listeners of one event loop.
#[derive(Default)]
pub struct LoopListeners {
    /// Listeners for HTTP.
    pub http: Vec<BoundListener>,
    /// The access logs of routes, by their numbers.
    pub route_logs: Vec<OpenLog>,
    /// Listeners for operators. Only the first loop has any.
    pub admin: Vec<Listener>,
    /// The default admin socket, if another program still has it.
    pub taken_admin: Option<PathBuf>,
    /// Listeners for metrics alone. Only the first loop has any.
    pub metrics: Vec<Listener>,
    /// Listeners for memcached clients.
    pub memcached: Vec<MemcachedListener>,
}

/// A listener that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenerOpenError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// An inherited socket cannot be used, or was expected and is missing.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// An access log cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Opens the HTTP listeners of `config` for each of `loops`. Returns their addresses as clients
/// write them.
pub fn open_http(
    config: &Config,
    loops: &mut [LoopListeners],
    sockets: &mut Sockets,
    logs: &mut Logs,
    connections: &Arc<ConnectionCount>,
    accounts: &ClientAccounts,
) -> Result<Vec<String>, ListenerOpenError> {
    let mut urls = Vec::new();
    for log in &config.route_logs {
        let log = logs::open(log, config.user.as_ref(), logs)?;
        for of_loop in loops.iter_mut() {
            of_loop.route_logs.push(log.clone());
        }
    }
    let listeners = config.listeners.iter().zip(&accounts.listeners);
    for (number, (listener, client_bytes)) in listeners.enumerate() {
        let log = match &listener.access_log {
            None => None,
            Some(log) => Some(logs::open(log, config.user.as_ref(), logs)?),
        };
        let admission =
            ConnectionAdmission::new(Arc::clone(connections), listener.connections_per_address);
        let limits = HttpLimits {
            admission: Some(admission),
            client_bytes: Some(Arc::clone(client_bytes)),
            ..listener.limits.clone()
        };
        let config = ListenerConfig { limits, ..listener.clone() };
        let opened = sockets.open(&config.address, loops.len(), &BindOptions::default())?;
        for (of_loop, sockets) in loops.iter_mut().zip(opened.by_loop) {
            for socket in sockets {
                let failed = |error| ListenError::Io(config.address.clone(), error);
                let address = socket.address().map_err(failed)?;
                let url = url(&address, config.tls.is_some());
                if !urls.contains(&url) {
                    urls.push(url);
                }
                let (log, config) = (log.clone(), config.clone());
                of_loop.http.push(BoundListener { socket, address, log, number, config });
            }
        }
    }
    Ok(urls)
}

/// Opens the memcached port for each of `loops`, and returns its TCP addresses as they are bound.
/// `has_successor` tells when another Kirin serves on it; `has_predecessor` is whether one serves
/// there now.
pub fn open_memcached(
    config: &Config,
    loops: &mut [LoopListeners],
    sockets: &mut Sockets,
    has_successor: &watch::Receiver<bool>,
    has_predecessor: bool,
) -> Result<Vec<SocketAddr>, ListenerOpenError> {
    let mut bound = Vec::new();
    for address in &config.store.memcached {
        let opened = sockets.open(address, loops.len(), &config.store.bind)?;
        // Whoever handed the socket over serves it when this program ends.
        let has_successor =
            if opened.is_inherited { watch::channel(true).1 } else { has_successor.clone() };
        let has_predecessor = has_predecessor && opened.is_inherited;
        for socket in opened.by_loop.iter().flatten() {
            let failed = |error| ListenError::Io(address.clone(), error);
            match socket.address().map_err(failed)? {
                ListenAddress::Tcp(address) if !bound.contains(&address) => bound.push(address),
                _ => {}
            }
        }
        for (of_loop, sockets) in loops.iter_mut().zip(opened.by_loop) {
            of_loop.memcached.extend(sockets.into_iter().map(|socket| MemcachedListener {
                socket,
                has_successor: has_successor.clone(),
                has_predecessor,
            }));
        }
        tracing::debug!("memcached protocol on {address}");
    }
    Ok(bound)
}

/// Opens the unix socket on which the program's own applications find the store.
pub fn open_app_store(path: &Path, loops: &mut [LoopListeners]) -> Result<(), ListenerOpenError> {
    let address = ListenAddress::Unix(path.to_owned());
    let sockets = Listener::bind(&address, loops.len())?;
    for (of_loop, socket) in loops.iter_mut().zip(sockets) {
        let has_successor = watch::channel(false).1;
        of_loop.memcached.push(MemcachedListener { socket, has_successor, has_predecessor: false });
    }
    Ok(())
}

fn url(address: &ListenAddress, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    match address {
        ListenAddress::Tcp(address) => format!("{scheme}://{address}/"),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}
