//! The other end of a client connection.

use std::io::Write;
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

/// Appends an IP address. Every request to a worker or an upstream has one, most are of IPv4, and
/// [`std::fmt`] is several times slower.
pub fn write_ip(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                out.extend_from_slice(itoa::Buffer::new().format(octet).as_bytes());
            }
        }
        // A vector takes all bytes.
        IpAddr::V6(address) => _ = write!(out, "{address}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ip_address_is_written_as_the_standard_library_writes_it() {
        for text in ["192.0.2.1", "0.0.0.0", "255.255.255.255", "2001:db8::1", "::ffff:1.2.3.4"] {
            let mut written = b"for=".to_vec();
            write_ip(text.parse().unwrap(), &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), format!("for={text}"));
        }
    }
}
