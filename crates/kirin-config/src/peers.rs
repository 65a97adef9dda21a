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
    let written = text.as_str();
    let parsed = written.parse::<IpAddr>().map(IpNet::from).or_else(|_| written.parse::<IpNet>());
    let network = parsed.map_err(|_| {
        let message = format!(
            "`{key}`: `{written}` is not an address, a network such as \"10.0.0.0/8\" or \"2001:db8::/32\", or \"unix:\""
        );
        source.error(text.span(), message)
    })?;
    if network.addr() != network.network() {
        let message = format!(
            "`{key}`: `{written}` has address bits behind its prefix; the network is {}",
            network.trunc()
        );
        return Err(source.error(text.span(), message));
    }
    // Kirin takes an IPv4 client of an IPv6 socket for an IPv4 client.
    if let IpNet::V6(v6) = network
        && v6.addr().to_ipv4_mapped().is_some()
    {
        let message = format!("`{key}`: write `{written}` as an IPv4 network");
        return Err(source.error(text.span(), message));
    }
    Ok(network)
}
