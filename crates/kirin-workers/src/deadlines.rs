//! The deadlines of requests that workers have over connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::worker_handle::WorkerHandle;

/// How long a worker may take to close the connection of an overdue request, if it serves others
/// at the same time. If it does not, it hangs. Code that blocks the loop for less harms only the
/// time of others.
const GIVE_UP_LIMIT: Duration = Duration::from_secs(5);

/// The clock of an application's deadlines.
pub(crate) struct Deadlines {
    /// How long a request may take.
    limit: Duration,
    /// When the clock was 0. Handles keep milliseconds of it.
    started: Instant,
    /// Connections whose request is overdue, of workers that serve others at the same time, and
    /// since when.
    given_up: Mutex<Vec<(Arc<WorkerHandle>, Instant)>>,
}

impl Deadlines {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, started: Instant::now(), given_up: Mutex::default() }
    }

    /// Starts the deadline of a request that the worker has from now on.
    pub(crate) fn begin(&self, worker: &WorkerHandle) {
        self.begin_at(worker, Instant::now());
    }

    /// Starts the deadline of a request that the worker has had since `begun`.
    pub(crate) fn begin_at(&self, worker: &WorkerHandle, begun: Instant) {
        worker.begin(self.end_ms(begun));
    }

    /// Starts the deadline of a worker that must come back after its connection is dropped. One
    /// with other connections need not.
    pub(crate) fn begin_to_return(&self, worker: &WorkerHandle) {
        if !worker.process.is_concurrent() {
            self.begin(worker);
        }
    }

    /// Starts the deadline of workers whose connection has ended. They accept another one within
    /// it, or end.
    pub(crate) fn begin_of_disconnected(&self, connections: &[Arc<WorkerHandle>]) {
        let end_ms = self.end_ms(Instant::now());
        for worker in connections.iter().filter(|worker| worker.is_disconnected()) {
            worker.begin_if_none(end_ms);
        }
    }

    /// Returns the workers that must be killed, because a request is overdue or because they have
    /// not given an overdue one up. Each connection is returned once.
    pub(crate) fn overdue(
        &self,
        mut connections: Vec<Arc<WorkerHandle>>,
    ) -> Vec<Arc<WorkerHandle>> {
        let now = Instant::now();
        let now_ms = self.milliseconds(now);
        connections.retain(|worker| worker.condemn_if_overdue(now_ms));
        let concurrent = connections.extract_if(.., |worker| worker.process.is_concurrent());
        let mut given_up = self.given_up.lock();
        given_up.extend(concurrent.map(|worker| {
            worker.give_up_request();
            (worker, now)
        }));
        given_up.retain(|(worker, _)| !worker.is_disconnected());
        let hang = given_up.extract_if(.., |(_, since)| *since + GIVE_UP_LIMIT <= now);
        connections.extend(hang.map(|(worker, _)| worker));
        connections
    }

    /// Returns when a request that has begun at `begun` is overdue.
    fn end_ms(&self, begun: Instant) -> u64 {
        self.milliseconds(begun) + self.limit.as_millis() as u64
    }

    fn milliseconds(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.started).as_millis() as u64
    }
}
