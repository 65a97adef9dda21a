//! `kirin explain`: says which site, route, rules and places a request meets, and why not others.
//!
//! The request is parsed as one that came over a connection ([`request`]). The gateway explains it,
//! and [`report`] prints that. A running Kirin is asked for what its store has.

mod files;
mod listener;
mod report;
mod request;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use kirin_clock::wall_seconds;
use kirin_config::Config;
use kirin_gateway::explanation::stored::{Question, StoredAnswer};
use kirin_gateway::explanation::{Explanation, Found};
use kirin_gateway::purge::requests::is_purge;
use kirin_http::{Client, ListenAddress, Origin, Peer, RequestHead, RequestNotes};

use crate::admin::client::Target;
use crate::command_line::{Explain, read_config};
use listener::Arrival;
use report::Report;
use request::RequestText;

/// Returns what the command prints.
pub fn explain(arguments: &Explain) -> Result<String, String> {
    let request = RequestText::new(&arguments.method, &arguments.url, &arguments.headers)?;
    let client = read_client(&arguments.client)?;
    let admin = arguments.admin.as_deref().map(Target::at).transpose()?;
    let served = arguments.served()?;
    let config = read_config(&arguments.source(&served)?).map_err(|errors| errors.to_string())?;
    request.parse(|head| {
        let running = || match (admin, &config.admin) {
            (Some(target), _) => target,
            (None, Some(address)) => Target::at_listener(address.clone()),
            (None, None) => Target::of_served(&served),
        };
        explain_head(&config, head, &request, &client, running)
    })?
}

fn explain_head(
    config: &Config,
    head: &RequestHead<'_>,
    request: &RequestText,
    client: &Peer,
    running: impl FnOnce() -> Target,
) -> Result<String, String> {
    let mut report = Report::new(&format!("{} {} from {client}", head.method, request.url));
    let arrival = Arrival::find(&config.listeners, request.is_secure, request.port);
    let nowhere = ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], request.port)));
    let origin = Origin {
        peer: client,
        local: arrival.listener().map_or(&nowhere, |listener| &listener.address),
        secure: request.is_secure,
        client: Client::NotRequested,
        proxy: None,
        now: wall_seconds(),
        notes: &RequestNotes::default(),
    };
    let is_purge = is_purge(&config.gateway.purge_from, head, origin);
    report.listener(&arrival, head, is_purge);
    if arrival.is_answered(head, is_purge) {
        return Ok(report.finish());
    }
    let explanation = Explanation::new(&config.gateway, head, origin)
        .map_err(|error| format!("{}: {error}; Kirin answers it with 400", request.url))?;
    report.site(&explanation);
    let Some(site) = &explanation.site else { return Ok(report.finish()) };
    report.routes(site, head);
    if let Found::Route(route) = &site.found {
        report.route(route, config, head);
        report.log(route.config.log, config, arrival.listener());
        if let Some(question) = &route.question {
            let target = running();
            match target.address() {
                Err(why) => report.no_admin(&why),
                Ok(address) => report.stored(question, address, ask(&target, question)),
            }
        }
    }
    Ok(report.finish())
}

/// Asks a running Kirin what its store has for a request.
fn ask(target: &Target, question: &Question) -> Result<StoredAnswer, String> {
    let body = serde_json::to_string(question).map_err(|error| error.to_string())?;
    let answer = target.post("/explain", &body)?;
    serde_json::from_str(&answer)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))
}

fn read_client(text: &str) -> Result<Peer, String> {
    if text == "unix:" {
        return Ok(Peer::Unix);
    }
    let address: IpAddr = text.parse().map_err(|_| {
        format!(
            "--client `{text}`: allowed is an address such as 10.1.2.3 or 2001:db8::7, and `unix:`"
        )
    })?;
    Ok(Peer::Tcp(SocketAddr::new(address.to_canonical(), 0)))
}
