//! The commands that look at a running Kirin, or at its logs and its configuration.

use clap::Subcommand;

use crate::advise::{self, Advise};
use crate::explain::{self, Explain};
use crate::log_sum::{self, LogCommand};
use crate::profile::{self, Profile};
use crate::purge::{self, Purge};
use crate::status::{self, Status};
use crate::top::{self, Top};

/// A command.
#[derive(Subcommand)]
pub enum Command {
    /// Say which site, route, rules and places a request meets, and why not others
    #[command(after_help = "Examples:
  kirin explain https://example.org/x?y
  kirin explain POST http://localhost:8080/login -H 'Cookie: sid=1' --client 10.1.2.3")]
    Explain(Explain),
    /// Purge pages and other items of a running Kirin, by its admin listener or its memcached port
    #[command(after_help = "Examples:
  kirin purge --key / --prefix /recent/
  kirin purge --tag memo-7 --tag user-3 --config /etc/kirin/kirin.toml
  kirin purge --prefix /blog/ --soft")]
    Purge(Purge),
    /// Print the state and the counters of a running Kirin
    #[command(after_help = "Examples:
  kirin status                      the Kirin of ./kirin.toml, of this directory, or the only one
  kirin status --target app.psgi    that of `kirin serve app.psgi`
  kirin status --json | jq .store   for programs")]
    Status(Status),
    /// Find the slow line: sample the Perl stacks of an application's workers for some seconds
    #[command(after_help = "Examples:
  kirin profile --app web --seconds 10
  kirin profile --app web --output slow.svg    a flame graph, for a browser")]
    Profile(Profile),
    /// Show what a running Kirin does now: workers, URLs, applications, upstreams, cache, store
    #[command(after_help = "Examples:
  kirin top
  kirin top --once > now.txt
  kirin top --ssh www.example.org --config /etc/kirin/kirin.toml")]
    Top(Top),
    /// Observe what applications answer for a while, and say which pages could be in memory
    #[command(after_help = "Examples:
  kirin advise --seconds 60
  kirin advise --seconds 600 --app web --session sid --json
Ctrl-C ends the run early; the report is about the time so far.")]
    Advise(Advise),
    /// Read access logs
    Log {
        /// What is to be done with them.
        #[command(subcommand)]
        command: LogCommand,
    },
}

/// Carries out a command. The error is for the operator.
pub fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Purge(arguments) => purge::run(arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Log { command } => log_sum::run(&command),
    }
}
