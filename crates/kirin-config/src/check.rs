//! Turns the keys of a file into the configuration of the program. All names are resolved, all
//! paths exist, and all values are in range.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use kirin_gateway::routing::password_checks::PasswordChecks;
use kirin_gateway::routing::settings::GatewayConfig;
use kirin_http::ListenAddress;
use kirin_proxy::UpstreamConfig;
use kirin_traces::TraceConfig;
use kirin_url_patterns::ConfiguredPattern;
use kirin_user::User;
use kirin_workers::AppConfig;

use crate::access_log::{AccessLogConfig, LogsOfFile};
use crate::acme_shared_key::check_shared_keys;
use crate::admin::check_admin;
use crate::app::check_app;
use crate::file::ConfigFile;
use crate::files::{check_index_scripts, read_open_file_cache};
use crate::listener::{
    ListenerConfig, check_acme_listeners, check_address, check_listener, too_small_for_clients,
};
use crate::load::{Loaded, load, load_command_addresses};
use crate::lua::check_lua;
use crate::peers::peers;
use crate::place::Named;
use crate::redirect_tables::RedirectTables;
use crate::route::RouteContext;
use crate::site::{Sites, check_sites};
use crate::source::{ConfigError, ConfigErrors, ConfigSource, ErrorCollector};
use crate::store::{StoreSetup, check_session_cookie, check_store};
use crate::traces::check_traces;
use crate::unique::check_unique;
use crate::units::Number;
use crate::upstream::check_upstream;
use crate::warnings::warnings;
use crate::written::Written;

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    /// The number of event loops.
    pub threads: usize,
    /// The user to run as.
    pub user: Option<User>,
    /// The most client connections. `None`: as many as the limit on open files allows.
    pub connections: Option<usize>,
    /// The most descriptors in each cache of open files. `None`: a share of the limit on open
    /// files.
    pub file_descriptors: Option<usize>,
    /// The most memory that is held for clients, in bytes.
    pub client_memory_bytes: u64,
    /// The most space in files that is held for clients, in bytes.
    pub client_disk_bytes: u64,
    /// The listeners, in the order of the file.
    pub listeners: Vec<ListenerConfig>,
    /// The access logs that routes have in place of that of the listener. Routes name them by their
    /// numbers.
    pub route_logs: Vec<AccessLogConfig>,
    /// The store.
    pub store: StoreSetup,
    /// The address of the admin listener.
    pub admin: Option<ListenAddress>,
    /// The collector of traces.
    pub traces: Option<TraceConfig>,
    /// The address on which metrics are read.
    pub metrics: Option<ListenAddress>,
    /// The patterns of paths by which requests are counted.
    pub url_patterns: Vec<ConfiguredPattern>,
    /// The applications, in the order of the file.
    pub apps: Vec<AppConfig>,
    /// The upstreams, in the order of the file.
    pub upstreams: Vec<UpstreamConfig>,
    /// The sites, and what holds for all of them.
    pub gateway: GatewayConfig,
    /// The checks of passwords. `None` if there are no routes.
    pub password_checks: Option<Arc<PasswordChecks>>,
    /// The number of the next route that no configuration had before.
    pub next_route: u32,
    /// The files of redirects that routes name.
    pub redirect_files: Vec<PathBuf>,
    /// The included files, and the directories in which `include` looks for files.
    pub included_paths: Vec<PathBuf>,
    /// What is probably wrong.
    pub warnings: Vec<ConfigError>,
    /// The access logs that this process could not write. They are no errors for those who only
    /// read the configuration.
    pub unwritable_logs: Vec<ConfigError>,
}

/// Reads and checks a configuration. The errors are all that it has.
pub fn read(source: &ConfigSource) -> Result<Config, ConfigErrors> {
    read_with(source, None)
}

/// Reads and checks a configuration that takes the place of another. Routes with the same names
/// keep their numbers, and take over what goes on in them.
pub fn read_after(source: &ConfigSource, before: &Config) -> Result<Config, ConfigErrors> {
    read_with(source, Some(before))
}

fn read_with(source: &ConfigSource, before: Option<&Config>) -> Result<Config, ConfigErrors> {
    let loaded = load(source);
    let mut errors = ErrorCollector::default();
    let mut later = ErrorCollector::default();
    let check_file = |file| check(file, &loaded, source, before, &mut later);
    let config = loaded.file.as_ref().and_then(check_file);
    for error in loaded.errors.iter().cloned().chain(loaded.unusable_keys(source)) {
        errors.push(error);
    }
    for error in loaded.own_errors(later.into_errors()) {
        errors.push(error);
    }
    let mut config = errors.finish(config, source)?;
    config.continue_from(before);
    Ok(config)
}

