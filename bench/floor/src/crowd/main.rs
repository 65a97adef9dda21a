//! `kirin-crowd`: many clients with many requests each, and slow readers beside them; says what
//! became of each request.
//!
//! Unlike `wrk` it ends after a number of requests, has no request vanish from its counts, and
//! notices when the server has ended a kept connection. `bench/compare.py crowd` and `restart` run
//! it.
#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use kirin_floor::crowd::{self, Crowd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sends a crowd of clients to a server and prints what came of it, one `name value` a line.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The server, as IP address and port.
    address: SocketAddr,
    /// Connections at a time, each making its requests one after another.
    #[arg(long, default_value_t = 1000)]
    connections: usize,
    /// Requests of each connection.
    #[arg(long, default_value_t = 250)]
    requests: usize,
    /// What they ask for.
    #[arg(long, default_value = "/")]
    path: String,
    /// A new connection for each request.
    #[arg(long)]
    close: bool,
    /// Milliseconds between an answer and the next request.
    #[arg(long, default_value_t = 0)]
    pause: u64,
    /// Seconds after which a request without an answer has failed.
    #[arg(long, default_value_t = 30)]
    timeout: u64,
    /// Seconds after which the run ends, whatever is left.
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Connections that read one byte a second.
    #[arg(long, default_value_t = 0)]
    slow: usize,
    /// What these ask for.
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

/// Up to what may be had: the usual soft limit of 1024 is less than a crowd.
fn raise_open_files() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
