#![forbid(unsafe_code)]
//! Starts the built `kirin` on free ports and talks to it over raw sockets.
//!
//! `make test` builds the program first. `KIRIN_BINARY` names another one.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod authority;
mod backend;
mod client;
mod http2;
mod memcached;
mod memcached_program;
pub mod memo;
mod pebble;
mod php_fpm;
mod port;
mod program;
mod redis_cluster;
mod redis_sentinels;
mod redis_server;
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
pub use pebble::{Pebble, PebbleSetup};
pub use php_fpm::PhpFpm;
pub use port::LeasedPort;
pub use program::{Kirin, LITTLE_SPACE, binary, kirin_command, prove, repository, run_kirin};
pub use redis_cluster::RedisCluster;
pub use redis_sentinels::{MASTER_NAME, RedisSentinels, sentinel_lines, start_sentinel};
pub use redis_server::RedisServer;
pub use site::Site;
pub use status::ADMIN;
pub use terminal::Terminal;
pub use tls::{TlsClient, TlsSetup};

use std::fmt::Display;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Sets a flag at its end, also if that is a panic: threads of a scope that look at the flag would
/// go on for ever otherwise.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns how long a test waits for an event that should happen at once.
pub fn wait_limit() -> Duration {
    patient(Duration::from_secs(20))
}

/// Returns a limit of a wait, scaled for slow machines.
pub fn patient(limit: Duration) -> Duration {
    limit.mul_f64(wait_factor())
}

/// Returns a time for a configuration, such as `"5s"`, that is longer on slow machines.
pub fn patient_seconds(seconds: u64) -> String {
    format!("{}s", patient(Duration::from_secs(seconds)).as_secs().max(1))
}

/// Returns the factor of all waits: the number in `KIRIN_TEST_WAIT_FACTOR`, or 1.
fn wait_factor() -> f64 {
    static FACTOR: OnceLock<f64> = OnceLock::new();
    *FACTOR.get_or_init(|| {
        let Ok(text) = std::env::var("KIRIN_TEST_WAIT_FACTOR") else { return 1.0 };
        text.parse().unwrap_or_else(|error| panic!("KIRIN_TEST_WAIT_FACTOR={text}: {error}"))
    })
}

/// Waits until `condition` returns a value.
///
/// # Panics
/// Panics if it does not within [`wait_limit`]. The message names what was missing, as it is then.
pub fn wait_for<T>(what: &(impl Display + ?Sized), condition: impl FnMut() -> Option<T>) -> T {
    wait_within(wait_limit(), what, condition)
}

/// Waits for what Sentinels do. They do nothing for 30 seconds after the machine has stalled
/// (TILT).
///
/// # Panics
/// Panics if `condition` returns no value within a minute.
pub fn wait_for_sentinels<T>(
    what: &(impl Display + ?Sized),
    condition: impl FnMut() -> Option<T>,
) -> T {
    wait_within(patient(Duration::from_secs(60)), what, condition)
}

/// Waits until `condition` returns a value, for something that takes its time.
///
/// # Panics
/// Panics if it does not within `limit`, which is longer on slow machines.
pub fn wait_long<T>(
    limit: Duration,
    what: &(impl Display + ?Sized),
    condition: impl FnMut() -> Option<T>,
) -> T {
    wait_within(patient(limit), what, condition)
}

fn wait_within<T>(
    limit: Duration,
    what: &(impl Display + ?Sized),
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < limit, "waited {limit:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
