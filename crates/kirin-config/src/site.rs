//! `[[site]]`: hosts, the routes that answer for them, and what holds for all of these.

use std::collections::BTreeSet;
use std::sync::Arc;

use kirin_gateway::routing::host_table::{HostTable, NAME_LIMIT_BYTES, SiteHost};
use kirin_gateway::routing::settings::SiteConfig;
use kirin_store::NamespaceNames;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::route::{RouteContext, RouteSection};
use crate::routes::check_routes;
use crate::source::{ConfigSource, ErrorCollector};
use crate::written::Written;

/// Hosts and their routes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteSection {
    /// The hosts that the site answers for, such as `["example.org", "*.example.org"]`. A wildcard
    /// stands for all names below, at any depth. `"example.*"` stands for all names that begin with
    /// `example.`, and `"~^www[0-9]+[.]example[.]org$"` is a regular expression; a site with one of
    /// these needs a `name`. A name counts before a wildcard, a longer wildcard before a shorter
    /// one, a wildcard at the start before one at the end, and a regular expression last, in the
    /// order of the file. `["*"]` is every host that no other site has, as routes at the top level
    /// are. Ports, upper case and a dot at the end make no difference.
    pub hosts: Written<Vec<Written<String>>>,
    /// The name of the site in the store: keys and tags of its pages, sessions and other items
    /// begin with this name and `:` ([store.md](store.md#sites)). Default: the first host without a
    /// wildcard. Each host that only a wildcard matches has its own items then, under its own name.
    pub name: Option<Written<String>>,
    /// Which request goes where, as `[[route]]` at the top level. Every key of a route but `path`,
    /// `match`, `try`, `fallback`, `redirect`, `redirect_status` and `rewrite` may also stand in
    /// the site. It holds for all routes of the site that do not have it themselves. The entries of
    /// `headers` and `error_pages` are added to those of each route ([routes.md](routes.md#sites)).
    #[serde(default)]
    pub route: Vec<RouteSection>,
}

/// The checked sites.
pub struct Sites {
    /// The sites.
    pub sites: Vec<SiteConfig>,
    /// Their hosts.
    pub hosts: HostTable,
    /// Their parts of the store.
    pub namespaces: NamespaceNames,
}

/// The sites so far.
#[derive(Default)]
struct KnownSites {
    hosts: HostTable,
    names: BTreeSet<String>,
    suffixes: Vec<String>,
}

/// Checks the routes at the top level and all sites.
pub fn check_sites(
    routes: &[RouteSection],
    sections: &[SiteSection],
    context: &RouteContext<'_>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<Sites> {
    let mut names = KnownSites::default();
    let mut sites = Vec::new();
    if !routes.is_empty() {
        names.hosts.add(SiteHost::Any, 0);
        let routes = check_routes(routes, context, source, errors);
        sites.push(routes.map(|(routes, table)| SiteConfig {
            name: None,
            separates_hosts: false,
            routes,
            table: Arc::new(table),
        }));
    }
    for section in sections {
        let site = names.add(section, sites.len(), source, errors);
        if section.route.is_empty() {
            let message = "a site without a [[site.route]]: add one with `path = \"/\"` and \
                           `try = [\"files:public\"]`";
            errors.push(source.error(section.hosts.span(), message));
        }
        let routes = check_routes(&section.route, context, source, errors);
        let SiteConfig { name, separates_hosts, .. } = site;
        sites.push(routes.map(|(routes, table)| SiteConfig {
            name,
            separates_hosts,
            routes,
            table: Arc::new(table),
        }));
    }
    let sites = sites.into_iter().collect::<Option<_>>()?;
    let KnownSites { hosts, names, suffixes, .. } = names;
    Some(Sites { sites, hosts, namespaces: NamespaceNames::new(names, suffixes) })
}

