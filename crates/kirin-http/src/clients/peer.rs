//! The other end of a client connection.

use std::net::{IpAddr, SocketAddr};

/// The other end of a client connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP client.
    Tcp(SocketAddr),
    /// A client on a unix socket; it has no address.
    Unix,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Tcp(address) => write!(f, "{}", address.ip()),
            Peer::Unix => f.write_str("unix:"),
        }
    }
}

/// Returns one number for an IPv4 address, or for the /64 of an IPv6 address, because a single
/// client usually has all of it. Returns `None` for a unix socket, whose clients are one program.
pub fn address_key(peer: &Peer) -> Option<u64> {
    let Peer::Tcp(address) = peer else { return None };
    Some(match address.ip().to_canonical() {
        // This is above all IPv6 addresses that a client can have: those that begin with ff are
        // multicast.
        IpAddr::V4(address) => 0xffff_ffff << 32 | u64::from(u32::from(address)),
        IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
    })
}
