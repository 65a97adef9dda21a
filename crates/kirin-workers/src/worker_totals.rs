//! The ages and the memory of the workers, for metrics.

use std::time::{Duration, Instant};

use crate::app::App;
use crate::replacement::resident_bytes;

/// The ages and the memory of the workers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerTotals {
    /// The workers with a connection.
    pub workers: u64,
    /// The age of the oldest one.
    pub oldest: Duration,
    /// The age of the youngest one.
    pub youngest: Duration,
    /// The resident memory of all in bytes. Pages that workers share count for each.
    pub resident_bytes: u64,
    /// The resident memory of the largest one in bytes.
    pub largest_bytes: u64,
}

impl App {
    /// Returns the ages and the memory of the workers. Reads a file of each process, so it must not
    /// run on an event loop.
    pub fn worker_totals(&self, now: Instant) -> WorkerTotals {
        let workers = self.workers.processes();
        let mut totals = WorkerTotals { workers: workers.len() as u64, ..WorkerTotals::default() };
        let ages = workers.iter().map(|worker| worker.age(now));
        totals.oldest = ages.clone().max().unwrap_or_default();
        totals.youngest = ages.min().unwrap_or_default();
        for bytes in workers.iter().filter_map(|worker| resident_bytes(worker.pid)) {
            totals.resident_bytes += bytes;
            totals.largest_bytes = totals.largest_bytes.max(bytes);
        }
        totals
    }
}
