//! `kirin upstream`: takes a server of an upstream out of service, and back, while Kirin runs.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::print::print;
use crate::running::RunningKirin;

/// The arguments of `kirin upstream`.
#[derive(Args)]
pub struct UpstreamArgs {
    #[command(subcommand)]
    action: Action,
}

/// What is to be done with a server.
#[derive(Subcommand)]
enum Action {
    /// Send it only visitors that were sent to it before (sticky cookies); others go elsewhere
    Drain(ServerArgs),
    /// Send it no requests; those in progress end
    Disable(ServerArgs),
    /// Send it requests again
    Enable(ServerArgs),
    /// Change its share of requests; without a weight, back to that of the configuration
    Weigh {
        #[command(flatten)]
        server: ServerArgs,
        /// The weight
        weight: Option<u32>,
    },
}

/// The server.
#[derive(Args)]
struct ServerArgs {
    /// The upstream
    #[arg(value_name = "UPSTREAM")]
    upstream: String,
    /// The server, as `kirin status` shows it, or its address alone
    #[arg(value_name = "SERVER")]
    server: String,
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &UpstreamArgs) -> Result<(), String> {
    let (action, server, weight) = match &arguments.action {
        Action::Drain(server) => ("drain", server, None),
        Action::Disable(server) => ("disable", server, None),
        Action::Enable(server) => ("enable", server, None),
        Action::Weigh { server, weight } => ("weigh", server, *weight),
    };
    let ServerArgs { upstream, server, at } = server;
    let change =
        json!({ "upstream": upstream, "server": server, "action": action, "weight": weight });
    print(&at.find()?.post_change("/upstream", &change)?)
}
