//! The store alone, started as `kirin memcached` starts it: `cargo run --example memcached -- -vv`.

use std::process::ExitCode;

use kirin_memcache::{memcached_options, run};

/// The allocator of the `kirin` program, so that what tests measure here holds there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match memcached_options::parse(std::env::args().skip(1)) {
        Ok(invocation) => run(invocation),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(64)
        }
    }
}
