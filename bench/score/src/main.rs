//! `kirin-score`: visits one contestant and prints the verdict as JSON. `make score` runs it.
#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use kirin_score::{Facts, Plan, run};

/// Visits a memo site in closed loops, checks every answer, and prints the verdict as JSON.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// IP address and port of the site.
    address: SocketAddr,
    /// JSON file with the facts about the site: memos, names and password.
    #[arg(long)]
    facts: PathBuf,
    /// Directory with the style sheet and the icon of the site.
    #[arg(long)]
    files: PathBuf,
    /// Length of the run.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Number of visitors without an account.
    #[arg(long, default_value_t = 16)]
    readers: usize,
    /// Number of visitors who sign in.
    #[arg(long, default_value_t = 8)]
    members: usize,
    /// Seed of the requests. The same seed gives the same requests.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds in which a new public memo must be on the front page. The contest has one second.
    #[arg(long, default_value_t = 1.0)]
    appears_within: f64,
    /// Seconds in which a request must be answered.
    #[arg(long, default_value_t = 10.0)]
    answer_within: f64,
}

fn main() -> ExitCode {
    match visit(&Arguments::parse()) {
        Ok(verdict) => {
            println!("{verdict}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kirin-score: {error}");
            ExitCode::FAILURE
        }
    }
}

fn visit(arguments: &Arguments) -> io::Result<String> {
    let facts = Facts::read(&arguments.facts, &arguments.files)?;
    let plan = Plan {
        address: arguments.address,
        length: duration(arguments.seconds)?,
        readers: arguments.readers,
        members: arguments.members,
        seed: arguments.seed,
        appears_within: duration(arguments.appears_within)?,
        answer_limit: duration(arguments.answer_within)?,
    };
    Ok(serde_json::to_string(&run(plan, facts)?)?)
}

fn duration(seconds: f64) -> io::Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(io::Error::other)
}
