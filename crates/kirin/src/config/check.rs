//! From what a configuration says to what it means: every name resolved, every path there, every
//! value in range.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kirin_acme::AcmeConfig;
use kirin_gateway::routing::password_checks::PasswordChecks;
use kirin_gateway::routing::settings::{RouteSite, SiteConfig};
use kirin_http::request::HeadLimits;
use kirin_http::token::is_token;
use kirin_http::{Forwarding, ListenAddress};
use kirin_memcache::{ServerOptions, codec};
use kirin_proxy::UpstreamConfig;
use kirin_server::{BindOptions, Limits};
use kirin_user::User;
use kirin_workers::{MAX_WORKERS, Preload};
use serde_spanned::Spanned;

use super::admin::check_admin;
use super::check_route::{Named, check_route};
use super::load::{ConfigError, Source};
use super::tls::{TlsSite, check_tls};
use super::upstream::check_upstream;
use super::{AppConfig, Config, ListenerConfig, lua, proxies, rules};

/// Event loops at most; more than any machine has cores.
const MAX_THREADS: usize = 1024;

/// Connections at most: more than Linux has descriptors for.
const MAX_CONNECTIONS: usize = 1 << 30;

/// The largest request head that may be allowed.
const MAX_HEAD_BYTES: usize = 1024 * 1024;

/// A checked configuration.
#[derive(Debug)]
pub struct Site {
    /// Number of event loops.
    pub threads: usize,
    /// Whom to run as.
    pub user: Option<User>,
    /// Client connections at most; none for what the limit on open files allows.
    pub connections: Option<usize>,
    /// Memory that may be held for clients.
    pub client_memory_bytes: u64,
    /// Space in files that may be held for clients.
    pub client_disk_bytes: u64,
    /// Where to listen.
    pub listeners: Vec<ListenerSite>,
    /// The store.
    pub store: StoreSite,
    /// Where operators find Kirin.
    pub admin: Option<ListenAddress>,
    /// The applications, in the order of the file.
    pub apps: Vec<AppSite>,
    /// The upstreams, in the order of the file.
    pub upstreams: Vec<UpstreamConfig>,
    /// The routes, and what holds for all of them.
    pub gateway: SiteConfig,
}

/// A listener.
#[derive(Clone, Debug)]
pub struct ListenerSite {
    /// Where.
    pub address: ListenAddress,
    /// Where its access log goes.
    pub access_log: Option<LogTarget>,
    /// What its clients may take.
    pub limits: Limits,
    /// Memory that may be held for its clients, if less than for all.
    pub client_memory_bytes: Option<u64>,
    /// The same for space in files.
    pub client_disk_bytes: Option<u64>,
    /// Connections from one address at most.
    pub connections_per_address: Option<u32>,
    /// Its certificates, if clients come by https.
    pub tls: Option<TlsSite>,
    /// The port of https to which clients are sent.
    pub redirect_to_https: Option<u16>,
    /// The proxies in front of it.
    pub forwarding: Option<Forwarding>,
    /// Whether they begin connections with a PROXY header.
    pub proxy_protocol: bool,
}

/// Where log lines go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Appended to a file.
    File(PathBuf),
}

/// The store.
#[derive(Debug)]
pub struct StoreSite {
    /// The memory of the store.
    pub engine: kirin_store::StoreConfig,
    /// The addresses of the memcached port.
    pub memcached: Vec<ListenAddress>,
    /// How the sockets of the memcached port are bound.
    pub bind: BindOptions,
    /// The memcached protocol. The program adds the opened snapshot.
    pub protocol: ServerOptions,
    /// The snapshot file.
    pub snapshot: Option<PathBuf>,
}

/// An application.
#[derive(Debug)]
pub struct AppSite {
    /// Its name in routes.
    pub name: String,
    /// The PSGI file.
    pub load: PathBuf,
    /// Where it runs.
    pub directory: PathBuf,
    /// Number of workers.
    pub workers: usize,
    /// Who loads it.
    pub preload: Preload,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Requests that may wait.
    pub queue: usize,
    /// How long they may wait.
    pub queue_wait: Duration,
    /// Time for a request.
    pub deadline: Duration,
    /// Time to load.
    pub start_limit: Duration,
    /// Requests of a worker's life; 0 for no end.
    pub max_requests: u64,
    /// Age of a worker's life.
    pub max_age: Option<Duration>,
    /// Resident memory at which a worker is replaced, in bytes.
    pub max_memory_bytes: Option<u64>,
    /// Largest request body in bytes.
    pub body_limit_bytes: u64,
    /// Roots for X-Sendfile.
    pub sendfile: Vec<PathBuf>,
}

