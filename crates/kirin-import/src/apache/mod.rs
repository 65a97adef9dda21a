//! `httpd.conf` and the sites of Apache.

mod access;
mod answers;
mod backend;
mod file_names;
mod hosts;
mod lines;
mod log_format;
mod logs;
mod options;
mod php;
mod places;
mod rewrite;
mod sections;
mod server;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::HashMap;

use toml::Value;

use crate::apache::access::Accounts;
use crate::apache::hosts::VirtualHost;
use crate::apache::logs::log;
use crate::apache::server::{ServerReader, document_root};
use crate::apache::tree::Directive;
use crate::draft::{Draft, append};
use crate::error::ImportError;
use crate::files::Files;
use crate::report::{Import, Place};
use crate::steps::{HostStep, Scope, Step, network, sites};

/// Imports a configuration of Apache: the main file, or a site alone.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub fn import(file: &str, files: &dyn Files) -> Result<Import, ImportError> {
    let mut draft = Draft::default();
    let tree = tree::read(file, files, &mut draft)?;
    let start = Place { file: file.to_owned(), line: 1 };
    let (sections, outer): (Vec<_>, Vec<_>) =
        tree.into_iter().partition(|directive| directive.name == "virtualhost");
    for directive in outer.iter().filter(|directive| directive.name == "user") {
        draft.top.set("user", directive.argument(0));
        draft.notes.carried(&directive.place, &directive.line, "");
    }
    let mut hosts: Vec<_> = sections.iter().map(|s| VirtualHost::read(s, &outer)).collect();
    if hosts.is_empty() {
        hosts.push(VirtualHost::of(start.clone(), outer.clone(), &outer));
    }
    let mut hosts = kept(hosts, &mut draft);
    // The routes for http have a condition, so they come first.
    hosts.sort_by_key(|host| host.tls);
    let redirecting = redirecting(&hosts);
    listeners(&hosts, &outer, redirecting, &mut draft);
    for host in &hosts {
        proxies(&host.directives, &mut draft);
    }
    let mut steps = Vec::new();
    for host in &hosts {
        let only_redirects = redirecting && !host.tls;
        let own = host_steps(host, &hosts, files, &mut draft)?;
        if !only_redirects {
            steps.extend(own);
        }
    }
    draft.sites = sites(steps, &start)?;
    let mut import = draft.finish(&start)?;
    import.notes.sort_by(|one, other| {
        (&one.place.file, one.place.line).cmp(&(&other.place.file, other.place.line))
    });
    Ok(import)
}

/// Leaves out the hosts that only some listeners have, and names that two hosts have.
fn kept(hosts: Vec<VirtualHost>, draft: &mut Draft) -> Vec<VirtualHost> {
    let mut kept: Vec<VirtualHost> = Vec::new();
    let mut names: HashMap<(String, bool), ()> = HashMap::new();
    for mut host in hosts {
        if kept.first().is_some_and(|first| first.reach() != host.reach()) {
            let text = "every listener of Kirin serves all sites, so a host with a port or \
                        address of its own would be shown to all clients. Write a second \
                        kirin.toml for it";
            draft.notes.left_out(&host.place, &host.line, text);
            continue;
        }
        let all = host.names.is_empty();
        host.names.retain(|name| names.insert((name.clone(), host.tls), ()).is_none());
        let new = if all {
            names.insert((String::new(), host.tls), ()).is_none()
        } else {
            !host.names.is_empty()
        };
        if !new {
            draft.notes.left_out(&host.place, &host.line, "another host has its name");
            continue;
        }
        draft.notes.carried(&host.place, &host.line, "");
        kept.push(host);
    }
    kept
}

/// Returns whether all hosts without TLS do nothing but redirect to https.
fn redirecting(hosts: &[VirtualHost]) -> bool {
    let plain: Vec<_> = hosts.iter().filter(|host| !host.tls).collect();
    hosts.iter().any(|host| host.tls)
        && !plain.is_empty()
        && plain.iter().all(|host| only_redirects(host))
}

