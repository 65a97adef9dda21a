//! `kirin-memtrace`: plays a trace against a memcached server as a cache-aside client does, and
//! counts the misses. Such a client gets an object, and sets it after a miss.
//!
//! Requests depend only on the arguments and never on the responses. Two servers therefore get the
//! same requests in the same order. `bench/compare.py hit-ratio` runs it against Kirin and
//! memcached with the same `-m`.
#![forbid(unsafe_code)]

mod cache_aside;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use kirin_floor::address::Address;
use kirin_floor::objects::{self, ValueSizes};
use kirin_floor::trace::{Trace, TraceArguments};

/// Plays a trace against a memcached server and prints the outcome, one `name value` a line.
/// Without a server it describes the trace.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// `HOST:PORT` or `unix:/path`.
    address: Option<Address>,
    #[command(flatten)]
    trace: TraceArguments,
    /// Size of the values in bytes: one number, or SMALLEST-LARGEST. Sizes are then spread evenly
    /// by order of magnitude, and each key has its own.
    #[arg(long, default_value = "100", value_name = "BYTES")]
    values: ValueSizes,
    /// Number of keys in each get. Missing objects are stored together with the next get.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kirin-memtrace: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let Trace { requests } = Trace::new(&arguments.trace);
    let Some(address) = &arguments.address else {
        let footprint = objects::footprint(&requests, arguments.values);
        println!("requests {}", requests.len());
        println!("objects {}", footprint.objects);
        println!("first_requests_later {}", footprint.first_requests_later);
        println!("footprint_bytes {}", footprint.bytes);
        return Ok(());
    };
    let outcome =
        cache_aside::play(address.connect()?, &requests, arguments.values, arguments.batch.into())?;
    println!("requests {}", outcome.requests);
    println!("misses {}", outcome.misses);
    println!("later_requests {}", outcome.later_requests);
    println!("later_misses {}", outcome.later_misses);
    println!("requested_bytes {}", outcome.requested_bytes);
    println!("missed_bytes {}", outcome.missed_bytes);
    println!("repeated_misses {}", outcome.repeated_misses);
    Ok(())
}
