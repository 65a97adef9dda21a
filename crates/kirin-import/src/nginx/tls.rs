//! `[listener.tls]`: certificates of all servers of an address.

use std::collections::{HashMap, HashSet};

use toml::{Table, Value};

use super::globals::Globals;
use super::narrow_addresses::needs_certificate;
use super::server::Server;
use super::units::text;
use crate::section::Section;
use crate::times::time;

/// Returns whether the listeners of a server ask for certificates of clients: all servers with TLS
/// on its addresses want that.
pub fn asks_for_certificates(server: &Server<'_>, servers: &[Server<'_>]) -> bool {
    if !needs_certificate(server) {
        return false;
    }
    let own: HashSet<&str> = addresses(server).collect();
    let shares = |other: &&Server<'_>| addresses(other).any(|address| own.contains(address));
    let authority = authority(server);
    let wants_the_same =
        |other: &Server<'_>| needs_certificate(other) && self::authority(other) == authority;
    authority.is_some() && servers.iter().filter(shares).all(wants_the_same)
}

/// Returns the file of the authorities whose certificates clients may show.
fn authority<'a>(server: &Server<'a>) -> Option<&'a str> {
    server.scope.word("ssl_client_certificate")
}

/// Returns the addresses on which a server speaks TLS.
fn addresses<'s>(server: &'s Server<'_>) -> impl Iterator<Item = &'s str> {
    let with_tls = server.listens.iter().filter(|listen| listen.is_tls);
    with_tls.map(|listen| listen.address.as_str())
}

/// Returns the section of a listener for servers with TLS, the one for unknown hosts first.
pub fn tls_section<'a>(servers: &[&'a Server<'a>], globals: &Globals<'a>) -> Section {
    let mut section = Section::new("[listener.tls]");
    let (mut pairs, mut known) = (Vec::new(), HashSet::new());
    for server in servers {
        let chains = server.scope.list("ssl_certificate");
        let keys = server.scope.list("ssl_certificate_key");
        for (chain, key) in chains.iter().zip(keys) {
            let is_fixed = [chain, key].iter().all(|directive| !directive.arg(0).contains('$'));
            let is_file = [chain, key].iter().all(|directive| {
                !directive.arg(0).contains("data:") && !directive.arg(0).starts_with("engine:")
            });
            if !is_fixed || !is_file {
                globals.notes.left_out(chain, "certificates and keys are files without variables");
                continue;
            }
            globals.notes.carried(chain, "");
            globals.notes.carried(key, "");
            let path = |directive: &super::directive::Directive| {
                globals.configuration_path(directive.arg(0))
            };
            if known.insert((path(chain), path(key))) {
                let pair =
                    [("chain".to_owned(), text(path(chain))), ("key".to_owned(), text(path(key)))];
                pairs.push(Value::Table(Table::from_iter(pair)));
            }
        }
    }
    if pairs.is_empty() {
        section.comment("There is no certificate: write `acme` or `certificates`.");
    }
    section.set("certificates", Value::Array(pairs));
    add_client_certificates(&mut section, servers, globals);
    add_hsts(&mut section, servers, globals);
    section
}

fn add_client_certificates<'a>(
    section: &mut Section,
    servers: &[&'a Server<'a>],
    globals: &Globals<'a>,
) {
    let words: HashSet<&str> = servers
        .iter()
        .map(|server| server.scope.word("ssl_verify_client").unwrap_or("off"))
        .collect();
    let first = servers.first().and_then(|server| server.scope.one("ssl_client_certificate"));
    let authorities: HashSet<Option<&str>> =
        servers.iter().map(|server| authority(server)).collect();
    let is_common = words.len() == 1 && authorities.len() == 1;
    let common = if is_common { words.iter().next().copied() } else { None };
    for server in servers {
        let Some(verify) = server.scope.one("ssl_verify_client") else { continue };
        match (verify.arg(0), common, first) {
            ("on" | "optional", Some(word), Some(authority)) => {
                section.set("client_ca", text(globals.configuration_path(authority.arg(0))));
                if word == "optional" {
                    section.set("client_verify", text("optional"));
                }
                globals.notes.carried(verify, "");
                globals.notes.carried(authority, "");
            }
            ("off", ..) => globals.notes.carried(verify, ""),
            // A server that needs certificates is closed elsewhere, with a note.
            ("on", ..) => {}
            _ => globals.notes.left_out(
                verify,
                "a listener asks all of its clients: give the server a listener of its own",
            ),
        }
    }
}

/// Sets `hsts` if all servers of the listener send the same, and leaves the fields to the routes
/// otherwise.
fn add_hsts<'a>(section: &mut Section, servers: &[&'a Server<'a>], globals: &Globals<'a>) {
    let Some(common) = common_hsts(servers) else { return };
    section.set("hsts", time(common.seconds));
    if common.has_subdomains {
        section.set("hsts_subdomains", true);
    }
    for server in servers {
        for field in server.scope.list("add_header").iter().filter(|field| is_hsts(field.arg(0))) {
            globals.notes.carried(field, "by `hsts` of the listener");
        }
    }
}

/// Finds the servers whose listeners all have `hsts`.
pub fn find_common_hsts(servers: &mut [Server<'_>]) {
    let mut values: HashMap<String, HashSet<Option<(u64, bool)>>> = HashMap::new();
    for server in servers.iter() {
        for address in addresses(server) {
            values.entry(address.to_owned()).or_default().insert(hsts_of(server));
        }
    }
    for server in servers {
        let is_common = |address: &str| {
            values.get(address).is_some_and(|values| values.len() == 1 && !values.contains(&None))
        };
        server.has_listener_hsts = server.schemes().0 && addresses(server).all(is_common);
    }
}

/// Returns whether a field is Strict-Transport-Security.
pub fn is_hsts(name: &str) -> bool {
    name.eq_ignore_ascii_case("strict-transport-security")
}

/// The value of Strict-Transport-Security.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hsts {
    seconds: u64,
    has_subdomains: bool,
}

/// Returns the value that all of these servers send.
pub fn common_hsts(servers: &[&Server<'_>]) -> Option<Hsts> {
    let values: HashSet<Option<(u64, bool)>> =
        servers.iter().map(|server| hsts_of(server)).collect();
    let only = if values.len() == 1 { values.into_iter().next().flatten() } else { None };
    only.map(|(seconds, has_subdomains)| Hsts { seconds, has_subdomains })
}

/// Returns the value of a server that `hsts` can have.
fn hsts_of(server: &Server<'_>) -> Option<(u64, bool)> {
    let fields = server.scope.list("add_header").iter();
    let value = fields.copied().find(|field| is_hsts(field.arg(0)))?.arg(1).to_lowercase();
    let (mut seconds, mut has_subdomains) = (None, false);
    for part in value.split(';').map(str::trim) {
        match part.split_once('=') {
            Some(("max-age", age)) => seconds = age.parse().ok().filter(|age| *age > 0),
            None if part == "includesubdomains" => has_subdomains = true,
            None if part.is_empty() => {}
            _ => return None,
        }
    }
    Some((seconds?, has_subdomains))
}
