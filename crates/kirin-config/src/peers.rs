//! Lists of peers: addresses, networks, and all peers on unix sockets.

use std::net::IpAddr;

use ipnet::IpNet;
use kirin_http::PeerSet;

use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// Returns the peers that the key `key` lists.
pub fn peers(
    list: &[Written<String>],
    key: &str,
    source: &ConfigSource,
) -> Result<PeerSet, ConfigError> {
    let (mut networks, mut unix) = (Vec::new(), false);
    for peer in list {
        match peer.as_str() {
            "unix:" => unix = true,
            _ => networks.push(network(peer, key, source)?),
        }
    }
    Ok(PeerSet::new(networks, unix))
}

fn network(text: &Written<String>, key: &str, source: &ConfigSource) -> Result<IpNet, ConfigError> {
    parse_network(text).map_err(|error| {
        let or_unix = match error {
            NetworkError::Unreadable(_) => ", and not \"unix:\"",
            _ => "",
        };
        source.error(text.span(), format!("`{key}`: {error}{or_unix}"))
    })
}

/// Why a text is not the name of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// It is neither an address nor a network.
    #[error("`{0}` is not an address or a network, such as \"10.0.0.0/8\" or \"2001:db8::/32\"")]
    Unreadable(String),
    /// The address has bits that are not in the network.
    #[error("`{0}` has address bits behind its prefix; the network is {1}")]
    BitsBehindPrefix(String, IpNet),
    /// Kirin takes an IPv4 client of an IPv6 socket for an IPv4 client.
    #[error("write `{0}` as an IPv4 network")]
    MappedIpv4(String),
}

/// Reads an address or a network, such as `10.0.0.0/8`. That of an address has no other.
pub fn parse_network(written: &str) -> Result<IpNet, NetworkError> {
    let parsed = written.parse::<IpAddr>().map(IpNet::from).or_else(|_| written.parse::<IpNet>());
    let network = parsed.map_err(|_| NetworkError::Unreadable(written.to_owned()))?;
    if network.addr() != network.network() {
        return Err(NetworkError::BitsBehindPrefix(written.to_owned(), network.trunc()));
    }
    match network {
        IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some() => {
            Err(NetworkError::MappedIpv4(written.to_owned()))
        }
        _ => Ok(network),
    }
}
