//! What the listeners count; the store counts hits and misses itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one loop. Each is touched a few times a read at most.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections accepted.
    pub total_connections: AtomicU64,
    /// Connections refused because there were too many.
    pub rejected_connections: AtomicU64,
    /// Bytes received.
    pub bytes_read: AtomicU64,
    /// Bytes sent.
    pub bytes_written: AtomicU64,
    /// Values refused before they were read, for their announced size.
    pub store_too_large: AtomicU64,
    /// `me` commands.
    pub cmd_meta: AtomicU64,
    /// Connections closed because they were silent.
    pub idle_kicks: AtomicU64,
    /// Times that accepting paused because the process had no file descriptor left.
    pub listen_disabled_num: AtomicU64,
    /// Times that a client's commands had to wait until it took its answers.
    pub conn_yields: AtomicU64,
}

impl Counters {
    /// Sets all to 0 (`stats reset`).
    pub fn reset(&self) {
        for counter in self.all() {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Adds those of another loop.
    pub fn add_all(&self, others: &Counters) {
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
