//! `kirin reload` and `kirin diff`: have a running Kirin read its configuration again, or say what
//! that would change.

use std::time::Duration;

use clap::Args;
use kirin_config::ConfigSource;
use kirin_observe::reload::{BegunTrial, ReloadWish, Reloaded};
use serde_json::json;

use crate::number::within;
use crate::print::print;
use crate::running::RunningKirin;
use crate::running::target::without_conflict;
use crate::units::duration;
use crate::upgrade::{has_other_program, upgrade};

/// How long the command waits by default, in seconds. An application may take its time to load.
const WAIT_SECONDS: u64 = 300;

/// The arguments of `kirin reload`.
#[derive(Args)]
pub struct ReloadArgs {
    /// Load all applications again, too: their code may have changed
    #[arg(long)]
    apps: bool,
    /// Load this application again, too, or decide about its trial. Can be repeated
    #[arg(long = "app", value_name = "NAME", conflicts_with = "apps")]
    names: Vec<String>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    /// Upgrade instead, if the program file is another one than the running program
    #[arg(long, conflicts_with = "dry_run")]
    or_upgrade: bool,
    /// Let the new code that is on trial serve everybody at once
    #[arg(long, conflicts_with_all = ["give_up", "apps", "dry_run", "or_upgrade"])]
    promote: bool,
    /// Give the new code that is on trial up
    #[arg(long, conflicts_with_all = ["apps", "dry_run", "or_upgrade"])]
    give_up: bool,
    /// Wait at most this many seconds; Kirin goes on after that
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT_SECONDS,
          value_parser = within::<u64>(1, 86400))]
    timeout: u64,
    #[command(flatten)]
    at: RunningKirin,
}

/// The arguments of `kirin diff`.
#[derive(Args)]
pub struct DiffArgs {
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out `kirin reload`.
pub fn run(arguments: &ReloadArgs) -> Result<(), String> {
    let ReloadArgs { apps, names, dry_run, or_upgrade, promote, give_up, timeout, at } = arguments;
    if *promote || *give_up {
        let decision = if *promote { "promote" } else { "give_up" };
        let change = json!({ "decision": decision, "apps": names });
        return print(&at.find()?.post_change("/trial", &change)?);
    }
    if *or_upgrade {
        let target = at.find().map_err(|error| all_errors(at).unwrap_or(error))?;
        if has_other_program(&target)? {
            return print(&upgrade(&target, Some(*timeout))?);
        }
    }
    let wish = ReloadWish { dry_run: *dry_run, all_apps: *apps, apps: names.clone() };
    let limit = Duration::from_secs(*timeout);
    print(&describe(&ask(at, &wish, limit)?, *dry_run))
}

/// Carries out `kirin diff`.
pub fn run_diff(arguments: &DiffArgs) -> Result<(), String> {
    let wish = ReloadWish { dry_run: true, ..ReloadWish::default() };
    let reloaded = ask(&arguments.at, &wish, Duration::from_secs(WAIT_SECONDS))?;
    print(&describe(&reloaded, true))
}

fn ask(at: &RunningKirin, wish: &ReloadWish, limit: Duration) -> Result<Reloaded, String> {
    let target = at.find().map_err(|error| all_errors(at).unwrap_or(error))?;
    let answer = target.post_within("/reload", &json!(wish).to_string(), limit);
    let answer = without_conflict(answer)?;
    serde_json::from_str(&answer)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))
}

/// Returns all errors of the configuration file, if it has any. To find the running Kirin, the
/// commands read only a part of it.
fn all_errors(at: &RunningKirin) -> Option<String> {
    let source = ConfigSource::read(at.config_file()?).ok()?;
    kirin_config::read(&source).err().map(|errors| errors.to_string())
}

fn describe(reloaded: &Reloaded, is_dry_run: bool) -> String {
    let Reloaded { changes, apps, trials } = reloaded;
    let mut lines: Vec<String> = changes.clone();
    if changes.is_empty() {
        lines.push("the configuration is the same".to_owned());
    }
    let (loaded, end) = match is_dry_run {
        true => ("would be loaded again", "nothing is changed: this was a dry run"),
        false => ("loaded again", "reloaded"),
    };
    lines.extend(apps.iter().map(|app| format!("app `{app}`: {loaded}")));
    lines.extend(trials.iter().map(|trial| {
        let BegunTrial { app, percent, time_seconds } = trial;
        let time = duration(*time_seconds);
        format!(
            "app `{app}`: the new code is on trial with {percent}% of the visitors for {time}; \
             `kirin status` shows both"
        )
    }));
    lines.push(end.to_owned());
    lines.push(String::new());
    lines.join("\n")
}
