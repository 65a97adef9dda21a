//! What is probably wrong in a configuration that is good.

use std::collections::HashSet;
use std::path::Path;

use kirin_gateway::routing::settings::SiteConfig;
use kirin_http::ListenAddress;
use kirin_proxy::UpstreamConfig;

use crate::check::Config;
use crate::file::ConfigFile;
use crate::listener::check_address;
use crate::source::{ConfigError, ConfigSource};
use crate::upstream::UpstreamSection;
use crate::written::Written;

/// Returns what is probably wrong.
pub fn warnings(
    file: &ConfigFile,
    upstreams: &[UpstreamConfig],
    sites: &[SiteConfig],
    source: &ConfigSource,
) -> Vec<ConfigError> {
    let roots = missing_roots(file, upstreams, source);
    [roots, unused(file, sites, source), open_ports(file, source)].concat()
}

/// Returns a warning for each directory of a FastCGI upstream that does not exist. A server in a
/// container may have it, so that this is not an error.
fn missing_roots(
    file: &ConfigFile,
    upstreams: &[UpstreamConfig],
    source: &ConfigSource,
) -> Vec<ConfigError> {
    let without_root = |(section, upstream): (&UpstreamSection, &UpstreamConfig)| {
        let root = Path::new(&upstream.fastcgi.as_ref()?.root);
        let written = section.root.as_ref().filter(|_| !root.is_dir())?;
        let message = format!(
            "warning: upstream `{}`: its `root` {} is not a directory on this machine; a server \
             on this machine finds no scripts there",
            upstream.name,
            root.display()
        );
        Some(source.error(written.span(), message))
    };
    file.upstream.iter().zip(upstreams).filter_map(without_root).collect()
}

/// Returns a warning for each application and upstream that no route names.
fn unused(file: &ConfigFile, sites: &[SiteConfig], source: &ConfigSource) -> Vec<ConfigError> {
    let routes = || sites.iter().flat_map(|site| &site.routes);
    let authorities = routes().filter_map(|route| route.authority.as_deref());
    let places = routes().chain(authorities).flat_map(|route| &route.places);
    let mut named: HashSet<String> = places.map(ToString::to_string).collect();
    let mirrors = routes().filter_map(|route| route.mirror.as_ref());
    named.extend(mirrors.map(|mirror| mirror.to.clone()));
    let apps = file.app.iter().map(|app| ("app", &app.name, "its workers get no requests"));
    let upstreams = file.upstream.iter();
    let upstreams = upstreams.map(|upstream| ("proxy", &upstream.name, "it gets no requests"));
    let warning = |(place, name, what): (&str, &Written<String>, &str)| {
        let place = format!("{place}:{}", name.as_str());
        let message = format!("warning: no route has `{place}` in its `try`, so {what}");
        (!named.contains(&place)).then(|| source.error(name.span(), message))
    };
    apps.chain(upstreams).filter_map(warning).collect()
}

/// Returns a warning for each address that others can reach and that has no password.
fn open_ports(file: &ConfigFile, source: &ConfigSource) -> Vec<ConfigError> {
    let memcached = file.store.memcached.iter().map(|address| {
        (address, "store.memcached", "everybody who reaches it can read and write all items")
    });
    let metrics = file.metrics.iter();
    let metrics =
        metrics.map(|address| (address, "metrics", "everybody who reaches it can read them"));
    let warning = |(address, key, what): (&Written<String>, &str, &str)| {
        let ListenAddress::Tcp(tcp) = check_address(address, source).ok()? else { return None };
        let message = format!(
            "warning: `{key}` listens on {tcp} without a password: {what}; listen on 127.0.0.1 or \
             unix:PATH, or have a firewall choose who may connect"
        );
        (!tcp.ip().to_canonical().is_loopback()).then(|| source.error(address.span(), message))
    };
    memcached.chain(metrics).filter_map(warning).collect()
}

/// Returns a warning for each password file with weak hashes.
pub fn weak_passwords(config: &Config) -> Vec<String> {
    let routes = config.gateway.sites.iter().flat_map(|site| &site.routes);
    let mut warnings: Vec<String> = Vec::new();
    for basic_auth in routes.filter_map(|route| route.rules.basic_auth.as_ref()) {
        if let Some(warning) = basic_auth.weakness()
            && !warnings.contains(&warning)
        {
            warnings.push(warning);
        }
    }
    warnings
}
