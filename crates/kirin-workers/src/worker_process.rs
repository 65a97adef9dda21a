//! The process of a worker: what all its connections share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::greeting::Greeting;
use crate::parsed::Wanted;
use crate::replacement::{self, ReplaceReason};
use crate::stacks::StackLayout;

/// A process that has greeted.
pub(crate) struct WorkerProcess {
    pub(crate) pid: u32,
    pub(crate) generation: u64,
    /// The parts of a request that Kirin parses for the worker.
    pub(crate) wanted: Wanted,
    /// Whether the worker can receive a body in a file as a descriptor.
    pub(crate) takes_descriptors: bool,
    /// Where the worker's stack is.
    pub(crate) stacks: Option<Arc<StackLayout>>,
    /// How many connections the worker accepts at the same time.
    pub(crate) most_connections: usize,
    /// When the worker greeted first.
    started_at: Instant,
    /// The age at which the worker is replaced.
    lifetime: Option<Duration>,
    /// Whether the worker ran as Kirin's user when it greeted.
    greeted_as_same_user: bool,
    /// Whether the worker runs as Kirin's user. Checked when that first matters.
    same_user: OnceLock<bool>,
    /// Whether the worker ends after its present requests.
    leaving: AtomicBool,
    /// The requests that the worker has over its connections now.
    running: AtomicUsize,
    /// The requests over connections that have ended.
    requests_before: AtomicU64,
}

impl WorkerProcess {
    /// Returns the process that has sent a greeting.
    pub(crate) fn new(greeting: &Greeting, generation: u64, max_age: Option<Duration>) -> Self {
        Self {
            pid: greeting.pid,
            generation,
            wanted: greeting.wanted,
            takes_descriptors: greeting.takes_descriptors,
            stacks: greeting.stacks.clone().map(Arc::new),
            most_connections: greeting.connections,
            started_at: Instant::now(),
            lifetime: max_age.map(|age| replacement::lifetime(age, replacement::random_fraction())),
            greeted_as_same_user: runs_as_us(greeting.pid).unwrap_or(false),
            same_user: OnceLock::new(),
            leaving: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            requests_before: AtomicU64::new(0),
        }
    }

    /// Returns whether the worker serves several requests at the same time, each over a connection
    /// of its own.
    pub(crate) fn is_concurrent(&self) -> bool {
        self.most_connections > 1
    }

    /// Returns how long ago the worker greeted.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started_at)
    }

    /// Returns why the worker must be replaced, if so.
    pub(crate) fn replace_reason(
        &self,
        now: Instant,
        max_memory_bytes: Option<u64>,
    ) -> Option<ReplaceReason> {
        let age = self.age(now);
        if self.lifetime.is_some_and(|lifetime| age >= lifetime) {
            return Some(ReplaceReason::Age(age));
        }
        let limit = max_memory_bytes?;
        replacement::resident_bytes(self.pid)
            .filter(|resident| *resident > limit)
            .map(ReplaceReason::Memory)
    }

    /// Returns whether the worker runs as Kirin's user. Then it may read the same files.
    pub(crate) fn is_same_user(&self) -> bool {
        // If the worker has ended since its response, the answer of its greeting counts.
        *self.same_user.get_or_init(|| runs_as_us(self.pid).unwrap_or(self.greeted_as_same_user))
    }

    /// Marks the worker as leaving: it gets no further request. The caller must then remove its
    /// connections from the pool, where some may be idle.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Returns how many requests the worker has over its connections now.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_request(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_request(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns how many requests came over connections that have ended.
    pub(crate) fn requests_before(&self) -> u64 {
        self.requests_before.load(Ordering::Relaxed)
    }

    /// Keeps the number of requests of a connection that has ended.
    pub(crate) fn add_requests(&self, requests: u64) {
        self.requests_before.fetch_add(requests, Ordering::Relaxed);
    }
}

/// Returns whether a process runs as Kirin's user; `None` if it has ended.
fn runs_as_us(pid: u32) -> Option<bool> {
    effective_user(pid).map(|user| user == rustix::process::geteuid().as_raw())
}

/// Returns the effective user id of a process. `Uid:` in proc_pid_status(5) has the real one and
/// then the effective one.
fn effective_user(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_ascii_whitespace().nth(1)?.parse().ok()
}
