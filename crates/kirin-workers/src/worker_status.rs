//! What each worker does now, for operators.

use std::time::{Duration, Instant};

use crate::app::App;
use crate::current_request::RunningRequest;
use crate::replacement;
use crate::worker_handle::WorkerHandle;

/// The status of a worker.
#[derive(Clone, Debug)]
pub struct WorkerStatus {
    /// The process id.
    pub pid: u32,
    /// The generation of the application that it belongs to.
    pub generation: u64,
    /// Whether it gets no further request.
    pub is_leaving: bool,
    /// The request that it has. `None` if it has none.
    pub request: Option<RunningRequest>,
    /// For how long it has had no request and has not looked for one. `None` if it is idle or has a
    /// request.
    pub silent: Option<Duration>,
    /// The number of requests that it got.
    pub requests: u64,
    /// The time since it greeted.
    pub age: Duration,
    /// Its resident memory in bytes. `None` if the process has ended.
    pub resident_bytes: Option<u64>,
}

impl WorkerHandle {
    /// Returns what the worker does now.
    fn status(&self, now: Instant) -> WorkerStatus {
        WorkerStatus {
            pid: self.pid,
            generation: self.generation,
            is_leaving: self.is_leaving(),
            request: self.current.running(now),
            silent: None,
            requests: self.current.requests(),
            age: self.age(now),
            resident_bytes: replacement::resident_bytes(self.pid),
        }
    }
}

impl App {
    /// Returns what each worker does now, ordered by process id. Reads a file of `/proc` for each.
    pub fn worker_status(&self, now: Instant) -> Vec<WorkerStatus> {
        let handles = self.worker_handles();
        let mut workers: Vec<_> = handles.iter().map(|worker| worker.status(now)).collect();
        for (worker, block, since) in self.rings().iter().flat_map(|ring| ring.at_work()) {
            if let Some(status) = workers.iter_mut().find(|status| status.pid == worker.pid) {
                let running = now.saturating_duration_since(since);
                status.request = Some(RunningRequest::from_block(&block, running));
            }
        }
        for (worker, silent) in self.rings().iter().flat_map(|ring| ring.free_workers(now)) {
            if let Some(status) = workers.iter_mut().find(|status| status.pid == worker.pid) {
                status.silent = silent;
            }
        }
        workers.sort_by_key(|worker| worker.pid);
        workers
    }
}
