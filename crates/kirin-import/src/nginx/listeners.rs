//! `[[listener]]`: addresses and what belongs to connections.

use std::collections::{HashMap, HashSet};

use toml::Value;

use super::globals::Globals;
use super::https_redirects::HttpsRedirects;
use super::logs::access_log;
use super::network::network;
use super::server::Server;
use super::tls::tls_section;
use super::units::{bytes, text, texts};
use crate::section::Section;
use crate::text::size;
use crate::times::time_of;

/// The times of connections, with their keys.
const TIMES: [(&str, &str); 4] = [
    ("keepalive_timeout", "keep_alive"),
    ("client_header_timeout", "head_timeout"),
    ("client_body_timeout", "body_timeout"),
    ("send_timeout", "write_timeout"),
];

/// Makes the addresses of servers those of Kirin: `[::]:80` is for both families there, so `*:80`
/// beside it is the same listener.
pub fn join_families(servers: &mut [Server<'_>]) {
    let both: HashSet<u16> = servers
        .iter()
        .flat_map(|server| &server.listens)
        .filter(|listen| listen.address.starts_with("[::]:"))
        .filter_map(|listen| listen.port)
        .collect();
    for listen in servers.iter_mut().flat_map(|server| &mut server.listens) {
        if listen.address.starts_with("*:") && listen.port.is_some_and(|port| both.contains(&port))
        {
            listen.address = listen.address.replacen('*', "[::]", 1);
        }
    }
}

/// Returns the sections of all listeners.
pub fn listeners<'a>(
    servers: &'a [Server<'a>],
    globals: &Globals<'a>,
    redirects: &HttpsRedirects,
) -> Vec<Section> {
    let mut order: Vec<&str> = Vec::new();
    let mut of_address: HashMap<&str, Vec<&Server<'a>>> = HashMap::new();
    for server in servers {
        for listen in &server.listens {
            let list = of_address.entry(&listen.address).or_insert_with(|| {
                order.push(&listen.address);
                Vec::new()
            });
            if !list.iter().any(|other| other.directive.number == server.directive.number) {
                list.push(server);
            }
        }
    }
    let mut sections = Vec::new();
    for address in order {
        let Some(servers) = of_address.get_mut(address) else { continue };
        // The server for unknown hosts decides about connections.
        let is_default = |server: &&Server<'_>| {
            server.listens.iter().any(|listen| listen.address == address && listen.is_default)
        };
        servers.sort_by_key(|server| !is_default(server));
        sections.extend(listener(address, servers, globals, redirects));
    }
    sections
}

fn listener<'a>(
    address: &str,
    servers: &[&'a Server<'a>],
    globals: &Globals<'a>,
    redirects: &HttpsRedirects,
) -> Vec<Section> {
    let mut section = Section::new("[[listener]]");
    let listens = || {
        servers.iter().flat_map(|server| &server.listens).filter(|listen| listen.address == address)
    };
    if let Some(directive) = listens().find_map(|listen| listen.directive) {
        section.comment(directive.at());
    }
    section.set("address", text(address));
    if let Some(log) =
        access_log(&globals.http, globals).filter(|log| *log != Value::Boolean(false))
    {
        section.set("access_log", log);
    }
    let is_tls = listens().any(|listen| listen.is_tls);
    if let Some(port) = redirects.port(address).filter(|_| !is_tls) {
        section.set("redirect_to_https", i64::from(port));
    }
    add_times(&mut section, servers, globals);
    add_limits(&mut section, servers, globals);
    let has_proxy_header = listens().any(|listen| listen.has_proxy_header);
    add_proxies(&mut section, servers, has_proxy_header, globals);
    let mut sections = vec![section];
    if is_tls {
        let speaks_tls = |server: &&&Server<'_>| {
            server.listens.iter().any(|listen| listen.address == address && listen.is_tls)
        };
        let with_tls: Vec<&Server<'_>> = servers.iter().filter(speaks_tls).copied().collect();
        sections.push(tls_section(&with_tls, globals));
    }
    sections
}

fn add_times<'a>(section: &mut Section, servers: &[&'a Server<'a>], globals: &Globals<'a>) {
    for (name, key) in TIMES {
        for server in servers {
            let Some(directive) = server.scope.one(name) else { continue };
            let is_zero = matches!(directive.arg(0), "0" | "0s");
            let time = time_of(directive.arg(0)).filter(|_| !is_zero);
            match (time, section.get(key)) {
                (None, _) => {
                    globals.notes.left_out(directive, format!("`{key}` is a time above 0"))
                }
                (Some(time), None) => {
                    section.set(key, time);
                    globals.notes.carried(directive, "");
                }
                (Some(time), Some(old)) if *old == time => globals.notes.carried(directive, ""),
                _ => {
                    globals.notes.left_out(directive, "a listener has one such time for all sites")
                }
            }
        }
    }
}

fn add_limits<'a>(section: &mut Section, servers: &[&'a Server<'a>], globals: &Globals<'a>) {
    for server in servers {
        let Some(directive) = server.scope.one("large_client_header_buffers") else { continue };
        let (number, one) = (directive.arg(0).parse::<u64>().ok(), bytes(directive.arg(1)));
        if let (Some(number), Some(one)) = (number, one)
            && let Some(all) = number.checked_mul(one).filter(|all| *all <= 1 << 20)
        {
            section.set("head_limit", size(all));
            section.set("request_line_limit", size(one));
            globals.notes.carried(directive, "");
        } else {
            globals
                .notes
                .left_out(directive, "write `head_limit` and `request_line_limit` of the listener");
        }
    }
}

/// Adds the proxies in front. All servers of the address must trust the same ones: otherwise one
/// server would believe proxies that another one names.
fn add_proxies<'a>(
    section: &mut Section,
    servers: &[&'a Server<'a>],
    has_proxy_header: bool,
    globals: &Globals<'a>,
) {
    let lists: HashSet<Vec<&str>> = servers
        .iter()
        .map(|server| {
            server.scope.list("set_real_ip_from").iter().map(|from| from.arg(0)).collect()
        })
        .collect();
    let Some(server) = servers.first() else { return };
    let mut trusted = Vec::new();
    for server in servers {
        for directive in server.scope.list("set_real_ip_from").iter().copied() {
            match (network(directive.arg(0)), lists.len()) {
                (Some(network), 1) => {
                    if !trusted.contains(&network) {
                        trusted.push(network);
                    }
                    globals.notes.carried(directive, "");
                }
                (Some(_), _) => globals.notes.left_out(
                    directive,
                    "servers of the same address trust different proxies, so none is in `trusted` of \
                     the listener: give this server a listener of its own",
                ),
                (None, _) => globals.notes.left_out(directive, "`trusted` has addresses and networks only"),
            }
        }
    }
    if has_proxy_header {
        section.set("proxy_protocol", true);
        if trusted.is_empty() {
            section.comment("Name the proxies in `trusted`: all other connections are closed.");
        }
    }
    if trusted.is_empty() {
        return;
    }
    section.set("trusted", texts(&trusted));
    let header = server.scope.one("real_ip_header");
    let name = header.map_or("X-Real-IP", |header| header.arg(0));
    if !name.eq_ignore_ascii_case("x-forwarded-for") && name != "proxy_protocol" {
        section.set("forwarded", text(name));
    }
    for server in servers {
        if let Some(header) = server.scope.one("real_ip_header") {
            globals.notes.carried(header, "");
        }
        if let Some(recursive) = server.scope.one("real_ip_recursive") {
            globals.notes.by_itself(
                recursive,
                "Kirin always looks for the first address that is not trusted",
            );
        }
    }
}
