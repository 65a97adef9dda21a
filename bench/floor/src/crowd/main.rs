//! `kirin-crowd`: many clients with many requests each, and slow readers beside them. It reports
//! the outcome of every request.
//!
//! `wrk` differs in three points: this program ends after a number of requests, it counts every
//! request, and it notices that the server has closed a kept connection. `bench/compare.py crowd`
//! and `restart` run it.
#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use kirin_floor::crowd::{self, Crowd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sends a crowd of clients to a server and prints the outcome, one `name value` a line.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// IP address and port of the server.
    address: SocketAddr,
    /// Number of connections at a time. Each makes its requests one after another.
    #[arg(long, default_value_t = 1000)]
    connections: usize,
    /// Number of requests of each connection.
    #[arg(long, default_value_t = 250)]
    requests: usize,
    /// The path that the clients request.
    #[arg(long, default_value = "/")]
    path: String,
    /// Open a new connection for each request.
    #[arg(long)]
    close: bool,
    /// Milliseconds between a response and the next request.
    #[arg(long, default_value_t = 0)]
    pause: u64,
    /// Seconds after which a request without a response has failed.
    #[arg(long, default_value_t = 30)]
    timeout: u64,
    /// Seconds after which the run ends, even if requests are left.
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Number of connections that read one byte a second.
    #[arg(long, default_value_t = 0)]
    slow: usize,
    /// The path that these connections request.
    #[arg(long, default_value = "/large")]
    slow_path: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match raise_open_files().and_then(|()| crowd::run(arguments.into())) {
        Ok(mut outcome) => {
            for (name, value) in outcome.report() {
                println!("{name} {value}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kirin-crowd: {error}");
            ExitCode::FAILURE
        }
    }
}

impl From<Arguments> for Crowd {
    fn from(arguments: Arguments) -> Self {
        Self {
            address: arguments.address,
            visitors: arguments.connections,
            requests: arguments.requests,
            path: arguments.path,
            keep_alive: !arguments.close,
            pause: Duration::from_millis(arguments.pause),
            timeout: Duration::from_secs(arguments.timeout),
            limit: Duration::from_secs(arguments.limit),
            slow_readers: arguments.slow,
            slow_path: arguments.slow_path,
        }
    }
}

/// Raises the limit of open files to the hard limit. The usual soft limit of 1,024 is too low for a
/// crowd.
fn raise_open_files() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
