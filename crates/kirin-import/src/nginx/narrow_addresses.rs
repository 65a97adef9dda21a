//! Servers that not every client reaches in nginx.
//!
//! In Kirin every listener serves every site. So the routes of a server that only this machine
//! reaches must refuse all other clients.

use std::net::IpAddr;

use super::globals::Globals;
use super::listen::Reach;
use super::route::Route;
use super::server::Server;
use super::units::texts;

/// Makes routes refuse the clients that do not reach their server in nginx.
pub fn narrow<'a>(
    routes: &mut [Route],
    server: &'a Server<'a>,
    addresses: &[(String, Reach)],
    globals: &Globals<'a>,
) {
    let own: Vec<&str> = server.listens.iter().map(|listen| listen.address.as_str()).collect();
    let others: Vec<&(String, Reach)> =
        addresses.iter().filter(|(address, _)| !own.contains(&address.as_str())).collect();
    let has_wider = others.iter().any(|(_, reach)| matches!(reach, Reach::All | Reach::Address));
    let reaches: Vec<Reach> = server.listens.iter().map(super::listen::Listen::reach).collect();
    if others.is_empty() || reaches.is_empty() {
        return;
    }
    let is_local = reaches.iter().all(|reach| matches!(reach, Reach::Machine | Reach::Socket));
    if is_local && has_wider {
        let mut clients = Vec::new();
        if reaches.contains(&Reach::Machine) {
            clients.extend(["127.0.0.0/8", "::1"]);
        }
        if reaches.contains(&Reach::Socket) {
            clients.push("unix:");
        }
        allow_only(routes, &clients);
        note(
            server,
            globals,
            "`allow` keeps other clients out, because every listener serves every site",
        );
        return;
    }
    let only_private = !own.is_empty() && own.iter().all(|address| private(address));
    let others_are_wider = others.iter().any(|(address, reach)| {
        *reach == Reach::All || *reach == Reach::Address && !private(address)
    });
    if only_private && others_are_wider {
        for route in routes.iter_mut().filter(|route| !route.refuses_all()) {
            route.close(
                "clients of other networks would reach it: write `allow` in place of `deny`",
            );
        }
        for listen in server.listens.iter().filter_map(|listen| listen.directive) {
            globals.notes.protection_lost(
                listen,
                "every listener serves every site, so clients of other networks would reach this \
                 server. Its routes refuse everybody: write `allow` in place of `deny`",
            );
        }
        return;
    }
    let text = "every listener serves every site, so the other addresses serve it, too";
    // A port of its own is often closed by a firewall.
    let is_usual = |address: &str| address.ends_with(":80") || address.ends_with(":443");
    if own.iter().any(|address| is_usual(address)) {
        return note(server, globals, text);
    }
    for listen in server.listens.iter().filter_map(|listen| listen.directive) {
        globals.notes.protection_lost(listen, text);
    }
}

fn note<'a>(server: &'a Server<'a>, globals: &Globals<'a>, text: &str) {
    for directive in server.listens.iter().filter_map(|listen| listen.directive) {
        globals.notes.carried(directive, text);
    }
}

fn allow_only(routes: &mut [Route], clients: &[&str]) {
    for route in routes.iter_mut().filter(|route| !route.refuses_all()) {
        match route.section.get("allow") {
            None => route.section.set("allow", texts(clients)),
            Some(_) => {
                route.close("only this machine reaches it in nginx, and it has `allow` besides")
            }
        }
    }
}

/// Returns whether an address belongs to a network of an organisation, and not to the internet.
fn private(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => ip.is_private() || ip.is_link_local() || ip.is_loopback(),
        Ok(IpAddr::V6(ip)) => {
            ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_loopback()
        }
        Err(_) => address.starts_with("unix:"),
    }
}

/// Returns whether a server refuses clients without a certificate.
pub fn needs_certificate(server: &Server<'_>) -> bool {
    let word = server.scope.word("ssl_verify_client").unwrap_or_default();
    server.schemes().0 && word == "on"
}

/// Closes the routes of a server that asks for certificates of clients, if its listener cannot,
/// because other servers of the same address do not ask.
pub fn close_without_certificates<'a>(
    routes: &mut [Route],
    server: &'a Server<'a>,
    is_asked_by_listener: bool,
    globals: &Globals<'a>,
) {
    if !needs_certificate(server) || is_asked_by_listener {
        return;
    }
    if let Some(directive) = server.scope.one("ssl_verify_client") {
        globals.notes.protection_lost(
            directive,
            "a listener asks all of its clients for a certificate or none, and other servers of its \
             address do not ask. The routes of this server refuse everybody: give it a listener of \
             its own",
        );
    }
    for route in routes.iter_mut().filter(|route| !route.refuses_all()) {
        route.close("nginx asks clients for a certificate here");
    }
}
