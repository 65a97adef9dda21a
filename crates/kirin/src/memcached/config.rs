//! The configuration that the options of `kirin memcached` stand for: no HTTP
//! listeners, applications and routes.

use std::io;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kirin_client_tls::ClientTlsError;
use kirin_config::{Config, StoreSetup};
use kirin_gateway::routing::settings::GatewayConfig;
use kirin_http::{ListenAddress, PeerSet};
use kirin_memcache::codec::CodecLimits;
use kirin_memcache::{Description, ServerOptions};
use kirin_origin::OriginConfig;
use kirin_origin::address::Address;
use kirin_server::BindOptions;
use kirin_store::{NamespaceNames, StoreConfig};
use kirin_user::User;

use crate::memcached::options::{HostAndPort, Options};

/// The host to listen on when there is no `-l`.
const LOOPBACK: &str = "127.0.0.1";

/// Options that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum MemcachedConfigError {
    /// A host has no address.
    #[error("cannot listen on {address}: {source}")]
    Host {
        /// The host and port.
        address: String,
        /// The answer of the system.
        source: io::Error,
    },
    /// There is no port and no socket.
    #[error("nothing to listen on: -p is 0 and there is no -s")]
    NothingToListenOn,
    /// The user of `-u` is unknown.
    #[error("can't find the user {0} to switch to")]
    NoUser(String),
    /// The users of the machine cannot be read.
    #[error("cannot look up the user {user}: {source}")]
    User {
        /// The user of `-u`.
        user: String,
        /// The answer of the system.
        source: io::Error,
    },
    /// The certificates for the origin cannot be read.
    #[error("-o origin={address}: {source}")]
    Origin {
        /// The address, without a password.
        address: String,
        /// The reason.
        source: ClientTlsError,
    },
    /// A relative path has no meaning, because the working directory is gone.
    #[error("{}: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
}

/// Returns the configuration that `options` stand for. The path of the snapshot is absolute, since
/// a program in the background leaves the working directory.
pub fn config(options: &Options) -> Result<Config, MemcachedConfigError> {
    Ok(Config {
        threads: options.threads,
        user: options.user.as_deref().map(user).transpose()?.flatten(),
        connections: None,
        file_descriptors: None,
        // Clients of memcached have no part in these accounts.
        client_memory_bytes: 0,
        client_disk_bytes: 0,
        listeners: Vec::new(),
        route_logs: Vec::new(),
        store: store(options)?,
        traces: None,
        metrics: None,
        admin: None,
        url_patterns: Vec::new(),
        apps: Vec::new(),
        upstreams: Vec::new(),
        gateway: GatewayConfig {
            sites: Vec::new(),
            hosts: Arc::default(),
            namespaces: NamespaceNames::default(),
            session_cookie: None,
            purge_from: PeerSet::default(),
            lua: kirin_lua::Limits::default(),
            script_extensions: Vec::new(),
            open_file_cache: kirin_files::CacheLimits::default(),
        },
        password_checks: None,
        next_route: 0,
        redirect_files: Vec::new(),
        included_paths: Vec::new(),
        warnings: Vec::new(),
        unwritable_logs: Vec::new(),
    })
}

/// Returns the user of `-u`. Only root can become another user. Others ignore the option, as
/// memcached does.
fn user(name: &str) -> Result<Option<User>, MemcachedConfigError> {
    if !kirin_user::is_root() {
        return Ok(None);
    }
    let found = User::find(name)
        .map_err(|source| MemcachedConfigError::User { user: name.to_owned(), source })?;
    found.map(Some).ok_or_else(|| MemcachedConfigError::NoUser(name.to_owned()))
}

fn store(options: &Options) -> Result<StoreSetup, MemcachedConfigError> {
    let defaults = ServerOptions::default();
    let interfaces: Vec<_> = options.listen.iter().map(|address| address.host.as_str()).collect();
    Ok(StoreSetup {
        engine: StoreConfig {
            memory_bytes: options.memory_bytes,
            item_limit_bytes: options.item_size_bytes,
            evict: !options.no_evictions,
            ..StoreConfig::default()
        },
        memcached: addresses(options)?,
        bind: BindOptions {
            backlog: Some(options.backlog),
            // IPv4 has a socket of its own if an option asks for it.
            only_v6: true,
            unix_mode: Some(options.unix_mode),
        },
        protocol: ServerOptions {
            limits: CodecLimits {
                item_size_bytes: options.item_size_bytes,
                flush_enabled: !options.no_flush_all,
                dump_enabled: !options.no_dumping,
                watch_enabled: !options.no_watchers,
            },
            connection_limit: options.connection_limit,
            idle_timeout: options.idle_timeout,
            stampede_guard: options.stampede_guard,
            verbosity: options.verbosity,
            prefix_delimiter: options.prefix_delimiter.unwrap_or(defaults.prefix_delimiter),
            counts_prefixes: options.prefix_delimiter.is_some(),
            description: Description {
                // The program puts the bound port here.
                tcp_port: 0,
                interfaces: (!interfaces.is_empty()).then(|| interfaces.join(",")),
                unix_socket: options.unix_socket.as_ref().map(|path| path.display().to_string()),
                unix_mode: options.unix_mode,
                threads: options.threads,
                backlog: options.backlog,
                evict: !options.no_evictions,
            },
            ..defaults
        },
        snapshot: options.snapshot.as_deref().map(absolute).transpose()?,
        origin: options.origin.as_ref().map(|address| origin(address, options)).transpose()?,
        origin_files: options.origin_ca.as_deref().map(absolute).transpose()?.into_iter().collect(),
    })
}

/// Returns the settings of the origin. Its address shows no password in an error.
fn origin(address: &Address, options: &Options) -> Result<OriginConfig, MemcachedConfigError> {
    let ca = options.origin_ca.as_deref().map(absolute).transpose()?;
    let origin = OriginConfig::new(address.clone(), ca)
        .map_err(|source| MemcachedConfigError::Origin { address: address.to_string(), source })?;
    Ok(OriginConfig {
        timeout: options.origin_timeout.unwrap_or(origin.timeout),
        stale_limit: options.stale_limit.unwrap_or(origin.stale_limit),
        ..origin
    })
}

/// Returns the addresses to listen on. A host name may have several.
fn addresses(options: &Options) -> Result<Vec<ListenAddress>, MemcachedConfigError> {
    if let Some(path) = &options.unix_socket {
        return Ok(vec![ListenAddress::Unix(path.clone())]);
    }
    if options.port == 0 {
        return Err(MemcachedConfigError::NothingToListenOn);
    }
    let default = [HostAndPort { host: LOOPBACK.into(), port: None }];
    let hosts = if options.listen.is_empty() { &default[..] } else { &options.listen };
    let mut addresses = Vec::new();
    for HostAndPort { host, port } in hosts {
        // A port of -1 is any free one, which is 0 to the kernel.
        let port = port.unwrap_or(u16::try_from(options.port).unwrap_or(0));
        let unknown =
            |source| MemcachedConfigError::Host { address: format!("{host}:{port}"), source };
        addresses.extend(
            (host.as_str(), port).to_socket_addrs().map_err(unknown)?.map(ListenAddress::Tcp),
        );
    }
    Ok(addresses)
}

/// Returns the absolute form of a path.
pub fn absolute(path: &Path) -> Result<PathBuf, MemcachedConfigError> {
    std::path::absolute(path)
        .map_err(|source| MemcachedConfigError::Path { path: path.to_owned(), source })
}
