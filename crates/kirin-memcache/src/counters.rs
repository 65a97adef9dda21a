//! The counters of the listeners. The store counts hits and misses itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one loop. Each changes at most a few times for a read.
#[derive(Debug, Default)]
pub struct MemcachedCounters {
    /// Connections that were accepted.
    pub total_connections: AtomicU64,
    /// Connections that were refused because there were too many.
    pub rejected_connections: AtomicU64,
    /// Bytes that were received.
    pub bytes_read: AtomicU64,
    /// Bytes that were sent.
    pub bytes_written: AtomicU64,
    /// Values that were refused for their announced size before they were read.
    pub store_too_large: AtomicU64,
    /// `me` commands.
    pub cmd_meta: AtomicU64,
    /// Connections that were closed because they were silent.
    pub idle_kicks: AtomicU64,
    /// Pauses in accepting because the process had no file descriptor left.
    pub listen_disabled_num: AtomicU64,
    /// Pauses of a client's commands until it had read its answers.
    pub conn_yields: AtomicU64,
}

impl MemcachedCounters {
    /// Sets all counters to 0 (`stats reset`).
    pub fn reset(&self) {
        for counter in self.all() {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Adds the counters of another loop.
    pub fn add_all(&self, others: &MemcachedCounters) {
        for (counter, other) in self.all().into_iter().zip(others.all()) {
            add(counter, read(other));
        }
    }

    fn all(&self) -> [&AtomicU64; 9] {
        [
            &self.total_connections,
            &self.rejected_connections,
            &self.bytes_read,
            &self.bytes_written,
            &self.store_too_large,
            &self.cmd_meta,
            &self.idle_kicks,
            &self.listen_disabled_num,
            &self.conn_yields,
        ]
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Reads a counter.
pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
