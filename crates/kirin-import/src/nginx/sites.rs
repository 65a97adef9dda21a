//! `[[site]]`: which server answers for which hosts.
//!
//! In nginx a server belongs to its addresses. In Kirin every listener serves every site. So the
//! servers of the same host are one site here, and the scheme tells them apart.

use std::collections::{HashMap, HashSet};

use toml::{Table, Value};

use super::error_pages::check_error_pages;
use super::globals::Globals;
use super::hoist::hoist;
use super::host_blocks::{refuses_others, split_hosts};
use super::https_redirects::HttpsRedirects;
use super::listen::Reach;
use super::narrow_addresses::{close_without_certificates, narrow};
use super::output::Output;
use super::route::Route;
use super::section_order::sort_keys;
use super::server::Server;
use super::site_routes::{challenge_routes, site_routes};
use super::units::{text, texts};
use crate::section::Section;

/// The servers of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Pair {
    /// The server for https.
    tls: Option<usize>,
    /// The server for http.
    plain: Option<usize>,
}

/// Returns the sections of all sites.
pub fn sites<'a>(
    servers: &'a [Server<'a>],
    globals: &'a Globals<'a>,
    output: &'a Output,
    redirects: &HttpsRedirects,
) -> Vec<Section> {
    let default = default_servers(servers, redirects);
    let mut pairs: Vec<(Pair, Vec<String>)> = Vec::new();
    let mut numbers: HashMap<Pair, usize> = HashMap::new();
    for (host, pair) in pairs_of_hosts(servers, globals, redirects, default) {
        let number = *numbers.entry(pair).or_insert_with(|| {
            pairs.push((pair, Vec::new()));
            pairs.len() - 1
        });
        if let Some((_, hosts)) = pairs.get_mut(number) {
            hosts.push(host);
        }
    }
    let addresses = addresses(servers, redirects);
    let all = SiteRoutes::build(servers, globals, output, redirects, &addresses);
    let has_plain = servers
        .iter()
        .enumerate()
        .any(|(number, server)| server.schemes().1 && !redirects.is_redirect(number));
    let mut sections = Vec::new();
    let mut names = HashSet::new();
    for (pair, hosts) in &pairs {
        let is_any = hosts.iter().any(|host| host == "*");
        let hosts = if is_any { vec!["*".to_owned()] } else { hosts.clone() };
        let mut routes = joined(*pair, &all.of_servers, has_plain);
        let mut known = HashSet::new();
        routes.retain(|route| known.insert(route.identity()));
        all.add_challenges(&mut routes, &hosts, servers);
        let of_site: Vec<&Server<'_>> =
            pair_servers(*pair).into_iter().filter_map(|number| servers.get(number)).collect();
        for (hosts, mut routes) in split_hosts(&hosts, routes, &of_site, globals, output) {
            check_error_pages(&mut routes, &of_site, globals);
            sections.extend(site(&hosts, routes, &of_site, &mut names));
        }
    }
    sections
}

/// Returns all addresses that serve sites, each with the clients that reach it.
fn addresses(servers: &[Server<'_>], redirects: &HttpsRedirects) -> Vec<(String, Reach)> {
    let mut addresses: Vec<(String, Reach)> = Vec::new();
    let mut known = HashSet::new();
    for listen in servers.iter().flat_map(|server| &server.listens) {
        let serves = redirects.port(&listen.address).is_none();
        if serves && known.insert(listen.address.as_str()) {
            addresses.push((listen.address.clone(), listen.reach()));
        }
    }
    addresses
}

/// The routes of all servers.
struct SiteRoutes {
    /// The routes of each server.
    of_servers: Vec<Vec<Route>>,
    /// The routes of servers that lead to https, for the challenges of an authority.
    challenges: Vec<(usize, Vec<Route>)>,
}

impl SiteRoutes {
    fn build<'a>(
        servers: &'a [Server<'a>],
        globals: &'a Globals<'a>,
        output: &'a Output,
        redirects: &HttpsRedirects,
        addresses: &[(String, Reach)],
    ) -> Self {
        let mut all = Self { of_servers: Vec::new(), challenges: Vec::new() };
        for (number, server) in servers.iter().enumerate() {
            if redirects.is_redirect(number) {
                let routes = challenge_routes(server, globals, output);
                if !routes.is_empty() {
                    all.challenges.push((number, routes));
                }
                all.of_servers.push(Vec::new());
                continue;
            }
            let is_default = server.is_default() || server.is_nameless;
            if globals.notes.is_left_out(server.directive) || is_default && leads_nowhere(server) {
                // It was left out.
                all.of_servers.push(Vec::new());
                continue;
            }
            let mut routes = site_routes(server, globals, output);
            narrow(&mut routes, server, addresses, globals);
            let is_asked = super::tls::asks_for_certificates(server, servers);
            close_without_certificates(&mut routes, server, is_asked, globals);
            all.of_servers.push(routes);
        }
        all
    }

    /// Adds the routes for challenges of servers that lead to https and have one of these hosts, or
    /// none.
    fn add_challenges(&self, routes: &mut Vec<Route>, hosts: &[String], servers: &[Server<'_>]) {
        for (number, challenges) in &self.challenges {
            let Some(server) = servers.get(*number) else { continue };
            let fits = server.is_nameless
                || server.is_default()
                || hosts.iter().any(|host| host == "*" || server.hosts.contains(host));
            for route in challenges.iter().filter(|_| fits) {
                if !routes.iter().any(|other| other.identity() == route.identity()) {
                    routes.insert(0, route.clone());
                }
            }
        }
    }
}

