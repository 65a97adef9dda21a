//! `[store]`: the memory for items, the memcached port, and sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kirin_http::ListenAddress;
use kirin_http::token::is_token;
use kirin_memcache::{ServerOptions, codec};
use kirin_origin::names::DEFAULT_KEY_PREFIX;
use kirin_origin::{DEFAULT_STALE_LIMIT, DEFAULT_TIMEOUT, OriginConfig};
use kirin_server::BindOptions;
use kirin_store::StoreConfig;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::default::{milliseconds, size, whole_seconds};
use crate::listener::check_address;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::store_origin::{check_origin, origin_files};
use crate::units::{ByteSize, Milliseconds, Seconds};
use crate::written::Written;

/// The longest name of a cookie, in bytes.
const MAX_COOKIE_NAME_BYTES: usize = 64;

/// The store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSection {
    /// The memory for items and everything that belongs to them, such as `"64MB"`.
    pub memory: ByteSize,
    /// The largest item, such as `"1MB"`.
    pub item_limit: ByteSize,
    /// The addresses of the memcached port, `HOST:PORT` or `unix:PATH`. The port has no password:
    /// keep it on the loopback interface or on a unix socket. Applications that Kirin starts find a
    /// unix socket of their own in the environment variable `KIRIN_STORE`.
    pub memcached: Vec<Written<String>>,
    /// The time before an item expires in which one client misses and the others get the old value.
    /// It keeps clients from all rebuilding the same item at once, even clients that only know
    /// `get`. Default: none, an item is there until it expires.
    pub stampede_guard: Option<Seconds>,
    /// A file that holds the items while Kirin is stopped. Kirin loads it at the start. It writes
    /// it at the end, and for the command `snapshot` on the memcached port. Times to live count
    /// while Kirin is stopped. Default: none, the store starts empty.
    pub snapshot: Option<Written<String>>,
    /// A Redis or Valkey server that has the items, for several machines that share them. The store
    /// keeps copies. `redis://HOST:PORT`, `rediss://HOST:PORT` for TLS, or `redis+unix:///PATH`,
    /// with a user as in `redis://USER@HOST`, and with the number of a database as in
    /// `redis://HOST/1` and `redis+unix:///PATH?db=1`. A master that Sentinels know is
    /// `redis-sentinel://HOST,HOST,HOST/NAME`, with their hosts. A cluster is
    /// `redis-cluster://HOST,HOST,HOST`, with some of its nodes. See
    /// [memcached.md](memcached.md#several-machines). Errors and `kirin status` never show a
    /// password in it. Default: none, the items are here.
    pub origin: Option<Written<String>>,
    /// A PEM file with the authorities of the origin's certificate, if its address is `rediss://`.
    /// Default: those of the system.
    pub origin_ca: Option<Written<String>>,
    /// A file with the password for the origin, in one line, so that it is not in this file. The
    /// user that serves must be able to read it. A new password needs an upgrade.
    pub origin_password_file: Option<Written<String>>,
    /// What the names of all keys on the origin begin with: 1 to 64 bytes without `{` and `}`. All
    /// Kirins with the same prefix and database share their items.
    pub origin_prefix: Written<String>,
    /// How long a trip to the origin may take. A request that needs it waits no longer.
    pub origin_timeout: Written<Milliseconds>,
    /// How long copies are served while the origin is away; at least 2 seconds.
    pub stale_limit: Written<Seconds>,
    /// The cookie whose value is the key of the visitor's session, as session middleware writes it.
    /// The session is a JSON object, the key 32 to 128 hexadecimal digits. Pages then have the
    /// session as `session` variables. Default: none, there are no such variables.
    pub session_cookie: Option<Written<String>>,
    /// The peers that may purge pages with the method `PURGE`, on all listeners: addresses,
    /// networks such as `"10.0.0.0/8"`, and `"unix:"`. Read [purge.md](purge.md) before you add the
    /// address of a proxy. Default: nobody, and `PURGE` goes to the application like any other
    /// method.
    pub purge_from: Vec<Written<String>>,
}

