//! The answer to `GET /top`: the status, the live table and the workers at one moment.

use std::time::Instant;

use kirin_workers::App;

use crate::live::counts::Times;
use crate::live::report;
use crate::live::snapshot::{Snapshot, WorkerReport};
use crate::observed::ObservedParts;
use crate::status;

/// Returns the program at this moment. This reads files of `/proc` and adds up the tables of all
/// event loops, so call it on a thread of its own.
pub fn snapshot(observed: &ObservedParts) -> Snapshot {
    with_workers(observed, Times::LeftOut)
}

/// Returns the same with the times that are needed to add it to the snapshots of other machines,
/// and without the queries of slow requests, which may have secrets.
pub fn addable_snapshot(observed: &ObservedParts) -> Snapshot {
    let mut snapshot = with_workers(observed, Times::Included);
    snapshot.leave_out_queries();
    snapshot
}

/// Returns the same without URLs and workers.
pub fn summary(observed: &ObservedParts) -> Snapshot {
    let mut snapshot = without_workers(observed, Times::LeftOut, Instant::now());
    snapshot.live.urls.clear();
    snapshot.leave_out_queries();
    snapshot
}

fn with_workers(observed: &ObservedParts, times: Times) -> Snapshot {
    let now = Instant::now();
    let workers = observed.apps.iter().flat_map(|app| workers(app, now)).collect();
    Snapshot { workers, ..without_workers(observed, times, now) }
}

fn without_workers(observed: &ObservedParts, times: Times, now: Instant) -> Snapshot {
    Snapshot {
        uptime_ms: now.saturating_duration_since(observed.started).as_millis() as u64,
        live: report::read(&observed.live, now, times),
        workers: Vec::new(),
        status: status::status(observed),
        machines: None,
    }
}

fn workers(app: &App, now: Instant) -> Vec<WorkerReport> {
    let report = |worker: kirin_workers::WorkerStatus| {
        let is_busy = worker.request.is_some() || worker.silent.is_some();
        let state = match (is_busy, worker.is_leaving) {
            (_, true) => "leaving",
            (true, false) => "busy",
            (false, false) => "idle",
        };
        let silent_ms = worker.silent.map_or(0, |silent| silent.as_millis() as u64);
        let (method, path, running_ms) = worker.request.map_or_else(
            || (String::new(), String::new(), silent_ms),
            |request| {
                // A request that has just begun counts as a millisecond, so that it is seen.
                let running_ms = (request.running.as_millis() as u64).max(1);
                let path = match worker.more_requests {
                    0 => request.path,
                    more => format!("{} and {more} more", request.path),
                };
                (request.method, path, running_ms)
            },
        );
        WorkerReport {
            machine: String::new(),
            app: app.name().to_owned(),
            pid: worker.pid,
            generation: worker.generation,
            state: state.to_owned(),
            method,
            path,
            running_ms,
            requests: worker.requests,
            age_seconds: worker.age.as_secs(),
            resident_bytes: worker.resident_bytes.unwrap_or_default(),
        }
    };
    app.worker_status(now).into_iter().map(report).collect()
}
