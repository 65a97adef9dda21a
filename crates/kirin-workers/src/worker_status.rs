//! What each worker does now, for operators.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::App;
use crate::current_request::RunningRequest;
use crate::replacement;
use crate::worker_handle::WorkerHandle;
use crate::worker_process::WorkerProcess;

/// The status of a worker.
#[derive(Clone, Debug)]
pub struct WorkerStatus {
    /// The process id.
    pub pid: u32,
    /// The generation of the application that it belongs to.
    pub generation: u64,
    /// Whether it gets no further request.
    pub is_leaving: bool,
    /// The request that it has, or the oldest one of several. `None` if it has none.
    pub request: Option<RunningRequest>,
    /// How many more requests it has, if it serves several at the same time.
    pub more_requests: usize,
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

/// Returns what a worker does now.
fn status(
    process: &WorkerProcess,
    connections: &[Arc<WorkerHandle>],
    now: Instant,
) -> WorkerStatus {
    let running = connections.iter().filter_map(|connection| connection.current.running(now));
    let mut running: Vec<_> = running.collect();
    running.sort_by_key(|request| std::cmp::Reverse(request.running));
    let requests: u64 = connections.iter().map(|connection| connection.current.requests()).sum();
    WorkerStatus {
        pid: process.pid,
        generation: process.generation,
        is_leaving: process.is_leaving(),
        more_requests: running.len().saturating_sub(1),
        request: running.into_iter().next(),
        silent: None,
        requests: process.requests_before() + requests,
        age: process.age(now),
        resident_bytes: replacement::resident_bytes(process.pid),
    }
}

impl App {
    /// Returns what each worker does now, ordered by process id. Reads a file of `/proc` for each.
    pub fn worker_status(&self, now: Instant) -> Vec<WorkerStatus> {
        let known = self.workers.with_connections();
        let workers = known.iter().map(|(process, connections)| status(process, connections, now));
        let mut workers: Vec<_> = workers.collect();
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
