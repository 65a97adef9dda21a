//! Client connections that go from one program to the next in an upgrade, with their sockets: idle
//! ones of HTTP without TLS, and those of memcached clients between two commands.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kirin_http::{ListenAddress, Peer};
use kirin_server::IdleConnection;
use kirin_sockets::descriptor_passing::{self, DescriptorSender};
use rustix::net::SocketAddrUnix;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::serve::http_listeners::HttpListeners;

/// How long a connection waits for the changes of the store that were made before it.
const ROUND_LIMIT: Duration = Duration::from_secs(1);

/// The time between two looks for them.
const ROUND_INTERVAL: Duration = Duration::from_micros(200);

/// How the client of a PROXY header is written that has no address.
const UNIX: &str = "unix:";

/// What a program says about a connection that it hands over.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HandedMessage {
    /// An idle connection of an HTTP listener.
    Http {
        /// The address of the listener, as it is bound.
        listener: String,
        /// The client that a PROXY header has named: `ADDRESS:PORT` or `unix:`.
        announced: Option<String>,
        /// Whether a request has come on it.
        has_begun: bool,
    },
    /// A memcached client between two commands.
    Memcached {
        /// The address to which it has connected. `None`: it is an application of the program.
        listener: Option<String>,
    },
}

/// A message with a connection, and the round of changes of the store before which the new program
/// must not serve it: what the client has written by it is in there.
type NumberedMessage = (u64, HandedMessage);

/// Where connections go in an upgrade.
pub struct SuccessorSocket {
    /// The socket.
    pub socket: UnixStream,
    /// The number of rounds of changes of the store that have begun.
    pub rounds: Arc<AtomicU64>,
}

/// The end of the socket by which an event loop hands over its connections.
pub struct ConnectionSender {
    sender: DescriptorSender,
    rounds: Arc<AtomicU64>,
}

impl ConnectionSender {
    /// Returns the end of `successor` of an event loop. Must be called on that loop.
    pub fn new(successor: &SuccessorSocket) -> io::Result<Self> {
        let sender = DescriptorSender::new(successor.socket.try_clone()?)?;
        Ok(Self { sender, rounds: Arc::clone(&successor.rounds) })
    }

    /// Sends a connection. Returns false if the new program takes none any more.
    async fn send(&self, message: HandedMessage, descriptor: &OwnedFd) -> bool {
        // The round that is going on may have looked at the store already.
        let message: NumberedMessage = (self.rounds.load(Ordering::Acquire) + 1, message);
        let Ok(message) = serde_json::to_vec(&message) else { return true };
        match self.sender.send(&message, descriptor.as_fd()).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "connections end, and are not handed over any more");
                false
            }
        }
    }
}

/// A connection that has been handed over.
pub enum Handed {
    /// An idle connection of the HTTP listener with this bound address.
    Http(String, IdleConnection),
    /// The socket of a memcached client, and the address to which it has connected. Without one, it
    /// is an application of the program before this one.
    Memcached(Option<ListenAddress>, OwnedFd),
}

/// The event loops of a new program, as the one before it sees them.
pub type HandedSenders = Vec<mpsc::UnboundedSender<Handed>>;

/// Returns the end of `successor` by which an event loop hands over its connections. Must be called
/// on that loop.
pub fn sender(successor: &SuccessorSocket) -> Option<Rc<ConnectionSender>> {
    let sender = ConnectionSender::new(successor);
    if let Err(error) = &sender {
        tracing::warn!(%error, "idle connections end, and are not handed over");
    }
    sender.ok().map(Rc::new)
}

/// Hands over the idle connections of the HTTP listener with this bound address.
pub async fn send_http(
    listener: String,
    mut idle: mpsc::Receiver<IdleConnection>,
    sender: Rc<ConnectionSender>,
) {
    while let Some(IdleConnection { descriptor, announced, has_begun }) = idle.recv().await {
        let announced = announced.map(|peer| match peer {
            Peer::Tcp(address) => address.to_string(),
            Peer::Unix => UNIX.to_owned(),
        });
        let message = HandedMessage::Http { listener: listener.clone(), announced, has_begun };
        if !sender.send(message, &descriptor).await {
            return;
        }
    }
}

/// Hands over the sockets of memcached clients, and when `end` comes those that wait. Applications
/// have connected to `store_socket`.
pub async fn send_memcached(
    mut clients: mpsc::UnboundedReceiver<OwnedFd>,
    sender: ConnectionSender,
    store_socket: PathBuf,
    mut end: oneshot::Receiver<()>,
) {
    loop {
        let client = tokio::select! {
            _ = &mut end, if !clients.is_closed() => {
                clients.close();
                continue;
            }
            client = clients.recv() => client,
        };
        let Some(client) = client else { return };
        // It has disconnected meanwhile.
        let Some(address) = local_address(&client) else { continue };
        let is_own = matches!(&address, ListenAddress::Unix(path) if *path == store_socket);
        let listener = (!is_own).then(|| address.to_string());
        let message = HandedMessage::Memcached { listener };
        if !sender.send(message, &client).await {
            return;
        }
    }
}