fn pair_servers(pair: Pair) -> Vec<usize> {
    [pair.tls, pair.plain].into_iter().flatten().collect()
}

/// Returns the numbers of the servers for unknown hosts: for https and for http.
fn default_servers(servers: &[Server<'_>], redirects: &HttpsRedirects) -> Pair {
    let find = |is_tls: bool| {
        let fits = |(number, server): &(usize, &Server<'_>)| {
            let (tls, plain) = server.schemes();
            (if is_tls { tls } else { plain }) && !redirects.is_redirect(*number)
        };
        let candidates: Vec<_> = servers.iter().enumerate().filter(fits).collect();
        let flagged = candidates.iter().find(|(_, server)| server.is_default());
        let nameless = || candidates.iter().find(|(_, server)| server.is_nameless);
        flagged.or_else(nameless).map(|(number, _)| *number)
    };
    Pair { tls: find(true), plain: find(false) }
}

/// Returns the servers of each host, in the order of the file.
fn pairs_of_hosts<'a>(
    servers: &'a [Server<'a>],
    globals: &Globals<'a>,
    redirects: &HttpsRedirects,
    default: Pair,
) -> Vec<(String, Pair)> {
    let mut order: Vec<String> = Vec::new();
    let mut pairs: HashMap<String, Pair> = HashMap::new();
    for (number, server) in servers.iter().enumerate() {
        let is_default = default.tls == Some(number) || default.plain == Some(number);
        let mut hosts = server.hosts.clone();
        if is_default && !refuses_others(server) {
            hosts = vec!["*".to_owned()];
        }
        if is_default && leads_nowhere(server) {
            let text = "a host that no site has gets 421";
            globals.notes.carried(server.directive, text);
            server.scope.own().iter().for_each(|inner| globals.notes.carried(inner, text));
            continue;
        }
        let (tls, plain) = server.schemes();
        let mut is_used = redirects.is_redirect(number);
        for host in hosts {
            let pair = pairs.entry(host.clone()).or_insert_with(|| {
                order.push(host.clone());
                Pair::default()
            });
            if tls && pair.tls.is_none() && (host != "*" || default.tls == Some(number)) {
                pair.tls = Some(number);
                is_used = true;
            }
            let is_plain = plain && !redirects.is_redirect(number);
            if is_plain && pair.plain.is_none() && (host != "*" || default.plain == Some(number)) {
                pair.plain = Some(number);
                is_used = true;
            }
        }
        if !is_used {
            let text = "another server has its hosts (or the unknown ones) already, and in Kirin the \
                        port makes no difference. Nothing of this server is here, so nobody reaches it";
            globals.notes.left_out(server.directive, text);
            for directive in server.scope.own() {
                globals.notes.left_out(directive, "see the server");
            }
        }
    }
    let found = order.into_iter().filter_map(|host| Some((host.clone(), *pairs.get(&host)?)));
    found.filter(|(_, pair)| *pair != Pair::default()).collect()
}