/// Checks `config`, which was read from `source`.
pub fn check(config: &Config, source: &Source) -> Result<Site, ConfigError> {
    let threads = match &config.threads {
        None => std::thread::available_parallelism().map_or(1, usize::from),
        Some(threads) => within(threads, MAX_THREADS, "`threads`", source)?,
    };
    let connections = match &config.connections {
        None => None,
        Some(limit) => Some(within(limit, MAX_CONNECTIONS, "`connections`", source)?),
    };
    if config.listener.is_empty() {
        return Err(
            source.error_in_all("no [[listener]]: add one with `address = \"127.0.0.1:8080\"`")
        );
    }
    if config.route.is_empty() {
        return Err(source.error_in_all(
            "no [[route]]: add one with `path = \"/\"` and `try = [\"files:public\"]`",
        ));
    }
    let mut listeners = Vec::new();
    for listener in &config.listener {
        let tls = listener.tls.as_ref().map(|tls| check_tls(tls, source)).transpose()?;
        if let Some(port) = &listener.redirect_to_https {
            let message = "`redirect_to_https` is a port, 1 to 65535, on a listener without `tls`";
            if tls.is_some() || *port.get_ref() == 0 {
                return Err(source.error(port.span(), message));
            }
        }
        listeners.push(ListenerSite {
            address: address(&listener.address, source)?,
            access_log: listener.access_log.as_ref().map(|target| log_target(target, source)),
            limits: listener_limits(listener, source)?,
            client_memory_bytes: of_clients(&listener.client_memory, "client_memory", source)?,
            client_disk_bytes: of_clients(&listener.client_disk, "client_disk", source)?,
            connections_per_address: match &listener.connections_per_address {
                None => None,
                Some(limit) => {
                    Some(within(limit, MAX_CONNECTIONS, "`connections_per_address`", source)? as u32)
                }
            },
            tls,
            redirect_to_https: listener.redirect_to_https.as_ref().map(|port| *port.get_ref()),
            forwarding: proxies::forwarding(listener, source)?,
            proxy_protocol: listener.proxy_protocol,
        });
    }
    check_acme_entrances(config, &listeners, source)?;
    let mut apps: Vec<AppSite> = Vec::new();
    for app in &config.app {
        let checked = check_app(app, source)?;
        if apps.iter().any(|other| other.name == checked.name) {
            let message = format!("a second [[app]] with the name `{}`", checked.name);
            return Err(source.error(app.name.span(), message));
        }
        apps.push(checked);
    }
    let mut upstreams: Vec<UpstreamConfig> = Vec::new();
    for upstream in &config.upstream {
        let checked = check_upstream(upstream, source)?;
        if upstreams.iter().any(|other| other.name == checked.name) {
            let message = format!("a second [[upstream]] with the name `{}`", checked.name);
            return Err(source.error(upstream.name.span(), message));
        }
        upstreams.push(checked);
    }
    let named = Named { apps: &apps, upstreams: &upstreams };
    let checks = PasswordChecks::new(threads).map_err(|error| source.error_in_all(error))?;
    let checks = Arc::new(checks);
    let store = check_store(config, source)?;
    let mut routes: Vec<RouteSite> = Vec::new();
    for route in &config.route {
        let checked = check_route(route, &named, &checks, store.engine.item_limit_bytes, source)?;
        if routes.iter().any(|other| other.path == checked.path) {
            let message = format!("a second [[route]] with the path `{}`", route.path.get_ref());
            return Err(source.error(route.path.span(), message));
        }
        routes.push(checked);
    }
    routes.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
    rules::check_together(&routes, &config.route, source)?;
    let session_cookie = config.store.session_cookie.as_ref();
    let session_cookie = session_cookie.map(|name| check_cookie_name(name, source)).transpose()?;
    let purge_from = proxies::peers(&config.store.purge_from, "purge_from", source)?;
    let user = config.user.as_ref().map(|name| check_user(name, source)).transpose()?;
    let admin = check_admin(config, source)?;
    let limits = &config.limits;
    for (key, size) in
        [("client_memory", limits.client_memory), ("client_disk", limits.client_disk)]
    {
        if size.0 < MIN_CLIENT_BYTES {
            return Err(source.error_in_all(too_few_for_clients(&format!("limits.{key}"), size)));
        }
    }
    Ok(Site {
        threads,
        user,
        connections,
        client_memory_bytes: limits.client_memory.0,
        client_disk_bytes: limits.client_disk.0,
        listeners,
        store,
        admin,
        apps,
        gateway: SiteConfig {
            routes,
            session_cookie,
            purge_from,
            lua: lua::limits(&config.lua, source)?,
            script_extensions: script_extensions(&upstreams),
        },
        upstreams,
    })
}

