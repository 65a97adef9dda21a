//! Starts the store alone, as `kirin memcached` does: `cargo run --example memcached -- -vv`.

use std::process::ExitCode;

use kirin_memcache::{memcached_options, run};

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match memcached_options::parse(std::env::args().skip(1)) {
        Ok(invocation) => run(invocation, || ()),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(64)
        }
    }
}