/// Returns whether a server for unknown hosts only refuses them.
fn leads_nowhere(server: &Server<'_>) -> bool {
    let returns = server.scope.own_named("return").last();
    let refuses = returns.is_some_and(|directive| matches!(directive.arg(0), "444" | "421"));
    let rejects = server.scope.is_on("ssl_reject_handshake")
        && !server.scope.own_named("ssl_reject_handshake").is_empty();
    server.hosts.is_empty() && (refuses || rejects)
}

/// Joins the routes for https and http. `has_plain` says whether there is a listener without TLS
/// that serves sites.
fn joined(pair: Pair, routes: &[Vec<Route>], has_plain: bool) -> Vec<Route> {
    let of = |number: usize| routes.get(number).cloned().unwrap_or_default();
    match (pair.tls, pair.plain) {
        (Some(tls), Some(plain)) if tls != plain => {
            [with_scheme(of(tls), "https"), with_scheme(of(plain), "http")].concat()
        }
        // In nginx nobody reaches them without TLS.
        (Some(number), None) if has_plain => with_scheme(of(number), "https"),
        (Some(number), _) | (_, Some(number)) => of(number),
        (None, None) => Vec::new(),
    }
}

/// Returns the path that `auth_request` asks, without its query.
fn asked_path(value: &Value) -> Option<String> {
    let ask = value.as_str().or_else(|| value.get("ask")?.as_str())?;
    ask.starts_with('/').then(|| ask.split('?').next().unwrap_or(ask).to_owned())
}

/// Makes routes hold for one scheme only. Routes of error pages stay as they are, because Kirin
/// looks for these pages in routes without `match`.
fn with_scheme(routes: Vec<Route>, scheme: &str) -> Vec<Route> {
    let tables = routes.iter().filter_map(|route| route.section.get("error_pages")?.as_table());
    let pages = tables.flat_map(|table| table.values()).filter_map(Value::as_str);
    let mut pages: HashSet<String> = pages.map(|page| format!("= {page}")).collect();
    for route in &routes {
        // Kirin looks for a path that is asked in routes without `match`, too.
        if let Some(asked) = route.section.get("auth_request").and_then(asked_path) {
            pages.extend([format!("= {asked}"), asked]);
        }
    }
    let exact: HashSet<String> = routes
        .iter()
        .filter_map(|route| route.path().strip_prefix("= ").map(str::to_owned))
        .collect();
    let condition = Table::from_iter([("scheme".to_owned(), text(scheme))]);
    let limited = |mut route: Route| {
        if pages.contains(route.path()) && route.conditions().is_empty() {
            return Some(route);
        }
        let table = route.section.get("error_pages").and_then(Value::as_table).cloned();
        if let Some(mut table) = table {
            table.retain(|_, page| page.as_str().is_some_and(|page| exact.contains(page)));
            match table.is_empty() {
                true => route.remove("error_pages"),
                false => route.section.set("error_pages", table),
            }
        }
        route.add_conditions(&condition).then_some(route)
    };
    routes.into_iter().filter_map(limited).collect()
}

/// Returns the section of a site and those of its routes.
fn site(
    hosts: &[String],
    mut routes: Vec<Route>,
    servers: &[&Server<'_>],
    names: &mut HashSet<String>,
) -> Vec<Section> {
    if routes.is_empty() {
        return Vec::new();
    }
    let mut section = Section::new("[[site]]");
    for server in servers {
        section.comment(server.directive.at());
    }
    section.set("hosts", texts(hosts));
    let needs_name = hosts.iter().any(|host| host.starts_with('~') || host.ends_with(".*"));
    if needs_name {
        section.set("name", Value::String(name(hosts, names)));
    }
    hoist(&mut section, &mut routes);
    sort_keys(&mut section);
    let mut sections = vec![section];
    for mut route in routes {
        sort_keys(&mut route.section);
        sections.push(route.section);
    }
    sections
}

/// Returns a name for a site that needs one.
fn name(hosts: &[String], names: &mut HashSet<String>) -> String {
    let plain = hosts.iter().find(|host| !host.starts_with('~')).or(hosts.first());
    let letters = plain.map_or("", String::as_str).trim_start_matches(['~', '^']);
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mut name: String = letters.chars().map(allowed).take(40).collect();
    while name.contains("--") {
        name = name.replace("--", "-");
    }
    let name = match name.trim_matches('-') {
        "" => "site",
        name => name,
    };
    let mut unique = name.to_owned();
    let mut number = 1;
    while !names.insert(unique.clone()) {
        number += 1;
        unique = format!("{name}-{number}");
    }
    unique
}