/// The extensions of all FastCGI upstreams. They count for every directory: scripts include files
/// from directories beside their root, and a second copy of an application has the passwords of the
/// first.
fn script_extensions(upstreams: &[UpstreamConfig]) -> Vec<String> {
    let mut extensions: Vec<String> = Vec::new();
    for fastcgi in upstreams.iter().filter_map(|upstream| upstream.fastcgi.as_ref()) {
        if !extensions.contains(&fastcgi.extension) {
            extensions.push(fastcgi.extension.clone());
        }
    }
    extensions
}

/// Authorities come by plain HTTP, and certificates are kept under the first of their names.
fn check_acme_entrances(
    config: &Config,
    listeners: &[ListenerSite],
    source: &Source,
) -> Result<(), ConfigError> {
    let mut seen: Vec<&AcmeConfig> = Vec::new();
    for (written, listener) in config.listener.iter().zip(listeners) {
        let written = written.tls.as_ref().and_then(|tls| tls.acme.as_ref());
        let acme = listener.tls.as_ref().and_then(|tls| tls.acme.as_ref());
        let (Some(written), Some(acme)) = (written, acme) else { continue };
        if listeners.iter().all(|listener| listener.tls.is_some()) {
            let message = "an authority looks for Kirin by plain HTTP: add a [[listener]] with `address = \"*:80\"` and \
                           `redirect_to_https = 443`";
            return Err(source.error(written.span(), message));
        }
        if seen.iter().any(|other| *other != acme && other.domains.first() == acme.domains.first())
        {
            let message = "listeners whose `domains` begin with the same name must have all of `acme` in common";
            return Err(source.error(written.span(), message));
        }
        seen.push(acme);
    }
    Ok(())
}

/// The addresses of the memcached port.
pub fn check_memcached(
    config: &Config,
    source: &Source,
) -> Result<Vec<ListenAddress>, ConfigError> {
    config.store.memcached.iter().map(|text| address(text, source)).collect()
}

fn check_user(name: &Spanned<String>, source: &Source) -> Result<User, ConfigError> {
    let message = match User::find(name.get_ref()) {
        Ok(Some(user)) => return Ok(user),
        Ok(None) => format!("there is no user `{}` on this machine", name.get_ref()),
        Err(error) => format!("the user `{}` cannot be looked up: {error}", name.get_ref()),
    };
    Err(source.error(name.span(), message))
}

/// Below this a single upload would find no room.
const MIN_CLIENT_BYTES: u64 = 1 << 20;

fn too_few_for_clients(key: &str, size: super::ByteSize) -> String {
    format!("`{key}` is {size}: at least 1MB is needed")
}

/// What a listener may hold for its clients.
fn of_clients(
    size: &Option<Spanned<super::ByteSize>>,
    key: &str,
    source: &Source,
) -> Result<Option<u64>, ConfigError> {
    let Some(size) = size else { return Ok(None) };
    if size.get_ref().0 < MIN_CLIENT_BYTES {
        return Err(source.error(size.span(), too_few_for_clients(key, *size.get_ref())));
    }
    Ok(Some(size.get_ref().0))
}

fn listener_limits(listener: &ListenerConfig, source: &Source) -> Result<Limits, ConfigError> {
    let bytes = |size: super::ByteSize| usize::try_from(size.0).unwrap_or(usize::MAX);
    let head = HeadLimits {
        head_bytes: bytes(listener.head_limit),
        request_line_bytes: bytes(listener.request_line_limit),
    };
    if head.head_bytes > MAX_HEAD_BYTES
        || !(64..=head.head_bytes).contains(&head.request_line_bytes)
    {
        return Err(source.error(
            listener.address.span(),
            format!(
                "`head_limit` is {} and `request_line_limit` {}: allowed is 64B up to `head_limit` for the line and up to 1MB \
                 for the head",
                listener.head_limit, listener.request_line_limit
            ),
        ));
    }
    Ok(Limits {
        head,
        keep_alive: listener.keep_alive.into(),
        head_time: listener.head_timeout.into(),
        body_time: listener.body_timeout.into(),
        write_time: listener.write_timeout.into(),
        min_rate_bytes: listener.min_rate.0,
        admission: None,
        client_bytes: None,
    })
}

