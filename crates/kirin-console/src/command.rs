//! The commands that look at a running Kirin, or at its logs and its configuration.

use clap::Subcommand;

use crate::advise::{self, Advise};
use crate::block::{self, BlockArgs, UnblockArgs};
use crate::explain::{self, Explain};
use crate::log_sum::{self, LogCommand};
use crate::maintenance::{self, MaintenanceArgs};
use crate::profile::{self, ProfileArgs};
use crate::purge::{self, PurgeArgs};
use crate::reload::{self, DiffArgs, ReloadArgs};
use crate::status::{self, StatusArgs};
use crate::top::{self, Top};
use crate::upgrade::{self, UpgradeArgs};
use crate::upstream::{self, UpstreamArgs};
use crate::workers::{self, WorkersArgs};

/// A command.
#[derive(Subcommand)]
pub enum ConsoleCommand {
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
    Purge(PurgeArgs),
    /// Have a running Kirin read its configuration again; what has not changed goes on undisturbed
    #[command(after_help = "Examples:
  kirin reload                      reads the configuration, certificates and password files again
  kirin reload --dry-run            only prints what would change
  kirin reload --app web            also loads the application again, without losing a request
  kirin reload --promote            lets new code that is on trial serve everybody
  kirin reload --give-up            gives new code that is on trial up
It prints what has changed. If anything is wrong, nothing changes, and the exit status is 1.")]
    Reload(ReloadArgs),
    /// Print what `kirin reload` would change
    Diff(DiffArgs),
    /// Have a running Kirin start its program file again and hand over to it
    #[command(after_help = "Examples:
  kirin upgrade                     after a new program was installed
  kirin upgrade --timeout 300       its applications may take long to load
It waits until the new program serves. If that does not start, the old one serves on, the command
says why, and the exit status is 1.")]
    Upgrade(UpgradeArgs),
    /// Take a server of an upstream out of service and back, or change its share of requests
    #[command(after_help = "Examples:
  kirin upstream drain api 10.0.0.1:8080     before it is restarted
  kirin upstream enable api 10.0.0.1:8080
  kirin upstream weigh api 10.0.0.1:8080 3
A change holds until Kirin is started again, also over reloads and upgrades.")]
    Upstream(UpstreamArgs),
    /// Give an application another number of workers
    #[command(after_help = "Examples:
  kirin workers web 8
  kirin workers web       back to the number of the configuration
The number holds until Kirin is started again, or a reload changes it in the configuration.")]
    Workers(WorkersArgs),
    /// Hold a site, a route or everything with 503 (maintenance), and serve it again
    #[command(after_help = "Examples:
  kirin maintenance on                            everything
  kirin maintenance on --site shop.example.org --allow 10.0.0.0/8
  kirin maintenance on --route /checkout --page /errors/maintenance.html --retry-after 30m
  kirin maintenance off --route /checkout
It holds until `off`, or until Kirin is started again. A reload keeps it, unless the file then says
something else about `maintenance` of the same route.")]
    Maintenance(MaintenanceArgs),
    /// Close connections of an address or a network, and refuse its requests, for a time
    #[command(after_help = "Examples:
  kirin block 192.0.2.7                  for an hour
  kirin block 2001:db8::/32 --for 7d
  kirin block 192.0.2.7 --all            on all machines with the same store.origin
A client behind a trusted proxy gets 403. The admin and memcached sockets are not affected.")]
    Block(BlockArgs),
    /// End a block before its time
    Unblock(UnblockArgs),
    /// Print the state and the counters of a running Kirin
    #[command(after_help = "Examples:
  kirin status                      the Kirin of ./kirin.toml, of this directory, or the only one
  kirin status --target app.psgi    that of `kirin serve app.psgi`
  kirin status --json | jq .store   for programs
  kirin status --all                a line for each machine with the same origin of the store")]
    Status(StatusArgs),
    /// Find the slow line: sample the stacks of an application's workers for some seconds
    #[command(after_help = "Examples:
  kirin profile --app web --seconds 10
  kirin profile --app web --output slow.svg    a flame graph, for a browser")]
    Profile(ProfileArgs),
    /// Show what a running Kirin does now: workers, URLs, applications, upstreams, cache, store
    #[command(after_help = "Examples:
  kirin top
  kirin top --once > now.txt
  kirin top --all                   all machines with the same origin of the store
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
pub fn run(command: ConsoleCommand) -> Result<(), String> {
    match command {
        ConsoleCommand::Explain(arguments) => explain::run(&arguments),
        ConsoleCommand::Purge(arguments) => purge::run(arguments),
        ConsoleCommand::Reload(arguments) => reload::run(&arguments),
        ConsoleCommand::Diff(arguments) => reload::run_diff(&arguments),
        ConsoleCommand::Upgrade(arguments) => upgrade::run(&arguments),
        ConsoleCommand::Upstream(arguments) => upstream::run(&arguments),
        ConsoleCommand::Workers(arguments) => workers::run(&arguments),
        ConsoleCommand::Maintenance(arguments) => maintenance::run(&arguments),
        ConsoleCommand::Block(arguments) => block::block(&arguments),
        ConsoleCommand::Unblock(arguments) => block::unblock(&arguments),
        ConsoleCommand::Status(arguments) => status::run(&arguments),
        ConsoleCommand::Profile(arguments) => profile::run(&arguments),
        ConsoleCommand::Top(arguments) => top::run(&arguments),
        ConsoleCommand::Advise(arguments) => advise::run(&arguments),
        ConsoleCommand::Log { command } => log_sum::run(&command),
    }
}
