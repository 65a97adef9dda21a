//! `kirin upgrade`: has a running Kirin start its program file again and hand over to it.

use std::time::Duration;

use clap::Args;
use kirin_observe::upgrade::{UpgradeWish, Upgraded};
use serde_json::{Value, json};

use crate::number::within;
use crate::print::print;
use crate::running::RunningKirin;
use crate::running::target::{CommandTarget, without_conflict};

/// The longest time that the command waits if Kirin itself decides, in seconds.
const MAX_SECONDS: u64 = 86400;

/// The arguments of `kirin upgrade`.
#[derive(Args)]
pub struct UpgradeArgs {
    /// Give the new program this many seconds until it serves [default: 60 and the longest
    /// `start_limit` of the applications]
    #[arg(long, value_name = "SECONDS", value_parser = within::<u64>(1, MAX_SECONDS))]
    timeout: Option<u64>,
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &UpgradeArgs) -> Result<(), String> {
    print(&upgrade(&arguments.at.find()?, arguments.timeout)?)
}

/// Upgrades a running Kirin. Returns what is to be printed.
pub fn upgrade(target: &CommandTarget, timeout_seconds: Option<u64>) -> Result<String, String> {
    let wish = UpgradeWish { timeout_seconds };
    let limit = Duration::from_secs(timeout_seconds.unwrap_or(MAX_SECONDS));
    let answer = target.post_within("/upgrade", &json!(wish).to_string(), limit);
    let Upgraded { pid } = serde_json::from_str(&without_conflict(answer)?)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))?;
    Ok(format!("upgraded: process {pid} serves\n"))
}

/// Returns whether the program file of a running Kirin is another one than when it was started.
pub fn has_other_program(target: &CommandTarget) -> Result<bool, String> {
    let status: Value = serde_json::from_str(&target.get("/status")?)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))?;
    Ok(status["program"]["is_replaced"] == true)
}