/// Returns the addresses of the admin listener and of the memcached port, by which commands reach a
/// running Kirin. The rest of the file is not checked.
pub fn read_command_addresses(
    source: &ConfigSource,
) -> Result<(Option<ListenAddress>, Vec<ListenAddress>), ConfigErrors> {
    let loaded = load_command_addresses(source);
    let mut errors = ErrorCollector::default();
    for error in &loaded.errors {
        errors.push(error.clone());
    }
    let addresses = loaded.file.as_ref().and_then(|file| {
        let admin = file.admin.as_ref().map(|admin| check_admin(admin, source)).transpose();
        let admin = errors.keep(admin)?;
        let memcached = crate::store::check_memcached(&file.store, source);
        Some((admin, errors.keep(memcached)?))
    });
    errors.finish(addresses, source)
}

/// Checks `file`, which was read from `source`.
fn check(
    file: &ConfigFile,
    loaded: &Loaded<'_>,
    source: &ConfigSource,
    before: Option<&Config>,
    errors: &mut ErrorCollector,
) -> Option<Config> {
    let threads = match file.threads {
        None => std::thread::available_parallelism().map_or(1, usize::from),
        Some(threads) => threads.length(),
    };
    if file.listener.is_empty() && !loaded.has_left_out("listener") {
        let message = "no [[listener]]: add one with `address = \"127.0.0.1:8080\"`";
        errors.push(source.error_in_all(message));
    }
    let is_wrong = ["route", "site"].iter().any(|section| loaded.has_left_out(section));
    if file.route.is_empty() && file.site.is_empty() && !is_wrong {
        let message = "no [[route]]: add one with `path = \"/\"` and `try = [\"files:public\"]`";
        errors.push(source.error_in_all(message));
    }
    let logs = LogsOfFile::default();
    let check_one = |section| check_listener(section, &logs, source, errors);
    let listeners = file.listener.iter().map(check_one);
    let mut listeners = complete(listeners.collect());
    if let Some(listeners) = &mut listeners {
        errors.keep(check_acme_listeners(&file.listener, listeners, source));
    }
    errors.keep(check_shared_keys(&file.listener, file.store.origin.is_some(), source));
    let apps = file.app.iter().map(|section| check_app(section, source, errors));
    let apps = complete(apps.collect());
    check_unique("app", "name", file.app.iter().map(|app| &app.name), source, errors);
    let upstreams = file.upstream.iter().map(|section| check_upstream(section, source, errors));
    let upstreams = complete(upstreams.collect());
    let names = file.upstream.iter().map(|upstream| &upstream.name);
    check_unique("upstream", "name", names, source, errors);
    let store = check_store(&file.store, source, errors);
    let cookie = file.store.session_cookie.as_ref();
    let cookie = cookie.map(|name| check_session_cookie(name, source)).transpose();
    let session_cookie = errors.keep(cookie);
    let purge_from = errors.keep(peers(&file.store.purge_from, "purge_from", source));
    let lua = errors.keep(check_lua(&file.lua, source));
    let user = errors.keep(file.user.as_ref().map(|name| check_user(name, source)).transpose());
    let admin = file.admin.as_ref().map(|admin| check_admin(admin, source)).transpose();
    let admin = errors.keep(admin);
    let traces = file.traces.as_ref().map(|traces| check_traces(traces, source)).transpose();
    let traces = errors.keep(traces);
    let metrics = file.metrics.as_ref().map(|address| check_address(address, source)).transpose();
    let metrics = errors.keep(metrics);
    let url_patterns = check_url_patterns(file, source, errors);
    let limits = &file.limits;
    for (key, size) in
        [("limits.client_memory", limits.client_memory), ("limits.client_disk", limits.client_disk)]
    {
        if let Some(message) = too_small_for_clients(key, size) {
            errors.push(source.error_in_all(message));
        }
    }
    check_addresses(file, source, errors);
    let checks = match before.and_then(|before| before.password_checks.as_ref()) {
        Some(checks) => Ok(Arc::clone(checks)),
        None => PasswordChecks::new(threads).map(Arc::new),
    };
    let checks = checks.map_err(|error| source.error_in_all(error));
    let checks = errors.keep(checks)?;
    let sites = check_all_sites(file, &checks, &logs, source, errors);
    let upstreams = upstreams?;
    let CheckedSites { sites, route_logs, redirect_files } = sites?;
    let Sites { sites, hosts, namespaces } = sites;
    let script_extensions = script_extensions(&upstreams);
    for section in file.route.iter().chain(file.site.iter().flat_map(|site| &site.route)) {
        check_index_scripts(section, &script_extensions, source, errors);
    }
    let warnings = warnings(file, &upstreams, &sites, source);
    Some(Config {
        threads,
        user: user?,
        connections: file.connections.map(Number::length),
        file_descriptors: file.open_file_cache.descriptors.map(Number::length),
        client_memory_bytes: limits.client_memory.0,
        client_disk_bytes: limits.client_disk.0,
        listeners: listeners?,
        route_logs,
        store: store?,
        admin: admin?,
        traces: traces?,
        metrics: metrics?,
        url_patterns,
        apps: apps?,
        gateway: GatewayConfig {
            sites,
            hosts: Arc::new(hosts),
            namespaces,
            session_cookie: session_cookie?,
            purge_from: purge_from?,
            lua: lua?,
            script_extensions,
            open_file_cache: read_open_file_cache(&file.open_file_cache),
        },
        warnings,
        unwritable_logs: logs.unwritable(source),
        upstreams,
        password_checks: Some(checks),
        next_route: 0,
        redirect_files,
        included_paths: source.included_paths().to_vec(),
    })
}

