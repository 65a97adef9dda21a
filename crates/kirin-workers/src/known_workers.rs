//! The workers that have greeted, by process id.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::greeting::Greeting;
use crate::worker_handle::WorkerHandle;
use crate::worker_process::WorkerProcess;

/// The workers of an application, of all generations.
#[derive(Default)]
pub(crate) struct KnownWorkers {
    workers: Mutex<HashMap<u32, KnownWorker>>,
}

/// A process and its connections.
struct KnownWorker {
    process: Arc<WorkerProcess>,
    connections: Vec<Arc<WorkerHandle>>,
}

impl KnownWorkers {
    /// Returns the process that has sent `greeting`. For a worker with several connections it is
    /// the same one each time.
    pub(crate) fn greeted(
        &self,
        greeting: &Greeting,
        generation: u64,
        max_age: Option<Duration>,
    ) -> Arc<WorkerProcess> {
        let process = || Arc::new(WorkerProcess::new(greeting, generation, max_age));
        if greeting.connections == 1 {
            return process();
        }
        let mut workers = self.workers.lock();
        let known = workers.entry(greeting.pid);
        let known =
            known.or_insert_with(|| KnownWorker { process: process(), connections: Vec::new() });
        if known.process.generation != generation || !known.process.is_concurrent() {
            // The process id has been used again.
            *known = KnownWorker { process: process(), connections: Vec::new() };
        }
        Arc::clone(&known.process)
    }

    /// Registers a connection. It is the only one of a worker that serves one request at a time.
    pub(crate) fn register(&self, connection: &Arc<WorkerHandle>) {
        let process = &connection.process;
        let mut workers = self.workers.lock();
        let known = workers.entry(connection.pid).or_insert_with(|| KnownWorker {
            process: Arc::clone(process),
            connections: Vec::new(),
        });
        if !Arc::ptr_eq(&known.process, process) {
            *known = KnownWorker { process: Arc::clone(process), connections: Vec::new() };
        }
        known.connections.push(Arc::clone(connection));
    }

    /// Forgets the connections that have ended of workers that serve several requests. The request
    /// of another connection goes on.
    pub(crate) fn forget_ended_connections(&self) {
        for known in self.workers.lock().values_mut().filter(|known| known.process.is_concurrent())
        {
            let ended = known.connections.extract_if(.., |connection| connection.is_disconnected());
            ended.for_each(|ended| known.process.add_requests(ended.current.requests()));
        }
    }

    /// Returns the connections of all workers.
    pub(crate) fn connections(&self) -> Vec<Arc<WorkerHandle>> {
        let workers = self.workers.lock();
        workers.values().flat_map(|known| &known.connections).cloned().collect()
    }

    /// Returns the processes with their connections.
    pub(crate) fn with_connections(&self) -> Vec<(Arc<WorkerProcess>, Vec<Arc<WorkerHandle>>)> {
        let workers = self.workers.lock();
        let known = workers.values();
        known.map(|known| (Arc::clone(&known.process), known.connections.clone())).collect()
    }

    /// Returns the processes.
    pub(crate) fn processes(&self) -> Vec<Arc<WorkerProcess>> {
        self.workers.lock().values().map(|known| Arc::clone(&known.process)).collect()
    }

    /// Returns the process ids.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.workers.lock().keys().copied().collect()
    }

    /// Returns whether a process is still there.
    pub(crate) fn has(&self, process: &Arc<WorkerProcess>) -> bool {
        let workers = self.workers.lock();
        workers.get(&process.pid).is_some_and(|known| Arc::ptr_eq(&known.process, process))
    }

    /// Marks the processes of `pids` as leaving.
    pub(crate) fn let_leave(&self, pids: &HashSet<u32>) {
        let workers = self.workers.lock();
        pids.iter().filter_map(|pid| workers.get(pid)).for_each(|known| known.process.leave());
    }

    /// Ends the connections of a worker.
    pub(crate) fn disconnect(&self, pid: u32) {
        if let Some(known) = self.workers.lock().get(&pid) {
            known.connections.iter().for_each(|connection| connection.disconnect());
        }
    }

    /// Forgets the workers for which `is_lost` is true, and ends their connections.
    pub(crate) fn remove(&self, is_lost: impl Fn(&WorkerProcess) -> bool) {
        let mut workers = self.workers.lock();
        for (_, lost) in workers.extract_if(|_, known| is_lost(&known.process)) {
            lost.connections.iter().for_each(|connection| connection.disconnect());
        }
    }
}
