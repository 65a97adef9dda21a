//! One address that requests can be sent to.

use crate::address::{Location, Scheme, ServerAddress};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A server of an upstream, shared by all event loops. A name that has several addresses stands for as many servers.
#[derive(Debug)]
pub struct Server {
    /// Tells it from all others, and from one that had the same address before.
    pub(crate) id: u64,
    pub(crate) address: ServerAddress,
    pub(crate) endpoint: Endpoint,
    /// The value of `Host` for who wants the server's own.
    pub(crate) authority: String,
}

/// Where a socket is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Server {
    /// The server at `endpoint`, which `address` stands for.
    pub(crate) fn new(address: ServerAddress, endpoint: Endpoint) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let authority = address.authority();
        Self { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), address, endpoint, authority }
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.address.scheme
    }

    pub(crate) fn is_at(&self, address: &ServerAddress, endpoint: &Endpoint) -> bool {
        self.address == *address && self.endpoint == *endpoint
    }
}

impl Endpoint {
    /// Of an address that needs no looking up.
    pub(crate) fn of(location: &Location) -> Option<Self> {
        match location {
            Location::Tcp(address) => Some(Endpoint::Tcp(*address)),
            Location::Unix(path) => Some(Endpoint::Unix(path.clone())),
            Location::Name(..) => None,
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.address.location, &self.endpoint) {
            (Location::Name(..), Endpoint::Tcp(socket)) => write!(f, "{} ({socket})", self.address),
            _ => write!(f, "{}", self.address),
        }
    }
}