/// Returns the address to which a client has connected.
fn local_address(client: &OwnedFd) -> Option<ListenAddress> {
    let address = rustix::net::getsockname(client).ok()?;
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        return Some(ListenAddress::Tcp(address));
    }
    let address = SocketAddrUnix::try_from(address).ok()?;
    let path = OsStr::from_bytes(address.path_bytes()?);
    Some(ListenAddress::Unix(PathBuf::from(path)))
}

/// Returns whether one of the addresses of `store.memcached` is that to which a client has
/// connected.
fn is_served(address: &ListenAddress, configured: &[ListenAddress]) -> bool {
    configured.iter().any(|known| match (known, address) {
        (ListenAddress::Unix(known), ListenAddress::Unix(path)) => known == path,
        (ListenAddress::Tcp(known), ListenAddress::Tcp(address)) => {
            // A listener may have any free port.
            let is_ip = known.ip().is_unspecified() || known.ip() == address.ip().to_canonical();
            is_ip && (known.port() == 0 || known.port() == address.port())
        }
        _ => false,
    })
}

/// Receives connections until the program before this one has ended, and gives them to the event
/// loops in turn. It blocks. `rounds` is the number of the last round of changes that is in the
/// store.
pub fn receive(socket: &UnixStream, loops: &HandedSenders, rounds: &AtomicU64) {
    let mut turn = loops.iter().cycle();
    let mut is_followed = true;
    loop {
        let (message, descriptor) = match descriptor_passing::receive(socket) {
            Ok(Some(received)) => received,
            Ok(None) => return,
            Err(error) => {
                tracing::error!(%error, "connections of the program before this one are lost");
                return;
            }
        };
        let Some(descriptor) = descriptor else {
            tracing::warn!("a connection is lost: there is no descriptor for it");
            continue;
        };
        let (round, message) = match serde_json::from_slice::<NumberedMessage>(&message) {
            Ok(numbered) => numbered,
            Err(error) => {
                tracing::error!(%error, "a connection of the program before this one is lost");
                continue;
            }
        };
        is_followed = is_followed && wait_for_round(rounds, round);
        let handed = match message {
            HandedMessage::Http { listener, announced, has_begun } => {
                let announced = announced.and_then(|peer| match peer.as_str() {
                    UNIX => Some(Peer::Unix),
                    address => address.parse().ok().map(Peer::Tcp),
                });
                Handed::Http(listener, IdleConnection { descriptor, announced, has_begun })
            }
            HandedMessage::Memcached { listener } => {
                match listener.map(|address| address.parse()).transpose() {
                    Ok(listener) => Handed::Memcached(listener, descriptor),
                    // No configuration has such an address.
                    Err(_) => continue,
                }
            }
        };
        if let Some(event_loop) = turn.next() {
            // A loop that has ended closes it.
            _ = event_loop.send(handed);
        }
    }
}

/// Waits until the store has a round of changes. Returns false if it does not come.
fn wait_for_round(rounds: &AtomicU64, wanted: u64) -> bool {
    let until = Instant::now() + ROUND_LIMIT;
    while rounds.load(Ordering::Acquire) < wanted {
        if Instant::now() >= until {
            tracing::warn!("connections are served, and the store may not have their last writes");
            return false;
        }
        std::thread::sleep(ROUND_INTERVAL);
    }
    true
}

/// Goes on to serve connections on this event loop. Those of memcached clients go to `memcached`,
/// if they have connected to one of the addresses `served`.
pub async fn adopt(
    listeners: Rc<RefCell<Option<HttpListeners>>>,
    mut handed: mpsc::UnboundedReceiver<Handed>,
    served: Vec<ListenAddress>,
    memcached: mpsc::UnboundedSender<OwnedFd>,
) {
    while let Some(handed) = handed.recv().await {
        match handed {
            Handed::Http(listener, connection) => {
                if let Some(listeners) = &*listeners.borrow() {
                    listeners.adopt(&listener, connection);
                }
            }
            Handed::Memcached(address, client) => {
                let is_served = |address| is_served(address, &served);
                if address.as_ref().is_none_or(is_served) {
                    _ = memcached.send(client);
                }
            }
        }
    }
}

/// The socket by which connections go to a new program, once there is one.
pub type ConnectionSocket = Option<Arc<SuccessorSocket>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memcached_client_stays_if_its_address_is_still_configured() {
        let configured: Vec<ListenAddress> =
            ["127.0.0.1:11211", "0.0.0.0:11212", "127.0.0.1:0", "unix:/run/store.sock"]
                .map(|address| address.parse().unwrap())
                .into();
        for (address, expected) in [
            ("127.0.0.1:11211", true),
            ("192.0.2.1:11211", false),
            ("192.0.2.1:11212", true),
            ("127.0.0.1:40000", true),
            ("192.0.2.1:40000", false),
            ("unix:/run/store.sock", true),
            ("unix:/run/other.sock", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(is_served(&address, &configured), expected, "{address}");
        }
        assert!(!is_served(&"127.0.0.1:1".parse().unwrap(), &[]));
    }
}