/// Returns whether a host redirects every request to https of the same host.
fn only_redirects(host: &VirtualHost) -> bool {
    let same_host = |to: &str| {
        to.strip_prefix("https://").is_some_and(|rest| {
            let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
            let name = name.strip_suffix("%{REQUEST_URI}").unwrap_or(name);
            let known = matches!(name, "%{HTTP_HOST}" | "%{SERVER_NAME}")
                || host.names == [name.to_owned()];
            known && matches!(path, "" | "$1" | "%{REQUEST_URI}")
        })
    };
    let mut found = false;
    for directive in &host.own {
        match directive.name.as_str() {
            "redirect" | "redirectpermanent" | "redirecttemp" => {
                let words = &directive.arguments;
                let to = words.last().map_or("", String::as_str);
                let from = words.get(words.len().saturating_sub(2)).map_or("", String::as_str);
                if from != "/" || !same_host(to) {
                    return false;
                }
                found = true;
            }
            "rewriterule" => {
                let all = ["^", "^(.*)$", "(.*)", ".*", "^/?(.*)", "^/?(.*)$", "^.*$", "^/(.*)$"];
                if !all.contains(&directive.argument(0)) || !same_host(directive.argument(1)) {
                    return false;
                }
                found = true;
            }
            "proxypass" | "alias" | "scriptalias" | "location" => return false,
            _ => {}
        }
    }
    found
}

/// Adds the listeners: those of `Listen`, or else those of the hosts.
fn listeners(hosts: &[VirtualHost], outer: &[Directive], redirecting: bool, draft: &mut Draft) {
    let tls_ports: Vec<u16> = hosts.iter().filter(|h| h.tls).flat_map(VirtualHost::ports).collect();
    let tls_ports = if tls_ports.is_empty() { vec![443] } else { tls_ports };
    let any_tls = hosts.iter().any(|host| host.tls);
    let ports: Vec<u16> = hosts.iter().flat_map(VirtualHost::ports).collect();
    let mut addresses: Vec<(String, Place)> = Vec::new();
    for listen in outer.iter().filter(|directive| directive.name == "listen") {
        let text = listen.argument(0);
        let address = if text.contains(':') { text.to_owned() } else { format!("*:{text}") };
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
        if !ports.is_empty() && !ports.contains(&port) {
            let text = "no host that was carried over has this port";
            draft.notes.left_out(&listen.place, &listen.line, text);
            continue;
        }
        draft.notes.carried(&listen.place, &listen.line, "");
        addresses.push((address, listen.place.clone()));
    }
    if addresses.is_empty() {
        for host in hosts {
            addresses.extend(host.listeners().into_iter().map(|a| (a, host.place.clone())));
        }
    }
    if addresses.is_empty() {
        let place = hosts.first().map(|host| host.place.clone());
        let port = if any_tls { "*:443" } else { "*:80" };
        addresses.extend(place.map(|place| (port.to_owned(), place)));
    }
    for (address, place) in addresses {
        let listener = draft.listener(&address);
        if listener.section.comments.is_empty() {
            listener.section.comment(place.to_string());
        }
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
        if any_tls && tls_ports.contains(&port) {
            for host in hosts.iter().filter(|host| host.tls) {
                certificates(host, hosts, &address, draft);
            }
        } else if redirecting {
            let port = i64::from(tls_ports.first().copied().unwrap_or(443));
            draft.listener(&address).section.set("redirect_to_https", port);
        }
    }
}

/// Writes into all listeners which proxies name the client, and how.
fn proxies(directives: &[Directive], draft: &mut Draft) {
    for directive in directives {
        let (place, line) = (&directive.place, &directive.line);
        match directive.name.as_str() {
            "remoteipheader" => {
                let field = directive.argument(0);
                let listeners = draft.listeners.iter_mut();
                listeners.for_each(|listener| listener.section.set("forwarded", field));
                draft.notes.carried(place, line, "");
            }
            "remoteiptrustedproxy" | "remoteipinternalproxy" => {
                let networks: Vec<_> =
                    directive.arguments.iter().map(|text| network(text)).collect();
                for listener in &mut draft.listeners {
                    for network in networks.iter().flatten() {
                        append(&mut listener.section, "trusted", network.as_str().into());
                    }
                }
                if networks.iter().all(Option::is_some) {
                    draft.notes.carried(place, line, "");
                } else {
                    let text = "Kirin trusts addresses and networks, without names";
                    draft.notes.left_out(place, line, text);
                }
            }
            _ => {}
        }
    }
}

