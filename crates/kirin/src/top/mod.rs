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

use crate::command_line::Top;
use source::Source;

/// Carries out `kirin top`.
pub fn run(arguments: &Top) -> Result<(), String> {
    let pause = Duration::from_millis((arguments.interval * 1000.0) as u64);
    let source = match &arguments.ssh {
        Some(host) => Source::by_ssh(host, &arguments.at, arguments.interval)?,
        None => Source::of(arguments.at.find()?),
    };
    let mut source = source.only(arguments.site.as_deref());
    let first = source.next()?;
    if arguments.stream {
        return stream(source, first, pause);
    }
    if arguments.once || !std::io::stdout().is_terminal() {
        return crate::print(&plain::text(&first));
    }
    terminal::run(source, first, pause).map_err(|error| format!("the terminal: {error}"))?
}

/// Prints a snapshot as a line of JSON at regular times, until nobody reads them.
fn stream(
    mut source: Source,
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
