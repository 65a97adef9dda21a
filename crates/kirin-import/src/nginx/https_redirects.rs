//! Servers that only lead from http to https: `redirect_to_https` of a listener.

use std::collections::{HashMap, HashSet};

use super::directive::Directive;
use super::globals::Globals;
use super::host_blocks::{HostBlock, host_block};
use super::location::{Location, locations};
use super::redirects::without_query;
use super::server::Server;

/// The servers that are replaced by `redirect_to_https`.
#[derive(Debug, Default)]
pub struct HttpsRedirects {
    servers: HashSet<usize>,
    /// The ports of https, by the addresses of listeners.
    ports: HashMap<String, u16>,
}

/// Where a server leads.
struct Lead<'a> {
    /// The host. `None`: that of the request.
    host: Option<String>,
    port: u16,
    /// The directives that say so.
    directives: Vec<&'a Directive>,
}

impl HttpsRedirects {
    /// Finds the servers.
    pub fn find<'a>(servers: &'a [Server<'a>], globals: &Globals<'a>) -> Self {
        let with_tls: HashSet<&str> = servers
            .iter()
            .filter(|server| server.schemes().0)
            .flat_map(|server| server.hosts.iter().map(String::as_str))
            .collect();
        let leads: Vec<Option<Lead<'_>>> = servers
            .iter()
            .map(|server| lead(server).filter(|lead| keeps_hosts(server, lead, &with_tls)))
            .collect();
        let mut found = Self::default();
        let mut mixed: HashSet<&str> = HashSet::new();
        // A server on an address that another server needs is a site.
        loop {
            let before = mixed.len();
            for (server, lead) in servers.iter().zip(&leads) {
                let addresses = || server.listens.iter().map(|listen| listen.address.as_str());
                if lead.is_none() || addresses().any(|address| mixed.contains(address)) {
                    mixed.extend(addresses());
                }
            }
            if mixed.len() == before {
                break;
            }
        }
        for (number, (server, lead)) in servers.iter().zip(&leads).enumerate() {
            let Some(lead) = lead else { continue };
            if server.listens.iter().any(|listen| mixed.contains(listen.address.as_str())) {
                continue;
            }
            found.servers.insert(number);
            for listen in &server.listens {
                found.ports.insert(listen.address.clone(), lead.port);
            }
            globals.notes.carried(server.directive, "by `redirect_to_https` of the listener");
            for directive in &lead.directives {
                globals.notes.carried(directive, "by `redirect_to_https`, with status 308");
                for inner in directive.inside() {
                    globals.notes.carried(inner, "by `redirect_to_https`, with status 308");
                }
            }
        }
        found
    }

    /// Returns whether a server is replaced.
    pub fn is_redirect(&self, number: usize) -> bool {
        self.servers.contains(&number)
    }

    /// Returns the port of https for a listener.
    pub fn port(&self, address: &str) -> Option<u16> {
        self.ports.get(address).copied()
    }
}

/// Returns whether every host of a server is led to its own https, or will be.
fn keeps_hosts(server: &Server<'_>, lead: &Lead<'_>, with_tls: &HashSet<&str>) -> bool {
    let Some(target) = &lead.host else { return true };
    !server.hosts.is_empty()
        && server.hosts.iter().all(|host| host == target || with_tls.contains(host.as_str()))
}

/// Returns where a server leads, if it does nothing else.
fn lead<'a>(server: &Server<'a>) -> Option<Lead<'a>> {
    let (tls, plain) = server.schemes();
    if tls || !plain {
        return None;
    }
    let others = locations(&server.scope);
    let is_challenge = |location: &&Location<'_>| {
        location.pattern.trim_start_matches('^').starts_with("/.well-known")
    };
    let mut others = others.iter().filter(|location| !is_challenge(location));
    if let Some(found) = lead_of_blocks(server) {
        return others.next().is_none().then_some(found);
    }
    if let Some(found) = lead_of(&Location::of_server(server.directive, &server.scope), server) {
        return Some(found);
    }
    let (root, None) = (others.next()?, others.next()) else { return None };
    if root.pattern != "/" {
        return None;
    }
    let mut found = lead_of(root, server)?;
    found.directives.push(root.directive);
    Some(found)
}

/// Returns where `return` or `rewrite` of a block leads.
fn lead_of<'a>(location: &Location<'a>, server: &Server<'a>) -> Option<Lead<'a>> {
    if !location.scope.own_named("if").is_empty() {
        return None;
    }
    let (directive, target) = match location.own("return") {
        Some(directive) => (directive, path_end(directive.args.last()?)?),
        None => {
            let directive = location.own("rewrite")?;
            (directive, end_of_rewrite(directive)?)
        }
    };
    let (host, port) = host_and_port(target, server)?;
    Some(Lead { host, port, directives: vec![directive] })
}

/// Returns an address without the path of the request at its end.
fn path_end(target: &str) -> Option<&str> {
    let target = without_query(target);
    ["$request_uri", "$uri"].iter().find_map(|path| target.strip_suffix(path))
}

/// Returns the address of a `rewrite` of all paths, without the path.
fn end_of_rewrite(directive: &Directive) -> Option<&str> {
    let target = directive.arg(1).trim_end_matches('?');
    match directive.arg(0) {
        "^" | "^(.*)" | "^(.*)$" | "(.*)" | ".*" | "^.*$" => {
            path_end(target).or_else(|| target.strip_suffix("$1"))
        }
        "^/(.*)" | "^/(.*)$" => path_end(target).or_else(|| target.strip_suffix("/$1")),
        _ => None,
    }
}

fn host_and_port(target: &str, server: &Server<'_>) -> Option<(Option<String>, u16)> {
    let authority = target.strip_prefix("https://")?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, 443),
    };
    match host {
        "$host" | "$http_host" => Some((None, port)),
        "$server_name" => Some((Some(server.plain_host()?.to_owned()), port)),
        host if host.contains('$') || host.contains('/') || host.is_empty() => None,
        host => Some((Some(host.to_lowercase()), port)),
    }
}

/// Returns where the blocks that certbot writes lead: one for each host.
fn lead_of_blocks<'a>(server: &Server<'a>) -> Option<Lead<'a>> {
    let blocks = server.scope.own_named("if");
    let mut directives: Vec<&Directive> = Vec::new();
    let mut hosts = HashSet::new();
    for block in blocks.iter().copied() {
        let HostBlock::Redirects { host, is_negated: false, answer } = host_block(block, server)?
        else {
            return None;
        };
        let (target, 443) = host_and_port(path_end(answer.args.last()?)?, server)? else {
            return None;
        };
        if target.is_some_and(|target| target != host) {
            return None;
        }
        hosts.insert(host);
        directives.push(block);
    }
    let is_complete =
        !server.hosts.is_empty() && server.hosts.iter().all(|host| hosts.contains(host));
    directives.extend(server.scope.own_named("return").iter().copied());
    is_complete.then_some(Lead { host: None, port: 443, directives })
}
