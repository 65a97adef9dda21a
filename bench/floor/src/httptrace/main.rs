//! `kirin-httptrace`: plays a trace against a caching proxy. It is also the server behind the
//! proxy, which counts the misses of the cache.
//!
//! `bench/compare.py cache-hit-ratio` runs it against Kirin, Varnish and nginx with the same
//! memory.
#![forbid(unsafe_code)]

mod client;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kirin_floor::objects::{self, ValueSizes};
use kirin_floor::trace::{Trace, TraceArguments};

/// Plays a trace of HTTP requests, or answers them.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answers `/object/N` with that object, for a cache to store, and `/count` with the number of
    /// objects that it has sent.
    Serve {
        /// Port on 127.0.0.1.
        #[arg(long)]
        port: u16,
        #[command(flatten)]
        sizes: Sizes,
    },
    /// Plays a trace and prints the outcome, one `name value` a line.
    Play {
        /// `HOST:PORT` of the cache. Several caches with commas between get the requests in turn.
        #[arg(value_delimiter = ',', required = true)]
        caches: Vec<SocketAddr>,
        /// `HOST:PORT` of the server behind it.
        upstream: SocketAddr,
        #[command(flatten)]
        trace: TraceArguments,
        #[command(flatten)]
        sizes: Sizes,
    },
    /// Prints what a trace consists of.
    Describe {
        #[command(flatten)]
        trace: TraceArguments,
        #[command(flatten)]
        sizes: Sizes,
    },
}

#[derive(clap::Args)]
struct Sizes {
    /// Size of the bodies in bytes: one number, or SMALLEST-LARGEST. Sizes are then spread evenly
    /// by order of magnitude, and each object has its own.
    #[arg(long, default_value = "1000-30000", value_name = "BYTES")]
    values: ValueSizes,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kirin-httptrace: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> io::Result<()> {
    match command {
        Command::Serve { port, sizes } => upstream::serve(port, sizes.values),
        Command::Describe { trace, sizes } => {
            let Trace { requests } = Trace::new(&trace);
            let footprint = objects::footprint(&requests, sizes.values);
            println!("requests {}", requests.len());
            println!("objects {}", footprint.objects);
            println!("first_requests_later {}", footprint.first_requests_later);
            println!("footprint_bytes {}", footprint.bytes);
            Ok(())
        }
        Command::Play { caches, upstream, trace, sizes } => {
            let Trace { requests } = Trace::new(&trace);
            let (first, second) = requests.split_at(requests.len() / 2);
            let mut caches: Vec<_> = caches.into_iter().map(client::Client::new).collect();
            let mut upstream = client::Client::new(upstream);
            let begin = upstream.count()?;
            let requested_bytes = play(&mut caches, first, sizes.values)?;
            let middle = upstream.count()?;
            let later_bytes = play(&mut caches, second, sizes.values)?;
            let end = upstream.count()?;
            println!("requests {}", requests.len());
            println!("misses {}", end.answers - begin.answers);
            println!("later_requests {}", second.len());
            println!("later_misses {}", end.answers - middle.answers);
            println!("requested_bytes {}", requested_bytes + later_bytes);
            println!("missed_bytes {}", end.bytes - begin.bytes);
            Ok(())
        }
    }
}

/// Requests the objects one after the other, from each cache in turn. Returns the sum of their
/// sizes in bytes.
fn play(caches: &mut [client::Client], objects: &[u32], sizes: ValueSizes) -> io::Result<u64> {
    let count = caches.len();
    let mut sum = 0;
    for (turn, &object) in objects.iter().enumerate() {
        sum += caches[turn % count].object(object, sizes)?;
    }
    Ok(sum)
}
