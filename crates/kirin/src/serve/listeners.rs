//! The bound listeners of the program, for each event loop: those of HTTP, of operators, and of
//! memcached clients.
//!
//! The main thread opens them at the start, before the loops run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kirin_config::{Config, Http3, ListenerConfig};
use kirin_http::ListenAddress;
use kirin_server::listener::ListenError;
use kirin_server::{BindOptions, DatagramListener, Listener};
use kirin_sockets::Starter;
use tokio::sync::watch;

use crate::serve::sockets::{SocketError, SocketNumber, Sockets};

/// A bound socket for HTTP.
pub struct BoundListener {
    /// The socket.
    pub socket: Listener,
    /// The address of the socket, with the port that was free if any port was asked for.
    pub address: ListenAddress,
    /// The index of the listener in the configuration.
    pub number: usize,
    /// Whether the process that gave the socket has it too, and gives it to the next program.
    pub is_inherited: bool,
    /// Whether the listener has HTTP/3.
    pub has_http3: bool,
    /// The UDP sockets for HTTP/3. Another socket of the same listener may have them.
    pub datagrams: Vec<DatagramListener>,
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
}

/// The sockets of one HTTP listener, as the main thread knows them.
#[derive(Clone, Debug)]
pub struct ListenerSockets {
    /// Their number.
    pub number: SocketNumber,
    /// The addresses at which they listen.
    pub addresses: Vec<ListenAddress>,
    /// Whether they were inherited.
    pub is_inherited: bool,
}

impl ListenerSockets {
    /// Returns the addresses as clients write them.
    pub fn urls(&self, is_tls: bool) -> impl Iterator<Item = String> {
        self.addresses.iter().map(move |address| url(address, is_tls))
    }
}

/// Opens the sockets of an HTTP listener, which has the index `number` in the configuration, for
/// each of `loops`.
pub fn open_http(
    number: usize,
    listener: &ListenerConfig,
    loops: &mut [Vec<BoundListener>],
    sockets: &mut Sockets,
) -> Result<ListenerSockets, ListenerOpenError> {
    let wanted = &listener.address;
    let http3 = http3_of(listener, sockets.starter());
    let opened = sockets.open(wanted, loops.len(), &BindOptions::default())?;
    let (opened_number, is_inherited) = (opened.number, opened.is_inherited);
    let loop_count = loops.len();
    let mut datagrams: Vec<(ListenAddress, Vec<Vec<DatagramListener>>)> = Vec::new();
    for (at, (of_loop, opened_sockets)) in loops.iter_mut().zip(opened.by_loop).enumerate() {
        for socket in opened_sockets {
            let failed = |error| ListenError::Io(wanted.clone(), error);
            let address = socket.address().map_err(failed)?;
            if !datagrams.iter().any(|(opened, _)| *opened == address) {
                let bound = match &address {
                    ListenAddress::Tcp(tcp) if http3 != Http3::Off => {
                        sockets.datagrams().open(opened_number, *tcp, loop_count, is_inherited)
                    }
                    _ => Ok(Vec::new()),
                };
                let bound = bound.or_else(|error| unless_required(http3, error))?;
                datagrams.push((address.clone(), bound));
            }
            let mut of_address = datagrams.iter_mut().filter(|(opened, _)| *opened == address);
            let of_address = of_address.next().and_then(|(_, by_loop)| by_loop.get_mut(at));
            of_loop.push(BoundListener {
                socket,
                address,
                number,
                is_inherited,
                has_http3: of_address.is_some(),
                datagrams: of_address.map(std::mem::take).unwrap_or_default(),
            });
        }
    }
    let addresses = datagrams.into_iter().map(|(address, _)| address).collect();
    Ok(ListenerSockets { number: opened_number, addresses, is_inherited })
}

/// Returns no sockets, with a warning, if HTTP/3 need not be there. Otherwise returns the error.
fn unless_required(
    http3: Http3,
    error: ListenError,
) -> Result<Vec<Vec<DatagramListener>>, ListenError> {
    if http3 == Http3::Required {
        return Err(error);
    }
    tracing::warn!("{error}; HTTP/3 is off there; `tls.http3 = false` ends this warning");
    Ok(Vec::new())
}

/// Returns whether a listener serves HTTP/3. `starter` is that of its sockets.
pub fn http3_of(listener: &ListenerConfig, starter: Option<Starter>) -> Http3 {
    let http3 = listener.tls.as_ref().map_or(Http3::Off, |tls| tls.http3);
    // Clients come through a proxy, which has no UDP; or `start_server` hands no UDP socket over,
    // and the clients of a program that ends would lose their connections.
    let is_unfit = listener.proxy_protocol || starter == Some(Starter::ServerStarter);
    if http3 == Http3::IfPossible && is_unfit { Http3::Off } else { http3 }
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
