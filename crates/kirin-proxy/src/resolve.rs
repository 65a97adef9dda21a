//! The names of servers and their addresses. Names are looked up regularly, never on an event loop.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::address::Location;
use crate::config::ServerConfig;
use crate::server::{Endpoint, ProxiedServer};
use crate::upstream::Upstream;

/// How long the start waits for the addresses. The lookup continues after that.
const START_TIME: Duration = Duration::from_secs(5);

/// Looks up the names of `upstream`, and repeats that after each interval.
pub(crate) async fn begin(upstream: &Arc<Upstream>) {
    let before = upstream.set();
    upstream.set_servers(known(upstream, &before.servers));
    let has_names = upstream
        .config()
        .servers
        .iter()
        .any(|server| matches!(server.address.location, Location::Name(..)));
    if !has_names {
        return;
    }
    if tokio::time::timeout(START_TIME, look_up(upstream)).await.is_err() {
        tracing::warn!(upstream = upstream.name(), "looking up names takes long; starting without");
    }
    let interval = upstream.config().resolve;
    tokio::spawn(keep(Arc::downgrade(upstream), interval));
}

async fn keep(upstream: Weak<Upstream>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(upstream) = upstream.upgrade() else { return };
        // A panic in one round must not end the task.
        let _ = kirin_http::panics::catch_in(look_up(&upstream)).await;
    }
}

/// Returns the servers whose address needs no lookup, and those of names at their old addresses.
fn known(upstream: &Upstream, old: &[Arc<ProxiedServer>]) -> Vec<Arc<ProxiedServer>> {
    let servers = upstream.config().servers.iter();
    servers
        .flat_map(|server| {
            let endpoints = match Endpoint::from_location(&server.address.location) {
                Some(endpoint) => vec![endpoint],
                None => {
                    let of_name = old.iter().filter(|old| old.address == server.address);
                    of_name.map(|old| old.endpoint.clone()).collect()
                }
            };
            endpoints.into_iter().map(|endpoint| kept_or_new(old, server, endpoint))
        })
        .collect()
}

async fn look_up(upstream: &Upstream) {
    let set = upstream.set();
    let old = &set.servers;
    let mut servers = Vec::new();
    for server in &upstream.config().servers {
        let Location::Name(name, port) = &server.address.location else {
            let endpoint = Endpoint::from_location(&server.address.location);
            servers.extend(endpoint.map(|endpoint| kept_or_new(old, server, endpoint)));
            continue;
        };
        // getaddrinfo(3) runs on a thread of its own.
        let found =
            tokio::net::lookup_host((name.as_str(), *port)).await.map(Iterator::collect::<Vec<_>>);
        match found {
            Ok(found) if !found.is_empty() => servers.extend(servers_of_name(old, server, found)),
            failed => {
                let error =
                    failed.err().map_or_else(|| "no address".into(), |error| error.to_string());
                let kept: Vec<_> =
                    old.iter().filter(|old| old.address == server.address).cloned().collect();
                let consequence =
                    if kept.is_empty() { "it gets no requests" } else { "its old addresses stay" };
                tracing::warn!(
                    upstream = upstream.name(),
                    name,
                    error,
                    "name cannot be looked up; {consequence}"
                );
                servers.extend(kept);
            }
        }
    }
    let is_same =
        servers.len() == old.len() && servers.iter().zip(old.iter()).all(|(a, b)| a.id == b.id);
    if !is_same {
        let list: Vec<String> = servers.iter().map(ToString::to_string).collect();
        tracing::info!(upstream = upstream.name(), servers = list.join(", "), "addresses");
        upstream.set_servers(servers);
    }
}

/// Returns the servers of a name, in the order of their addresses. The order of DNS answers changes
/// with each lookup.
fn servers_of_name(
    old: &[Arc<ProxiedServer>],
    config: &ServerConfig,
    mut found: Vec<SocketAddr>,
) -> Vec<Arc<ProxiedServer>> {
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|socket| kept_or_new(old, config, Endpoint::Tcp(socket))).collect()
}

/// Returns the old server if it is still there, with its connections and its state; otherwise a new
/// one.
fn kept_or_new(
    old: &[Arc<ProxiedServer>],
    config: &ServerConfig,
    endpoint: Endpoint,
) -> Arc<ProxiedServer> {
    let kept = old.iter().find(|server| server.is_at(config, &endpoint)).cloned();
    kept.unwrap_or_else(|| Arc::new(ProxiedServer::new(config, endpoint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(servers: &[Arc<ProxiedServer>]) -> Vec<u64> {
        servers.iter().map(|server| server.id).collect()
    }

    #[test]
    fn an_unchanged_address_keeps_its_server_and_a_new_one_adds_one() {
        let named = |name: &str| ServerConfig {
            address: name.parse().unwrap(),
            weight: 1,
            backup: false,
            max_in_flight: None,
        };
        let address = named("a.test:80");
        let sockets = |last: &[u8]| {
            last.iter().map(|last| SocketAddr::from(([127, 0, 0, *last], 80))).collect()
        };
        let first = servers_of_name(&[], &address, sockets(&[2, 1]));
        assert_eq!(
            ids(&servers_of_name(&first, &address, sockets(&[1, 2, 1]))),
            ids(&first),
            "the order is no change"
        );
        let second = servers_of_name(&first, &address, sockets(&[2, 3]));
        assert_eq!(second[0].id, first[1].id);
        assert!(!ids(&first).contains(&second[1].id));
        let of_other_name = servers_of_name(&first, &named("b.test:80"), sockets(&[1]));
        assert!(!ids(&first).contains(&of_other_name[0].id), "another name is another server");
    }
}
