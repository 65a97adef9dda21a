//! The part of a worker that outlives the use of its connection: what the supervisor, the ring and
//! the status know of it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::net::Shutdown;

use crate::current_request::CurrentRequest;
use crate::greeting::Greeting;
use crate::parsed::Wanted;
use crate::replacement::{self, ReplaceReason};
use crate::stacks::PerlLayout;

/// The part of a worker that the supervisor keeps while a request uses the connection.
pub(crate) struct WorkerHandle {
    pub(crate) pid: u32,
    pub(crate) generation: u64,
    /// The parts of a request that Kirin parses for the worker.
    pub(crate) wanted: Wanted,
    /// Whether the worker can receive a body in a file as a descriptor.
    pub(crate) takes_descriptors: bool,
    /// Where the worker's stack is.
    pub(crate) stacks: Option<Arc<PerlLayout>>,
    /// When the worker greeted.
    pub(crate) started_at: Instant,
    /// The age at which the worker is replaced.
    lifetime: Option<Duration>,
    /// Whether the worker ran as Kirin's user when it greeted.
    greeted_as_same_user: bool,
    /// Whether the worker runs as Kirin's user. Checked when that first matters.
    same_user: OnceLock<bool>,
    /// Whether the worker ends after its present request.
    leaving: AtomicBool,
    /// Whether the end of the connection of an attached worker has been seen.
    has_hung_up: AtomicBool,
    /// Whether the front has ended the connection, or has dropped it after its end.
    is_disconnected: AtomicBool,
    socket: OwnedFd,
    /// The request that the worker has.
    pub(crate) current: CurrentRequest,
    /// Milliseconds on the application's clock at which the present request is overdue; 0 for no
    /// request, `KILLED` after the deadline.
    deadline: AtomicU64,
}

const KILLED: u64 = u64::MAX;

impl WorkerHandle {
    /// Returns the handle of a worker that has greeted on `socket`.
    pub(crate) fn new(
        greeting: Greeting,
        generation: u64,
        max_age: Option<Duration>,
        socket: OwnedFd,
    ) -> Self {
        Self {
            pid: greeting.pid,
            generation,
            wanted: greeting.wanted,
            takes_descriptors: greeting.takes_descriptors,
            stacks: greeting.stacks.map(Arc::new),
            started_at: Instant::now(),
            lifetime: max_age.map(|age| replacement::lifetime(age, replacement::random_fraction())),
            greeted_as_same_user: runs_as_us(greeting.pid).unwrap_or(false),
            same_user: OnceLock::new(),
            leaving: AtomicBool::new(false),
            has_hung_up: AtomicBool::new(false),
            is_disconnected: AtomicBool::new(false),
            socket,
            current: CurrentRequest::default(),
            deadline: AtomicU64::new(0),
        }
    }

    /// Ends the worker's connection. A reader sees the end.
    pub(crate) fn disconnect(&self) {
        self.is_disconnected.store(true, Ordering::Relaxed);
        // Fails only if the connection has ended already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        self.is_disconnected.load(Ordering::Relaxed)
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

    /// Marks the worker as leaving: it gets no further request. The caller must then remove it from
    /// the pool, where it may be idle.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Notes that the worker has ended its connection. What it sent before can still be read.
    pub(crate) fn note_hang_up(&self) {
        self.has_hung_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_hung_up(&self) -> bool {
        self.has_hung_up.load(Ordering::Relaxed)
    }

    /// Returns the socket of the worker's connection.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Marks the worker as killed because of a request in the ring. Returns false if it was killed
    /// already.
    pub(crate) fn condemn(&self) -> bool {
        self.deadline.swap(KILLED, Ordering::Relaxed) != KILLED
    }

    /// Sets the deadline of a new request.
    pub(crate) fn begin(&self, deadline_ms: u64) {
        self.deadline.store(deadline_ms.max(1), Ordering::Relaxed);
    }

    /// Sets a deadline, unless there is one.
    pub(crate) fn begin_if_none(&self, deadline_ms: u64) {
        let (deadline, relaxed) = (deadline_ms.max(1), Ordering::Relaxed);
        // Fails if a deadline runs, or if the worker has been killed.
        let _ = self.deadline.compare_exchange(0, deadline, relaxed, relaxed);
    }

    /// Removes the deadline. Returns false if the worker has been killed for it.
    pub(crate) fn end(&self) -> bool {
        self.deadline.swap(0, Ordering::Relaxed) != KILLED
    }

    /// Returns whether the worker has been killed because it took too long.
    pub(crate) fn is_killed(&self) -> bool {
        self.deadline.load(Ordering::Relaxed) == KILLED
    }

    /// Marks the worker as killed if its request is overdue. The request cannot end between the
    /// mark and the kill.
    pub(crate) fn condemn_if_overdue(&self, now_ms: u64) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        let overdue = deadline != 0 && deadline != KILLED && deadline < now_ms;
        overdue
            && self
                .deadline
                .compare_exchange(deadline, KILLED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
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