impl Config {
    /// Numbers the routes, names their shared limits, and takes over what goes on in `before`.
    fn continue_from(&mut self, before: Option<&Self>) {
        let routes_before = before.map(|before| &before.gateway);
        let next = before.map_or(0, |before| before.next_route);
        self.next_route = self.gateway.number_routes(routes_before, next);
        self.gateway.name_shared_limits();
        if let Some(before) = routes_before {
            self.gateway.continue_routes(before);
        }
    }
}

/// Refuses an address at which two parts of Kirin listen. The kernel lets one program do so, and
/// gives each of the two some of the clients.
fn check_addresses(file: &ConfigFile, source: &ConfigSource, errors: &mut ErrorCollector) {
    let listeners = file.listener.iter().map(|section| ("a [[listener]]", &section.address));
    let memcached = file.store.memcached.iter().map(|address| ("`store.memcached`", address));
    let admin = file.admin.iter().map(|admin| ("`admin`", &admin.address));
    let metrics = file.metrics.iter().map(|address| ("`metrics`", address));
    let mut seen = Vec::new();
    for (part, written) in listeners.chain(memcached).chain(admin).chain(metrics) {
        // Its own check reports an address that cannot be read.
        let Ok(address) = check_address(written, source) else { continue };
        // Each socket with port 0 gets a port of its own.
        if matches!(&address, ListenAddress::Tcp(tcp) if tcp.port() == 0) {
            continue;
        }
        match seen.iter().find(|(_, _, other)| *other == address) {
            Some((other, first, _)) => {
                let address = written.as_str();
                let line = source.line_seen_from(*first, written.span().start);
                let message = format!("`{address}` is already the address of {other}, on {line}");
                errors.push(source.error(written.span(), message));
            }
            None => seen.push((part, written.span().start, address)),
        }
    }
}

/// The sites, and the files that their routes name.
struct CheckedSites {
    sites: Sites,
    route_logs: Vec<AccessLogConfig>,
    redirect_files: Vec<PathBuf>,
}

/// Checks all sites, which share the checks of passwords.
fn check_all_sites(
    file: &ConfigFile,
    checks: &Arc<PasswordChecks>,
    logs: &LogsOfFile,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<CheckedSites> {
    let context = RouteContext {
        named: Named {
            apps: file.app.iter().map(|app| app.name.as_str()).collect(),
            upstreams: file.upstream.iter().map(|upstream| upstream.name.as_str()).collect(),
        },
        limited_upstreams: (file.upstream.iter())
            .filter(|upstream| upstream.is_limited())
            .map(|upstream| upstream.name.as_str())
            .collect(),
        checks,
        redirect_tables: RedirectTables::default(),
        item_limit_bytes: file.store.item_limit.length(),
        has_origin: file.store.origin.is_some(),
        file_logs: logs,
        logs: RefCell::default(),
    };
    let sites = check_sites(&file.route, &file.site, &context, source, errors)?;
    let logs = context.logs.into_inner().into_iter().map(|route| route.log);
    let redirect_files = context.redirect_tables.into_paths();
    Some(CheckedSites { sites, route_logs: logs.collect(), redirect_files })
}

/// Returns the items if all of them could be made.
fn complete<T>(items: Vec<Option<T>>) -> Option<Vec<T>> {
    items.into_iter().collect()
}

/// Returns the patterns that can be parsed.
fn check_url_patterns(
    file: &ConfigFile,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Vec<ConfiguredPattern> {
    let check = |text: &Written<String>| {
        ConfiguredPattern::parse(text)
            .map_err(|error| source.error(text.span(), format!("`url_patterns`: {error}")))
    };
    file.url_patterns.iter().filter_map(|text| errors.keep(check(text))).collect()
}

/// Returns the extensions of all FastCGI upstreams. They count for every directory: scripts include
/// files from directories beside their root, and a second copy of an application has the passwords
/// of the first.
fn script_extensions(upstreams: &[UpstreamConfig]) -> Vec<String> {
    let mut extensions: Vec<String> = Vec::new();
    for fastcgi in upstreams.iter().filter_map(|upstream| upstream.fastcgi.as_ref()) {
        if !extensions.contains(&fastcgi.extension) {
            extensions.push(fastcgi.extension.clone());
        }
    }
    extensions
}

fn check_user(name: &Written<String>, source: &ConfigSource) -> Result<User, ConfigError> {
    let message = match User::find(name) {
        Ok(Some(user)) => return Ok(user),
        Ok(None) => format!("there is no user `{}` on this machine", name.as_str()),
        Err(error) => format!("the user `{}` cannot be looked up: {error}", name.as_str()),
    };
    Err(source.error(name.span(), message))
}

#[cfg(test)]
#[path = "check_tests.rs"]
pub(super) mod tests;
