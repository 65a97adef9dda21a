//! `kirin status`: the state and the counters of a running Kirin.

mod machines;
mod text;
mod trial;

use clap::Args;

use crate::print::print;
use crate::running::RunningKirin;
use crate::running::target::without_conflict;

/// The arguments of `kirin status`.
#[derive(Args)]
pub struct StatusArgs {
    /// Print JSON, with all counters
    #[arg(long)]
    json: bool,
    /// Print a line for each machine with the same origin of the store, and the sums
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &StatusArgs) -> Result<(), String> {
    let kirin = arguments.at.find()?;
    let status = match arguments.all {
        true => without_conflict(kirin.get("/machines/status"))?,
        false => kirin.get("/status")?,
    };
    match (arguments.json, arguments.all) {
        (true, _) => print(&status),
        (false, true) => print(&machines::describe(&status)?),
        (false, false) => print(&text::describe(&status)?),
    }
}
