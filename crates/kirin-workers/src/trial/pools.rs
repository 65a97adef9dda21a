//! The two pools of an application: one for the generation that serves, and one for the generation
//! that is on trial. Without a trial the second one is closed, and costs a comparison.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::capacity::Capacity;
use crate::pool::{Pool, Pooled};

/// No generation is on trial. Generations count from one.
const NONE: u64 = 0;

/// The workers that have no request, and the requests that have no worker.
pub(crate) struct Pools {
    serving: Arc<Pool<Capacity>>,
    trial: Arc<Pool<Capacity>>,
    /// The generation that is on trial, or [`NONE`].
    on_trial: AtomicU64,
}

impl Pools {
    /// Returns pools in which at most `limit` requests wait.
    pub(crate) fn new(limit: usize) -> Self {
        let serving = Pool::new(limit);
        let trial = Pool::beside(&serving, limit);
        Self { serving, trial, on_trial: AtomicU64::new(NONE) }
    }

    /// Returns the pool of the generation that serves.
    pub(crate) fn serving(&self) -> &Arc<Pool<Capacity>> {
        &self.serving
    }

    /// Returns the pool of the generation that is on trial.
    pub(crate) fn trial(&self) -> &Arc<Pool<Capacity>> {
        &self.trial
    }

    /// Returns whether a generation is on trial.
    pub(crate) fn has_trial(&self) -> bool {
        self.on_trial.load(Ordering::Relaxed) != NONE
    }

    /// Returns whether this generation is on trial.
    pub(crate) fn is_on_trial(&self, generation: u64) -> bool {
        self.on_trial.load(Ordering::Relaxed) == generation
    }

    /// Opens the pool for the workers of a generation.
    pub(crate) fn begin_trial(&self, generation: u64) {
        self.trial.open();
        self.on_trial.store(generation, Ordering::Relaxed);
    }

    /// Sends no further visitor to the generation that is on trial.
    pub(crate) fn end_choice(&self) {
        self.on_trial.store(NONE, Ordering::Relaxed);
    }

    /// Closes the pool of the trial after [`Pools::end_choice`]. Its idle workers go to the other
    /// pool. The requests that wait are refused, and take their turn there.
    pub(crate) fn merge(&self) {
        for worker in self.trial.close() {
            self.serving.release(worker);
        }
    }

    fn of(&self, generation: u64) -> &Arc<Pool<Capacity>> {
        if self.is_on_trial(generation) { &self.trial } else { &self.serving }
    }

    /// Gives a worker to a request that waits, or keeps it as idle.
    pub(crate) fn release(&self, worker: Capacity) {
        self.of(worker.generation()).release(worker);
    }

    /// Lets at most `length` requests wait for the workers of a generation.
    pub(crate) fn set_queue_length(&self, generation: u64, length: usize) {
        self.of(generation).set_queue_length(length);
    }

    /// Lets as many requests wait as before the promotion of the code that was on trial.
    pub(crate) fn keep_queue_length(&self) {
        self.serving.set_queue_length(self.trial.queue_length());
    }

    /// Drops the idle workers for which `is_lost` is true.
    pub(crate) fn remove_idle(&self, is_lost: impl Fn(&Capacity) -> bool) {
        drop(self.serving.remove_idle(&is_lost));
        drop(self.trial.remove_idle(&is_lost));
    }

    /// Drops the idle workers that are leaving.
    pub(crate) fn let_leaving_go(&self) {
        self.remove_idle(Capacity::is_leaving);
    }

    /// Returns the processes of connections that have no request.
    pub(crate) fn idle_workers(&self) -> Vec<u32> {
        let mut idle = self.serving.idle(Capacity::idle_worker);
        idle.extend(self.trial.idle(Capacity::idle_worker));
        idle
    }

    /// Returns how many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.serving.waiting() + self.trial.waiting()
    }

    /// Refuses the requests that have waited longer than `limit`. Returns how many.
    pub(crate) fn expire(&self, now: Instant, limit: Duration) -> usize {
        self.serving.expire(now, limit) + self.trial.expire(now, limit)
    }

    /// Refuses all requests from now on, and lets the idle workers go.
    pub(crate) fn close(&self) {
        self.end_choice();
        drop(self.serving.close());
        drop(self.trial.close());
    }
}
