//! One address that requests can be sent to.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kirin_balance::ServerSettings;

use crate::address::{Location, ServerAddress, ServerScheme};
use crate::config::ServerConfig;

/// A server of an upstream, shared by all event loops. A name with several addresses stands for
/// several servers.
#[derive(Debug)]
pub struct ProxiedServer {
    /// A number that no other server has, not even an earlier one at the same address.
    pub(crate) id: u64,
    pub(crate) address: ServerAddress,
    pub(crate) weight: u32,
    pub(crate) backup: bool,
    pub(crate) max_in_flight: Option<NonZeroU32>,
    pub(crate) endpoint: Endpoint,
    /// The server's own `Host`.
    pub(crate) authority: String,
    /// The address as people read it.
    pub(crate) label: Arc<str>,
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl ProxiedServer {
    /// Returns the server at `endpoint`, which is an address of the server in `config`.
    pub(crate) fn new(config: &ServerConfig, endpoint: Endpoint) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let ServerConfig { address, weight, backup, max_in_flight } = config.clone();
        let authority = address.authority();
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let label = label(&address, &endpoint).into();
        Self { id, address, weight, backup, max_in_flight, endpoint, authority, label }
    }

    pub(crate) fn scheme(&self) -> ServerScheme {
        self.address.scheme
    }

    pub(crate) fn is_at(&self, config: &ServerConfig, endpoint: &Endpoint) -> bool {
        let ServerConfig { address, weight, backup, max_in_flight } = config;
        self.address == *address
            && self.endpoint == *endpoint
            && (self.weight, self.backup, self.max_in_flight) == (*weight, *backup, *max_in_flight)
    }

    /// Returns the settings for balancing.
    pub(crate) fn settings(&self) -> ServerSettings {
        let Self { weight, backup, max_in_flight, .. } = *self;
        ServerSettings { name: self.to_string(), weight, backup, max_in_flight }
    }
}

impl Endpoint {
    /// Returns the endpoint of an address that needs no lookup.
    pub(crate) fn from_location(location: &Location) -> Option<Self> {
        match location {
            Location::Tcp(address) => Some(Endpoint::Tcp(*address)),
            Location::Unix(path) => Some(Endpoint::Unix(path.clone())),
            Location::Name(..) => None,
        }
    }
}

impl fmt::Display for ProxiedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Returns the address as people read it. A name with several addresses is followed by one of them.
fn label(address: &ServerAddress, endpoint: &Endpoint) -> String {
    match (&address.location, endpoint) {
        (Location::Name(..), Endpoint::Tcp(socket)) => format!("{address} ({socket})"),
        _ => address.to_string(),
    }
}
