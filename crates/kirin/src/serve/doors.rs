//! The doors of the program: each listening socket, and what goes for the connections that come by
//! it, for each loop.
//!
//! Opened by `program.rs` at the start, before the loops run.

use std::sync::Arc;

use kirin_http::{Admission, ConnectionCount, Limits as HttpLimits, ListenAddress, Listener};
use tokio::sync::watch;

use crate::config::check::Site;
use crate::life::program::ProgramError;
use crate::life::run_directory::RunDirectory;
use crate::serve::client_accounts::ClientAccounts;
use crate::serve::event_loop::{Door, StoreDoor};
use crate::serve::logs::{self, Logs};
use crate::serve::sockets::Sockets;

/// Opens the listeners for each loop; the outer list is by loop. Also gives their addresses, as
/// clients name them.
pub fn open_doors(
    site: &Site,
    sockets: &mut Sockets,
    logs: &mut Logs,
    connections: &Arc<ConnectionCount>,
    accounts: &ClientAccounts,
) -> Result<(Vec<Vec<Door>>, Vec<String>), ProgramError> {
    let mut by_loop: Vec<Vec<Door>> = (0..site.threads).map(|_| Vec::new()).collect();
    let mut urls = Vec::new();
    for (listener, client_bytes) in site.listeners.iter().zip(&accounts.listeners) {
        let log = match &listener.access_log {
            None => None,
            Some(target) => Some(logs::open(target, site.user.as_ref(), logs)?),
        };
        let admission = Admission::new(Arc::clone(connections), listener.connections_per_address);
        let limits = HttpLimits {
            admission: Some(admission),
            client_bytes: Some(Arc::clone(client_bytes)),
            ..listener.limits.clone()
        };
        let opened = sockets.open(&listener.address, site.threads)?;
        for (doors, listeners) in by_loop.iter_mut().zip(opened.by_loop) {
            for listener_of_loop in listeners {
                let redirect_to_https = listener.redirect_to_https;
                let address = listener_of_loop.address()?;
                let url = url(&address, listener.tls.is_some());
                if !urls.contains(&url) {
                    urls.push(url);
                }
                doors.push(Door {
                    listener: listener_of_loop,
                    address,
                    log: log.clone(),
                    limits: limits.clone(),
                    tls: listener.tls.clone(),
                    redirect_to_https,
                    forwarding: listener.forwarding.clone(),
                    proxy_protocol: listener.proxy_protocol,
                });
            }
        }
    }
    Ok((by_loop, urls))
}

/// Opens the memcached port for each loop, and the unix socket for applications that Kirin starts.
pub fn open_memcached(
    site: &Site,
    sockets: &mut Sockets,
    run_directory: &RunDirectory,
    has_successor: &watch::Receiver<bool>,
    upgrades: bool,
) -> Result<Vec<Vec<StoreDoor>>, ProgramError> {
    let mut by_loop: Vec<Vec<StoreDoor>> = (0..site.threads).map(|_| Vec::new()).collect();
    for address in &site.store.memcached {
        let opened = sockets.open(address, site.threads)?;
        let has_successor =
            if opened.is_inherited { watch::channel(true).1 } else { has_successor.clone() };
        for (doors, listeners) in by_loop.iter_mut().zip(opened.by_loop) {
            let door = |listener| {
                let has_predecessor = upgrades && opened.is_inherited;
                StoreDoor { listener, has_successor: has_successor.clone(), has_predecessor }
            };
            doors.extend(listeners.into_iter().map(door));
        }
        tracing::debug!("memcached protocol on {address}");
    }
    if !site.apps.is_empty() {
        let own = ListenAddress::Unix(run_directory.store_socket());
        for (doors, listener) in by_loop.iter_mut().zip(Listener::bind(&own, site.threads)?) {
            let has_successor = watch::channel(false).1;
            doors.push(StoreDoor { listener, has_successor, has_predecessor: false });
        }
    }
    Ok(by_loop)
}

fn url(address: &ListenAddress, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    match address {
        ListenAddress::Tcp(address) => format!("{scheme}://{address}/"),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}
