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
use std::path::{Path, PathBuf};

use clap::Args;
use kirin_clock::wall_seconds;
use kirin_config::target::{self, DEFAULT_ADDRESS, DEFAULT_WORKERS, Entrances};
use kirin_config::{Config, ConfigSource, DEFAULT_FILE};
use kirin_gateway::explanation::stored::{Question, StoredAnswer};
use kirin_gateway::explanation::{Explanation, FoundRoute};
use kirin_gateway::purge::requests::is_purge;
use kirin_http::{Client, ListenAddress, Origin, Peer, RequestHead, RequestNotes};
use kirin_observe::served::Served;

use crate::print::print;
use crate::project::find_app;
use crate::running::default_sockets;
use crate::running::target::CommandTarget;
use listener::Arrival;
use report::ExplanationText;
use request::RequestText;

/// The arguments of `kirin explain`.
#[derive(Args)]
#[command(allow_missing_positional = true)]
pub struct Explain {
    /// The method
    #[arg(default_value = "GET")]
    pub method: String,
    /// The URL: http://HOST/PATH or https://HOST/PATH
    pub url: String,
    /// A field of the request. Can be repeated
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// The client: an address, or unix: for a client on a unix socket
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub client: String,
    /// The configuration file [default: kirin.toml, or what the running Kirin serves]
    #[arg(long, short, value_name = "FILE", conflicts_with = "target")]
    pub config: Option<PathBuf>,
    /// Instead of a configuration file: the target of `kirin serve TARGET`
    #[arg(long)]
    pub target: Option<String>,
    /// The admin listener of the running Kirin, unix:PATH or HOST:PORT [default: that of the
    /// configuration]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
}

impl Explain {
    /// Returns what Kirin serves, from the options, ./kirin.toml, or a running Kirin.
    fn served(&self) -> Result<Served, String> {
        let default = Path::new(DEFAULT_FILE);
        match (&self.target, &self.config) {
            (Some(target), _) => Ok(Served::from_target(target)),
            (None, Some(path)) => Ok(Served::from_config(path)),
            (None, None) if default.exists() || self.admin.is_some() => {
                Ok(Served::from_config(default))
            }
            (None, None) => default_sockets::only_one()?.served().ok_or_else(|| {
                "the running Kirin has its configuration from Plack::Handler::Kirin: name one with --config or --target"
                    .into()
            }),
        }
    }

    /// Returns the text of the configuration that is explained.
    fn source(&self, served: &Served) -> Result<ConfigSource, String> {
        match (&self.config, served) {
            (Some(path), _) => ConfigSource::read(path).map_err(|error| error.to_string()),
            (None, Served::Config(path)) => {
                let here = std::path::absolute(DEFAULT_FILE).is_ok_and(|here| here == *path);
                let path = if here { Path::new(DEFAULT_FILE) } else { path };
                ConfigSource::read(path).map_err(|error| error.to_string())
            }
            (None, Served::Target(path)) => target::source(
                &path.to_string_lossy(),
                &Entrances::Plain(DEFAULT_ADDRESS),
                DEFAULT_WORKERS,
                false,
                find_app,
            ),
            (None, Served::Server(url)) => target::source(
                url,
                &Entrances::Plain(DEFAULT_ADDRESS),
                DEFAULT_WORKERS,
                false,
                find_app,
            ),
            (None, Served::Program { command, .. }) => {
                Err(format!("{command} is no configuration"))
            }
        }
    }
}

/// Carries out the command.
pub fn run(arguments: &Explain) -> Result<(), String> {
    print(&explain(arguments)?)
}

/// Returns what the command prints.
fn explain(arguments: &Explain) -> Result<String, String> {
    let request = RequestText::new(&arguments.method, &arguments.url, &arguments.headers)?;
    let client = read_client(&arguments.client)?;
    let admin = arguments.admin.as_deref().map(CommandTarget::at).transpose()?;
    let served = arguments.served()?;
    let config =
        kirin_config::read(&arguments.source(&served)?).map_err(|errors| errors.to_string())?;
    request.parse(|head| {
        let running = || match (admin, &config.admin) {
            (Some(target), _) => target,
            (None, Some(address)) => CommandTarget::at_listener(address.clone()),
            (None, None) => CommandTarget::of_served(&served),
        };
        explain_head(&config, head, &request, &client, running)
    })?
}

fn explain_head(
    config: &Config,
    head: &RequestHead<'_>,
    request: &RequestText,
    client: &Peer,
    running: impl FnOnce() -> CommandTarget,
) -> Result<String, String> {
    let mut report =
        ExplanationText::new(&format!("{} {} from {client}", head.method, request.url));
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
    if let FoundRoute::Route(route) = &site.found {
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
fn ask(target: &CommandTarget, question: &Question) -> Result<StoredAnswer, String> {
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
