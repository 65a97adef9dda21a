//! The first part of the program's life: bind. Sockets and files are opened while the program may
//! still be root and has one thread. Then it becomes the user that serves.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use kirin_acme::{Acme, AcmeConfig};
use kirin_config::{Config, ConfigSource, ListenerConfig};
use kirin_http::ListenAddress;
use kirin_server::{ConnectionCount, Tls};
use kirin_user::is_root;
use tokio::sync::watch;

use crate::admin;
use crate::admin::default_socket::DefaultSocket;
use crate::life::configured::Configured;
use crate::life::descriptor_limit::{default_connections, default_file_descriptors};
use crate::life::error::ProgramError;
use crate::life::launch::Launch;
use crate::life::pid_file::PidFile;
use crate::life::port_file::write_ports;
use crate::life::predecessor::Predecessor;
use crate::life::program_log;
use crate::life::read_again;
use crate::life::run_directory::{self, RunDirectory};
use crate::life::systemd::Systemd;
use crate::serve::listeners::{LoopListeners, open_app_store, open_http, open_memcached};
use crate::serve::metrics;
use crate::serve::sockets::Sockets;

/// What the program has opened.
pub struct Bound {
    /// The configuration, with the listeners that the program was told.
    pub configured: RefCell<Configured>,
    /// The addresses of inherited sockets, if they replace the listener of the configuration.
    pub told: Vec<ListenAddress>,
    /// The listeners, by event loop.
    pub loops: Vec<LoopListeners>,
    /// The TCP addresses of the memcached listeners, as they are bound.
    pub memcached_addresses: Vec<SocketAddr>,
    /// The count of client connections.
    pub connections: Arc<ConnectionCount>,
    /// The listening sockets. The files of unix sockets are removed at the end, also by an error.
    pub sockets: RefCell<Sockets>,
    /// The path of the default admin socket, if this program has it.
    pub default_admin: Option<PathBuf>,
    /// The file with the process id, removed in the same way. A program that takes over from a
    /// predecessor writes it later.
    pub pid_file: Option<PidFile>,
    /// The certificates that come from authorities.
    pub acme: RefCell<Acme>,
    /// The Kirin that this one takes over from.
    pub predecessor: Option<Predecessor>,
    /// Tells memcached listeners that a successor serves.
    pub has_successor: watch::Sender<bool>,
    /// The service manager.
    pub systemd: Systemd,
}

/// Opens sockets and files, and becomes the user that serves.
pub fn bind(
    mut config: Config,
    source: Option<ConfigSource>,
    launch: &mut Launch,
    run_directory: &RunDirectory,
) -> Result<Bound, ProgramError> {
    let mut sockets = Sockets::new(&mut launch.inherited, config.user.as_ref())?;
    let default_admin = DefaultSocket::prepare(&config, launch.served.as_ref(), &sockets);
    // It must not become a listener.
    let inherited_admin = default_admin.as_ref().and_then(|admin| admin.inherit(&mut sockets));
    let told = match launch.listens_where_told {
        true => sockets.inherited_addresses(),
        false => Vec::new(),
    };
    listen_where_told(&mut config, &told);
    let mut loops: Vec<_> = (0..config.threads).map(|_| LoopListeners::default()).collect();
    let connections = ConnectionCount::new(share_descriptors(&mut config));
    let mut http: Vec<_> = (0..config.threads).map(|_| Vec::new()).collect();
    let opened = config.listeners.iter().enumerate();
    let opened = opened
        .map(|(at, listener)| open_http(at, listener, &mut http, &mut sockets))
        .collect::<Result<Vec<_>, _>>()?;
    for (of_loop, http) in loops.iter_mut().zip(http) {
        of_loop.http = http;
    }
    let configured = Configured::first(config, source, opened, &connections)?;
    let config = Arc::clone(&configured.config);
    if let Some(first) = loops.first_mut() {
        first.admin = admin::open(&config, &mut sockets)?;
        first.metrics = metrics::open(&config, &mut sockets)?;
    }
    let predecessor = launch.inherited.predecessor.take().map(Predecessor::new).transpose()?;
    let (has_successor, watched) = watch::channel(false);
    let has_predecessor = predecessor.is_some();
    let memcached_addresses =
        open_memcached(&config, &mut loops, &mut sockets, &watched, has_predecessor)?;
    if !config.apps.is_empty() {
        open_app_store(&run_directory.store_socket(), &mut loops)?;
    }
    sockets.refuse_unwanted()?;
    let pid_file = match &launch.pid_file {
        Some(path) if predecessor.is_none() => Some(PidFile::write(path, config.user.as_ref())?),
        _ => None,
    };
    let acme = Acme::open(acme_certificates(&config), config.user.as_ref())?;
    if let Some(user) = &config.user {
        let is_other = is_root();
        user.serve_as(&run_directory.paths())?;
        if is_other {
            tracing::info!("serving as the user {}", user.name());
        }
    }
    read_again::check(&config, launch.served.as_ref())?;
    let admin = inherited_admin.or_else(|| Some(default_admin?.open(&mut sockets)));
    let admin = admin.unwrap_or_default();
    if let Some(first) = loops.first_mut() {
        first.admin.extend(admin.listener);
        first.taken_admin = admin.taken;
    }
    program_log::start_thread();
    if let Some(path) = &launch.memcached_port_file {
        write_ports(path, &memcached_addresses)?;
    }
    run_directory::remove_abandoned();
    Ok(Bound {
        configured: RefCell::new(configured),
        told,
        loops,
        memcached_addresses,
        connections,
        sockets: RefCell::new(sockets),
        default_admin: admin.path,
        pid_file,
        acme: RefCell::new(acme),
        predecessor,
        has_successor,
        systemd: Systemd::new(launch.inherited.notify.take()),
    })
}

/// Replaces the listener of the configuration by one for each of these addresses, if there are any,
/// with the same settings.
pub fn listen_where_told(config: &mut Config, addresses: &[ListenAddress]) {
    if let (Some(listener), false) = (config.listeners.first().cloned(), addresses.is_empty()) {
        config.listeners = (addresses.iter().cloned())
            .map(|address| ListenerConfig { address, ..listener.clone() })
            .collect();
    }
}

/// Shares the descriptors of the process out, where the configuration does not say how. Returns
/// the most connections.
pub fn share_descriptors(config: &mut Config) -> usize {
    let limits = &mut config.gateway.open_file_cache;
    limits.descriptors = (config.file_descriptors)
        .unwrap_or_else(|| default_file_descriptors(config.threads, limits.paths));
    let default_connections = || default_connections(config.threads, limits.descriptors);
    config.connections.unwrap_or_else(default_connections)
}

/// Returns the certificates that listeners get from an authority, and the TLS of each listener.
pub fn acme_certificates(config: &Config) -> impl Iterator<Item = (&AcmeConfig, &Arc<Tls>)> {
    let tls = config.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    tls.filter_map(|tls| Some((tls.acme.as_ref()?, &tls.tls)))
}
