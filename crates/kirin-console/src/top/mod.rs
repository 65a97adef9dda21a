//! `kirin top`: what a running Kirin does, in a terminal.
//!
//! [`source`] fetches snapshots, [`screen`] holds what the keys have chosen, [`draw`] draws it, and
//! [`terminal`] joins them. [`plain`] prints the tables once.

mod draw;
mod plain;
#[cfg(test)]
mod sample;
mod screen;
mod source;
mod terminal;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;

use crate::number::within;
use crate::print::print;
use crate::running::RunningKirin;
use source::{About, SnapshotSource};

/// The least time between two snapshots of all machines. Each makes two in a second.
const LEAST_PAUSE_OF_ALL: Duration = Duration::from_millis(500);

/// The arguments of `kirin top`.
#[derive(Args)]
pub struct Top {
    /// Print all tables once, as plain text. This is the default if the output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Show all machines with the same origin of the store as one: the rows of the same site and
    /// pattern are added up. At most two snapshots in a second
    #[arg(long)]
    pub all: bool,
    /// Show a Kirin on another machine: a destination of ssh, such as user@host. The other options
    /// then mean files and sockets of that machine, on which `kirin` must be installed
    #[arg(long, value_name = "HOST")]
    pub ssh: Option<String>,
    /// Show only the URLs of this site of the configuration; - means the routes at the top level
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// The time between two snapshots in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = within::<f64>(0.1, 3600.0),
          conflicts_with = "once")]
    pub interval: f64,
    /// Print snapshots as lines of JSON, for the `kirin top` of another machine
    #[arg(long, hide = true)]
    pub stream: bool,
    #[command(flatten)]
    pub at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &Top) -> Result<(), String> {
    let least = if arguments.all { LEAST_PAUSE_OF_ALL } else { Duration::ZERO };
    let pause = Duration::from_millis((arguments.interval * 1000.0) as u64).max(least);
    let about = if arguments.all { About::AllMachines } else { About::OneMachine };
    let source = match &arguments.ssh {
        Some(host) => SnapshotSource::by_ssh(host, &arguments.at, arguments.interval, about)?,
        None => SnapshotSource::of(arguments.at.find()?, about),
    };
    let mut source = source.only(arguments.site.as_deref());
    let first = source.next()?;
    if arguments.stream {
        return stream(source, first, pause);
    }
    if arguments.once || !std::io::stdout().is_terminal() {
        return print(&plain::text(&first));
    }
    terminal::run(source, first, pause).map_err(|error| format!("the terminal: {error}"))?
}

/// Prints a snapshot as a line of JSON at regular times, until nobody reads them.
fn stream(
    mut source: SnapshotSource,
    first: kirin_observe::live::snapshot::Snapshot,
    pause: Duration,
) -> Result<(), String> {
    let mut snapshot = first;
    let mut out = std::io::stdout().lock();
    loop {
        let line = serde_json::to_string(&snapshot).map_err(|error| error.to_string())?;
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(format!("cannot print: {error}")),
        }
        std::thread::sleep(pause);
        snapshot = source.next()?;
    }
}