fn check_store(config: &Config, source: &Source) -> Result<StoreSite, ConfigError> {
    let store = &config.store;
    let bytes = |size: super::ByteSize| usize::try_from(size.0).unwrap_or(usize::MAX);
    let (memory_bytes, item_limit_bytes) = (bytes(store.memory), bytes(store.item_limit));
    if memory_bytes < 1 << 20 {
        return Err(source
            .error_in_all(format!("`store.memory` is {}: at least 1MB is needed", store.memory)));
    }
    if item_limit_bytes < 1024 || item_limit_bytes > memory_bytes / 2 {
        return Err(source.error_in_all(format!(
            "`store.item_limit` is {}: allowed is 1KB up to half of `store.memory` ({})",
            store.item_limit, store.memory
        )));
    }
    let memcached = check_memcached(config, source)?;
    let snapshot = match &store.snapshot {
        None => None,
        Some(file) => {
            let path = absolute(&source.directory.join(file.get_ref()));
            if !path.parent().is_some_and(std::path::Path::is_dir) || path.is_dir() {
                let message = format!(
                    "`store.snapshot`: {} is not a file in a directory that exists",
                    path.display()
                );
                return Err(source.error(file.span(), message));
            }
            Some(path)
        }
    };
    let engine = kirin_store::StoreConfig {
        memory_bytes,
        item_limit_bytes,
        ..kirin_store::StoreConfig::default()
    };
    let protocol = ServerOptions {
        limits: codec::Limits { item_size_bytes: item_limit_bytes, ..codec::Limits::default() },
        // The configuration sets the memory of a program that serves other things as well. A
        // client must not raise it.
        memory_ceiling_bytes: memory_bytes,
        stampede_guard: store.stampede_guard.map(Duration::from),
        ..ServerOptions::default()
    };
    Ok(StoreSite { engine, memcached, bind: BindOptions::default(), protocol, snapshot })
}

/// A token (RFC 6265 section 4.1.1), which is also what clients send.
fn check_cookie_name(name: &Spanned<String>, source: &Source) -> Result<Arc<str>, ConfigError> {
    let text = name.get_ref();
    if text.len() > 64 || !is_token(text.as_bytes()) {
        let message = format!(
            "`store.session_cookie`: `{text}` is not the name of a cookie, such as \"simple_session\""
        );
        return Err(source.error(name.span(), message));
    }
    Ok(text.as_str().into())
}

fn check_app(app: &AppConfig, source: &Source) -> Result<AppSite, ConfigError> {
    let name = app.name.get_ref();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        let message =
            format!("app name `{name}`: allowed are 1 to 64 letters, digits, `-` and `_`");
        return Err(source.error(app.name.span(), message));
    }
    let directory = match &app.directory {
        Some(directory) => existing_directory(directory, source)?,
        None => absolute(&source.directory),
    };
    let load = absolute(&source.directory.join(app.load.get_ref()));
    if !load.is_file() {
        let message = format!("`load` of app `{name}`: there is no file {}", load.display());
        return Err(source.error(app.load.span(), message));
    }
    Ok(AppSite {
        name: name.clone(),
        load,
        directory,
        workers: within(&app.workers, MAX_WORKERS, "`workers`", source)?,
        preload: app.preload.0,
        env: app.env.clone(),
        queue: app.queue,
        queue_wait: app.queue_wait.into(),
        deadline: app.deadline.into(),
        start_limit: app.start_limit.into(),
        max_requests: app.max_requests,
        max_age: app.max_age.map(Duration::from),
        max_memory_bytes: app.max_memory.map(|size| size.0),
        body_limit_bytes: app.body_limit.0,
        sendfile: app
            .sendfile
            .iter()
            .map(|root| existing_directory(root, source))
            .collect::<Result<_, _>>()?,
    })
}

pub(super) fn address(
    text: &Spanned<String>,
    source: &Source,
) -> Result<ListenAddress, ConfigError> {
    let address = text.get_ref().parse().map_err(|error: kirin_http::InvalidListenAddress| {
        source.error(text.span(), error.to_string())
    })?;
    Ok(match address {
        ListenAddress::Unix(path) => ListenAddress::Unix(absolute(&source.directory.join(path))),
        tcp => tcp,
    })
}

fn log_target(text: &Spanned<String>, source: &Source) -> LogTarget {
    match text.get_ref().as_str() {
        "stdout" => LogTarget::Stdout,
        "stderr" => LogTarget::Stderr,
        path => LogTarget::File(absolute(&source.directory.join(path))),
    }
}

pub(super) fn existing_directory(
    path: &Spanned<String>,
    source: &Source,
) -> Result<PathBuf, ConfigError> {
    let directory = absolute(&source.directory.join(path.get_ref()));
    if directory.is_dir() {
        return Ok(directory);
    }
    Err(source.error(path.span(), format!("there is no directory {}", directory.display())))
}

/// The path from the root, so that it means the same in an application that runs elsewhere.
pub(super) fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

pub(super) fn within(
    number: &Spanned<usize>,
    most: usize,
    key: &str,
    source: &Source,
) -> Result<usize, ConfigError> {
    let value = *number.get_ref();
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(source.error(number.span(), format!("{key} is {value}: allowed is 1 to {most}")))
}

#[cfg(test)]
#[path = "check_tests.rs"]
pub(super) mod tests;
