//! `kirin block` and `kirin unblock`: an address is not served for a time.

use clap::Args;
use kirin_config::{Seconds, parse_network};
use serde_json::json;

use crate::print::print;
use crate::running::RunningKirin;

/// The arguments of `kirin block`.
#[derive(Args)]
pub struct BlockArgs {
    /// The address, or a network such as 192.0.2.0/24
    #[arg(value_parser = network)]
    network: String,
    /// How long, such as 10m or 7d; at most 365d
    #[arg(long = "for", value_name = "TIME", default_value = "1h")]
    time: Seconds,
    /// Block it on all machines with the same origin, also on those that start later
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    at: RunningKirin,
}

/// The arguments of `kirin unblock`.
#[derive(Args)]
pub struct UnblockArgs {
    /// The address or the network, as it was blocked
    #[arg(value_parser = network)]
    network: String,
    /// End a block that was made with --all
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    at: RunningKirin,
}

/// Checks an address or a network.
fn network(text: &str) -> Result<String, String> {
    parse_network(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Carries out `kirin block`.
pub fn block(arguments: &BlockArgs) -> Result<(), String> {
    let BlockArgs { network, time, all, at } = arguments;
    let change = json!({ "network": network, "time": time, "all": all });
    print(&at.find()?.post_change("/block", &change)?)
}

/// Carries out `kirin unblock`.
pub fn unblock(arguments: &UnblockArgs) -> Result<(), String> {
    let UnblockArgs { network, all, at } = arguments;
    print(&at.find()?.post_change("/unblock", &json!({ "network": network, "all": all }))?)
}
