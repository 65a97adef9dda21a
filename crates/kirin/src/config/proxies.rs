//! Checks what a listener says of the proxies in front of it, and other lists of peers.

use std::net::IpAddr;

use ipnet::IpNet;
use kirin_http::{ForwardedFields, Forwarding, TrustedPeers};
use serde_spanned::Spanned;

use super::ListenerConfig;
use super::load::{ConfigError, Source};

/// Whom the listener believes what; None if nobody.
pub fn forwarding(
    listener: &ListenerConfig,
    source: &Source,
) -> Result<Option<Forwarding>, ConfigError> {
    let mut forwarding = Forwarding { host: listener.forwarded_host, ..Forwarding::default() };
    forwarding.fields = match listener.forwarded.get_ref() {
        name if name.eq_ignore_ascii_case("X-Forwarded-For") => ForwardedFields::X,
        name if name.eq_ignore_ascii_case("Forwarded") => ForwardedFields::Forwarded,
        name => {
            let message = format!(
                "`forwarded` is `{name}`: allowed are \"X-Forwarded-For\" and \"Forwarded\""
            );
            return Err(source.error(listener.forwarded.span(), message));
        }
    };
    forwarding.trusted = peers(&listener.trusted, "trusted", source)?;
    if listener.trusted.is_empty() {
        if listener.proxy_protocol || listener.forwarded_host {
            let message = "`proxy_protocol` and `forwarded_host` need `trusted`: the addresses of the proxies";
            return Err(source.error(listener.address.span(), message));
        }
        return Ok(None);
    }
    Ok(Some(forwarding))
}

/// The peers that the key `key` lists.
pub fn peers(
    list: &[Spanned<String>],
    key: &str,
    source: &Source,
) -> Result<TrustedPeers, ConfigError> {
    let mut peers = TrustedPeers::default();
    for peer in list {
        match peer.get_ref().as_str() {
            "unix:" => peers.unix = true,
            _ => peers.networks.push(network(peer, key, source)?),
        }
    }
    Ok(peers)
}

fn network(text: &Spanned<String>, key: &str, source: &Source) -> Result<IpNet, ConfigError> {
    let written = text.get_ref();
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
    // An IPv4 client of an IPv6 socket is an IPv4 client.
    if let IpNet::V6(v6) = network
        && v6.addr().to_ipv4_mapped().is_some()
    {
        let message = format!("`{key}`: write `{written}` as an IPv4 network");
        return Err(source.error(text.span(), message));
    }
    Ok(network)
}
