//! `kirin workers`: gives an application another number of workers, while Kirin runs.

use clap::Args;
use kirin_workers::MAX_WORKERS;
use serde_json::json;

use crate::number::within;
use crate::print::print;
use crate::running::RunningKirin;

/// The arguments of `kirin workers`.
#[derive(Args)]
pub struct WorkersArgs {
    /// The application
    app: String,
    /// The number of workers [default: that of the configuration]
    #[arg(value_parser = within(1, MAX_WORKERS))]
    workers: Option<usize>,
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &WorkersArgs) -> Result<(), String> {
    let WorkersArgs { app, workers, at } = arguments;
    let change = json!({ "app": app, "workers": workers });
    print(&at.find()?.post_change("/workers", &change)?)
}
