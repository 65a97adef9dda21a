//! `kirin-memload`: load for a memcached server, from one event loop in one thread.
//!
//! Each connection sends a batch of commands in one write, waits for all replies, and sends the
//! next batch. This is a closed loop, as in `wrk`. Latencies are therefore the times of batches,
//! without the time that a client would have waited in a queue. `bench/compare.py memcached` runs
//! it against Kirin and memcached.
#![forbid(unsafe_code)]

mod connection;
mod drive;
mod workload;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use kirin_floor::address::Address;

use workload::Workload;

/// Puts load on a memcached server and prints the outcome, one `name value` a line.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// `HOST:PORT` or `unix:/path`.
    address: Address,
    /// Store every key once and end. Run this first, outside the measurement.
    #[arg(long)]
    fill: bool,
    /// Number of connections, all in one thread.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Length of the run in seconds.
    #[arg(long, default_value = "4", value_parser = seconds)]
    seconds: Duration,
    #[command(flatten)]
    workload: Workload,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kirin-memload: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    if arguments.fill {
        drive::fill(&arguments.address, &arguments.workload)?;
        println!("stored {}", arguments.workload.keys);
        return Ok(());
    }
    let mut outcome = drive::load(
        &arguments.address,
        &arguments.workload,
        arguments.connections,
        arguments.seconds,
    )?;
    let seconds = outcome.elapsed.as_secs_f64();
    println!("seconds {seconds:.3}");
    println!("commands {}", outcome.commands);
    println!("commands_per_second {:.0}", outcome.commands as f64 / seconds);
    println!("values {}", outcome.values);
    println!("misses {}", outcome.misses);
    for (name, latency) in outcome.latencies.percentiles() {
        println!("{name} {:.1}", latency.as_secs_f64() * 1e6);
    }
    Ok(())
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "a positive number of seconds is needed".to_owned())
}