impl KnownSites {
    /// Takes the hosts and the name of a site, which gets the index `index`. Returns the site
    /// without its routes.
    fn add(
        &mut self,
        section: &SiteSection,
        index: usize,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> SiteConfig {
        if section.hosts.is_empty() {
            let message = "`hosts` is empty: name the hosts of the site, or `\"*\"` for all that \
                           no other site has";
            errors.push(source.error(section.hosts.span(), message));
        }
        let mut default_name = None;
        let (mut is_any, mut wildcards, mut nameless) = (false, Vec::new(), None);
        for written in section.hosts.iter() {
            let host = match SiteHost::read(written) {
                Ok(host) => host,
                Err(message) => {
                    errors.push(source.error(written.span(), message));
                    continue;
                }
            };
            match &host {
                SiteHost::Any => is_any = true,
                SiteHost::Exact(name) => {
                    default_name.get_or_insert_with(|| (name.clone(), written));
                }
                SiteHost::Below(name) => wildcards.push(format!(".{name}")),
                SiteHost::StartsWith(_) | SiteHost::Matches(_) if section.name.is_none() => {
                    nameless.get_or_insert(written);
                }
                SiteHost::StartsWith(_) | SiteHost::Matches(_) => {}
            }
            let is_default = host == SiteHost::Any;
            if !self.hosts.add(host, index) {
                let message = match is_default {
                    true => "`*` is every host that no other site has, and another site or the \
                             [[route]]s at the top level are that already"
                        .to_owned(),
                    false => format!("`{}` is already a host of a site", written.as_str()),
                };
                errors.push(source.error(written.span(), message));
            }
        }
        if let Some(written) = nameless {
            let message = format!(
                "all hosts that `{}` stands for share one part of the store: give the site a `name`",
                written.as_str()
            );
            errors.push(source.error(written.span(), message));
        }
        if is_any && section.hosts.len() > 1 {
            let message = "`\"*\"` already stands for every host that no other site has: leave \
                           out the other hosts, or `\"*\"`";
            errors.push(source.error(section.hosts.span(), message));
        }
        let name = match &section.name {
            Some(name) => self.check_name(name, source, errors).then(|| name.to_string()),
            None => default_name.and_then(|(name, written)| {
                let is_good = self.check_default_name(&name, written, source, errors);
                is_good.then_some(name)
            }),
        };
        let separates_hosts = section.name.is_none() && !wildcards.is_empty();
        if separates_hosts {
            self.suffixes.extend(wildcards);
        }
        self.names.extend(name.clone());
        SiteConfig { name, separates_hosts, routes: Vec::new(), table: Arc::default() }
    }

    /// Checks a name that the user has given. It has no dot, so that it is no host of another site.
    fn check_name(
        &self,
        name: &Written<String>,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> bool {
        let is_part = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        };
        if name.is_empty() || name.len() > NAME_LIMIT_BYTES || !name.bytes().all(is_part) {
            let message = format!(
                "`{}` is not a name for a site: allowed are 1 to {NAME_LIMIT_BYTES} lower-case \
                 letters, digits, `-` and `_`",
                name.as_str()
            );
            errors.push(source.error(name.span(), message));
            return false;
        }
        self.is_new(name, name, source, errors)
    }

    /// Checks a host that is the name of its site.
    fn check_default_name(
        &self,
        name: &str,
        written: &Written<String>,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> bool {
        if name.len() > NAME_LIMIT_BYTES || name.contains(':') {
            let message = format!(
                "`{}` cannot be the name of the site in the store (at most {NAME_LIMIT_BYTES} \
                 bytes, no `:`): give the site a `name`",
                written.as_str()
            );
            errors.push(source.error(written.span(), message));
            return false;
        }
        self.is_new(name, written, source, errors)
    }

    fn is_new(
        &self,
        name: &str,
        written: &Written<String>,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> bool {
        let is_new = !self.names.contains(name);
        if !is_new {
            let message = format!(
                "another site has the name `{name}` in the store: give one of them another `name`"
            );
            errors.push(source.error(written.span(), message));
        }
        is_new
    }
}

#[cfg(test)]
#[path = "site_tests.rs"]
mod tests;
