//! `kirin status`: the state and the counters of a running Kirin.

mod text;

use clap::Args;

use crate::print::print;
use crate::running::RunningKirin;

/// The arguments of `kirin status`.
#[derive(Args)]
pub struct StatusArgs {
    /// Print JSON, with all counters
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &StatusArgs) -> Result<(), String> {
    let status = arguments.at.find()?.get("/status")?;
    match arguments.json {
        true => print(&status),
        false => print(&text::describe(&status)?),
    }
}