/// Writes the certificate of a host into a listener.
fn certificates(host: &VirtualHost, hosts: &[VirtualHost], address: &str, draft: &mut Draft) {
    let Some(chain) = host.last("sslcertificatefile") else { return };
    let key = host.last("sslcertificatekeyfile").unwrap_or(chain);
    draft.listener(address).certificate(chain.argument(0), key.argument(0));
    draft.notes.carried(&chain.place, &chain.line, "");
    draft.notes.carried(&key.place, &key.line, "");
    if let Some(more) = host.last("sslcertificatechainfile") {
        let text = "append these certificates to the file of the certificate";
        draft.notes.left_out(&more.place, &more.line, text);
    }
    let Some((verify, authority)) =
        host.last("sslverifyclient").zip(host.last("sslcacertificatefile"))
    else {
        return;
    };
    if closes(host, hosts) || verify.argument(0) == "none" {
        return;
    }
    let tls = &mut draft.listener(address).tls;
    tls.set("client_ca", authority.argument(0));
    if verify.argument(0) != "require" {
        tls.set("client_verify", "optional");
    }
    draft.notes.carried(&verify.place, &verify.line, "");
    draft.notes.carried(&authority.place, &authority.line, "");
}

/// Returns whether a host asks for certificates of clients in a way that Kirin lacks.
fn closes(host: &VirtualHost, hosts: &[VirtualHost]) -> bool {
    let asks = |directive: &Directive| {
        directive.name == "sslverifyclient" && directive.argument(0) != "none"
    };
    let inner = host.directives.iter().any(|directive| directive.body().iter().any(asks));
    let own = host.directives.iter().any(asks);
    let others = hosts.iter().filter(|host| host.tls).count() > 1;
    let no_file = host.last("sslcacertificatefile").is_none();
    inner || (own && (others || no_file))
}

/// Returns the steps of a host.
fn host_steps(
    host: &VirtualHost,
    hosts: &[VirtualHost],
    files: &dyn Files,
    draft: &mut Draft,
) -> Result<Vec<HostStep>, ImportError> {
    let mut directives = host.directives.clone();
    htaccess(&mut directives, files, draft)?;
    let mut scope = Scope { hosts: host.names.clone(), ..Scope::default() };
    let shared = |other: &&VirtualHost| {
        other.tls != host.tls
            && (other.names.is_empty() && host.names.is_empty()
                || other.names.iter().any(|name| host.names.contains(name)))
    };
    let only_http = !host.tls && hosts.iter().any(|other| shared(&other));
    if only_http {
        scope.conditions.insert("scheme".to_owned(), Value::from("http"));
    }
    let accounts = Accounts::default().inside(&directives);
    let effects = log(&directives, draft).into_iter().collect();
    let reader = ServerReader::new(draft, accounts, effects);
    let mut steps = reader.steps(&directives, &scope);
    if only_http {
        steps.push((scope.clone(), Step::nothing(&host.place)));
    }
    if closes(host, hosts) {
        let text = "PROTECTION NOT CARRIED OVER: a listener asks the clients of all sites for \
                    certificates. The site is closed";
        draft.notes.left_out(&host.place, "SSLVerifyClient", text);
        let reason = "Closed: the site asked clients for certificates.";
        steps.iter_mut().for_each(|(_, step)| step.close(reason));
    }
    let with_scope = |(scope, mut step): (Scope, Step)| {
        step.conditions = scope.conditions;
        HostStep { hosts: scope.hosts, step }
    };
    Ok(steps.into_iter().map(with_scope).collect())
}

/// Reads the `.htaccess` of the document root as a section of its directory.
fn htaccess(
    directives: &mut Vec<Directive>,
    files: &dyn Files,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let Some(root) = document_root(directives) else { return Ok(()) };
    let path = format!("{root}/.htaccess");
    let allows = |directive: &Directive| {
        directive.name == "directory"
            && directive.body().iter().any(|inner| {
                inner.name == "allowoverride" && !inner.argument(0).eq_ignore_ascii_case("none")
            })
    };
    if !directives.iter().any(allows) || files.matching(&path).is_empty() {
        return Ok(());
    }
    let body = tree::read(&path, files, draft)?;
    let place = Place { file: path.clone(), line: 1 };
    draft.notes.carried(&place, &path, "Those of deeper directories are not read.");
    directives.push(Directive {
        place,
        name: "directory".to_owned(),
        arguments: vec![root],
        inner: Some(body),
        line: path,
    });
    Ok(())
}
