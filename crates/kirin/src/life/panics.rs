//! Panics, which are bugs of the program. A panic ends its task, usually one connection, and
//! nothing else. Panics are logged and counted.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Logs panics from now on. By default they go to standard error, which may fail or block.
pub fn log_and_count() {
    std::panic::set_hook(Box::new(|panic| {
        COUNT.fetch_add(1, Ordering::Relaxed);
        let message = panic.payload_as_str().unwrap_or("no message");
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let backtrace = Backtrace::capture();
        match backtrace.status() {
            BacktraceStatus::Captured => {
                tracing::error!(%location, %thread, "a mistake in Kirin ended a task: {message}\n{backtrace}");
            }
            _ => tracing::error!(%location, %thread, "a mistake in Kirin ended a task: {message}"),
        }
    }));
}

/// Returns the number of panics since the start.
pub fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}
