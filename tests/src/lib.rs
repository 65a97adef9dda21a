#![forbid(unsafe_code)]
//! Starts the built `kirin` on free ports and talks to it over raw sockets.
//!
//! `make test` builds the program first. `KIRIN_BINARY` names another one.

mod authority;
mod backend;
mod client;
mod http2;
mod memcached;
mod memcached_program;
pub mod memo;
mod pebble;
mod php_fpm;
mod program;
pub mod scripts;
mod site;
mod status;
pub mod strict;
mod terminal;
mod tls;

pub use authority::{Authority, Issued};
pub use backend::{Backend, BackendConnection, ReceivedRequest};
pub use client::{Client, Reply};
pub use http2::{Http2Client, Http2Reply, Pending};
pub use memcached::Memcached;
pub use memcached_program::{MemcachedClient, MemcachedProgram, memcached_command, memcached_port};
pub use pebble::Pebble;
pub use php_fpm::PhpFpm;
pub use program::{Kirin, binary, kirin_command, prove, repository, run_kirin};
pub use site::Site;
pub use status::ADMIN;
pub use terminal::Terminal;
pub use tls::{TlsClient, TlsSetup};

use std::time::{Duration, Instant};

/// How long a test waits for an event that should happen at once.
pub const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// Waits until `condition` returns a value.
///
/// # Panics
/// Panics if it does not within [`WAIT_LIMIT`]. The message names what was missing.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < WAIT_LIMIT, "waited {WAIT_LIMIT:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