impl Default for StoreSection {
    fn default() -> Self {
        let engine = StoreConfig::default();
        Self {
            memory: size(engine.memory_bytes),
            item_limit: size(engine.item_limit_bytes),
            memcached: Vec::new(),
            stampede_guard: None,
            snapshot: None,
            origin: None,
            origin_ca: None,
            origin_password_file: None,
            origin_prefix: Written::default_value(DEFAULT_KEY_PREFIX.into()),
            origin_timeout: Written::default_value(milliseconds(DEFAULT_TIMEOUT)),
            stale_limit: Written::default_value(whole_seconds(DEFAULT_STALE_LIMIT)),
            session_cookie: None,
            purge_from: Vec::new(),
        }
    }
}

/// The store and its memcached port, as the program opens them.
#[derive(Debug)]
pub struct StoreSetup {
    /// The memory of the store.
    pub engine: StoreConfig,
    /// The addresses of the memcached port.
    pub memcached: Vec<ListenAddress>,
    /// How the sockets of the memcached port are bound.
    pub bind: BindOptions,
    /// The memcached protocol. The program adds the opened snapshot.
    pub protocol: ServerOptions,
    /// The snapshot file.
    pub snapshot: Option<PathBuf>,
    /// The server that has the items.
    pub origin: Option<OriginConfig>,
    /// The files that the settings of the origin come from. They are read again when the
    /// configuration is.
    pub origin_files: Vec<PathBuf>,
}

/// Checks `section`, apart from its cookie and from who may purge.
pub fn check_store(
    section: &StoreSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<StoreSetup> {
    let (memory_bytes, item_limit_bytes) = (section.memory.length(), section.item_limit.length());
    if memory_bytes < 1 << 20 {
        let message = format!("`store.memory` is {}: at least 1MB is needed", section.memory);
        errors.push(source.error_in_all(message));
    } else if item_limit_bytes < 1024 || item_limit_bytes > memory_bytes / 2 {
        errors.push(source.error_in_all(format!(
            "`store.item_limit` is {}: allowed is 1KB up to half of `store.memory` ({})",
            section.item_limit, section.memory
        )));
    }
    let memcached = errors.keep(check_memcached(section, source));
    let snapshot = section.snapshot.as_ref().map(|file| snapshot(file, source)).transpose();
    let snapshot = errors.keep(snapshot);
    let origin = check_origin(section, source, errors);
    let engine = StoreConfig { memory_bytes, item_limit_bytes, ..StoreConfig::default() };
    let protocol = ServerOptions {
        limits: codec::CodecLimits {
            item_size_bytes: item_limit_bytes,
            ..codec::CodecLimits::default()
        },
        // The configuration sets the memory of a program that serves other things as well. A
        // client must not raise it.
        memory_ceiling_bytes: memory_bytes,
        stampede_guard: section.stampede_guard.map(Duration::from),
        ..ServerOptions::default()
    };
    Some(StoreSetup {
        engine,
        memcached: memcached?,
        bind: BindOptions::default(),
        protocol,
        snapshot: snapshot?,
        origin: origin?,
        origin_files: origin_files(section, source),
    })
}

/// Returns the addresses of the memcached port.
pub fn check_memcached(
    section: &StoreSection,
    source: &ConfigSource,
) -> Result<Vec<ListenAddress>, ConfigError> {
    section.memcached.iter().map(|text| check_address(text, source)).collect()
}

/// Returns the name of the cookie, which is a token (RFC 6265 section 4.1.1).
pub fn check_session_cookie(
    name: &Written<String>,
    source: &ConfigSource,
) -> Result<Arc<str>, ConfigError> {
    if name.len() > MAX_COOKIE_NAME_BYTES || !is_token(name.as_bytes()) {
        let message = format!(
            "`store.session_cookie`: `{}` is not the name of a cookie, such as \"simple_session\"",
            name.as_str()
        );
        return Err(source.error(name.span(), message));
    }
    Ok(name.as_str().into())
}

fn snapshot(file: &Written<String>, source: &ConfigSource) -> Result<PathBuf, ConfigError> {
    let path = source.path(file.as_str());
    if path.parent().is_some_and(Path::is_dir) && !path.is_dir() {
        return Ok(path);
    }
    let message =
        format!("`store.snapshot`: {} is not a file in a directory that exists", path.display());
    Err(source.error(file.span(), message))
}
